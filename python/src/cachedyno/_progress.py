"""Progress of a run: the events that the program serves under `/events`.

docs/FORMAT.md describes the events. They come twice a second, from a thread of the program on the
CPUs of the generator, as for a viewer of the live page.
"""

from __future__ import annotations

import http.client
import json
import queue
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

_CONNECT_EVERY_S = 0.1


@dataclass(frozen=True)
class Progress:
    """An event of a run, and where the run is."""

    event: str
    """Name of the event: `snapshot`, `state`, `point` or `usage`."""
    data: dict[str, Any]
    """Its data, as docs/FORMAT.md describes it."""
    done_share: float
    """Share of the run that is done, 0 to 1, as estimated at the start of the trial."""
    left_s: float | None
    """Seconds left, estimated likewise; None if unknown."""
    target: str | None
    """Target of the trial; None between trials."""
    phase: str | None
    """Phase of the trial; None if it has none now."""
    rate_per_s: float | None
    """Operations answered per second in the last half second of the phase; None before it."""
    ns_p99: float | None
    """Largest 99th percentile of an operation in it, nanoseconds; None if there is none."""


class Events:
    """The stream of events of one run, at an address on which the program will listen."""

    def __init__(self, address: str | None = None) -> None:
        """Listen at `HOST:PORT`, or at a free port of 127.0.0.1."""
        if address is None:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                address = f"127.0.0.1:{free.getsockname()[1]}"
        self.address = address
        parts = urlsplit("//" + address)
        host = parts.hostname or ""
        self._host = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
        self._port = parts.port or 0
        self._state: dict[str, Any] = {}
        self._point: dict[str, Any] | None = None

    def follow(self, is_running: Callable[[], bool]) -> queue.Queue[Progress | None]:
        """Return the queue of events, which a thread fills; None follows the last one."""
        arrived: queue.Queue[Progress | None] = queue.Queue()

        def read() -> None:
            try:
                self._read(is_running, arrived)
            except (OSError, http.client.HTTPException, ValueError):
                # The program is the judge of a run; without events, only progress is missing.
                pass
            finally:
                arrived.put(None)

        threading.Thread(target=read, daemon=True).start()
        return arrived

    def _read(self, is_running: Callable[[], bool], arrived: queue.Queue[Progress | None]) -> None:
        while True:
            connection = http.client.HTTPConnection(self._host, self._port)
            try:
                connection.request("GET", "/events")
                break
            except OSError:
                connection.close()
                if not is_running():
                    return
                time.sleep(_CONNECT_EVERY_S)
        try:
            name = ""
            for line in connection.getresponse():
                key, _, value = line.decode().rstrip("\r\n").partition(": ")
                if key == "event":
                    name = value
                elif key == "data":
                    arrived.put(self._progress(name, json.loads(value)))
                    # The program waits for its viewers at the end.
                    if self._state.get("ended"):
                        return
        finally:
            connection.close()

    def _progress(self, name: str, data: dict[str, Any]) -> Progress:
        if name in ("snapshot", "state"):
            self._state = data["state"] if name == "snapshot" else data
        elif name == "point":
            self._point = data
        now: dict[str, Any] = self._state.get("now") or {}
        phase = now.get("phase")
        point = self._point or {}
        if (point.get("target"), point.get("phase")) != (now.get("target"), phase):
            point = {}
        # A percentile among failed operations has a lower bound only, and is no number.
        times = [operation.get("ns_p99") for operation in point.get("operations", [])]
        return Progress(
            event=name,
            data=data,
            done_share=self._state.get("done_share", 0.0),
            left_s=self._state.get("left_s"),
            target=now.get("target"),
            phase=phase,
            rate_per_s=point.get("rate_per_s"),
            ns_p99=max((t for t in times if isinstance(t, int | float)), default=None),
        )
