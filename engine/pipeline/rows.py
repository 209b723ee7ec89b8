"""The rows of a split of a commit log: read, chosen by columns, and only then decoded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from engine.codec.columns import UnitColumns
from engine.codec.topic_table import TopicTable
from engine.codec.unit_scan import Damage
from engine.pipeline import filters, schema
from engine.pipeline.options import LogOptions
from engine.pipeline.splits import Split, read_split
from engine.pipeline.unit_rows import NEED_TAGS, RowMaker, units_of

if TYPE_CHECKING:
    import pyarrow as pa


def rows_of(
    split: Split, columns: schema.Columns, asked: LogOptions, conditions: Sequence[filters.Condition] = ()
) -> Iterator[pa.RecordBatch]:
    """The rows of a split; of the units only those that ``conditions`` do not refuse, and only ``columns`` decoded."""
    topics = TopicTable()
    crc = asked.crc and ("crc" in columns or any(one.column == "crc" for one in conditions))
    want_tags = bool(NEED_TAGS & (columns.keys() | {one.column for one in conditions}))
    maker = RowMaker(columns, split, topics)
    units_only = filters.units_only(conditions)
    for block in read_split(split, crc, want_tags, topics):
        if isinstance(block, UnitColumns):
            rows = units_of(block)
            if conditions:
                rows = rows[filters.kept(conditions, block, topics)[rows]]
            yield from maker.units(block, rows)
            if asked.blanks and not units_only:
                yield from maker.blanks(block)
        elif isinstance(block, Damage) and not units_only:
            yield maker.damage(block)
