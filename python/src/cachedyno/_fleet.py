"""The load generators of a measurement, as the flag `--fleet` takes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Fleet:
    """Load generators of a measurement; `str` gives the value of `--fleet`."""

    kind: Literal["local", "listen", "ray"]
    """Processes on this machine, workers that connect by themselves, or actors of Ray."""
    workers: int
    """Number of workers, at least 1."""
    address: str | None = None
    """`HOST:PORT` on which workers are awaited, of kind `listen` only."""

    def __post_init__(self) -> None:
        if self.kind not in ("local", "listen", "ray"):
            raise ValueError(f"unknown kind of fleet `{self.kind}` (expected local, listen or ray)")
        # A bool is an int, and callers need not be typed.
        if type(self.workers) is not int or self.workers < 1:
            raise ValueError(f"a fleet of `{self.workers}` workers (expected a number from 1)")
        if (self.kind == "listen") != (self.address is not None):
            raise ValueError("a fleet has an `address` if it is of kind listen, and only then")
        if self.address is not None and not self.address.rpartition(":")[2].isdecimal():
            raise ValueError(f"a fleet at `{self.address}` (expected HOST:PORT)")

    def __str__(self) -> str:
        if self.address is not None:
            return f"listen:{self.address},{self.workers}"
        return f"{self.kind}:{self.workers}"


def fleet(
    kind: Literal["local", "listen", "ray"], *, workers: int, address: str | None = None
) -> Fleet:
    """Return load generators for `bench(..., fleet=...)`.

    `fleet("ray", workers=8)` places 8 workers on 8 nodes of a Ray cluster, `fleet("local",
    workers=3)` starts 3 processes here, and `fleet("listen", address="0.0.0.0:7000", workers=8)`
    waits for 8 workers that connect to the address.
    """
    return Fleet(kind, workers, address)
