"""Running measurements and opening records."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cachedyno import _flags, _program
from cachedyno._errors import RESULT_CODES, UNMET, UNUSABLE, CachedynoError, failure
from cachedyno._fleet import Fleet
from cachedyno._progress import Events, Progress
from cachedyno._record import Record
from cachedyno._tables import Tables

_SUMMARY_FORMAT = 1
_RECORDS = "cachedyno-records"
"""Where the program puts records without `--out`."""

Callback = Callable[[Progress], object]


def run(
    study: str | os.PathLike[str] | None = None,
    *,
    targets: Iterable[str] = (),
    set: Mapping[str, object] | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: Callback | None = None,
    tables: Tables | None = None,
    args: Sequence[str] = (),
    **flags: object,
) -> Record:
    """Measure a study, as `cachedyno run STUDY` does.

    study: name of a shipped study, or path of a study file; None with `resume=RUN`.
    targets: each `[LABEL:]NAME[=URL|=DIRECTORY]`; without any, those of the study.
    set: values of the study to replace, as in `{"profile": "page", "redis.appendonly": "yes"}`.
    out: directory of the records, `cachedyno-records` by default.
    progress: called in this thread with events of the run, about four times a second.
    tables: library of the record's tables.
    args: further arguments of the program.
    flags: any other flag, as in `scale="quick"`, `seed=1`, `allow_shared=True`.

    Returns the record, also of a run that is INVALID or NOT-STEADY (`Record.verdict`).
    """
    positional = [] if study is None else [os.fspath(study)]
    flags = {"target": _listed(targets), "set": set, **flags}
    return _measured(["run", *positional], flags, args, out, progress, tables)


def bench(
    *targets: str,
    fleet: Fleet | str | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: Callback | None = None,
    tables: Tables | None = None,
    args: Sequence[str] = (),
    **flags: object,
) -> Record:
    """Measure a key-value load, as `cachedyno bench TARGET...` does.

    targets: names of products, for private servers, or URLs, or `NAME=URL`.
    fleet: load generators, from `cachedyno.fleet`, or the value of `--fleet`.
    flags: any flag, as in `rate="20k"`, `op="get=0.9,set=0.1"`, `clients=50`, `pipeline=16`,
        `value="1KiB"`, `keys="1M"`, `duration="10s"`, `no_fill=True`.

    Other arguments, and what is returned, are those of `run`.
    """
    return _measured(["bench", *targets], {"fleet": fleet, **flags}, args, out, progress, tables)


def find_max(
    *targets: str,
    slo: str | Iterable[str],
    fleet: Fleet | str | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: Callback | None = None,
    tables: Tables | None = None,
    args: Sequence[str] = (),
    **flags: object,
) -> Record:
    """Search the highest rate within limits, as `cachedyno find-max TARGET... --slo LIMIT` does.

    slo: limits, as in `"p99<1ms"` or `["p99<1ms", "error<0.01%"]`.

    Other arguments, and what is returned, are those of `bench`.
    """
    flags = {"slo": slo, "fleet": fleet, **flags}
    return _measured(["find-max", *targets], flags, args, out, progress, tables)


def open(
    run: str | os.PathLike[str] = "latest",
    *,
    out: str | os.PathLike[str] | None = None,
    tables: Tables | None = None,
) -> Record:
    """Open a record: by path, id, unique prefix of an id, or `latest`.

    out: directory of the records, `cachedyno-records` by default.
    tables: library of the record's tables.
    """
    wanted = os.fspath(run)
    flags = _flags.to_arguments({"out": out})
    ended = _program.run(["show", wanted, "--format", "json", *flags])
    if ended.exit_code not in RESULT_CODES:
        raise failure(ended.exit_code, ended.error)
    summary = _summary(ended.output)
    return Record(_path(summary["run"], out, wanted), summary, tables=tables)


def _measured(
    command: Sequence[str],
    flags: Mapping[str, object],
    args: Sequence[str],
    out: str | os.PathLike[str] | None,
    progress: Callback | None,
    tables: Tables | None,
) -> Record:
    given = [*command, *_flags.to_arguments({"out": out, **flags}), *args]
    events = None
    if progress is not None:
        serve = flags.get("serve")
        events = Events(serve if isinstance(serve, str) else None)
        given += [] if serve else ["--serve", events.address]
    arguments, variables = _flags.hide_passwords([*given, "--format", "json"])
    ended = _program.run(arguments, variables=variables, events=events, progress=progress)
    record = None
    if ended.output.strip():
        summary = _summary(ended.output)
        record = Record(_path(summary["run"], out, flags.get("resume")), summary, tables=tables)
    if ended.exit_code not in RESULT_CODES or record is None:
        reasons = {UNMET: _unmet, UNUSABLE: _unusable}.get(ended.exit_code)
        reason = reasons(record.summary) if reasons and record is not None else ""
        raise failure(ended.exit_code, reason or ended.error, record)
    return record


def _unusable(summary: dict[str, Any]) -> str:
    """Say why targets were not run."""
    targets = summary.get("targets", [])
    return "; ".join(f"{one['name']}: {one['not_run']}" for one in targets if one.get("not_run"))


def _unmet(summary: dict[str, Any]) -> str:
    """Name the requirements that a run does not meet, with what it measured."""
    unmet = [
        f"{row['target']} {row['operation']}: {one['words']}, measured {_measured_value(one)}"
        for row in summary.get("cells", [])
        for one in row.get("required", [])
        if not one["is_met"]
    ]
    return "; ".join(unmet)


def _measured_value(required: dict[str, Any]) -> str:
    if required["measured"] is None:
        return "nothing"
    value: float = required["measured"]["center"]
    unit = " ns" if required["requirement"].endswith("ns") else ""
    return (f"{value:,.0f}" if value >= 100 else f"{value:.3g}") + unit


def _listed(targets: Iterable[str]) -> list[str]:
    return [targets] if isinstance(targets, str) else list(targets)


def _summary(text: str) -> dict[str, Any]:
    try:
        summary = json.loads(text)
        version = summary["format"]
    except (ValueError, KeyError, TypeError) as e:
        raise CachedynoError(f"the program printed no summary: {e}", 0) from e
    if version != _SUMMARY_FORMAT:
        raise CachedynoError(
            f"the summary has format `{version}` (expected {_SUMMARY_FORMAT}: install the package "
            "and the program in the same version)",
            0,
        )
    return summary


def _path(run: str, out: str | os.PathLike[str] | None, wanted: object) -> Path:
    """Return the directory of a run: what the user named, or `<time>-<study>-<id>` in `out`."""
    # The program takes a directory of that name before an id.
    if isinstance(wanted, str | Path) and Path(wanted).is_dir():
        return Path(wanted).absolute()
    records = Path(_RECORDS if out is None else out)
    found = [p for p in records.iterdir() if p.name.endswith("-" + run) and p.is_dir()]
    if len(found) != 1:
        raise CachedynoError(f"{len(found)} records of run `{run}` in `{records}`, expected 1", 0)
    return found[0].absolute()
