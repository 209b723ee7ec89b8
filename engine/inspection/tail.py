"""Where a store that grows stands now, found from where it stood at the last look: a few short reads, whatever the
rate.

A broker writes into files that keep their length, so nothing but their bytes tells how far it came. The log's end is
reached in steps that double, then by halving, then from the last unit in front of it; a queue's end likewise. What is
kept is checked at each look: a store that was cut, or whose files went, is looked at anew. Offsets are bytes.
"""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.codec.message import MAGIC_BLANK, Unit
from engine.codec.unit_flavours import MAGICS
from engine.codec.unit_scan import Blank
from engine.errors import CannotRead, CorruptUnit
from engine.inspection.positions import (
    Position,
    Positions,
    checkpoint_positions,
    if_read,
    index_position,
    positions_of,
    queue_position,
)

if TYPE_CHECKING:
    from engine.codec.checkpoint import Checkpoint
    from engine.inspection.log_reader import LogReader
    from engine.inspection.queue_reader import QueueReader
    from engine.inspection.snapshot import StoreSnapshot
    from engine.mapped.read_only import ReadOnlyFile

STEP = 1 << 16
"""Bytes that are read at once near the end of the log."""
PROBE = 512
HEAD = 36
_HEAD = struct.Struct(">iI20xq")
WARM = 64
"""Looks for which a queue that grew is asked each time."""
COLD_AT_ONCE = 64
"""Queues at rest that are asked in one look, in turn."""
TRUSTED = 2
"""Looks after which a last unit that fails its check counts as written."""

LONG_SEARCH = 0.05
"""Seconds from which on a search for the checkpoint's times is long."""


class LogTail:
    """The end of the last whole unit of ``log``, at each :meth:`find`."""

    def __init__(self, log: LogReader) -> None:
        self._log = log
        self._end: int | None = None
        self._last: tuple[int, bytes] | None = None
        self._files: list[ReadOnlyFile] = []
        self._doubted = (-1, 0)

    def find(self) -> int:
        """The end now; tells the log of it, so that whoever asks the log need not search."""
        if self._end is None or not self._stands():
            self._log.forget_end()
            self._end = self._log.max_offset
            self._last = self._mark_before(self._end)
        end, last = self._ahead(self._end)
        if last is not None:
            end = self._whole(last, end)
        if last is not None and end != last:
            self._last = (last, self._log.read(last, HEAD))
        self._end = end
        self._files = list(self._log.files)
        self._log.know_end(end)
        return end

    def last_stored(self) -> tuple[int, int] | None:
        """(store time in ms, end) of the last unit found; None where there is none."""
        if self._last is None or self._end is None:
            return None
        unit = self._log.unit_at(self._last[0], crc=False)
        return (unit.store_timestamp, unit.end) if isinstance(unit, Unit) else None

    def _stands(self) -> bool:
        """Whether what was the end is still behind the same unit of a file that is there, and no file was exchanged."""
        assert self._end is not None
        log = self._log
        if not self._same_files() or not log.min_offset <= self._end <= log.end_offset:
            return False
        return self._last is None or log.read(self._last[0], HEAD) == self._last[1]

    def _same_files(self) -> bool:
        """Whether only old files went and new ones came behind: another file of the same name, or one that was cut, is
        another object. What lies behind the end may be units then, with none in front of them.
        """
        now = self._log.files
        kept = [file for file in self._files if not now or file.start_offset >= now[0].start_offset]
        return bool(kept) and now[: len(kept)] == kept

    def _mark_before(self, end: int) -> tuple[int, bytes] | None:
        before = self._log.items_before(end, 1, crc=False) if end > max(self._log.min_offset, 0) else []
        return (before[-1].offset, self._log.read(before[-1].offset, HEAD)) if before else None

    def _whole(self, last: int, end: int) -> int:
        """``end``, or the start of the last unit while that one is still being written."""
        seen = self._log.unit_at(last)
        if isinstance(seen, Unit) and seen.crc != "bad":
            return end
        offset, times = self._doubted
        self._doubted = (last, times + 1 if offset == last else 1)
        return end if self._doubted[1] > TRUSTED and isinstance(seen, Unit) else last

    def _ahead(self, end: int) -> tuple[int, int | None]:
        """(end, start of the last unit seen on the way) from ``end`` on; None where nothing was written."""
        last: int | None = None
        while True:
            number = self._log.sequence.position_of(end)
            file = self._log.files[number] if number >= 0 else None
            if file is None or end >= file.end_offset:
                if not self._has_file_at(end):
                    return end, last
                continue
            blank, end, seen = self._in_file(file, end)
            last = seen if seen is not None else last
            if not blank:
                return end, last
            following = self._log.files[number + 1] if number + 1 < len(self._log.files) else None
            if following is None:
                self._log.sequence.refresh()
                if number + 1 >= len(self._log.files):
                    return end, last
                following = self._log.files[number + 1]
            end = following.start_offset

    def _has_file_at(self, end: int) -> bool:
        """A broker that rolls at a file's very end made another file."""
        self._log.sequence.refresh()
        return self._log.sequence.find(end) is not None

    def _in_file(self, file: ReadOnlyFile, end: int) -> tuple[bool, int, int | None]:
        """(a blank stands at the end, end, start of the last unit) in one file from ``end`` on."""
        last: int | None = None
        leapt = False
        while True:
            data = file.read(end - file.start_offset, STEP)
            blank, at, seen = _hop(data, end)
            last = seen if seen is not None else last
            behind, moved, end = data[at - end :], at - end, at
            if blank or not any(behind[:8]):
                return blank, end, last
            if not moved:
                blank, end, seen = self._walk(file, end)
                return blank, end, seen if seen is not None else last
            if not leapt and len(data) == STEP:
                leapt = True
                end = self._leap(file, end)

    def _walk(self, file: ReadOnlyFile, end: int) -> tuple[bool, int, int | None]:
        """The same, unit by unit as everybody walks: long ones, other frames, or what is no unit."""
        last: int | None = None
        for item in self._log.walk(end, file.end_offset, crc=False, resync=False):
            if isinstance(item, Blank):
                return True, item.offset, last
            if not isinstance(item, Unit):
                break
            last, end = item.offset, item.end
        return False, end, last

    def _leap(self, file: ReadOnlyFile, end: int) -> int:
        """A unit's start not far in front of where the written bytes end: steps that double, then halving."""
        position = end - file.start_offset
        low, step = position, STEP
        while low + step < file.size and any(file.read(low + step, PROBE)):
            low, step = low + step, step * 2
        high = min(low + step, file.size)
        if low == position and high - low <= 2 * STEP:
            return end
        while high - low > STEP:
            middle = (low + high) // 2
            if any(file.read(middle, PROBE)):
                low = middle
            else:
                high = middle
        back = STEP
        while low - back > position:
            found = self._log.unit_between(file, low - back, low)
            if found >= 0:
                return found
            back *= 4
        return end


