"""The queue offset for a time: getOffsetInQueueByTime with both boundaries, and 4.9's rule
(docs/formats/consume-queue.md#by-time, docs/formats/reading.md#other-reads).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from engine.codec.message import BORN_HOST_V6
from engine.store.queue_entry import CqEntry, QueueBytes, number_spans, unit_at

Boundary = Literal["lower", "upper"]
_HEAD = 76  # up to STORETIMESTAMP's end with an IPv6 born host
_SHORT_HEAD = 64


class TimedLog(Protocol):
    """The commit log as a search by time needs it."""

    @property
    def min_offset(self) -> int: ...
    @property
    def max_offset(self) -> int: ...
    def read(self, offset: int, size: int) -> bytes: ...


def store_time(log: TimedLog, offset: int, size: int) -> int:
    """Store time (ms) of the unit of ``size`` bytes at ``offset``, −1 if the log does not hold it
    (pickupStoreTimestamp).
    """
    if not log.min_offset <= offset or offset + size > log.max_offset:
        return -1
    head = log.read(offset, _HEAD)
    if len(head) < _SHORT_HEAD:
        return -1
    time_position = 68 if int.from_bytes(head[36:40], "big") & BORN_HOST_V6 else 56
    stamp = head[time_position : time_position + 8]
    return int.from_bytes(stamp, "big", signed=True) if len(stamp) == 8 else -1


def earliest_time(log: TimedLog) -> int:
    """Store time (ms) of the first unit of the log, −1 without one (``getEarliestMessageTime``)."""
    return store_time(log, log.min_offset, _SHORT_HEAD)


def offset_by_time(queue: QueueBytes | None, log: TimedLog, timestamp: int, boundary: str = "lower") -> int:
    """Queue offset of the first entry stored at or after ``timestamp`` ms (``lower``), or of the last at or before it
    (``upper``), held within the queue; 0 without a queue. As RocketMQ 5 answers.
    """
    if queue is None:
        return 0
    lower = boundary == "lower"
    queue_offset = (
        _in_batches(queue, timestamp, lower) if queue.kind == "batch" else _Search(queue, log).run(timestamp, lower)
    )
    return min(max(queue_offset, queue.min_offset), queue.max_offset)


def offset_by_time_49(queue: QueueBytes | None, log: TimedLog, timestamp: int, modified: Sequence[int]) -> int:
    """The same as RocketMQ 4.9 answers: in the first file that was ``modified`` (ms, one for each span) at or after
    ``timestamp``, else the last; without an exact hit the nearer neighbour, a tie goes to the older. Not held within
    the queue.
    """
    spans = number_spans(queue) if queue is not None else []
    if queue is None or not spans:
        return 0
    chosen = next((span for span, when in zip(spans, modified, strict=False) if when >= timestamp), spans[-1])
    return _nearest(queue, log, timestamp, max(queue.min_offset, chosen[0]), chosen)


def _nearest(queue: QueueBytes, log: TimedLog, timestamp: int, low_number: int, span: tuple[int, int]) -> int:
    first_number, high_number = span
    earlier_number = later_number = -1
    earlier_time = later_time = -1
    while high_number >= low_number:
        middle = first_number + (low_number + high_number - 2 * first_number) // 2
        entry = unit_at(queue, middle)
        if entry is None or entry.physical_offset < log.min_offset:
            low_number, earlier_number = middle + 1, middle
            continue
        time = store_time(log, entry.physical_offset, entry.size)
        if time < 0:
            return 0
        if time == timestamp:
            return middle
        if time > timestamp:
            high_number, later_number, later_time = middle - 1, middle, time
        else:
            low_number, earlier_number, earlier_time = middle + 1, middle, time
    if earlier_time == -1:
        return later_number if later_number >= 0 else max(first_number - 1, 0)
    if later_time == -1:
        return earlier_number
    return later_number if timestamp - earlier_time > later_time - timestamp else earlier_number


class _Search:
    """ConsumeQueue.binarySearchInQueueByTime, entry numbers instead of byte positions."""

    def __init__(self, queue: QueueBytes, log: TimedLog) -> None:
        self._queue, self._log = queue, log
        self._low_offset = log.min_offset

    def run(self, timestamp: int, lower: bool) -> int:
        bounds = self._choose_file(timestamp, lower)
        if bounds is None:
            return 0
        first_number, ceiling = bounds
        floor = max(self._queue.min_offset, first_number)
        floor = floor if floor <= ceiling else first_number
        if self._time(ceiling) < timestamp:
            return ceiling + 1 if lower else ceiling
        if self._time(floor) > timestamp:
            return first_number if lower else 0
        return self._bisect(timestamp, lower, floor, ceiling)

    def _choose_file(self, timestamp: int, lower: bool) -> tuple[int, int] | None:
        """(first entry, last readable entry) of the file that the search goes into."""
        spans = number_spans(self._queue)
        if not spans:
            return None
        if lower:
            return next((span for span in spans[:-1] if self._time(span[1]) >= timestamp), spans[-1])
        return next((span for span in reversed(spans) if self._time(span[0]) <= timestamp), None)

    def _bisect(self, timestamp: int, lower: bool, low_number: int, ceiling: int) -> int:
        floor, earlier_number, later_number = low_number, -1, -1
        high_number = ceiling
        while high_number >= low_number:
            middle = (low_number + high_number) // 2
            entry = unit_at(self._queue, middle)
            if entry is None or entry.physical_offset < self._low_offset:
                low_number = middle + 1
                continue
            time = self._time_of(entry)
            if time < 0:
                return 0
            if time == timestamp:
                return self._spread(middle, timestamp, lower, floor, ceiling)
            if time > timestamp:
                high_number, later_number = middle - 1, middle
            else:
                low_number, earlier_number = middle + 1, middle
        return max(later_number if lower else earlier_number, 0)

    def _spread(self, middle: int, timestamp: int, lower: bool, floor: int, ceiling: int) -> int:
        step = -1 if lower else 1
        while floor <= middle + step <= ceiling and self._time(middle + step) == timestamp:
            middle += step
        return middle

    def _time(self, number: int) -> int:
        entry = unit_at(self._queue, number)
        return self._time_of(entry) if entry else -1

    def _time_of(self, entry: CqEntry) -> int:
        return store_time(self._log, entry.physical_offset, entry.size)


def _in_batches(queue: QueueBytes, timestamp: int, lower: bool) -> int:
    """BatchConsumeQueue.getOffsetInQueueByTime: times stand in the entries themselves; −1 if the search finds
    nothing.
    """
    spans = number_spans(queue)
    if not spans:
        return -1
    chosen = spans[0]
    for span in spans:
        first_entry = unit_at(queue, span[0])
        if first_entry is not None and (first_entry.store_timestamp or 0) <= timestamp:
            chosen = span
    last_entry = unit_at(queue, chosen[1])
    if last_entry is not None and timestamp >= (last_entry.store_timestamp or 0):
        return last_entry.queue_offset
    entry = unit_at(queue, _batch_bisect(queue, chosen, timestamp, lower))
    return entry.queue_offset if entry is not None else -1


def _batch_bisect(queue: QueueBytes, span: tuple[int, int], timestamp: int, lower: bool) -> int:
    """BatchConsumeQueue.binarySearchRight of 5.3.3 over unit numbers, with what it misses: −1 for UPPER between two
    times.
    """
    low_number, high_number = span
    while low_number <= high_number:
        middle = (low_number + high_number) // 2
        entry = unit_at(queue, middle)
        time = (entry.store_timestamp or 0) if entry is not None else -1
        if middle == high_number:
            return middle if time >= timestamp else -1
        if middle == low_number:
            if time >= timestamp:
                return middle
            low_number = middle + 1
        elif lower:
            low_number, high_number = (middle + 1, high_number) if time < timestamp else (low_number, middle)
        else:
            low_number, high_number = (middle, high_number) if time <= timestamp else (low_number, middle - 1)
    return -1
