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
    """What a search by time asks of the commit log."""

    @property
    def min_offset(self) -> int: ...
    @property
    def max_offset(self) -> int: ...
    def read(self, offset: int, size: int) -> bytes: ...


def store_time(log: TimedLog, offset: int, size: int) -> int:
    """Store time (ms) of the unit of ``size`` bytes at ``offset``, −1 where the log does not hold it
    (pickupStoreTimestamp).
    """
    if not log.min_offset <= offset or offset + size > log.max_offset:
        return -1
    head = log.read(offset, _HEAD)
    if len(head) < _SHORT_HEAD:
        return -1
    at = 68 if int.from_bytes(head[36:40], "big") & BORN_HOST_V6 else 56
    stamp = head[at : at + 8]
    return int.from_bytes(stamp, "big", signed=True) if len(stamp) == 8 else -1


def offset_by_time(queue: QueueBytes | None, log: TimedLog, timestamp: int, boundary: str = "lower") -> int:
    """Queue offset of the first entry stored at or after ``timestamp`` ms (``lower``), or of the last at or before it
    (``upper``), held within the queue; 0 without a queue. As RocketMQ 5 answers.
    """
    if queue is None:
        return 0
    lower = boundary == "lower"
    found = _in_batches(queue, timestamp, lower) if queue.kind == "batch" else _Search(queue, log).run(timestamp, lower)
    return min(max(found, queue.min_offset), queue.max_offset)


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


def _nearest(queue: QueueBytes, log: TimedLog, timestamp: int, low: int, span: tuple[int, int]) -> int:
    first, high = span
    left = right = -1
    left_time = right_time = -1
    while high >= low:
        middle = first + (low + high - 2 * first) // 2
        entry = unit_at(queue, middle)
        if entry is None or entry.physical_offset < log.min_offset:
            low, left = middle + 1, middle
            continue
        time = store_time(log, entry.physical_offset, entry.size)
        if time < 0:
            return 0
        if time == timestamp:
            return middle
        if time > timestamp:
            high, right, right_time = middle - 1, middle, time
        else:
            low, left, left_time = middle + 1, middle, time
    if left_time == -1:
        return right if right >= 0 else max(first - 1, 0)
    if right_time == -1:
        return left
    return right if timestamp - left_time > right_time - timestamp else left


class _Search:
    """ConsumeQueue.binarySearchInQueueByTime, entry numbers instead of byte positions."""

    def __init__(self, queue: QueueBytes, log: TimedLog) -> None:
        self._queue, self._log = queue, log
        self._low_offset = log.min_offset

    def run(self, timestamp: int, lower: bool) -> int:
        bounds = self._choose_file(timestamp, lower)
        if bounds is None:
            return 0
        first, ceiling = bounds
        low = max(self._queue.min_offset, first)
        low = low if low <= ceiling else first
        if self._time(ceiling) < timestamp:
            return ceiling + 1 if lower else ceiling
        if self._time(low) > timestamp:
            return first if lower else 0
        return self._bisect(timestamp, lower, low, ceiling)

    def _choose_file(self, timestamp: int, lower: bool) -> tuple[int, int] | None:
        """(first entry, last readable entry) of the file that the search goes into."""
        spans = number_spans(self._queue)
        if not spans:
            return None
        if lower:
            return next((span for span in spans[:-1] if self._time(span[1]) >= timestamp), spans[-1])
        return next((span for span in reversed(spans) if self._time(span[0]) <= timestamp), None)

    def _bisect(self, timestamp: int, lower: bool, low: int, ceiling: int) -> int:
        floor, left, right = low, -1, -1
        high = ceiling
        while high >= low:
            middle = (low + high) // 2
            entry = unit_at(self._queue, middle)
            if entry is None or entry.physical_offset < self._low_offset:
                low = middle + 1
                continue
            time = self._time_of(entry)
            if time < 0:
                return 0
            if time == timestamp:
                return self._spread(middle, timestamp, lower, floor, ceiling)
            if time > timestamp:
                high, right = middle - 1, middle
            else:
                low, left = middle + 1, middle
        return max(right if lower else left, 0)

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
    """BatchConsumeQueue.getOffsetInQueueByTime: times stand in the entries themselves; −1 where the search finds
    nothing.
    """
    spans = number_spans(queue)
    if not spans:
        return -1
    chosen = spans[0]
    for span in spans:
        first = unit_at(queue, span[0])
        if first is not None and (first.store_timestamp or 0) <= timestamp:
            chosen = span
    last = unit_at(queue, chosen[1])
    if last is not None and timestamp >= (last.store_timestamp or 0):
        return last.queue_offset
    found = unit_at(queue, _batch_bisect(queue, chosen, timestamp, lower))
    return found.queue_offset if found is not None else -1


def _batch_bisect(queue: QueueBytes, span: tuple[int, int], timestamp: int, lower: bool) -> int:
    """BatchConsumeQueue.binarySearchRight of 5.3.3 over unit numbers, with what it misses: −1 for UPPER between two
    times.
    """
    left, right = span
    while left <= right:
        middle = (left + right) // 2
        entry = unit_at(queue, middle)
        time = (entry.store_timestamp or 0) if entry is not None else -1
        if middle == right:
            return middle if time >= timestamp else -1
        if middle == left:
            if time >= timestamp:
                return middle
            left = middle + 1
        elif lower:
            left, right = (middle + 1, right) if time < timestamp else (left, middle)
        else:
            left, right = (middle, right) if time <= timestamp else (left, middle - 1)
    return -1