def _hop(data: bytes, base: int) -> tuple[bool, int, int | None]:
    """(a blank stands there, where the whole units end, start of the last of them) of ``data``, which begins at a
    unit; by the lengths alone.
    """
    at, limit, last = 0, len(data), None
    while at + 8 <= limit:
        if int.from_bytes(data[at + 4 : at + 8], "big") == MAGIC_BLANK:
            return True, base + at, last
        if at + HEAD > limit:
            break
        size, magic, offset = _HEAD.unpack_from(data, at)
        if magic not in MAGICS or offset != base + at or size < HEAD or at + size > limit:
            break
        last = base + at
        at += size
    return False, base + at, last


class QueueTail:
    """The newest entry of one queue, at each :meth:`find`."""

    __slots__ = ("_end", "_last", "looked", "newest", "queue", "trouble", "warm")

    def __init__(self, queue: QueueReader) -> None:
        self.queue = queue
        self.newest: tuple[int, int] | None = None
        self.trouble: CannotRead | None = None
        self.warm = 0
        self.looked = False
        self._end: int | None = None
        self._last = b""

    @property
    def count(self) -> int:
        """Entries in front of the end, those that are deleted counted too."""
        return 0 if self._end is None else self._end // self.queue.unit_size

    def find(self) -> bool:
        """Look; True where the queue grew, or was cut."""
        queue, size = self.queue, self.queue.unit_size
        self.looked = True
        if self._end is None or (self._end and queue.read_bytes(self._end - size, size) != self._last):
            queue.refresh()
            self._end = queue.raw_end
        else:
            number = self._end // size
            if self._end >= queue.sequence.end_offset and queue.files:
                queue.sequence.refresh()
            if not queue.is_written(number):
                self.warm = max(0, self.warm - 1)
                return False
            self._end = self._leap(number) * size
        self._last = queue.read_bytes(self._end - size, size) if self._end else b""
        self.newest = queue.entry_place(self._last)
        self.warm = WARM
        return True

    def _leap(self, number: int) -> int:
        """Number behind the last written entry; ``number`` is written."""
        step = 1
        while self.queue.is_written(number + step):
            number, step = number + step, step * 2
        low, high = number + 1, number + step
        while low < high:
            middle = (low + high) // 2
            if self.queue.is_written(middle):
                low = middle + 1
            else:
                high = middle
        return low


