"""Finds the current positions of a growing store from those of the previous look: a few short reads, whatever the write
rate.

A broker writes into files of fixed length, so only their bytes show the progress. The log's end is found in doubling
steps, then by bisection, then from the last unit before it; a queue's end likewise. Each look checks the remembered
positions: a store that was cut or lost files is read from scratch. Offsets are bytes.
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
    queue_end_position,
    queue_position,
)

if TYPE_CHECKING:
    from engine.codec.checkpoint import Checkpoint
    from engine.inspection.log_reader import LogReader
    from engine.inspection.queue_reader import QueueReader
    from engine.inspection.rocksdb_queue import RocksQueues
    from engine.inspection.snapshot import StoreSnapshot
    from engine.mapped.read_only import ReadOnlyFile

STEP_BYTES = 1 << 16
"""Bytes read at once near the end of the log."""
PROBE_BYTES = 512
HEAD_BYTES = 36
_HEAD = struct.Struct(">iI20xq")
WARM_ROUNDS = 64
"""Number of looks in which a queue that grew is always read."""
COLD_AT_ONCE = 64
"""Number of idle queues that are read in one look, in turn."""
TRUSTED = 2
"""Looks after which a last unit that fails its check counts as written."""

LONG_SEARCH_SECONDS = 0.05
"""Seconds from which on a search for the checkpoint's times counts as long."""


class LogTail:
    """The end of the last whole unit of ``log``, at each :meth:`find`."""

    def __init__(self, log: LogReader) -> None:
        self._log = log
        self._end: int | None = None
        self._last: tuple[int, bytes] | None = None
        self._files: list[ReadOnlyFile] = []
        self._doubted = (-1, 0)

    def find(self) -> int:
        """Return the current end and pass it to the log, so that later questions need no search."""
        if self._end is None or not self._is_end_valid():
            self._log.forget_end()
            self._end = self._log.max_offset
            self._last = self._mark_before(self._end)
        end, last_unit = self._find_end_from(self._end)
        if last_unit is not None:
            end = self._end_before_partial(last_unit, end)
        if last_unit is not None and end != last_unit:
            self._last = (last_unit, self._log.read(last_unit, HEAD_BYTES))
        self._end = end
        self._files = list(self._log.files)
        self._log.know_end(end)
        return end

    def last_stored(self) -> tuple[int, int] | None:
        """(store time in ms, end) of the last unit; None if there is none."""
        if self._last is None or self._end is None:
            return None
        unit = self._log.unit_at(self._last[0], crc=False)
        return (unit.store_timestamp, unit.end) if isinstance(unit, Unit) else None

    def _is_end_valid(self) -> bool:
        """Return True if the old end is still behind the same unit of an existing file, and no file was replaced."""
        assert self._end is not None
        log = self._log
        if not self._same_files() or not log.min_offset <= self._end <= log.end_offset:
            return False
        remains_from = log.remains_from
        if remains_from is not None and self._end > remains_from:
            return False  # since then a leader has replaced entries before this end
        return self._last is None or log.read(self._last[0], HEAD_BYTES) == self._last[1]

    def _same_files(self) -> bool:
        """Return True if only old files were deleted and new ones added.

        A replaced file of the same name, or a cut one, is another object: bytes behind the end may then be units
        without a predecessor.
        """
        now = self._log.files
        remaining = [file for file in self._files if not now or file.start_offset >= now[0].start_offset]
        return bool(remaining) and now[: len(remaining)] == remaining

    def _mark_before(self, end: int) -> tuple[int, bytes] | None:
        items = self._log.items_before(end, 1, crc=False) if end > max(self._log.min_offset, 0) else []
        return (items[-1].offset, self._log.read(items[-1].offset, HEAD_BYTES)) if items else None

    def _end_before_partial(self, last_unit: int, end: int) -> int:
        """Return ``end``, or the start of the last unit while that is still being written."""
        item = self._log.unit_at(last_unit)
        if isinstance(item, Unit) and item.crc != "bad":
            return end
        offset, times = self._doubted
        self._doubted = (last_unit, times + 1 if offset == last_unit else 1)
        return end if self._doubted[1] > TRUSTED and isinstance(item, Unit) else last_unit

    def _find_end_from(self, end: int) -> tuple[int, int | None]:
        """(end, start of the last unit on the way) from ``end`` on; None if nothing was written."""
        last_unit: int | None = None
        while True:
            number = self._log.sequence.position_of(end)
            file = self._log.files[number] if number >= 0 else None
            if file is None or end >= file.end_offset:
                if not self._has_file_at(end):
                    return end, last_unit
                continue
            blank, end, unit_start = self._in_file(file, end)
            last_unit = unit_start if unit_start is not None else last_unit
            if not blank:
                return end, last_unit
            following = self._log.files[number + 1] if number + 1 < len(self._log.files) else None
            if following is None:
                self._log.sequence.refresh()
                if number + 1 >= len(self._log.files):
                    return end, last_unit
                following = self._log.files[number + 1]
            end = following.start_offset

    def _has_file_at(self, end: int) -> bool:
        """A broker that rolls at a file's very end made another file."""
        self._log.sequence.refresh()
        return self._log.sequence.find(end) is not None

    def _in_file(self, file: ReadOnlyFile, end: int) -> tuple[bool, int, int | None]:
        """(True if a blank follows, end, start of the last unit) in one file from ``end`` on."""
        last_unit: int | None = None
        leapt = False
        while True:
            data = file.read(end - file.start_offset, STEP_BYTES)
            blank, reached, unit_start = _hop(data, end)
            last_unit = unit_start if unit_start is not None else last_unit
            remainder, moved, end = data[reached - end :], reached - end, reached
            if blank or not any(remainder[:8]):
                return blank, end, last_unit
            if not moved:
                blank, end, unit_start = self._walk(file, end)
                return blank, end, unit_start if unit_start is not None else last_unit
            if not leapt and len(data) == STEP_BYTES:
                leapt = True
                end = self._skip_gap(file, end)

    def _walk(self, file: ReadOnlyFile, end: int) -> tuple[bool, int, int | None]:
        """Walk unit by unit, with the normal walk: for long units, other frames and invalid bytes."""
        last_unit: int | None = None
        for item in self._log.walk(end, file.end_offset, crc=False, resync=False):
            if isinstance(item, Blank):
                return True, item.offset, last_unit
            if not isinstance(item, Unit):
                break
            last_unit, end = item.offset, item.end
        return False, end, last_unit

    def _skip_gap(self, file: ReadOnlyFile, end: int) -> int:
        """A unit's start shortly before the end of the written bytes: found in doubling steps, then by bisection."""
        position = end - file.start_offset
        lower, step = position, STEP_BYTES
        while lower + step < file.size and any(file.read(lower + step, PROBE_BYTES)):
            lower, step = lower + step, step * 2
        upper = min(lower + step, file.size)
        if lower == position and upper - lower <= 2 * STEP_BYTES:
            return end
        while upper - lower > STEP_BYTES:
            middle = (lower + upper) // 2
            if any(file.read(middle, PROBE_BYTES)):
                lower = middle
            else:
                upper = middle
        back = STEP_BYTES
        while lower - back > position:
            unit_start = self._log.unit_between(file, lower - back, lower)
            if unit_start >= 0:
                return unit_start
            back *= 4
        return end


