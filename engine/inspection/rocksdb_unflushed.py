"""Entries of RocksDB queues that only a running broker has (docs/formats/consume-queue.md#rocksdb-memory).

A broker writes rows of queues without a write-ahead log. Until it flushes, files have none of them, and the end of
dispatch in the files is as old. The entries follow from the log: they are those that a start would make from the end of
dispatch on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from engine.codec.columns import UnitColumns
from engine.codec.dtypes import ROCKSDB_QUEUE_ROW
from engine.codec.message import PREPARED, ROLLBACK, Unit, tags_code_of
from engine.codec.queue_builder import build_runs
from engine.codec.topic_table import TopicTable
from engine.inspection.block_scan import scan_log
from engine.rules.dispatch_rules import light_entries, names_light_queues, units_of
from engine.system_names import LMQ_PREFIX

if TYPE_CHECKING:
    from engine.inspection.log_reader import LogReader

QueueKey = tuple[str, int]
"""Topic and queue id."""
_Entry = tuple[QueueKey, int, tuple[int, int, int, int]]


@dataclass(frozen=True, slots=True)
class UnflushedEntries:
    """Entries of one queue, by ascending queue offset; ``rows`` are of ``dtypes.ROCKSDB_QUEUE_ROW``."""

    queue_offset: npt.NDArray[np.int64]
    rows: npt.NDArray[np.void]

    @property
    def first_offset(self) -> int:
        """Queue offset of the first entry."""
        return int(self.queue_offset[0])

    @property
    def last_offset(self) -> int:
        """Queue offset of the last entry."""
        return int(self.queue_offset[-1])

    def find(self, queue_offset: int) -> bytes | None:
        """Return the value of an entry as a row has it, or None."""
        position = int(np.searchsorted(self.queue_offset, queue_offset))
        if position == len(self.queue_offset) or int(self.queue_offset[position]) != queue_offset:
            return None
        return bytes(self.rows[position].tobytes())

    def values(self, start: int, stop: int) -> Iterator[tuple[int, bytes]]:
        """Queue offset and value of the entries [start, stop)."""
        begin_position, end_position = np.searchsorted(self.queue_offset, [start, stop])
        for position in range(int(begin_position), int(end_position)):
            yield int(self.queue_offset[position]), bytes(self.rows[position].tobytes())


def find_unflushed(
    log: LogReader, start: int, levels: tuple[int, ...], *, behind_end: bool = False
) -> dict[QueueKey, UnflushedEntries]:
    """Return the entries of all units of the log from ``start`` (bytes) on. ``levels``: delay levels in ms.

    With ``behind_end`` also those of units behind the end of the log, where a start would cut it.
    """
    topics = TopicTable()
    offsets: dict[QueueKey, list[npt.NDArray[np.int64]]] = {}
    rows: dict[QueueKey, list[npt.NDArray[np.void]]] = {}
    stop = None if behind_end else log.max_offset
    for block in scan_log(log, start, stop, crc=False, topics=topics, levels=levels):
        if not isinstance(block, UnitColumns):
            continue
        unit_rows = units_of(block)
        if not len(unit_rows):
            continue
        if int(block.topic_id[unit_rows].min()) < 0 or names_light_queues(block, unit_rows):
            for key, queue_offset, values in _one_by_one(log, block, unit_rows, levels):
                offsets.setdefault(key, []).append(np.array([queue_offset], np.int64))
                rows.setdefault(key, []).append(np.array([values], ROCKSDB_QUEUE_ROW))
            continue
        runs = build_runs(block, 0, int(unit_rows[-1]) + 1)
        for group in range(len(runs)):
            chosen = slice(int(runs.start[group]), int(runs.start[group + 1]))
            key = topics.names[int(runs.topic_id[group])], int(runs.queue_id[group])
            entries = np.empty(chosen.stop - chosen.start, ROCKSDB_QUEUE_ROW)
            for name in ("physical_offset", "size", "tags_code"):
                entries[name] = runs.entries[name][chosen]
            entries["store_timestamp"] = block.store_timestamp[runs.row[chosen]]
            offsets.setdefault(key, []).append(runs.queue_offset[chosen].copy())
            rows.setdefault(key, []).append(entries)
    return {key: _sorted(np.concatenate(offsets[key]), _joined(rows[key])) for key in offsets}


def _joined(pieces: list[npt.NDArray[np.void]]) -> npt.NDArray[np.void]:
    """The pieces as one array; numpy turns the bytes of each number into the machine's order on the way."""
    return np.concatenate(pieces).astype(ROCKSDB_QUEUE_ROW)


def _sorted(queue_offset: npt.NDArray[np.int64], rows: npt.NDArray[np.void]) -> UnflushedEntries:
    """By queue offset; of several entries the newest, as a later row replaces an earlier one."""
    order = np.argsort(queue_offset, kind="stable")
    queue_offset = queue_offset[order]
    is_last = np.append(queue_offset[1:] != queue_offset[:-1], True)
    return UnflushedEntries(queue_offset[is_last], rows[order][is_last])


def _one_by_one(
    log: LogReader, block: UnitColumns, unit_rows: npt.NDArray[np.int64], levels: tuple[int, ...]
) -> Iterator[_Entry]:
    """Entries of units that name light queues, or whose topics are beyond the table."""
    for row in unit_rows.tolist():
        unit = log.seen_at(int(block.offset[row]), crc=False)
        if not isinstance(unit, Unit) or unit.transaction_type in {PREPARED, ROLLBACK}:
            continue
        code = tags_code_of(unit.topic, unit.properties, unit.store_timestamp, levels)
        values = (unit.physical_offset, unit.size, code, unit.store_timestamp)
        yield (unit.topic, unit.queue_id), unit.queue_offset, values
        for name, queue_id, queue_offset in light_entries(unit.properties, unit.topic, unit.queue_id):
            if name.startswith(LMQ_PREFIX):
                yield (name, queue_id), queue_offset, values