class StoreTail:
    """Positions of ``store`` again and again. Of queues only those that grew lately are asked each time, the others
    in turn. Safe to use from several threads.
    """

    def __init__(self, store: StoreSnapshot) -> None:
        self._store = store
        self._log = LogTail(store.log)
        self._queues: dict[int, QueueTail] = {}
        self._listed: object = None
        self._turn: list[QueueTail] = []
        self._page: Checkpoint | None = None
        self._times: dict[str, Position] = {}
        self._searched_to: int | None = None
        self._search_again = 0.0
        self._busy = threading.Lock()
        self.held = self.abort = False

    def look(self) -> Positions:
        """One look; raises :class:`StoreError` where the log cannot be read."""
        with self._busy:
            store = self._store
            end = self._log.find() if store.log.files else self._wait_for_files()
            self.held, self.abort = store.lock_state == "held", store.abort
            queue_end = self._queue_end()
            return positions_of(
                store,
                end,
                held=self.held,
                abort=self.abort,
                queue_end=queue_end,
                index_end=if_read(lambda: index_position(store)),
                checkpoint=self._checkpoint(queue_end.offset),
            )

    @property
    def entries(self) -> int:
        """Entries of all queues that were looked at, deleted ones too: what grows with the messages dispatched."""
        return sum(tail.count for tail in list(self._queues.values()))

    @property
    def whole(self) -> bool:
        """Whether every queue was looked at; before, :attr:`entries` and the newest entry grow with each look."""
        return all(tail.looked for tail in list(self._queues.values()))

    def last_stored(self) -> tuple[int, int] | None:
        """(store time in ms, end) of the last unit of the log as of the last look; None in an empty log."""
        return self._log.last_stored()

    def queue_end(self, topic: str, queue_id: int) -> int | None:
        """Number behind the last entry of a queue as of the last look, None where it was not looked at yet."""
        queue = self._store.queue(topic, queue_id)
        tail = self._queues.get(id(queue)) if queue is not None else None
        return tail.count if tail is not None else None

    def _wait_for_files(self) -> int:
        self._store.log.refresh()
        return self._store.log.max_offset

    def _queue_end(self) -> Position:
        for tail in self._asked():
            tail.trouble = None
            try:
                tail.find()
            except CannotRead as error:
                tail.newest, tail.trouble = None, error
        trouble = next((tail.trouble for tail in self._queues.values() if tail.trouble is not None), None)
        try:
            self._store.whole_topics()
        except CannotRead as error:
            trouble = error
        if trouble is not None:
            return Position(None, why=str(trouble))
        best: tuple[int, str] | None = None
        for tail in self._queues.values():
            if tail.newest is not None and (best is None or sum(tail.newest) > best[0]):
                best = (sum(tail.newest), f"{tail.queue.topic}/{tail.queue.queue_id}")
        return queue_position(best)

    def _asked(self) -> Iterator[QueueTail]:
        """The queues of this look: new ones, warm ones, and the next of the others."""
        topics = self._store.topics()
        if topics is not self._listed:
            self._listed = topics
            known = {id(queue): queue for queues in topics.values() for queue in queues.values()}
            self._queues = {key: self._queues.get(key) or QueueTail(queue) for key, queue in known.items()}
            self._turn = list(self._queues.values())
        turn, self._turn = self._turn[:COLD_AT_ONCE], self._turn[COLD_AT_ONCE:]
        if not self._turn:
            self._turn = list(self._queues.values())
        seen = {id(tail) for tail in turn}
        yield from turn
        yield from (tail for tail in self._queues.values() if tail.warm and id(tail) not in seen)

    def _checkpoint(self, queue_end: int | None) -> dict[str, Position]:
        """The checkpoint's times as offsets; searched for when the page has changed, or where the units of its last
        millisecond may not have been dispatched yet. A search that takes long is not repeated soon.
        """
        try:
            page = self._store.checkpoint()
        except CorruptUnit:
            page = None
        before = self._searched_to
        open_ended = any((p.offset or 0) >= (before or 0) for p in self._times.values() if p.timestamp)
        due = page is None or page != self._page or (open_ended and queue_end != before)
        if not self._times or (due and time.monotonic() >= self._search_again):
            begun = time.monotonic()
            self._page, self._searched_to = page, queue_end
            self._times = checkpoint_positions(self._store)
            took = time.monotonic() - begun
            self._search_again = begun + 20 * took if took > LONG_SEARCH else 0.0
        return self._times
