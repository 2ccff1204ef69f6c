"""Tests run the program that CACHEDYNO names, in a directory of their own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import cachedyno

SHORT: dict[str, Any] = {
    "blocks": 1,
    "clients": 2,
    "duration": "500ms",
    "keys": 500,
    "warmup": "50ms",
}
"""Flags of a bench of a second."""


@pytest.fixture(scope="session")
def program() -> str:
    """Return the path of the real program."""
    if not (path := os.environ.get("CACHEDYNO")):
        pytest.skip("CACHEDYNO does not name a built program")
    return path


@pytest.fixture(scope="session")
def redis() -> str:
    """Return the path of redis-server."""
    if not (path := shutil.which("redis-server")):
        pytest.skip("redis-server is not installed")
    return path


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a short directory for temporary files, with its own measurement lock.

    Servers listen on sockets in it, whose paths are limited to about a hundred characters.
    """
    place = tmp_path_factory.mktemp("t")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(place))
        yield place


@pytest.fixture(autouse=True)
def separate(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each test in an empty directory, with tables chosen automatically."""
    del home
    monkeypatch.chdir(tmp_path)
    cachedyno.set_tables("auto")


@pytest.fixture(scope="session")
def events() -> list[cachedyno.Progress]:
    """Return the events of the run of `measured`."""
    return []


@pytest.fixture(scope="session")
def measured(
    program: str,
    redis: str,
    home: Path,
    tmp_path_factory: pytest.TempPathFactory,
    events: list[cachedyno.Progress],
) -> cachedyno.Record:
    """Return the record of a real run of a second, with its events in `events`."""
    del program, redis, home
    out = tmp_path_factory.mktemp("records")
    return cachedyno.bench("redis", out=out, progress=events.append, seed=1, **SHORT)


class Fake:
    """A program that records its arguments and environment, and ends as it is told."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.path = place / "cachedyno"
        self.path.write_text(
            "#!/bin/sh\n"
            f"cd '{place}'\n"
            'for a in "$@"; do printf "%s\\n" "$a"; done > arguments\n'
            "env > environment\n"
            "cat error >&2\n"
            "cat output\n"
            "exit $(cat code)\n"
        )
        self.path.chmod(0o755)
        self.ends(0, output='{"format": 1, "run": "0123abcd"}')

    def ends(self, code: int, *, output: str = "", error: str = "") -> None:
        """Set its exit code and what it prints."""
        for name, text in {"code": str(code), "output": output, "error": error}.items():
            (self.place / name).write_text(text)

    @property
    def arguments(self) -> list[str]:
        return (self.place / "arguments").read_text().splitlines()

    @property
    def environment(self) -> list[str]:
        return (self.place / "environment").read_text().splitlines()


@pytest.fixture
def fake(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Fake:
    """Return a program in place of the real one, whose run `0123abcd` has a directory."""
    (tmp_path / "cachedyno-records" / "20260101T000000Z-bench-0123abcd").mkdir(parents=True)
    fake = Fake(tmp_path_factory.mktemp("fake"))
    monkeypatch.setenv("CACHEDYNO", str(fake.path))
    return fake
