"""The rows of splits of a commit log: read, chosen by columns, and only then decoded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from engine.codec.columns import UnitColumns
from engine.codec.topic_table import TopicTable
from engine.codec.unit_scan import Damage
from engine.pipeline import filters, schema
from engine.pipeline.options import LogOptions
from engine.pipeline.splits import Split, read_split
from engine.pipeline.tasks import joined
from engine.pipeline.unit_rows import NEED_TAGS, RowMaker, units_of

if TYPE_CHECKING:
    import pyarrow as pa


FEW = 4096
"""Rows of a batch at least, where there are so many: each batch costs Java about as much as a thousand rows."""
FEW_BYTES = 1 << 20
"""Bytes of a batch that is sent on, however few rows it has."""


def rows_of(
    splits: Iterable[Split],
    columns: schema.Columns,
    asked: LogOptions,
    conditions: Sequence[filters.Condition] = (),
) -> Iterator[pa.RecordBatch]:
    """The rows of ``splits`` in their order, in batches of :data:`FEW` rows at least but for the last."""
    return together(batch for split in joined(splits) for batch in split_rows(split, columns, asked, conditions))


def together(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Neighbouring small batches of one schema as one."""
    kept: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        kept.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= FEW or size >= FEW_BYTES:
            yield from _as_one(kept)
            kept, rows, size = [], 0, 0
    yield from _as_one(kept)


def _as_one(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    import pyarrow as pa

    return batches if len(batches) < 2 else pa.Table.from_batches(batches).combine_chunks().to_batches()


def needs_crc(columns: schema.Columns, asked: LogOptions, conditions: Sequence[filters.Condition]) -> bool:
    """Whether bodies are held against their CRC: somebody asks for what comes of it."""
    return asked.crc and ("crc" in columns or any(one.column == "crc" for one in conditions))


def split_rows(
    split: Split, columns: schema.Columns, asked: LogOptions, conditions: Sequence[filters.Condition] = ()
) -> Iterator[pa.RecordBatch]:
    """The rows of a split; of the units only those that ``conditions`` do not refuse, and only ``columns`` decoded."""
    topics = TopicTable()
    crc = needs_crc(columns, asked, conditions)
    want_tags = bool(NEED_TAGS & (columns.keys() | {one.column for one in conditions}))
    maker = RowMaker(columns, split, topics)
    units_only = filters.units_only(conditions)
    for block in read_split(split, crc, want_tags, topics, fail=asked.fails):
        if isinstance(block, UnitColumns):
            rows = units_of(block, filters.kept(conditions, block, topics) if conditions else None)
            yield from maker.units(block, rows)
            if asked.blanks and not units_only:
                yield from maker.blanks(block)
        elif isinstance(block, Damage) and not units_only:
            yield maker.damage(block)
