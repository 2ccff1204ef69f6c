"""Records of runs: verdict, answer and tables."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

from cachedyno import _html, _program, _rows, _tables
from cachedyno._errors import failure
from cachedyno._tables import Columns, Row, Table, Tables

Name: TypeAlias = Literal["results", "points", "histograms", "samples"]


@dataclass(frozen=True)
class Verdict:
    """Whether the figures of a run can be used."""

    validity: Literal["valid", "unreplicated", "not-steady", "invalid"]
    """By the rules of docs/METHODOLOGY.md; `unreplicated` has fewer than three blocks."""
    reasons: tuple[str, ...]
    """Why it is not valid; empty if it is."""

    @property
    def is_usable(self) -> bool:
        """True for `valid` and `unreplicated`, with which the program ends with exit code 0."""
        return self.validity in ("valid", "unreplicated")

    def __str__(self) -> str:
        return ": ".join([self.validity.upper(), *(["; ".join(self.reasons)] * bool(self.reasons))])


class Record:
    """The record of a run, as the program judges it.

    Times are nanoseconds in columns that contain `_ns`, rates are operations per second, shares are
    from 0 to 1. The centre of an interval is in the column of the metric's name, its bounds are in
    `_lo` and `_hi`, empty below three blocks. Where failed operations, which are slower than any
    percentile, are among the slowest, the centre is infinity and `_lo` has the known lower bound.
    """

    path: Path
    """The directory of the record, absolute."""
    summary: dict[str, Any]
    """The whole result: the output of `show --format json` (docs/FORMAT.md, Summary)."""

    def __init__(
        self, path: Path, summary: dict[str, Any], *, tables: Tables | None = None
    ) -> None:
        self.path = path
        self.summary = summary
        self._tables: Tables | None = tables
        self._columns: dict[Name, Columns] = {}

    @property
    def run(self) -> str:
        """Id of the run, eight hexadecimal characters."""
        return self.summary["run"]

    @property
    def verdict(self) -> Verdict:
        """Whether the figures can be used, and why not."""
        return Verdict(self.summary["validity"], tuple(self.summary["reasons"]))

    @property
    def answer(self) -> str:
        """The result in sentences, one a line, each after its profile and load."""
        lines: list[str] = []
        for sentence in self.summary["answer"]["summary"]:
            text = "".join(piece["text"] for piece in sentence["pieces"])
            lines.append(f"{sentence['place']}: {text}" if sentence["place"] else text)
        return "\n".join(lines)

    @cached_property
    def trials(self) -> list[dict[str, Any]]:
        """The trials as recorded (docs/FORMAT.md, a line of `trials.jsonl`)."""
        return _rows.trials(self.path)

    @property
    def results(self) -> Table:
        """A table with a row for each target, operation and load, over all blocks.

        A load in stages has a row with its highest rates (`knee_per_s`, `reached_per_s`), a search
        one with `highest_per_s`; both have an `outcome`.
        """
        return self.table("results")

    @property
    def points(self) -> Table:
        """A table with a row for each measured point: of a block, a stage or a probe.

        The columns are those of `export --csv-blocks`, and for searches those of `--csv-probes`.
        """
        return self.table("points")

    @property
    def histograms(self) -> Table:
        """A table with a row for each value of each distribution.

        `count` is the number of operations of that block, phase, operation and kind of time that
        took up to `value_ns` nanoseconds, with three significant digits. Distributions of several
        blocks are merged by adding counts. Failed operations have no time.
        """
        return self.table("histograms")

    @property
    def samples(self) -> Table:
        """A table with a row for each sample of resource usage, ten a second.

        The columns are those of `export --csv-samples`; counters are cumulative.
        """
        return self.table("samples")

    def table(self, name: Name, tables: Tables | None = None) -> Table:
        """Return a table of a chosen library; without one, as `cachedyno.set_tables` chose."""
        return _tables.table(self._table_columns(name), tables or self._tables)

    def rows(self, name: Name) -> list[Row]:
        """Return the rows of a table as dicts, all with the same keys."""
        return _tables.to_rows(self._table_columns(name))

    def _table_columns(self, name: Name) -> Columns:
        if name not in self._columns:
            sources: dict[Name, Callable[[], Columns]] = {
                "results": lambda: _tables.to_columns(_rows.results(self.summary)),
                "points": lambda: _tables.to_columns(self._points()),
                "histograms": lambda: _rows.histograms(self.path),
                "samples": lambda: _tables.to_columns(self._export("--csv-samples")),
            }
            if name not in sources:
                raise ValueError(f"no table `{name}` (expected {', '.join(sources)})")
            self._columns[name] = sources[name]()
        return self._columns[name]

    def _points(self) -> list[Row]:
        rows = self._export("--csv-blocks")
        return rows + self._export("--csv-probes") if self.summary.get("searches") else rows

    def _export(self, flag: str) -> list[Row]:
        ended = _program.run(["export", os.fspath(self.path), flag])
        if ended.exit_code != 0:
            raise failure(ended.exit_code, ended.error)
        return _rows.from_csv(ended.output)

    def __repr__(self) -> str:
        return f"<cachedyno record {self.run}, {self.verdict.validity}: {self.path}>"

    def _repr_html_(self) -> str:
        """Return the answer, the verdict and the results for a notebook."""
        verdict = (self.verdict.validity, self.verdict.reasons)
        title = f"{self.summary['title']}, run {self.run}"
        return _html.page(title, verdict, self.answer, self.rows("results"))
