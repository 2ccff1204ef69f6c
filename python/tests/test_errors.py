from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cachedyno
from cachedyno import _program
from conftest import SHORT, Fake

SUMMARY = '{"format": 1, "run": "0123abcd", "validity": "valid", "reasons": []}'


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (1, cachedyno.CachedynoError),
        (2, cachedyno.UsageError),
        (3, cachedyno.TargetError),
        (5, cachedyno.RequirementError),
        (6, cachedyno.CachedynoError),
        (130, cachedyno.Interrupted),
    ],
)
def test_exit_codes_have_exceptions(fake: Fake, code: int, kind: type[BaseException]) -> None:
    fake.ends(code, error="note: ignored\nerror: `x` is wrong\n  (expected y)\n", output=SUMMARY)
    with pytest.raises(kind) as caught:
        cachedyno.bench("redis")
    error = caught.value
    assert type(error) is kind
    assert isinstance(error, cachedyno.CachedynoError | cachedyno.Interrupted)
    assert (error.exit_code, str(error)) == (code, "`x` is wrong\n  (expected y)")
    assert error.record is not None
    assert error.record.path.name.endswith("-0123abcd")
    copied = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert (type(copied), copied.exit_code, str(copied)) == (kind, code, str(error))


def test_a_target_that_cannot_be_used_is_named_with_its_reason(fake: Fake) -> None:
    targets = [
        {"name": "own", "not_run": None},
        {"name": "x", "not_run": "refused: database 0 is not empty (pass --allow-shared)"},
    ]
    fake.ends(3, output=json.dumps({**json.loads(SUMMARY), "targets": targets}))
    with pytest.raises(cachedyno.TargetError) as caught:
        cachedyno.bench("own", "x=redis://h")
    assert str(caught.value) == "x: refused: database 0 is not empty (pass --allow-shared)"


def test_how_workers_join_is_printed(fake: Fake, capfd: pytest.CaptureFixture[str]) -> None:
    waits = "waiting for 2 workers: start each with `cachedyno worker --join h:1`\n"
    fake.ends(0, error=f"note: other\n{waits}worker 1 has joined\n", output=SUMMARY)
    cachedyno.bench("redis", fleet=cachedyno.fleet("listen", workers=2, address="h:1"))
    assert capfd.readouterr().err == waits


def test_an_unmet_requirement_is_named_with_its_value(fake: Fake) -> None:
    required: list[dict[str, Any]] = [
        {"requirement": "p99<1000000ns", "words": "p99 < 1 ms", "is_met": False},
        {"requirement": "errors<0.01", "words": "errors < 1 %", "is_met": True},
        {"requirement": "hits>0.5", "words": "hits > 0.5", "is_met": False, "measured": None},
    ]
    required[0]["measured"] = {"center": 2623487.4, "lo": None, "hi": None}
    row = {"target": "redis", "operation": "mixed", "required": required}
    fake.ends(5, output=json.dumps({**json.loads(SUMMARY), "cells": [row]}))
    with pytest.raises(cachedyno.RequirementError) as caught:
        cachedyno.bench("redis", require="p99<1ms")
    assert str(caught.value) == (
        "redis mixed: p99 < 1 ms, measured 2,623,487 ns; redis mixed: hits > 0.5, measured nothing"
    )


@pytest.mark.parametrize("code", [0, 4])
def test_a_result_is_no_exception(fake: Fake, code: int) -> None:
    fake.ends(code, output=SUMMARY)
    assert cachedyno.bench("redis").run == "0123abcd"


@pytest.mark.parametrize("output", ["", "no JSON", "[]", '{"format": 2, "run": "0123abcd"}'])
def test_a_result_without_a_summary_is_an_error(fake: Fake, output: str) -> None:
    fake.ends(0, output=output)
    with pytest.raises(cachedyno.CachedynoError):
        cachedyno.bench("redis")


def scripts_in(place: str) -> Callable[..., str]:
    def get_path(*_: object) -> str:
        return place

    return get_path


def test_the_program_is_found(monkeypatch: pytest.MonkeyPatch, fake: Fake) -> None:
    assert _program.find() == fake.path
    monkeypatch.delenv("CACHEDYNO")
    monkeypatch.setenv("PATH", str(fake.place))
    monkeypatch.setattr("sysconfig.get_path", scripts_in("/nowhere"))
    assert _program.find() == fake.path
    monkeypatch.setattr("sysconfig.get_path", scripts_in(str(fake.place)))
    monkeypatch.setenv("PATH", "/nowhere")
    assert _program.find() == fake.path
    monkeypatch.setenv("CACHEDYNO", "/nowhere/cachedyno")
    with pytest.raises(FileNotFoundError, match="/nowhere"):
        _program.find()


def test_the_real_program_reports_errors(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    del program
    # As in a notebook.
    monkeypatch.setenv("CLICOLOR_FORCE", "1")
    with pytest.raises(cachedyno.UsageError) as wrong:
        cachedyno.bench("redis", rate="fast")
    assert str(wrong.value).startswith("invalid value 'fast' for '--rate <PER SECOND>': `fast` is")
    assert str(wrong.value).endswith("for example 50000, 20k or 1.5M")
    with pytest.raises(cachedyno.UsageError, match="--no-such-flag") as usage:
        cachedyno.bench("redis", no_such_flag=True)
    assert usage.value.record is None
    with pytest.raises(cachedyno.TargetError, match=r"refused|not installed"):
        cachedyno.bench("redis=redis://127.0.0.1:1/0", **SHORT)
    with pytest.raises(cachedyno.UsageError, match="no run"):
        cachedyno.open("latest")


INTERRUPTED = """
import cachedyno, signal
# Background jobs of a shell ignore it, and so would their children.
signal.signal(signal.SIGINT, signal.default_int_handler)
def progress(event):
    if event.event == "point":
        print("measuring", flush=True)
try:
    cachedyno.bench("redis", progress=progress, blocks=1, clients=2, keys=500, duration="60s")
except cachedyno.Interrupted as e:
    print(e.exit_code, e.record.summary["status"], e.record.path)
"""


def measuring() -> subprocess.Popen[str]:
    """Return an interpreter that measures."""
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "measuring\n"
    return process


def test_an_interrupt_seals_the_record(program: str, redis: str) -> None:
    del program, redis
    with measuring() as process:
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        last = process.stdout.read().splitlines()[-1]
    code, status, path = last.split(" ", 2)
    assert (process.returncode, code, status) == (0, "130", "interrupted")
    assert (Path(path) / "seal.json").is_file()


def test_a_run_ends_with_a_killed_interpreter(program: str, redis: str, tmp_path: Path) -> None:
    del program, redis
    with measuring() as process:
        process.kill()
    until = time.monotonic() + 30
    while not (sealed := list(tmp_path.glob("*/*/seal.json"))) and time.monotonic() < until:
        time.sleep(0.1)
    assert len(sealed) == 1
    assert cachedyno.open("latest").summary["status"] == "interrupted"


def test_an_exception_of_the_callback_stops_the_run(program: str, redis: str) -> None:
    del program, redis

    def progress(event: cachedyno.Progress) -> None:
        if event.event == "point":
            raise LookupError(event.phase)

    flags: dict[str, Any] = {**SHORT, "duration": "60s"}
    with pytest.raises(LookupError, match="mixed"):
        cachedyno.bench("redis", progress=progress, **flags)
    assert cachedyno.open("latest").summary["status"] == "interrupted"
