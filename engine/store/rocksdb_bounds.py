"""Bounds of a queue in a RocksDB, as a start of a broker corrects them (docs/formats/consume-queue.md#rocksdb-bounds).

Each function does what ``RocksDBConsumeQueueOffsetTable`` and ``RocksDBConsumeQueueTable`` do. Pure: rows come through
``row_at``, which returns the row of a queue offset or None.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.codec.rocksdb_queue_rows import BoundRow, QueueRow

RowAt = Callable[[int], QueueRow | None]
NONE = -1


def search(row_at: RowAt, lower_bound: int, upper_bound: int, target: int, *, is_minimum: bool) -> int:
    """``binarySearchInCQ``: queue offset of the first entry at or behind ``target`` (bytes of the log), or of the last
    in front of it; -1 if none is met. An entry right at ``target`` ends the search for the last, as in Java.
    """
    nearest = NONE
    while upper_bound >= lower_bound:
        middle = lower_bound + (upper_bound - lower_bound) // 2
        row = row_at(middle)
        if row is None or row.physical_offset < target:
            lower_bound = middle + 1
            if row is not None and not is_minimum:
                nearest = middle
        elif row.physical_offset == target:
            return middle if is_minimum else nearest
        else:
            upper_bound = middle - 1
            if is_minimum:
                nearest = middle
    return nearest


def minimum(row_at: RowAt, oldest: BoundRow | None, newest: BoundRow | None, log_min: int) -> int:
    """``getMinCqOffset``: the smallest queue offset that a broker answers. ``oldest`` and ``newest`` are the rows
    ``min`` and ``max``.
    """
    if oldest is not None and oldest.physical_offset >= log_min:
        return oldest.queue_offset
    if newest is None:
        return 0
    if newest.physical_offset < log_min:
        return newest.queue_offset + 1
    oldest_offset = oldest.queue_offset if oldest is not None else 0
    number = search(row_at, oldest_offset, newest.queue_offset, log_min, is_minimum=True)
    return oldest_offset if number == NONE else number


def cut(row_at: RowAt, oldest: BoundRow | None, newest: BoundRow, log_min: int, log_end: int) -> int:
    """``truncateDirtyOffset``: the end (queue offset) of a queue whose newest entry is not in front of ``log_end``.

    A queue whose first entry is behind the log's end as well is left alone: the broker logs an error and goes on.
    """
    first_offset = minimum(row_at, oldest, newest, log_min)
    if oldest is not None and oldest.physical_offset >= log_min:
        first_physical: int | None = oldest.physical_offset
    else:
        first_row = row_at(first_offset)
        first_physical = None if first_row is None else first_row.physical_offset
    if first_physical is None or first_physical > log_end:
        return newest.queue_offset + 1
    number = search(row_at, first_offset, newest.queue_offset, log_end, is_minimum=False)
    return (first_offset if number == NONE else number) + 1
