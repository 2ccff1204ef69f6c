"""Tables of pandas, polars or pyarrow, or plain lists of dicts."""

from __future__ import annotations

import importlib
from typing import Any, Literal, TypeAlias

Cell: TypeAlias = str | int | float | bool | None
Row: TypeAlias = dict[str, Cell]
Tables: TypeAlias = Literal["auto", "pandas", "polars", "pyarrow", "dicts"]
Table: TypeAlias = Any
"""A `pandas.DataFrame`, `polars.DataFrame`, `pyarrow.Table`, or a list of `Row`."""

_ORDER = ("pandas", "polars", "pyarrow")
_chosen: Tables = "auto"


def set_tables(tables: Tables) -> None:
    """Choose the library of all tables.

    `auto`, the default, takes the first of pandas, polars and pyarrow that is installed, and plain
    lists of dicts without any; `dicts` always takes these. Raises ImportError if the library is not
    installed.
    """
    global _chosen
    _library(tables)
    _chosen = tables


def table(rows: list[Row], tables: Tables | None = None) -> Table:
    """Return rows as a table; every column of any row is a column of it, in order."""
    name, library = _library(tables or _chosen)
    if name == "dicts":
        return rows
    columns = _columns(rows)
    if name == "pyarrow":
        return library.table(columns)
    return library.DataFrame(columns)


def _library(tables: Tables) -> tuple[str, Any]:
    if tables == "dicts":
        return tables, None
    if tables == "auto":
        for name in _ORDER:
            try:
                return name, importlib.import_module(name)
            except ImportError:
                continue
        return "dicts", None
    if tables not in _ORDER:
        raise ValueError(f"unknown library of tables `{tables}` (expected {', '.join(_ORDER)})")
    return tables, importlib.import_module(tables)


def _columns(rows: list[Row]) -> dict[str, list[Cell]]:
    """Return columns of one type each, with None where a row has no value."""
    names: dict[str, None] = {}
    for row in rows:
        names.update(dict.fromkeys(row))
    columns = {name: [row.get(name) for row in rows] for name in names}
    for name, column in columns.items():
        types = {type(cell) for cell in column if cell is not None}
        if types == {int, float}:
            columns[name] = [None if c is None else float(c) for c in column]
        elif len(types) > 1:
            columns[name] = [None if c is None else str(c) for c in column]
    return columns


def normal(rows: list[Row]) -> list[Row]:
    """Return rows that all have every column, so that plain dicts can be read like a table."""
    names = _columns(rows)
    return [{name: row.get(name) for name in names} for row in rows]


def cell(value: object) -> Cell:
    """Return a value of JSON as a cell; a list or an object becomes its text."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)
