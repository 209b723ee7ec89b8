"""Rows of :class:`engine.codec.columns.UnitColumns` as tuples that compare with decoded units."""

from __future__ import annotations

from engine.codec.columns import BLANK, UnitColumns
from engine.codec.message import Unit
from engine.codec.topic_table import TopicTable
from engine.codec.unit_scan import Blank

_CRC = {"unchecked": 0, "ok": 1, "bad": 2}


def rows_of(columns: UnitColumns, topics: TopicTable) -> list[object]:
    """A tuple of every field for each unit, a :class:`Blank` for each blank."""
    found: list[object] = []
    for row in range(columns.count):
        if columns.kind[row] == BLANK:
            found.append(Blank(int(columns.offset[row]), int(columns.size[row])))
            continue
        numbers = [
            columns.offset, columns.size, columns.version, columns.queue_id, columns.flag, columns.queue_offset,
            columns.physical_offset, columns.sys_flag, columns.born_timestamp, columns.store_timestamp,
            columns.reconsume_times, columns.prepared_transaction_offset, columns.body_crc, columns.tags_code,
            columns.crc,
        ]  # fmt: skip
        raw = (columns.body(row), columns.raw_properties(row), topics.names[columns.topic_id[row]])
        found.append((*(int(column[row]) for column in numbers), *raw))
    return found


def row_of(unit: Unit) -> tuple[object, ...]:
    """What :func:`rows_of` gives for the row of ``unit``."""
    return (
        unit.offset, unit.size, unit.version, unit.queue_id, unit.flag, unit.queue_offset, unit.physical_offset,
        unit.sys_flag, unit.born_timestamp, unit.store_timestamp, unit.reconsume_times,
        unit.prepared_transaction_offset, unit.body_crc, unit.tags_code, _CRC[unit.crc], unit.body,
        unit.properties_raw, unit.topic,
    )  # fmt: skip
