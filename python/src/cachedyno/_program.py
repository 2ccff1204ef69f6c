"""Finding and running the program `cachedyno`."""

from __future__ import annotations

import os
import queue
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from cachedyno._progress import Events, Progress

_MASKED_CHARACTERS_MIN = 3
"""Minimum length of a password that is masked in messages, as in the program."""
_WAITING = b"waiting for "
"""How the line begins that says how workers join."""
_TICK_S = 0.2
"""How often the end of the program is looked for between two events."""


def find() -> Path:
    """Return the path of the program.

    It is the one that the environment variable CACHEDYNO names, else the one that was installed
    with this package, else the one on the PATH. Raises FileNotFoundError if there is none.
    """
    if named := os.environ.get("CACHEDYNO"):
        if found := shutil.which(named):
            return Path(found).absolute()
        raise FileNotFoundError(f"CACHEDYNO names `{named}`, which is no program")
    schemes = (sysconfig.get_default_scheme(), f"{os.name}_user")
    places = [sysconfig.get_path("scripts", scheme) for scheme in schemes]
    # `pip install --target DIR` puts programs into DIR/bin.
    places.append(str(Path(__file__).parents[1] / "bin"))
    for place in [*places, None]:
        if found := shutil.which("cachedyno", path=place):
            return Path(found).absolute()
    raise FileNotFoundError(
        "the program `cachedyno` is not installed (expected in "
        f"{places[0]}, on the PATH, or named by the environment variable CACHEDYNO)"
    )


@dataclass(frozen=True)
class Ended:
    """A program that ended."""

    exit_code: int
    """Exit code; negative for the signal that ended it."""
    output: str
    """What it printed on standard output."""
    error: str
    """Its error message: lines after `error: ` on standard error, or all of that without one."""


def run(
    arguments: Sequence[str],
    *,
    variables: Mapping[str, str] | None = None,
    events: Events | None = None,
    progress: Callable[[Progress], object] | None = None,
) -> Ended:
    """Run the program until it ends.

    On KeyboardInterrupt the program gets SIGINT once, so it can seal its record, and is waited for;
    the exit code is then 130. `progress` is called in this thread with the events of the run. If it
    raises, the program is stopped in the same way, and the exception is raised afterwards.
    """
    process = subprocess.Popen(
        [find(), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={
            **os.environ,
            # Notebooks ask for colours.
            "NO_COLOR": "1",
            # It starts workers on Ray with this interpreter.
            "CACHEDYNO_PYTHON": sys.executable,
            # It ends as on Ctrl-C if this process is killed, for example with a notebook's kernel.
            "CACHEDYNO_PARENT": str(os.getpid()),
            **(variables or {}),
        },
        # In a group of its own, a Ctrl-C in the terminal reaches it only through this package:
        # a second SIGINT would make it exit without sealing the record.
        start_new_session=True,
    )
    output, errors = _Reader(process.stdout), _Reader(process.stderr, shown=_WAITING)
    raised: BaseException | None = None
    while process.poll() is None:
        try:
            if raised is None and events is not None and progress is not None:
                _follow(process, events, progress)
            process.wait()
        except BaseException as e:
            if not isinstance(raised, Exception):
                raised = e
            process.send_signal(signal.SIGINT)
    exit_code, printed, said = process.returncode, output.text(), errors.text()
    if raised is not None and not isinstance(raised, KeyboardInterrupt):
        raise raised
    if isinstance(raised, KeyboardInterrupt):
        exit_code = 128 + signal.SIGINT
    message = _masked(_message(said), (variables or {}).values())
    return Ended(exit_code, printed, message or f"it ended with exit code {exit_code}")


def _follow(
    process: subprocess.Popen[bytes], events: Events, progress: Callable[[Progress], object]
) -> None:
    """Pass on events until the process has ended."""
    arrived = events.follow(lambda: process.poll() is None)
    while True:
        try:
            event = arrived.get(timeout=_TICK_S)
        except queue.Empty:
            if process.poll() is not None:
                return
            continue
        if event is None:
            return
        progress(event)


class _Reader:
    """Reads a pipe to its end in a thread, so that the program never waits for it.

    Lines that begin with `shown` are printed on standard error at once.
    """

    def __init__(self, pipe: IO[bytes] | None, shown: bytes | None = None) -> None:
        self._lines: list[bytes] = []
        self._pipe = pipe
        self._shown = shown
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        if self._pipe is None:
            return
        with self._pipe:
            for line in self._pipe:
                self._lines.append(line)
                if self._shown is not None and line.startswith(self._shown):
                    print(line.decode(errors="replace"), end="", file=sys.stderr, flush=True)

    def text(self) -> str:
        self._thread.join()
        return b"".join(self._lines).decode(errors="replace")


def _message(said: str) -> str:
    """Return the text from the last `error: ` on; all of it without one.

    The pointer to `--help`, which is for a terminal, is left out.
    """
    lines = said.partition("\nFor more information, try")[0].strip().splitlines()
    starts = [at for at, line in enumerate(lines) if line.startswith("error: ")]
    return "\n".join(lines[starts[-1] :]).removeprefix("error: ") if starts else "\n".join(lines)


def _masked(text: str, secrets: Iterable[str]) -> str:
    """Mask passwords, which the program masks as well, in case that an error repeats one."""
    for secret in secrets:
        if len(secret) >= _MASKED_CHARACTERS_MIN:
            text = text.replace(secret, "***")
    return text