def _hop(data: bytes, base: int) -> tuple[bool, int, int | None]:
    """Follow the lengths of units in ``data``, which begins with a unit: (a blank follows, end of the complete units,
    start of the last one).
    """
    position, limit, last_unit = 0, len(data), None
    while position + 8 <= limit:
        if int.from_bytes(data[position + 4 : position + 8], "big") == MAGIC_BLANK:
            return True, base + position, last_unit
        if position + HEAD_BYTES > limit:
            break
        size, magic, offset = _HEAD.unpack_from(data, position)
        if magic not in MAGICS or offset != base + position or size < HEAD_BYTES or position + size > limit:
            break
        last_unit = base + position
        position += size
    return False, base + position, last_unit


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
        """Read the end again; True if the queue grew or was cut."""
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
            self._end = self._skip_gap(number) * size
        self._last = queue.read_bytes(self._end - size, size) if self._end else b""
        self.newest = queue.entry_place(self._last)
        self.warm = WARM_ROUNDS
        return True

    def _skip_gap(self, number: int) -> int:
        """Number behind the last written entry; ``number`` is written."""
        step = 1
        while self.queue.is_written(number + step):
            number, step = number + step, step * 2
        lower, upper = number + 1, number + step
        while lower < upper:
            middle = (lower + upper) // 2
            if self.queue.is_written(middle):
                lower = middle + 1
            else:
                upper = middle
        return lower


