"""Rows of a queue at a running broker, pulled as they are shown, and the messages that match a filter. No Qt.

Positions are queue offsets. All reading blocks: the window runs it in a thread of its own.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from engine.client.routes import MessageQueue
from engine.client.topic_reader import MAX_PULLED, PulledUnit, QueueRange, UnitPage
from engine.codec.message import Unit
from engine.codec.unit_scan import Stop
from engine.query import Filter
from viewer.log.rows import UnitRow, unit_row
from viewer.widgets.row_window import Page

MAX_CACHED_BYTES = 32 << 20
"""Bytes of units that are kept for the detail. Others are pulled again."""
MAX_PLACES = 200_000
"""Places of rows that are remembered, from which a unit is pulled again."""
MAX_BACK_BYTES = 8 << 20
"""Bytes after which one read of earlier rows ends."""
MAX_EMPTY_PULLS = 8
MAX_MATCHES = 10_000
"""Matches of a filter that are listed."""
SCANNED_AT_ONCE = 256


class Reader(Protocol):
    """The calls of :class:`engine.client.blocking.BlockingTopicReader` that rows need."""

    def read(self, queue: MessageQueue, offset: int, count: int) -> UnitPage: ...


class RemoteLog:
    """The units of a queue by their place in the broker's commit log, as the detail of a row reads a log."""

    def __init__(self, reader: Reader, queue: MessageQueue) -> None:
        self._reader, self._queue = reader, queue
        self._lock = threading.Lock()
        self._units: OrderedDict[int, PulledUnit] = OrderedDict()
        self._byte_count = 0
        self._queue_offsets: dict[int, int] = {}
        self.min_offset = self.end_offset = 0
        """The bytes of the chosen unit: the broker gives no others."""

    def add(self, items: Iterable[PulledUnit]) -> None:
        """Keep units that were pulled."""
        with self._lock:
            for item in items:
                offset = item.unit.offset
                if len(self._queue_offsets) >= MAX_PLACES:
                    self._queue_offsets.clear()
                self._queue_offsets[offset] = item.queue_offset
                old = self._units.pop(offset, None)
                self._units[offset] = item
                self._byte_count += len(item.data) - (len(old.data) if old is not None else 0)
            while self._byte_count > MAX_CACHED_BYTES and len(self._units) > 1:
                _offset, item = self._units.popitem(last=False)
                self._byte_count -= len(item.data)

    def find(self, offset: int, queue_offset: int | None = None) -> PulledUnit | None:
        """Return the unit at a place in the broker's log, pulled again if it is not kept; None if it is gone."""
        with self._lock:
            item = self._units.get(offset)
            queue_offset = self._queue_offsets.get(offset) if queue_offset is None else queue_offset
        if item is not None or queue_offset is None:
            return item
        page = self._reader.read(self._queue, queue_offset, 1)
        self.add(page.units)
        return next((item for item in page.units if item.unit.offset == offset), None)

    def unit_at(self, offset: int, crc: bool = True) -> Unit | Stop:  # noqa: ARG002  as of a log of files
        """Return the unit at a place."""
        item = self.find(offset)
        return item.unit if item is not None else Stop(offset, "end", "")

    def read(self, offset: int, length: int) -> bytes:
        """Return bytes of the unit that holds ``offset``."""
        with self._lock:
            item = next((item for start, item in self._units.items() if start <= offset < start + len(item.data)), None)
        if item is None:
            return b""
        start = offset - item.unit.offset
        return item.data[start : start + length]

    def entry_header(self, _offset: int) -> None:
        """A pulled unit has no header of DLedger."""


def remote_row(item: PulledUnit) -> UnitRow:
    """Return the row of a pulled unit, with its offset in the queue that was asked."""
    return replace(unit_row(item.unit), queue_offset=item.queue_offset)


