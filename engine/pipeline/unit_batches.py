"""Chosen columns of a block of units as batches of Arrow, and nothing decoded that is not asked for.

All are made a column at a time; only digests cost a step for each row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from engine.codec.columns import BLANK, UNIT, UnitColumns
from engine.codec.topic_table import TopicTable
from engine.codec.unit_fields import NUMBERS, OF_RECORDS
from engine.codec.unit_scan import Damage
from engine.pipeline import schema, unit_texts

if TYPE_CHECKING:
    import pyarrow as pa


BATCH_BYTES = 8 << 20
"""Bytes of units that one batch of rows with bodies or properties is made of."""
NEED_TAGS = {field.name for field in OF_RECORDS if field.with_tags}
NEED_TAGS |= {time for time, ms in schema.TIMES.items() if ms in NEED_TAGS}
_OF_BLANKS = ("physicalOffset", "size")

Rows = unit_texts.Rows


class LogPlace(Protocol):
    """The file of the units; offsets and sizes are bytes."""

    @property
    def store(self) -> str: ...
    @property
    def broker(self) -> str | None: ...
    @property
    def name(self) -> str: ...
    @property
    def file_start(self) -> int: ...
    @property
    def file_size(self) -> int: ...


class RowMaker:
    """Makes batches with the given columns from the blocks of one file, or of a part of it."""

    def __init__(self, columns: schema.Columns, place: LogPlace, topics: TopicTable) -> None:
        self._columns = columns
        self._shape = schema.arrow_schema(columns)
        self._place = place
        self._topic_texts = unit_texts.TopicTexts(topics)
        self._constants = {"store": place.store, "broker": place.broker, "file": place.name}
        self._makers: dict[str, Callable[[UnitColumns, Rows], None]] = {
            "topic": self._topic,
            "bornHost": self._hosts,
            "storeHost": self._hosts,
            "offsetMsgId": self._hosts,
            "crc": self._crc_words,
            "properties": self._texts,
            "tags": self._texts,
            "keys": self._texts,
            "uniqueKey": self._texts,
            "body": self._bodies,
            "bodySha256": self._bodies,
            "physicalOffsetField": self._stale,
        }
        self._made: dict[str, Any] = {}

    def units(self, block: UnitColumns, rows: Rows) -> Iterator[pa.RecordBatch]:
        """Return the units at ``rows`` of a block; the block may be reused afterwards."""
        for part in _parts(block, rows):
            yield self._batch(block, part, "unit")

    def blanks(self, block: UnitColumns) -> Iterator[pa.RecordBatch]:
        """Yield the blank of a block, where it ends with one."""
        rows = np.flatnonzero(block["kind"] == BLANK)
        if len(rows):
            values: dict[str, Any] = {"type": "blank", **self._constants}
            values.update({name: int(getattr(block, NUMBERS[name])[rows[0]]) for name in _OF_BLANKS})
            yield self._one(values)

    def damage(self, damage: Damage) -> pa.RecordBatch:
        """Return the row of a damaged range; between two files it has no file."""
        inside = damage.offset < self._place.file_start + self._place.file_size
        return self._one(
            {
                "type": "damage",
                "physicalOffset": damage.offset,
                "size": damage.size,
                "reason": damage.reason,
                **self._constants,
                "file": self._place.name if inside else None,
            }
        )

    def _one(self, values: dict[str, Any]) -> pa.RecordBatch:
        return schema.one_row(self._columns, values)

    def _batch(self, block: UnitColumns, rows: Rows, kind: str) -> pa.RecordBatch:
        import pyarrow as pa

        self._made = {}
        arrays = []
        for field in self._shape:
            time = schema.TIMES.get(field.name)
            number, maker = NUMBERS.get(time or field.name), self._makers.get(field.name)
            if time is not None and number is not None:
                array = schema.time_array(getattr(block, number)[rows])
            elif number is not None:
                array = pa.array(getattr(block, number)[rows], field.type)
            elif field.name in self._constants or field.name in ("type", "reason"):
                value = kind if field.name == "type" else self._constants.get(field.name)
                array = pa.repeat(pa.scalar(value, field.type), len(rows))
            else:
                assert maker is not None
                maker(block, rows)
                array = self._made[field.name]
            arrays.append(array)
        return pa.RecordBatch.from_arrays(arrays, schema=self._shape)

    def _topic(self, block: UnitColumns, rows: Rows) -> None:
        self._made["topic"] = self._topic_texts.of(block, rows)

    def _crc_words(self, block: UnitColumns, rows: Rows) -> None:
        self._made["crc"] = unit_texts.crc_words(block, rows)

    def _stale(self, block: UnitColumns, rows: Rows) -> None:
        import pyarrow as pa

        offset_fields = block.physical_offset[rows]
        self._made["physicalOffsetField"] = pa.array(offset_fields, mask=offset_fields == block.offset[rows])

    def _hosts(self, block: UnitColumns, rows: Rows) -> None:
        if "bornHost" not in self._made:
            hosts = unit_texts.hosts(block, rows)
            self._made.update(bornHost=hosts.born, storeHost=hosts.stored, offsetMsgId=hosts.ids)

    def _texts(self, block: UnitColumns, rows: Rows) -> None:
        if "properties" not in self._made:
            texts = unit_texts.texts(unit_texts.raw_properties(block, rows))
            self._made.update(properties=texts.properties, tags=texts.tags, keys=texts.keys, uniqueKey=texts.unique_key)

    def _bodies(self, block: UnitColumns, rows: Rows) -> None:
        import pyarrow as pa

        if "body" not in self._made:
            bodies = unit_texts.bodies(block, rows)
            self._made["body"] = bodies
            if "bodySha256" in self._columns:
                digests = [hashlib.sha256(body.as_buffer()).hexdigest() for body in bodies]
                self._made["bodySha256"] = pa.array(digests, pa.string())


def units_of(block: UnitColumns, keep: npt.NDArray[np.bool_] | None = None) -> Rows:
    """Return the rows of a block that are units, among those that ``keep`` marks."""
    units = block["kind"] == UNIT
    return np.flatnonzero(units if keep is None else units & keep)


def _parts(block: UnitColumns, rows: Rows) -> Iterator[Rows]:
    """Yield rows in pieces of about :data:`BATCH_BYTES`."""
    if len(rows):
        piece = np.cumsum(block.size[rows], dtype=np.int64) // BATCH_BYTES
        if not piece[-1]:
            yield rows
            return
        yield from np.split(rows, np.flatnonzero(np.diff(piece)) + 1)
