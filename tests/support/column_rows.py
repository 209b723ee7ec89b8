"""Rows of :class:`engine.codec.columns.UnitColumns` as tuples that compare with decoded units."""

from __future__ import annotations

from engine.codec.columns import BLANK, UnitColumns
from engine.codec.message import Unit
from engine.codec.topic_table import TopicTable
from engine.codec.unit_fields import FIELDS
from engine.codec.unit_scan import Blank

_CRC = {"unchecked": 0, "ok": 1, "bad": 2}
_NUMBERS = [field.attribute for field in FIELDS if field.column]


def rows_of(columns: UnitColumns, topics: TopicTable) -> list[object]:
    """Return a tuple of every field for each unit, a :class:`Blank` for each blank."""
    blanks: list[object] = []
    for row in range(columns.count):
        if columns.kind[row] == BLANK:
            blanks.append(Blank(int(columns.offset[row]), int(columns.size[row])))
            continue
        numbers = [columns[name] for name in _NUMBERS]
        raw = (columns.body(row), columns.raw_properties(row), topics.names[columns.topic_id[row]])
        blanks.append((*(int(column[row]) for column in numbers), *raw))
    return blanks


def row_of(unit: Unit) -> tuple[object, ...]:
    """Return the row of :func:`rows_of` for ``unit``."""
    numbers = [_CRC[unit.crc] if name == "crc" else getattr(unit, name) for name in _NUMBERS]
    return (*numbers, unit.body, unit.properties_raw, unit.topic)
