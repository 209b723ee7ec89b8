"""Rows of ``rocketmq-commitlog``: the units, blanks and damage of splits, as batches of Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from engine.codec.columns import UnitColumns
from engine.codec.topic_table import TopicTable
from engine.codec.unit_scan import Damage
from engine.pipeline import filters, schema
from engine.pipeline.options import LogOptions
from engine.pipeline.splits import Split, read_split
from engine.pipeline.tasks import join_splits
from engine.pipeline.unit_batches import NEED_TAGS, RowMaker, units_of

if TYPE_CHECKING:
    import pyarrow as pa

SMALL_BATCH_ROWS = 4096
"""Rows of a batch at least, where there are so many: each batch costs Java about as much as a thousand rows."""
SMALL_BATCH_BYTES = 1 << 20
"""Bytes of a batch that is sent on, however few rows it has."""


def rows_of(
    splits: Iterable[Split],
    columns: schema.Columns,
    options: LogOptions,
    conditions: Sequence[filters.Condition] = (),
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of ``splits`` in their order, in batches of :data:`SMALL_BATCH_ROWS` rows at least except for the
    last.
    """
    return join_small_batches(
        batch for split in join_splits(splits) for batch in split_rows(split, columns, options, conditions)
    )


def join_small_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join neighbouring small batches of one schema."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= SMALL_BATCH_ROWS or size >= SMALL_BATCH_BYTES:
            yield from _concatenate(waiting)
            waiting, rows, size = [], 0, 0
    yield from _concatenate(waiting)


def _concatenate(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    import pyarrow as pa

    return batches if len(batches) < 2 else pa.Table.from_batches(batches).combine_chunks().to_batches()


def needs_crc(columns: schema.Columns, options: LogOptions, conditions: Sequence[filters.Condition]) -> bool:
    """Return True if bodies are checked against their CRC: the query uses the result."""
    return options.crc and ("crc" in columns or any(condition.column == "crc" for condition in conditions))


def split_rows(
    split: Split, columns: schema.Columns, options: LogOptions, conditions: Sequence[filters.Condition] = ()
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a split; of the units only those that ``conditions`` do not exclude, and only ``columns``
    decoded.
    """
    topics = TopicTable()
    crc = needs_crc(columns, options, conditions)
    with_tags = bool(NEED_TAGS & (columns.keys() | {condition.column for condition in conditions}))
    maker = RowMaker(columns, split, topics)
    units_only = filters.units_only(conditions)
    for block in read_split(split, crc, with_tags, topics, fail=options.fails):
        if isinstance(block, UnitColumns):
            rows = units_of(block, filters.matching_rows(conditions, block, topics) if conditions else None)
            yield from maker.units(block, rows)
            if options.blanks and not units_only:
                yield from maker.blanks(block)
        elif isinstance(block, Damage) and not units_only:
            yield maker.damage(block)
