"""A unit by topic, queue and queue offset, looked for in the log itself: for what its queue does not list."""

from __future__ import annotations

from collections.abc import Iterator

from engine.codec.message import PREPARED, ROLLBACK, Unit
from engine.inspection.log_reader import BULK, LogReader
from engine.inspection.queue_reader import QueueReader


def units_at(log: LogReader, topic: str, queue_id: int, queue_offset: int, start: int, stop: int) -> Iterator[Unit]:
    """Every unit in [start, stop) of the log that was given this queue offset, in the order of the log.

    After a recovery a queue offset may be used twice. Half and rollback units have no place in a queue and are left
    out. ``start`` need not be a unit's. A long stretch is walked by columns.
    """
    start = log.align(start)
    candidates = _by_columns if stop - start > BULK else _one_by_one
    for offset in candidates(log, queue_id, queue_offset, start, stop):
        unit = log.seen_at(offset)
        if (
            isinstance(unit, Unit)
            and (unit.topic, unit.queue_id, unit.queue_offset) == (topic, queue_id, queue_offset)
            and unit.transaction_type not in {PREPARED, ROLLBACK}
        ):
            yield unit


def bounds_by_queue(queue: QueueReader, queue_offset: int) -> tuple[int, int]:
    """The stretch of the log (start, end) where the unit of ``queue_offset`` can stand: between the units of the
    nearest good entries before and behind it.
    """
    low, high = max(queue.min_offset, 0), queue.max_offset
    start, stop = 0, 1 << 62
    if queue_offset >= high > low:
        newest = queue.entry(high - 1)
        if newest is not None and newest.state == "entry":
            start = newest.physical_offset
    elif queue_offset < low < high:
        oldest = queue.entry(low)
        if oldest is not None and oldest.state == "entry":
            stop = oldest.physical_offset
    return start, stop


def _one_by_one(log: LogReader, queue_id: int, queue_offset: int, start: int, stop: int) -> Iterator[int]:
    for item in log.walk(start, stop, crc=False):
        if isinstance(item, Unit) and (item.queue_id, item.queue_offset) == (queue_id, queue_offset):
            yield item.offset


def _by_columns(log: LogReader, queue_id: int, queue_offset: int, start: int, stop: int) -> Iterator[int]:
    from engine.codec.columns import UnitColumns
    from engine.inspection.block_scan import scan_log

    for block in scan_log(log, start, stop, crc=False, want_tags=False):
        if isinstance(block, UnitColumns):
            hits = (block["queue_id"] == queue_id) & (block["queue_offset"] == queue_offset)
            yield from [int(offset) for offset in block["offset"][hits]]