class RemoteSource:
    """The rows of one queue. Its ends are those of the last answer."""

    def __init__(self, reader: Reader, ends: QueueRange) -> None:
        self._reader = reader
        self.queue = ends.queue
        self.start, self.end = ends.min_offset, ends.max_offset
        self.log = RemoteLog(reader, ends.queue)
        self._behind_batch: dict[int, int] = {}

    total = None
    """The number of rows is not known: a queue may have gaps, and a batch is one row."""

    def take_ends(self, ends: QueueRange) -> None:
        """Note the present ends of the queue."""
        self.start, self.end = ends.min_offset, ends.max_offset

    def position(self, row: UnitRow) -> int:
        return row.queue_offset

    def behind(self, row: UnitRow) -> int:
        return self._behind_batch.get(row.queue_offset, row.queue_offset + 1)

    def number(self, _row: UnitRow) -> None:
        return None

    def position_of(self, _number: int) -> None:
        return None

    def read(self, position: int, rows_before: int, rows_after: int) -> Page[UnitRow]:
        """Pull rows around a queue offset. Raises the errors of the reader."""
        ahead, is_last = self._ahead(position, rows_after) if rows_after else ([], position >= self.end)
        back, is_first = self._back(position, rows_before) if rows_before else ([], position <= self.start)
        rows = [remote_row(item) for item in (*back, *ahead)]
        return Page(rows, len(back), is_first, is_last)

    def pull(self, offset: int, count: int) -> UnitPage:
        """Pull units, and note the ends of the queue."""
        page = self._reader.read(self.queue, offset, count)
        self.start, self.end = page.min_offset, page.max_offset
        self.log.add(page.units)
        for item in page.units:
            if item.next_offset != item.queue_offset + 1:
                self._behind_batch[item.queue_offset] = item.next_offset
        return page

    def _ahead(self, offset: int, count: int) -> tuple[list[PulledUnit], bool]:
        for _ in range(MAX_EMPTY_PULLS):
            page = self.pull(offset, count)
            if page.units or not offset < page.next_offset < page.max_offset:
                break
            offset = page.next_offset  # the queue has a gap, or its first messages were deleted
        return list(page.units), page.next_offset >= page.max_offset

    def _back(self, offset: int, count: int) -> tuple[list[PulledUnit], bool]:
        """Return the units in front of ``offset``, without a gap up to it."""
        items: list[PulledUnit] = []
        span, byte_count = MAX_PULLED, 0
        while offset > self.start and len(items) < count and byte_count < MAX_BACK_BYTES:
            begin = max(offset - span, self.start)
            part = self._between(begin, offset)
            span = MAX_PULLED if part else 2 * span
            items = part + items
            byte_count += sum(len(item.data) for item in part)
            offset = min(begin, part[0].queue_offset) if part else begin
        return items, offset <= self.start

    def _between(self, begin: int, end: int) -> list[PulledUnit]:
        items: list[PulledUnit] = []
        while begin < end:
            page = self.pull(begin, end - begin)
            items += [item for item in page.units if item.queue_offset < end]
            if page.next_offset <= begin:
                break
            begin = page.next_offset
        return items


@dataclass(frozen=True, slots=True)
class ScanProgress:
    """Matches since the last report, how many messages were read in all, and the offset that is read next."""

    matches: tuple[UnitRow, ...]
    read_count: int
    next_offset: int
    end: int


def scan(
    source: RemoteSource,
    matching: Filter,
    start: int,
    on_progress: Callable[[ScanProgress], None],
    stopped: Callable[[], bool],
) -> None:
    """Read the queue from ``start`` to the end that it has now, and report the messages that match.

    Stops after :data:`MAX_MATCHES`, or when ``stopped`` returns True.
    """
    offset, read_count, match_count, end = start, 0, 0, source.end
    while offset < end and not stopped():
        page = source.pull(offset, SCANNED_AT_ONCE)
        matches = tuple(
            remote_row(item) for item in page.units if item.queue_offset < end and matching.matches(item.unit)
        )
        read_count += len(page.units)
        match_count += len(matches)
        if page.next_offset <= offset:
            break
        offset = page.next_offset
        on_progress(ScanProgress(matches, read_count, offset, end))
        if match_count >= MAX_MATCHES:
            break
