"""Rows of tables, from what the program prints and from files of the record."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from cachedyno import _histogram
from cachedyno._tables import Cell, Columns, Row, cell

_TEXTS = {
    "cell",
    "generator_threads",
    "kind",
    "network_interface",
    "operation",
    "product",
    "purpose",
    "reason",
    "run",
    "server_threads",
    "servers",
    "target",
    "validity",
    "verdict",
    "workload",
}
"""Columns of CSV whose values stay texts, even one that looks like a number."""
_KINDS = ("service", "response", "lag", "lock_wait", "connect")


def results(summary: dict[str, Any]) -> list[Row]:
    """Return a row for each result, each load in stages, and each search of a summary."""
    run: Row = {"run": cell(summary["run"]), "validity": cell(summary["validity"])}
    products = {t["name"]: cell(t["product"]) for t in summary.get("targets", [])}
    rows: list[Row] = []
    for result in summary.get("cells", []):
        row = run | _what(result) | _metrics(result["metrics"])
        counts = result["counts"]
        rows.append(row | {k: v for k, v in counts.items() if isinstance(v, int)})
    for ramp in summary.get("ramps", []):
        row = run | _what(ramp) | {"outcome": cell(ramp["outcome"])}
        row["product"] = products.get(ramp["target"])
        rows.append(row | _metrics(ramp["metrics"]))
    for search in summary.get("searches", []):
        row = run | _what(search) | {"outcome": cell(search["outcome"])}
        row["product"] = products.get(search["target"])
        row["limits"] = ", ".join(search["limits"])
        row |= _metrics({"highest_per_s": search["answer"]}) | _metrics(search.get("costs", {}))
        rows.append(row | {"peak_per_s": search.get("peak_per_s")})
    return rows


def _what(result: dict[str, Any]) -> Row:
    load: dict[str, Any] = result["load"]
    schedule: dict[str, Any] = load.get("schedule") or {}
    is_planned = load.get("arrivals") != "closed"
    return {
        "workload": cell(result["workload"]),
        "target": cell(result["target"]),
        "product": cell(result.get("product")),
        "operation": cell(result["operation"]),
        "arrivals": cell(load.get("arrivals")),
        "clients": cell(load.get("clients")),
        "pipeline": cell(load.get("pipeline")),
        "one_session": cell(load.get("one_session")),
        "planned_per_s": cell(schedule.get("steady")) if is_planned else None,
        "blocks": cell(result.get("blocks")),
    }


def _metrics(metrics: dict[str, Any]) -> Row:
    """Return three columns for each metric: its center, and `_lo` and `_hi` of its interval."""
    row: Row = {}
    for name, value in metrics.items():
        if isinstance(value, dict):
            interval = cast("dict[str, Any]", value)
            at_least = interval.get("at_least")
            row[name] = interval.get("center") if at_least is None else math.inf
            row[name + "_lo"] = interval.get("lo") if at_least is None else at_least
            row[name + "_hi"] = interval.get("hi")
        else:
            row |= {name: cell(value), name + "_lo": None, name + "_hi": None}
    return row


def from_csv(text: str) -> list[Row]:
    """Return the lines of a CSV of the program; an empty field is None, and `>=N` is infinity."""
    return [
        {
            name: (value or None) if name in _TEXTS else _number(value)
            for name, value in line.items()
        }
        for line in csv.DictReader(text.splitlines())
    ]


def _number(text: str) -> Cell:
    if text in ("", "true", "false"):
        return None if text == "" else text == "true"
    if text.startswith(">="):
        return math.inf
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


def trials(record: Path) -> list[dict[str, Any]]:
    """Return the lines of `trials.jsonl`: the last one of each cell and block."""
    last: dict[tuple[str, int], dict[str, Any]] = {}
    path = record / "trials.jsonl"
    # Without a line feed a line is incomplete.
    lines = path.read_bytes().split(b"\n")[:-1] if path.is_file() else []
    for number, line in enumerate(lines, 1):
        try:
            trial = json.loads(line)
            place = (trial["cell"], trial["block"])
        except (ValueError, KeyError, TypeError) as e:
            raise ValueError(f"{path}:{number}: not a trial: {e}") from e
        last.pop(place, None)
        last[place] = trial
    return list(last.values())


def histograms(record: Path) -> Columns:
    """Return columns with a row for each value of each distribution of each trial.

    `export --hgrm` prints whole microseconds at best, so the stored distributions are read.
    """
    header: dict[str, Any] = json.loads((record / "header.json").read_bytes())
    cells = {c["id"]: c for c in header["plan"]["cells"]}
    columns: Columns = {}
    for trial in trials(record):
        for what, text in _distributions(trial, cells[trial["cell"]]):
            counted = _histogram.decode(text)
            for name, value in what.items():
                columns.setdefault(name, []).extend([value] * len(counted))
            columns.setdefault("value_ns", []).extend(value for value, _ in counted)
            columns.setdefault("count", []).extend(count for _, count in counted)
    return columns


def _distributions(trial: dict[str, Any], planned: dict[str, Any]) -> Iterator[tuple[Row, str]]:
    """Yield what each distribution of a trial is about, and its text."""
    for point in trial["points"]:
        probe: dict[str, Any] = point.get("probe") or {}
        phase = str(point["phase"])
        for operation in point["operations"]:
            name = str(operation["operation"])
            is_part = len(point["operations"]) > 1 and name != phase
            what: Row = {
                "block": cell(trial["block"]),
                "cell": cell(trial["cell"]),
                "target": cell(planned["target"]),
                "workload": cell(planned["workload"].get("profile")),
                "phase": phase,
                "stage": cell(point.get("stage")),
                "probe": cell(probe.get("purpose")),
                # As in results.
                "operation": f"{phase}.{name}" if is_part else name,
            }
            for kind in _KINDS:
                text: object = operation.get(kind)
                if isinstance(text, str) and text:
                    yield what | {"kind": kind}, text