class StoreTail:
    """Positions of a growing ``store``, read repeatedly.

    Each look reads only queues that grew lately, and some of the others in turn. Safe to use from several threads.
    """

    def __init__(self, store: StoreSnapshot) -> None:
        self._store = store
        self._log = LogTail(store.log)
        self._queues: dict[int, QueueTail] = {}
        self._listed: object = None
        self._turn: list[QueueTail] = []
        self._rocksdb: tuple[int, int, Position] | None = None
        """End of the log, entries and newest entry of queues in a RocksDB as of the last look at them."""
        self._page: Checkpoint | None = None
        self._times: dict[str, Position] = {}
        self._searched_to: int | None = None
        self._search_again = 0.0
        self._busy = threading.Lock()
        self.held = self.abort = False

    def read_positions(self) -> Positions:
        """Return the positions now; raises :class:`StoreError` if the log cannot be read."""
        with self._busy:
            store = self._store
            end = self._log.find() if store.log.files else self._wait_for_files()
            self.held, self.abort = store.lock_state == "held", store.abort
            queue_end = self._queue_end()
            return positions_of(
                store,
                end,
                is_locked=self.held,
                abort=self.abort,
                queue_end=queue_end,
                index_end=if_read(lambda: index_position(store)),
                checkpoint=self._checkpoint(queue_end.offset),
            )

    @property
    def entries(self) -> int:
        """Entries of all queues read so far, including deleted ones: grows with the messages dispatched."""
        if self._rocksdb is not None:
            return self._rocksdb[1]
        return sum(tail.count for tail in list(self._queues.values()))

    @property
    def whole(self) -> bool:
        """True when every queue was read; before that, :attr:`entries` and the newest entry grow with each look."""
        return all(tail.looked for tail in list(self._queues.values()))

    def last_stored(self) -> tuple[int, int] | None:
        """(store time in ms, end) of the last unit of the log as of the last look; None in an empty log."""
        return self._log.last_stored()

    def queue_end(self, topic: str, queue_id: int) -> int | None:
        """Number behind the last entry of a queue as of the last look; None if it was not read yet."""
        if self._store.queues.rocksdb is not None:
            row_queue = self._store.queues.find(topic, queue_id)
            return row_queue.max_offset if row_queue is not None else None
        queue = self._store.queue(topic, queue_id)
        tail = self._queues.get(id(queue)) if queue is not None else None
        return tail.count if tail is not None else None

    def _wait_for_files(self) -> int:
        self._store.log.refresh()
        return self._store.log.max_offset

    def _rocksdb_end(self, queues: RocksQueues) -> Position:
        """The newest entry in a RocksDB. It is opened again only if its files or the end of the log have changed: a
        running broker keeps the newest entries in memory.
        """
        log_end = self._store.log.max_offset
        newest_rows = self._rocksdb
        try:
            if newest_rows is not None and newest_rows[0] == log_end and not queues.has_changed():
                return newest_rows[2]
            if newest_rows is not None:
                queues.refresh()
            readers = [queue for by_id in queues.by_topic().values() for queue in by_id.values()]
            position = queue_end_position(self._store)
            entries = sum(queue.raw_end // queue.unit_size for queue in readers)
        except CannotRead as error:
            self._rocksdb = None
            return Position(None, why=str(error))
        self._rocksdb = (log_end, entries, position)
        return position

    def _queue_end(self) -> Position:
        rocksdb_queues = self._store.queues.rocksdb
        if rocksdb_queues is not None:
            return self._rocksdb_end(rocksdb_queues)
        self._rocksdb = None
        for tail in self._queues_to_read():
            tail.trouble = None
            try:
                tail.find()
            except CannotRead as error:
                tail.newest, tail.trouble = None, error
        trouble = next((tail.trouble for tail in self._queues.values() if tail.trouble is not None), None)
        try:
            self._store.queues.require_files()
        except CannotRead as error:
            trouble = error
        if trouble is not None:
            return Position(None, why=str(trouble))
        best: tuple[int, str] | None = None
        for tail in self._queues.values():
            if tail.newest is not None and (best is None or sum(tail.newest) > best[0]):
                best = (sum(tail.newest), f"{tail.queue.topic}/{tail.queue.queue_id}")
        return queue_position(best)

    def _queues_to_read(self) -> Iterator[QueueTail]:
        """The queues to read in this look: new ones, active ones, and the next few of the others."""
        topics = self._store.topics()
        if topics is not self._listed:
            self._listed = topics
            by_id = {id(queue): queue for queues in topics.values() for queue in queues.values()}
            self._queues = {key: self._queues.get(key) or QueueTail(queue) for key, queue in by_id.items()}
            self._turn = list(self._queues.values())
        turn, self._turn = self._turn[:COLD_AT_ONCE], self._turn[COLD_AT_ONCE:]
        if not self._turn:
            self._turn = list(self._queues.values())
        turn_ids = {id(tail) for tail in turn}
        yield from turn
        yield from (tail for tail in self._queues.values() if tail.warm and id(tail) not in turn_ids)

    def _checkpoint(self, queue_end: int | None) -> dict[str, Position]:
        """The checkpoint's times as offsets.

        They are searched again when the page has changed, or while units of its last millisecond may not be dispatched
        yet. A slow search is not repeated soon.
        """
        try:
            page = self._store.checkpoint()
        except CorruptUnit:
            page = None
        searched_end = self._searched_to
        open_ended = any((p.offset or 0) >= (searched_end or 0) for p in self._times.values() if p.timestamp)
        due = page is None or page != self._page or (open_ended and queue_end != searched_end)
        if not self._times or (due and time.monotonic() >= self._search_again):
            begun = time.monotonic()
            self._page, self._searched_to = page, queue_end
            self._times = checkpoint_positions(self._store)
            duration = time.monotonic() - begun
            self._search_again = begun + 20 * duration if duration > LONG_SEARCH_SECONDS else 0.0
        return self._times
