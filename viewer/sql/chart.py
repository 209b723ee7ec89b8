"""The chart of an answer: its first column along the axis, a numeric column as bars, or all of them as lines. No Qt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from viewer.look.assets import tr, tr_plural
from viewer.look.formats import moment, number, plain, shorten_middle
from viewer.sql.answers import Kind, ResultColumn, SqlRow

CHART_ROWS = 5_000
"""Rows that a line shows."""
MAX_BARS = 40
MAX_NAME = 17
"""Characters of the name of a bar."""
ROLES = ("posLog", "posBuild", "ok", "posTime", "posLog3", "posBuild3", "note", "text3")
"""Colours of the lines."""
Form = Literal["bars", "lines"]
_NUMBERS: frozenset[Kind] = frozenset(("integer", "number"))


@dataclass(frozen=True, slots=True)
class Series:
    """The values of one column over those of the first."""

    name: str
    role: str
    xs: tuple[float, ...]
    ys: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class NamedValue:
    """A bar: its name, its value, and the value in words."""

    name: str
    value: float
    words: str


@dataclass(frozen=True, slots=True)
class ChartData:
    """The data of a chart. ``note`` says which columns, and how many rows if these are not all; ``why`` is the
    reason of an empty chart.
    """

    form: Form = "bars"
    series: tuple[Series, ...] = ()
    bars: tuple[NamedValue, ...] = ()
    are_times: bool = False
    note: str = ""
    why: str = ""


def value_columns(columns: Sequence[ResultColumn]) -> list[str]:
    """Return the columns that a chart can show: numbers behind the first column, or the only one."""
    behind = columns[1:] if len(columns) > 1 else columns
    return [column.name for column in behind if column.kind in _NUMBERS]


def usual_form(columns: Sequence[ResultColumn]) -> Form:
    """Return lines over times and numbers, bars over names."""
    return "lines" if len(columns) > 1 and columns[0].kind in {"time", *_NUMBERS} else "bars"


def chart_of(
    columns: Sequence[ResultColumn], rows: Sequence[SqlRow], row_count: int, form: Form, chosen_column: str
) -> ChartData:
    """Return the chart of the first rows of an answer; bars show ``chosen_column``."""
    names = value_columns(columns)
    if not names:
        return ChartData(why=tr("A chart needs a column of numbers behind the first column."))
    if not rows:
        return ChartData(why=tr("There are no rows to draw."))
    if form == "bars":
        return _bars(columns, rows, row_count, chosen_column if chosen_column in names else names[0])
    return _lines(columns, rows, row_count, names)


def _bars(columns: Sequence[ResultColumn], rows: Sequence[SqlRow], row_count: int, name: str) -> ChartData:
    first = columns[0]
    bars = [
        NamedValue(shorten_middle(_label(row, first, number_of_row), MAX_NAME), float(row[name]), _words(row[name]))
        for number_of_row, row in enumerate(rows)
        if _is_number(row[name])
    ][:MAX_BARS]
    note = f"{plain(name)} · {_extent(len(bars), row_count)}"
    return ChartData("bars", bars=tuple(bars), note=note)


def _lines(columns: Sequence[ResultColumn], rows: Sequence[SqlRow], row_count: int, names: Sequence[str]) -> ChartData:
    first = columns[0]
    are_times = first.kind == "time"
    has_axis = first.kind in {"time", *_NUMBERS} and len(columns) > 1
    places = [(_place(row, first, n) if has_axis else float(n), row) for n, row in enumerate(rows)]
    ordered = sorted(((place, row) for place, row in places if place is not None), key=lambda pair: pair[0])
    series = []
    for name, role in zip(names, ROLES, strict=False):
        points = [(place, float(row[name])) for place, row in ordered if _is_number(row[name])]
        if points:
            xs, ys = zip(*points, strict=True)
            series.append(Series(plain(name), role, xs, ys))
    axis = plain(first.name) if has_axis else tr("number of the row")
    note = tr("over {axis}", axis=axis) + f" · {_extent(len(rows), row_count)}"
    return ChartData("lines", series=tuple(series), are_times=are_times and has_axis, note=note)


def _extent(drawn: int, row_count: int) -> str:
    if drawn < row_count:
        return tr("the first {n:,} of {rows}", n=drawn, rows=tr_plural("{n:,} row", "{n:,} rows", n=row_count))
    return tr_plural("{n:,} row", "{n:,} rows", n=drawn)


def _place(row: SqlRow, column: ResultColumn, _number: int) -> float | None:
    value = row[column.name]
    if not _is_number(value):
        return None
    return value / 1_000_000 if column.kind == "time" else float(value)


def _label(row: SqlRow, column: ResultColumn, number_of_row: int) -> str:
    value: Any = row[column.name]
    if column.kind == "time" and value is not None:
        return moment(value // 1000)
    if column.kind in _NUMBERS and _is_number(value):
        return _words(value)
    return plain(str(value)) if value is not None else f"#{number_of_row + 1}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value  # noqa: PLR0124 (no NaN)


def _words(value: float) -> str:
    return number(value) if isinstance(value, int) else f"{value:,.6g}"
