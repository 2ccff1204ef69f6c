"""Tables of pandas, polars or pyarrow, or plain lists of dicts."""

from __future__ import annotations

import importlib
from typing import Any, Literal, TypeAlias

Cell: TypeAlias = str | int | float | bool | None
Row: TypeAlias = dict[str, Cell]
Columns: TypeAlias = dict[str, list[Cell]]
"""Cells by name of the column, all of one length."""
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


def table(columns: Columns, tables: Tables | None = None) -> Table:
    """Return columns as a table, in their order."""
    name, library = _library(tables or _chosen)
    if name == "dicts":
        return to_rows(columns)
    columns = {column: _of_one_type(cells) for column, cells in columns.items()}
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


def to_columns(rows: list[Row]) -> Columns:
    """Return every column of any row, in order, with None where a row has no value."""
    names: dict[str, None] = {}
    for row in rows:
        names.update(dict.fromkeys(row))
    return {name: [row.get(name) for row in rows] for name in names}


def to_rows(columns: Columns) -> list[Row]:
    """Return rows that all have every column."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _of_one_type(column: list[Cell]) -> list[Cell]:
    types = {type(cell) for cell in column if cell is not None}
    if types == {int, float}:
        return [None if cell is None else float(cell) for cell in column]
    if len(types) > 1:
        return [None if cell is None else str(cell) for cell in column]
    return column


def cell(value: object) -> Cell:
    """Return a value of JSON as a cell; a list or an object becomes its text."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)
