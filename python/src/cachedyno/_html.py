"""HTML of a record for notebooks. A record is foreign data, so every text is escaped."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

from cachedyno._tables import Cell, Row

_ROWS_MAX = 50
_REASONS_MAX = 5
_COLUMNS = ("workload", "target", "operation", "clients", "planned_per_s", "outcome", "limits")
_METRICS = (
    "rate_per_s",
    "highest_per_s",
    "knee_per_s",
    "reached_per_s",
    "response_ns_p50",
    "response_ns_p99",
    "service_ns_p50",
    "service_ns_p99",
    "error",
)
_COLOURS = {"valid": "#2a7", "unreplicated": "#a70", "not-steady": "#a70", "invalid": "#c33"}


def page(title: str, verdict: tuple[str, Sequence[str]], answer: str, rows: Sequence[Row]) -> str:
    """Return the answer, the verdict and at most 50 rows of results."""
    validity, reasons = verdict
    colour = _COLOURS.get(validity, "#c33")
    parts = [
        f"<div><b>{escape(title)}</b> "
        f'<b style="color:{colour}">{escape(validity.upper())}</b></div>',
        *(f"<div>{escape(line)}</div>" for line in answer.splitlines()),
        _list(reasons),
        _table(rows),
    ]
    return f"<div>{''.join(parts)}</div>"


def _list(reasons: Sequence[str]) -> str:
    shown = [f"<li>{escape(reason)}</li>" for reason in reasons[:_REASONS_MAX]]
    if len(reasons) > _REASONS_MAX:
        shown.append(f"<li>and {len(reasons) - _REASONS_MAX} more</li>")
    return f"<ul>{''.join(shown)}</ul>" if shown else ""


def _table(rows: Sequence[Row]) -> str:
    columns = [c for c in (*_COLUMNS, *_METRICS) if any(r.get(c) is not None for r in rows)]
    if not columns:
        return ""
    head = _line("th", (escape(column) for column in columns))
    body = [_line("td", (_shown(c, row.get(c)) for c in columns)) for row in rows[:_ROWS_MAX]]
    more = f"<div>and {len(rows) - _ROWS_MAX} more rows</div>" if len(rows) > _ROWS_MAX else ""
    return f"<table><thead>{head}</thead><tbody>{''.join(body)}</tbody></table>{more}"


def _line(tag: str, cells: Iterable[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in cells) + "</tr>"


def _shown(column: str, cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, str | bool) or column not in _METRICS:
        return escape(str(cell))
    if "_ns_" in column:
        return _scaled(cell, (("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1)))
    return _scaled(cell, (("M", 1e6), ("k", 1e3), ("", 1)))


def _scaled(value: float, units: Sequence[tuple[str, float]]) -> str:
    """Return three significant digits with the largest unit below the value."""
    if math.isinf(value):
        return "∞"
    unit, size = next(((u, s) for u, s in units if abs(value) >= s), units[-1])
    scaled = value / size
    digits = max(0, 2 - math.floor(math.log10(abs(scaled)))) if scaled else 0
    text = f"{scaled:.{0 if size == 1 and value == int(value) else digits}f}"
    return f"{text} {unit}".rstrip()
