"""Messages and damage of the commit log as relations: walked anew for each question, only the columns it names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.codec.columns import UnitColumns
from engine.codec.topic_table import TopicTable
from engine.codec.unit_scan import Damage
from engine.inspection.block_scan import scan_log
from engine.mapped.read_only import ReadOnlyFile
from engine.pipeline import schema
from engine.pipeline.unit_batches import NEED_TAGS, RowMaker, units_of

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.inspection.snapshot import StoreSnapshot

_OF_FLEETS = ("type", "reason", "store", "broker")
_OF_BODIES = ("bodySha256", "body")
UNITS: schema.Columns = {name: kind for name, kind in schema.UNIT.items() if name not in (*_OF_FLEETS, *_OF_BODIES)} | {
    "size": "int"
}
UNITS_WITH_BODIES: schema.Columns = UNITS | {name: schema.UNIT[name] for name in _OF_BODIES}
DAMAGE: schema.Columns = {"physicalOffset": "bigint", "size": "bigint", "file": "string", "reason": "string"}

Progress = Callable[[int], None]
"""Told how many bytes of the log were read."""


@dataclass(frozen=True, slots=True)
class _Place:
    """The file that a block of units is of, for the maker of rows."""

    name: str
    file_start: int
    file_size: int
    store: str = ""
    broker: str | None = None


def unit_batches(store: StoreSnapshot, columns: schema.Columns, on_progress: Progress) -> Iterator[pa.RecordBatch]:
    """Yield the messages of the log with ``columns``; bodies are checked against their CRC if ``crc`` is among them."""
    if any(name in columns for name in _OF_BODIES):
        store.require_bodies()
    topics = TopicTable()
    file: ReadOnlyFile | None = None
    maker: RowMaker | None = None
    begin = store.log.min_offset
    with_tags = bool(NEED_TAGS & columns.keys())
    for block in scan_log(store.log, crc="crc" in columns, with_tags=with_tags, topics=topics):
        if not isinstance(block, UnitColumns):
            continue
        rows = units_of(block)
        if not len(rows):
            continue
        first_offset = int(block.offset[rows[0]])
        if file is None or maker is None or not file.start_offset <= first_offset < file.start_offset + file.size:
            file = store.log.sequence.find(first_offset)
            assert file is not None
            maker = RowMaker(columns, _Place(file.name, file.start_offset, file.size), topics)
        yield from maker.units(block, rows)
        on_progress(first_offset - begin)


def damage_batches(store: StoreSnapshot, columns: schema.Columns, on_progress: Progress) -> Iterator[pa.RecordBatch]:
    """Yield the spans of the log in which no unit can be read."""
    for block in scan_log(store.log, crc=False, with_tags=False):
        if isinstance(block, UnitColumns):
            on_progress(int(block.offset[0]) - store.log.min_offset)
        elif isinstance(block, Damage):
            values = {
                "physicalOffset": block.offset,
                "size": block.size,
                "file": store.log.file_name(block.offset),
                "reason": block.reason,
            }
            yield schema.one_row(columns, values)
