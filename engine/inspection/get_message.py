"""What a broker's getMessage would answer from these files (spec 9.1), and offsets by time (spec 3.5).

The broker is one that has opened the store and dispatched nothing: entries behind the end of the log do not count,
minimum
offsets are corrected, a queue without a folder is empty.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.codec.consume_queue import same_tag
from engine.codec.java import jhash
from engine.codec.message import Unit
from engine.inspection.queue_reader import CqEntry, QueueReader

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot

MAX_FILTER_BYTES = 16_000
MAX_TOTAL = 128 << 20
IN_MEMORY_BYTES, IN_MEMORY_COUNT = 256 << 10, 32
ON_DISK_BYTES, ON_DISK_COUNT = 64 << 10, 8
IN_MEMORY_RATIO = 40


@dataclass(frozen=True, slots=True)
class GetResult:
    """GetMessageResult: a status of GetMessageStatus, offsets in messages, and the units that would be sent."""

    status: str
    next_begin_offset: int
    min_offset: int
    max_offset: int
    units: list[Unit] = field(default_factory=list)

    @property
    def count(self) -> int:
        return sum(unit.batch_size for unit in self.units)


def tag_filter(expression: str | None) -> Callable[[int | None], bool] | None:
    """The broker's test on a queue entry's tag code: hashes are compared, ``*`` and an unknown code pass."""
    if expression is None or expression.strip() in ("", "*"):
        return None
    codes = [jhash(tag.strip()) for tag in expression.split("||") if tag.strip()]
    return lambda code: code is None or any(same_tag(code, one) for one in codes)


def get_message(
    store: StoreSnapshot,
    topic: str,
    queue_id: int,
    offset: int,
    max_count: int = 32,
    tags: Callable[[int | None], bool] | None = None,
    content: Callable[[Unit], bool] | None = None,
) -> GetResult:
    """getMessage for one queue from queue offset ``offset`` on; ``tags`` tests the entry, ``content`` the unit."""
    queue = store.queue(topic, queue_id)
    if queue is None:
        return GetResult("NO_MESSAGE_IN_QUEUE", 0, 0, 0)
    low, high = queue.min_offset, queue.max_offset
    if high == 0:
        return GetResult("NO_MESSAGE_IN_QUEUE", 0, low, high)
    if offset < low:
        return GetResult("OFFSET_TOO_SMALL", low, low, high)
    if offset == high:
        return GetResult("OFFSET_OVERFLOW_ONE", offset, low, high)
    if offset > high:
        return GetResult("OFFSET_OVERFLOW_BADLY", high, low, high)
    return _Scan(store, queue, offset, max_count, tags, content).run(low, high)


class _Scan:
    def __init__(
        self,
        store: StoreSnapshot,
        queue: QueueReader,
        offset: int,
        max_count: int,
        tags: Callable[[int | None], bool] | None,
        content: Callable[[Unit], bool] | None,
    ) -> None:
        self._store, self._queue, self._offset, self._max = store, queue, offset, max_count
        self._tags, self._content = tags, content
        self._limit = max(MAX_FILTER_BYTES, max_count * queue.unit_size)
        self._memory = _physical_memory() * IN_MEMORY_RATIO // 100
        self._log_end = store.log.max_offset
        self._units: list[Unit] = []
        self._bytes = self._count = 0
        self._next = offset
        self._skip_below: int | None = None
        self._status = "NO_MATCHED_MESSAGE"

    def run(self, low: int, high: int) -> GetResult:
        files = 0
        while not self._bytes and self._next < high and files < 1:
            files += 1
            end = self._file_end(self._next)
            if end is None:
                self._status = "OFFSET_FOUND_NULL"
                self._next = self._roll(self._next)
                break
            for entry in self._queue.entries(self._next, min(high, end)):
                if not self._take(entry):
                    break
        return GetResult(self._status, self._next, low, high, self._units)

    def _file_end(self, queue_offset: int) -> int | None:
        """First queue offset behind the file that holds ``queue_offset``, None where no file does."""
        if self._queue.kind == "batch":
            return self._queue.batch_file_end(queue_offset)
        file = self._queue.sequence.find(queue_offset * self._queue.unit_size)
        return file.end_offset // self._queue.unit_size if file else None

    def _roll(self, queue_offset: int) -> int:
        if self._queue.kind == "batch":
            return 0
        per_file = self._queue.entries_per_file
        return queue_offset + per_file - queue_offset % per_file

    def _take(self, entry: CqEntry) -> bool:
        """Look at one entry; False ends the scan."""
        in_memory = self._log_end - entry.physical_offset <= self._memory
        batch = entry.batch_size or 1
        if (entry.queue_offset - self._offset) * self._queue.unit_size >= self._limit:
            return False
        if self._full(entry, in_memory, batch) or self._bytes >= MAX_TOTAL:
            return False
        self._next = entry.queue_offset + batch
        if self._skip_below is not None and entry.physical_offset < self._skip_below:
            return True
        if self._tags is not None and not self._tags(entry.real_tags_code):
            return self._passed("NO_MATCHED_MESSAGE")
        unit = self._unit(entry)
        if unit is None:
            size = max(self._store.log.sequence.file_size, 1)
            self._skip_below = entry.physical_offset - entry.physical_offset % size + size
            return self._passed("MESSAGE_WAS_REMOVING")
        if self._content is not None and not self._content(unit):
            return self._passed("NO_MATCHED_MESSAGE")
        self._units.append(unit)
        self._bytes += entry.size
        self._count += batch
        self._status, self._skip_below = "FOUND", None
        return True

    def _unit(self, entry: CqEntry) -> Unit | None:
        """The unit, where all the bytes that the entry names are readable in one file (a pre-filled slot names too
        many).
        """
        file = self._store.log.sequence.find(entry.physical_offset)
        end = entry.physical_offset + entry.size
        if file is None or end > min(file.end_offset, self._log_end):
            return None
        unit = self._store.log.unit_at(entry.physical_offset, crc=False)
        return unit if isinstance(unit, Unit) else None

    def _passed(self, status: str) -> bool:
        if not self._units:
            self._status = status
        return True

    def _full(self, entry: CqEntry, in_memory: bool, batch: int) -> bool:
        if not self._bytes:
            return False
        if self._count + batch > self._max or self._bytes + entry.size > MAX_TOTAL:
            return True
        if in_memory:
            return self._bytes + entry.size > IN_MEMORY_BYTES or self._count > IN_MEMORY_COUNT - 1
        return self._bytes + entry.size > ON_DISK_BYTES or self._count > ON_DISK_COUNT - 1


def offset_by_time(store: StoreSnapshot, topic: str, queue_id: int, timestamp: int, boundary: str = "lower") -> int:
    """getOffsetInQueueByTime of 5.x: first entry at or after ``timestamp`` (lower) or last at or before it (upper),
    ms.
    """
    queue = store.queue(topic, queue_id)
    if queue is None:
        return 0
    found = (
        _batch_by_time(queue, timestamp, boundary)
        if queue.kind == "batch"
        else _by_time(store, queue, timestamp, boundary)
    )
    return min(max(found, queue.min_offset), queue.max_offset)


def _by_time(store: StoreSnapshot, queue: QueueReader, timestamp: int, boundary: str) -> int:
    return _TimeSearch(store, queue).search(timestamp, lower=boundary == "lower")


class _TimeSearch:
    """ConsumeQueue.binarySearchInQueueByTime, entry numbers instead of byte positions."""

    def __init__(self, store: StoreSnapshot, queue: QueueReader) -> None:
        self._store, self._queue = store, queue
        self._low_offset = store.log.min_offset
        self._end = queue.valid_end // queue.unit_size

    def search(self, timestamp: int, lower: bool) -> int:
        bounds = self._choose_file(timestamp, lower)
        if bounds is None:
            return 0
        first, ceiling = bounds
        minimum = self._queue.min_offset
        low = max(minimum, first)
        low = low if low <= ceiling else first
        if self._time(ceiling) < timestamp:
            return ceiling + 1 if lower else ceiling
        if self._time(low) > timestamp:
            return first if lower else 0
        return self._bisect(timestamp, lower, low, ceiling)

    def _choose_file(self, timestamp: int, lower: bool) -> tuple[int, int] | None:
        """(first entry, last readable entry) of the file that the search goes into."""
        size = self._queue.unit_size
        spans = [
            (f.start_offset // size, min(f.end_offset // size, self._end) - 1)
            for f in self._queue.files
            if f.start_offset // size < self._end
        ]
        if not spans:
            return None
        if lower:
            for span in spans[:-1]:
                if self._time(span[1]) >= timestamp:
                    return span
            return spans[-1]
        for span in reversed(spans):
            if self._time(span[0]) <= timestamp:
                return span
        return None

    def _bisect(self, timestamp: int, lower: bool, low: int, ceiling: int) -> int:
        floor, left, right = low, -1, -1
        high = ceiling
        while high >= low:
            middle = (low + high) // 2
            entry = self._queue.entry(middle)
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
        entry = self._queue.entry(number)
        return self._time_of(entry) if entry else -1

    def _time_of(self, entry: CqEntry) -> int:
        return store_time(self._store, entry)


def store_time(store: StoreSnapshot, entry: CqEntry) -> int:
    """Store time (ms) of the unit that an entry points at, −1 where the log does not hold it (pickupStoreTimestamp)."""
    if entry.physical_offset < store.log.min_offset or entry.physical_offset + entry.size > store.log.max_offset:
        return -1
    head = store.log.read(entry.physical_offset, 76)
    if len(head) < 76:
        return -1
    at = 68 if int.from_bytes(head[36:40], "big") & 0x10 else 56
    return int.from_bytes(head[at : at + 8], "big", signed=True)


def _batch_by_time(queue: QueueReader, timestamp: int, boundary: str) -> int:
    """BatchConsumeQueue.getOffsetInQueueByTime: times stand in the entries themselves; −1 where the search finds
    nothing.
    """
    spans = queue.batch_spans()
    if not spans:
        return -1
    chosen = spans[0]
    for span in spans:
        first = queue.batch(span[0])
        if first is not None and (first.store_timestamp or 0) <= timestamp:
            chosen = span
    last = queue.batch(chosen[1])
    if last is not None and timestamp >= (last.store_timestamp or 0):
        return last.queue_offset
    found = queue.batch(_batch_bisect(queue, chosen, timestamp, lower=boundary == "lower"))
    return found.queue_offset if found is not None else -1


def _batch_bisect(queue: QueueReader, span: tuple[int, int], timestamp: int, lower: bool) -> int:
    """BatchConsumeQueue.binarySearchRight of 5.3.3 over unit numbers, with what it misses: −1 for UPPER between two
    times.
    """
    left, right = span
    while left <= right:
        middle = (left + right) // 2
        entry = queue.batch(middle)
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


def _physical_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return 8 << 30
