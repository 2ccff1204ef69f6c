from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, cast

import pytest

import cachedyno
from cachedyno import _histogram, _rows, _tables
from conftest import Fake

LIBRARIES = ("pandas", "polars", "pyarrow")


def test_a_run_has_events(measured: cachedyno.Record, events: Sequence[cachedyno.Progress]) -> None:
    assert measured.run
    assert events[0].event == "snapshot"
    assert {event.event for event in events} >= {"state", "point", "usage"}
    points = [event for event in events if event.event == "point"]
    assert points[-1].target == "redis"
    assert points[-1].phase == "mixed"
    assert (points[-1].rate_per_s or 0) > 100
    assert 1e3 < (points[-1].ns_p99 or 0) < 1e10
    assert events[-1].done_share == 1


def test_a_record_is_opened_again(measured: cachedyno.Record) -> None:
    out = measured.path.parent
    for wanted in (measured.path, measured.run, measured.run[:5], "latest", measured.path.name):
        again = cachedyno.open(wanted, out=out)
        assert (again.path, again.run) == (measured.path, measured.run)
        assert again.summary == measured.summary
    with pytest.raises(cachedyno.UsageError, match="no run"):
        cachedyno.open("zzz", out=out)


def test_a_record_has_an_answer_and_a_verdict(measured: cachedyno.Record) -> None:
    assert measured.answer.startswith("get=0.9,set=0.1, 2 clients: redis reached ")
    verdict = measured.verdict
    # One block is never enough for an interval.
    assert verdict.validity in ("unreplicated", "not-steady", "invalid")
    assert any("needs 3" in reason for reason in verdict.reasons)
    assert str(verdict).startswith(verdict.validity.upper() + ": ")
    assert verdict.is_usable == (verdict.validity == "unreplicated")
    assert measured.run in repr(measured)


def test_tables_agree_with_each_other(measured: cachedyno.Record) -> None:
    results = measured.rows("results")
    assert [row["operation"] for row in results] == ["mixed", "mixed.get", "mixed.set"]
    for row in results:
        assert (row["target"], row["clients"], row["planned_per_s"]) == ("redis", 2, None)
        assert (row["rate_per_s_lo"], row["error"]) == (None, 0)
    points = measured.rows("points")
    assert [row["service_ns_p99"] for row in points] == [row["service_ns_p99"] for row in results]
    # The distribution gives the count and the percentile that the program prints.
    for row in results:
        counted = [
            (int(str(h["value_ns"])), int(str(h["count"])))
            for h in measured.rows("histograms")
            if h["kind"] == "service" and h["operation"] == row["operation"]
        ]
        total = sum(count for _, count in counted)
        assert total == row["ok"]
        ranks = accumulate(count for _, count in counted)
        at_rank = zip((value for value, _ in counted), ranks, strict=True)
        p99 = next(value for value, rank in at_rank if rank >= math.ceil(total * 0.99))
        assert p99 == row["service_ns_p99"]
    samples = measured.rows("samples")
    assert len(samples) >= 3
    assert samples[0]["cell"] == measured.trials[0]["cell"] == "redis/get=0.9,set=0.1/2"


