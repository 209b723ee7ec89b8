"""Finds a unit by topic, queue and queue offset in the log itself, if its queue does not list it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from engine.codec.message import PREPARED, ROLLBACK, Unit
from engine.inspection.entry_verdict import resolve
from engine.inspection.log_reader import BULK, LogReader
from engine.inspection.store_queues import AnyQueue

NEAR = 1000
"""Entries on each side that are searched for one that points to its unit."""


def units_at(
    log: LogReader,
    topic: str,
    queue_id: int,
    queue_offset: int,
    start: int,
    stop: int,
    progress: Callable[[int], None] | None = None,
) -> Iterator[Unit]:
    """Every unit in [start, stop) of the log that was given this queue offset, in the order of the log.

    After a recovery a queue offset may be used twice. Half and rollback units have no place in a queue and are left
    out. ``start`` need not be a unit's. A long range is walked by columns, and ``progress`` gets the bytes done.
    """
    start = log.align(start)
    candidates = partial(_by_columns, progress=progress) if stop - start > BULK else _one_by_one
    for offset in candidates(log, queue_id, queue_offset, start, stop):
        unit = log.seen_at(offset)
        if (
            isinstance(unit, Unit)
            and (unit.topic, unit.queue_id, unit.queue_offset) == (topic, queue_id, queue_offset)
            and unit.transaction_type not in {PREPARED, ROLLBACK}
        ):
            yield unit


def bounds_by_queue(queue: AnyQueue, queue_offset: int) -> tuple[int, int]:
    """The range of the log (start, end) that can hold the unit of ``queue_offset``: between the units of the nearest
    valid entries on both sides.
    """
    min_offset, max_offset = max(queue.min_offset, 0), queue.max_offset
    start, stop = 0, 1 << 62
    if queue_offset >= max_offset > min_offset:
        newest = queue.entry(max_offset - 1)
        if newest is not None and newest.state == "entry":
            start = newest.physical_offset
    elif queue_offset < min_offset < max_offset:
        oldest = queue.entry(min_offset)
        if oldest is not None and oldest.state == "entry":
            stop = oldest.physical_offset
    return start, stop


def bounds_around(log: LogReader, queue: AnyQueue, queue_offset: int) -> tuple[int, int]:
    """The range of the log (start, end) that can hold the unit of a wrong entry: between the units of the nearest
    correct entries of a simple queue on both sides.
    """
    first_offset, end = max(queue.min_offset, 0), queue.max_offset
    unit_before = _nearest(log, queue, range(queue_offset - 1, max(first_offset, queue_offset - NEAR) - 1, -1))
    unit_behind = _nearest(log, queue, range(queue_offset + 1, min(end, queue_offset + NEAR)))
    return max(
        log.min_offset, 0
    ) if unit_before is None else unit_before, log.max_offset if unit_behind is None else unit_behind


def _nearest(log: LogReader, queue: AnyQueue, numbers: range) -> int | None:
    for number in numbers:
        entry = queue.entry(number)
        if entry is not None and resolve(log, queue.topic, queue.queue_id, entry).verdict == "ok":
            return entry.physical_offset
    return None


def _one_by_one(log: LogReader, queue_id: int, queue_offset: int, start: int, stop: int) -> Iterator[int]:
    for item in log.walk(start, stop, crc=False):
        if isinstance(item, Unit) and (item.queue_id, item.queue_offset) == (queue_id, queue_offset):
            yield item.offset


def _by_columns(
    log: LogReader, queue_id: int, queue_offset: int, start: int, stop: int, progress: Callable[[int], None] | None
) -> Iterator[int]:
    from engine.codec.columns import UnitColumns
    from engine.inspection.block_scan import scan_log

    for block in scan_log(log, start, stop, crc=False, with_tags=False):
        if isinstance(block, UnitColumns):
            hits = (block["queue_id"] == queue_id) & (block["queue_offset"] == queue_offset)
            yield from [int(offset) for offset in block["offset"][hits]]
            if progress is not None and block.count:
                progress(int(block.offset[block.count - 1]) - start)