def test_tables_without_a_library(
    measured: cachedyno.Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in LIBRARIES:
        monkeypatch.setitem(sys.modules, name, None)
    for table in (measured.results, measured.points, measured.histograms, measured.samples):
        assert isinstance(table, list)
        rows = cast("list[cachedyno.Row]", table)
        assert all(row.keys() == rows[0].keys() for row in rows)
    with pytest.raises(ImportError):
        cachedyno.set_tables("pandas")


def test_importing_needs_no_library() -> None:
    code = "import sys, cachedyno; print([n for n in sys.argv[1:] if n in sys.modules])"
    ended = subprocess.run(
        [sys.executable, "-c", code, *LIBRARIES, "ray"],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout == "[]\n"


@pytest.mark.parametrize("name", LIBRARIES)
def test_tables_of_libraries(measured: cachedyno.Record, name: Any) -> None:
    library = pytest.importorskip(name, reason=f"{name} is not installed")
    cachedyno.set_tables(name)
    kind: Any = library.Table if name == "pyarrow" else library.DataFrame
    expected = measured.rows("results")
    for table in (measured.results, measured.table("results", name)):
        assert isinstance(table, kind)
        plain: Any = table
        columns = [str(c) for c in (plain.column_names if name == "pyarrow" else plain.columns)]
        assert columns == list(expected[0])
        assert list(plain["target"])[0:1] != []
        assert [float(str(v)) for v in plain["rate_per_s"]] == [r["rate_per_s"] for r in expected]
    assert isinstance(measured.histograms, kind)
    assert isinstance(measured.points, kind)
    assert isinstance(measured.samples, kind)
    assert isinstance(cachedyno.open(measured.path, tables="dicts").results, list)


def test_a_library_is_chosen_by_name() -> None:
    with pytest.raises(ValueError, match="numpy"):
        cachedyno.set_tables("numpy")  # type: ignore[arg-type]


def test_columns_have_one_type() -> None:
    rows: list[cachedyno.Row] = [{"a": 1, "b": "x"}, {"a": 1.5, "b": 2, "c": None}]
    columns = _tables.to_columns(rows)
    assert _tables.to_rows(columns) == [
        {"a": 1, "b": "x", "c": None},
        {"a": 1.5, "b": 2, "c": None},
    ]
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame: Any = _tables.table(columns, "pandas")
    assert isinstance(frame, pandas.DataFrame)
    assert [list(frame["a"]), list(frame["b"])] == [[1.0, 1.5], ["x", "2"]]


def test_csv_values_have_types() -> None:
    text = "run,target,count,rate_per_s,held,verdict,response_ns_p99\n1e234567,12,3,2.5,true,,>=9\n"
    assert _rows.from_csv(text) == [
        {
            "run": "1e234567",
            "target": "12",
            "count": 3,
            "rate_per_s": 2.5,
            "held": True,
            "verdict": None,
            "response_ns_p99": math.inf,
        }
    ]


SEARCH: dict[str, Any] = {
    "format": 1,
    "run": "0123abcd",
    "title": "<b>title & 'title'",
    "validity": "not-steady",
    "reasons": ["<script>alert(1)</script>"] * 7,
    "answer": {"summary": [{"place": "", "pieces": [{"text": "<i>58,400/s", "style": "plain"}]}]},
    "targets": [{"name": "<img src=x>", "product": "Redis 7"}],
    "cells": [],
    "searches": [
        {
            "workload": "w\" onload='x'",
            "target": "<img src=x>",
            "operation": "mixed",
            "load": {"arrivals": "poisson", "schedule": {"search": {}}, "clients": 4},
            "limits": ["p99<1ms"],
            "outcome": "found",
            "answer": {"center": 58389.1, "lo": 52224.8, "hi": None},
            "costs": {"service_ns_p99": {"at_least": 5e9}},
            "peak_per_s": 80204,
            "blocks": 1,
        }
    ],
}


def test_html_escapes_what_a_record_says(fake: Fake) -> None:
    fake.ends(4, output=json.dumps(SEARCH))
    record = cachedyno.find_max("redis", slo="p99<1ms")
    html = record._repr_html_()  # pyright: ignore[reportPrivateUsage]
    for text in ("<script", "<img", "<i>", "<b>title", "onload='", 'w"'):
        assert text not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "NOT-STEADY" in html
    assert "and 2 more" in html
    assert "58.4 k" in html
    assert "∞" in html


def test_a_search_is_a_result(fake: Fake) -> None:
    fake.ends(0, output=json.dumps(SEARCH))
    (row,) = cachedyno.find_max("redis", slo="p99<1ms").rows("results")
    assert (row["product"], row["outcome"], row["limits"]) == ("Redis 7", "found", "p99<1ms")
    assert (row["highest_per_s"], row["highest_per_s_lo"]) == (58389.1, 52224.8)
    assert (row["service_ns_p99"], row["service_ns_p99_lo"]) == (math.inf, 5e9)


@pytest.mark.parametrize("text", ["", "!", "AAAA", "HISTFAAAAA==", "HIST" * 20])
def test_foreign_histograms_are_errors(text: str) -> None:
    with pytest.raises(ValueError, match="unreadable histogram"):
        _histogram.decode(text)


def test_a_line_without_its_end_is_ignored(tmp_path: Any) -> None:
    lines = [{"cell": "a", "block": 0, "n": 1}, {"cell": "b", "block": 0}]
    lines += [{"cell": "a", "block": 0, "n": 2}]
    text = "".join(json.dumps(line) + "\n" for line in lines) + '{"cell": "c", "blo'
    (tmp_path / "trials.jsonl").write_text(text)
    assert _rows.trials(tmp_path) == [lines[1], lines[2]]
    (tmp_path / "trials.jsonl").write_text("{}\n")
    with pytest.raises(ValueError, match=r"trials\.jsonl:1"):
        _rows.trials(tmp_path)
