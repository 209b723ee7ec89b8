"""The commit log of a store that is only looked at: walked, resynchronised after damage, reached at any offset.

Built on the one walker (:mod:`engine.codec.unit_scan`). Memory is one block, whatever the log's size. Offsets are
bytes.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait

from engine.codec import dledger
from engine.codec.message import MAX_UNIT_BYTES, Unit
from engine.codec.unit_scan import (
    BLOCK_BYTES,
    Blank,
    Damage,
    Item,
    Stop,
    decode_entry_item,
    decode_item,
    find_in_file,
    stored_size,
    walk_file,
)
from engine.errors import CannotRead
from engine.files.store_folders import LOG_FOLDER
from engine.mapped.read_only import FileSequence, ReadOnlyFile
from engine.sentences import sentence

BULK = 16 << 20
"""Bytes from which on a walk uses columns: below, loading that code takes longer than walking."""
FIRST_READ_BYTES = 4096
BACK_STEP_BYTES = 1 << 16
ALIGN_STEP_BYTES = 1 << 12
"""Bytes before an offset that are searched first for a unit to begin at: some units, which are decoded one by one."""
UNITS_BETWEEN_TAIL_SEARCHES = 512
"""Units walked towards the end of the log before the zero tail is searched again."""

Hints = Callable[[], Iterable[tuple[int, int]]]
"""Returns (physical offset, size) of the newest entries of the queues, in any order."""


class LogReader:
    """Reading face of a commit log over the files of ``sequence``.

    In a DLedger log (:attr:`entry_folders`) each unit is the body of an entry; offsets of units are those of the
    bodies, as queue and index entries have them (docs/formats/dledger.md).
    """

    def __init__(self, sequence: FileSequence, hints: Hints | None = None) -> None:
        self.sequence = sequence
        self.entry_folders: frozenset[str] = frozenset()
        """Folders whose files are a DLedger log; in a folder ``commitlog`` those that begin with an entry."""
        self.remains_from: int | None = None
        """In a DLedger log: the end of the entries, if bytes of entries that a leader replaced follow it. They are no
        part of the log.
        """
        self._hints = hints
        self._max_offset: int | None = None
        self._settling: Future[int] | None = None
        """The end that another thread is searching for; readers of the end wait for it."""
        self._finding = threading.Lock()
        self._whole: tuple[int, int] | None = None

    @property
    def files(self) -> list[ReadOnlyFile]:
        return self.sequence.files

    @property
    def min_offset(self) -> int:
        """Start of the first file, −1 if there is none."""
        return self.sequence.min_offset

    @property
    def end_offset(self) -> int:
        """End of the last file's bytes, written or not."""
        return self.sequence.end_offset

    @property
    def max_offset(self) -> int:
        """End of the last valid unit: found from the newest queue entries or the zero tail, then walked.

        Raises :class:`CannotRead` if the bytes there could not be read.
        """
        offset = self._max_offset
        if offset is None:
            with self._finding:
                offset = self._max_offset
                if offset is None:
                    settling = self._settling
                    offset = settling.result() if settling is not None else self._find_max_offset()
                    self._max_offset = offset
        return offset

    @property
    def known_end(self) -> int | None:
        """:attr:`max_offset` if it is known already, else None; reads nothing."""
        return self._max_offset

    @property
    def all_blocks(self) -> tuple[int, int]:
        """[start, end) of a range that is known to hold only complete units and blanks, from the search for the log's
        end; empty if there was no search. Waits for a running search.
        """
        if self._settling is not None:
            wait([self._settling])
        return self._whole or (0, 0)

    def know_end(self, end: int) -> None:
        """Set the end of the log, found by a watcher of the log."""
        self._max_offset, self._settling = end, None

    def forget_end(self) -> None:
        """Search for the end again at the next request."""
        self._max_offset = self._settling = self._whole = None

    def close(self) -> None:
        """Wait until nothing reads beside any more."""
        if self._settling is not None:
            wait([self._settling])

    def has_entries(self, file: ReadOnlyFile) -> bool:
        """Return True if ``file`` belongs to a DLedger log: each unit is the body of an entry."""
        if not self.entry_folders:
            return False
        folder, _, _ = file.path.rpartition(os.sep)
        if folder not in self.entry_folders:
            return False
        if not folder.endswith(os.sep + LOG_FOLDER):
            return True
        try:
            head = file.read(0, dledger.HEAD_BYTES)
        except CannotRead:
            return True  # its bytes are reported as unread in any case
        return dledger.wraps_message(head) or dledger.decode_blank(head) is not None

    def entry_header(self, offset: int) -> dledger.EntryHeader | None:
        """The header of the entry around the unit at ``offset``; None if there is none."""
        start = offset - dledger.HEADER_SIZE
        file = self.sequence.find(start)
        if file is None or not self.has_entries(file):
            return None
        header = dledger.decode_header(file.read(start - file.start_offset, dledger.HEADER_SIZE))
        return header if header is not None and header.position == start else None

    def file_name(self, offset: int) -> str | None:
        """Name of the file that contains ``offset``."""
        file = self.sequence.find(offset)
        return file.name if file is not None else None

    def unit_between(self, file: ReadOnlyFile, start: int, stop: int) -> int:
        """Offset of the first real unit or blank at positions [start, stop) of ``file``; −1 if there is none."""
        return self._first_unit(file, file.start_offset + start, file.start_offset + stop)

    def settle(self, start: int) -> None:
        """Set the log's end to the place where a broker's recovery from ``start`` would end: at the first unit that
        fails its check.

        A long search runs in another thread: readers of the end wait for it.
        """
        if self.end_offset - start > BULK:
            self._settle_beside(lambda: self._settled_in_bulk(start))
            return
        end = start
        for item in self.walk(start, resync=False):
            if isinstance(item, Unit) and item.crc == "bad":
                end = item.offset
                break
            end = _end_of(item) if isinstance(item, Stop) else end
        self._max_offset = end

    def settle_by(self, find_end: Callable[[], int]) -> None:
        """Set the log's end to what ``find_end`` returns; of a long log it runs in another thread."""
        if self.sequence.total_size > BULK:
            self._settle_beside(find_end)
        else:
            self._max_offset = find_end()

    def _settle_beside(self, find_end: Callable[[], int]) -> None:
        self._max_offset = None
        beside = ThreadPoolExecutor(1, "end of the log")
        self._settling = beside.submit(find_end)
        beside.shutdown(wait=False)

    def _settled_in_bulk(self, start: int) -> int:
        end = self._first_that_fails(start)
        self._whole = start, end
        return end

    def _first_that_fails(self, start: int) -> int:
        from engine.codec.columns import BAD
        from engine.inspection.block_scan import scan_log

        for block in scan_log(self, start, with_tags=False):
            if isinstance(block, (Damage, Stop)):
                return _end_of(block)
            bad = (block["crc"] == BAD).nonzero()[0]
            if len(bad):
                return int(block["offset"][bad[0]])
        return start

    def refresh(self) -> bool:
        """List the files again and forget the end of the log; True if files changed."""
        changed = self.sequence.refresh()
        self._max_offset = self._settling = self._whole = None
        return changed

    def read(self, offset: int, size: int) -> bytes:
        """Raw bytes from ``offset`` on, across file boundaries; short if the files end."""
        pieces = []
        while size > 0:
            piece = self.sequence.read(offset, size)
            if not piece:
                break
            pieces.append(piece)
            offset += len(piece)
            size -= len(piece)
        return b"".join(pieces)

    def unit_at(self, offset: int, crc: bool = True) -> Item | Stop:
        """The item at ``offset``: a unit, a blank, or a stop with the reason why there is neither."""
        if self.remains_from is not None and offset >= self.remains_from:
            return Stop(offset, "zero", dledger.REMAINS)
        file = self.sequence.find(offset)
        if file is None:
            return Stop(offset, "end", sentence("no file of the log holds this offset"))
        try:
            return self._look(file, offset - file.start_offset, crc, FIRST_READ_BYTES)
        except CannotRead as error:
            return Stop(offset, "unread", str(error))

    def seen_at(self, offset: int, crc: bool = True) -> Item | Stop:
        """Like :meth:`unit_at`, but raises :class:`CannotRead` if the bytes there cannot be read."""
        item = self.unit_at(offset, crc)
        if isinstance(item, Stop):
            _end_of(item)
        return item

    def walk(
        self, start: int | None = None, stop: int | None = None, crc: bool = True, resync: bool = True
    ) -> Iterator[Item | Stop]:
        """Every item from ``start`` (a unit's offset; default: the first file) to ``stop`` (exclusive), then a
        :class:`Stop`.

        After damage the walk continues at the next real unit and yields the bytes in between as :class:`Damage`;
        without ``resync`` it ends there. ``Stop.offset`` is the end of the last readable item.
        """
        limit = self.remains_from
        if limit is None or (stop is not None and stop <= limit):
            yield from self._walk(start, stop, crc, resync)
            return
        end = limit
        if (self.min_offset if start is None else start) < limit:
            for item in self._walk(start, limit, crc, resync):
                if isinstance(item, Stop) and item.kind in ("limit", "zero"):
                    end = item.offset
                    break
                if isinstance(item, Damage) and item.offset + item.size > limit:
                    end = min(item.offset, limit)
                    if item.offset < limit:
                        yield Damage(item.offset, limit - item.offset, item.reason, item.unread)
                    break
                yield item
                if isinstance(item, Stop):
                    return
        yield Stop(end, "zero", dledger.REMAINS)

    def _walk(self, start: int | None, stop: int | None, crc: bool, resync: bool) -> Iterator[Item | Stop]:
        offset = self.min_offset if start is None else start
        end = offset
        while stop is None or offset < stop:
            number = self.sequence.position_of(offset)
            file = self.files[number] if number >= 0 else None
            if file is None or offset >= file.end_offset:
                following = self.files[number + 1] if number + 1 < len(self.files) else None
                if following is None or (not resync and following.start_offset != offset):
                    yield Stop(end, "end", sentence("end of the files"))
                    return
                if following.start_offset > offset:
                    yield Damage(offset, following.start_offset - offset, sentence("no file holds these bytes"))
                offset = following.start_offset
                continue
            item: Item | Stop | None = None
            decode = decode_entry_item if self.has_entries(file) else decode_item
            for item in walk_file(self._bytes_of(file), offset, stop, crc, resync, decode):
                if isinstance(item, Stop):
                    break
                yield item
                if not isinstance(item, Damage):
                    end = item.offset + item.size if isinstance(item, Unit) else self._behind_blank(file, item)
            if isinstance(item, Stop):
                yield Stop(end, item.kind, item.reason)
                return
            offset = self.sequence.end_of(file)
        yield Stop(end, "limit", sentence("end of the range"))

    def align(self, offset: int) -> int:
        """Offset of the item that contains the byte at ``offset``, or of the next one if that is in damage or in no
        file.
        """
        number = self.sequence.position_of(offset)
        if number < 0:
            return max(self.min_offset, 0)
        file = self.files[number]
        if offset >= file.end_offset:
            return self.files[number + 1].start_offset if number + 1 < len(self.files) else self.end_offset
        start = self.walk_start(offset, file.start_offset)
        for item in self.walk(start, file.end_offset, crc=False):
            size = max(item.size, 1) if not isinstance(item, Stop) else 1
            if item.offset + size > offset or isinstance(item, Stop):
                return item.offset
        return offset

    def walk_start(self, offset: int, floor: int) -> int:
        """A start for a walk that must reach the item at ``offset``: a real unit nearby in its file, else ``floor``,
        the start of that file or of an item in it. A file that cannot be read is walked from ``floor``.
        """
        file = self.files[self.sequence.position_of(offset)]
        back = ALIGN_STEP_BYTES
        while True:
            try:
                start = self._first_unit(file, max(floor, offset - back), offset)
            except CannotRead:
                return floor
            if start >= 0 or offset - back <= floor:
                return start if start >= 0 else floor
            back *= 4

    def next_unit(self, offset: int) -> int:
        """Offset of the first real unit at or behind ``offset`` in its file; −1 if there is none."""
        file = self.files[self.sequence.position_of(offset)]
        return self._first_unit(file, offset, file.end_offset)

    def items(self, offset: int, count: int, crc: bool = True) -> list[Item | Stop]:
        """Up to ``count`` items from ``offset`` on; the list ends with a :class:`Stop` if the log ends earlier."""
        items: list[Item | Stop] = []
        for item in self.walk(offset, crc=crc):
            items.append(item)
            if len(items) >= count:
                break
        return items

    def items_before(self, offset: int, count: int, crc: bool = True) -> list[Item]:
        """Up to ``count`` items that end at or before ``offset``, in the order of the log."""
        items: list[Item] = []
        while len(items) < count and offset > self.min_offset:
            number = self.sequence.position_of(offset - 1)
            if number < 0:
                break
            file = self.files[number]
            piece = self._items_of_file_before(file, min(offset, file.end_offset), count - len(items), crc)
            if file.end_offset < offset:
                piece.append(Damage(file.end_offset, offset - file.end_offset, sentence("no file holds these bytes")))
            items = piece + items
            offset = file.start_offset
        return items[-count:]

    def _items_of_file_before(self, file: ReadOnlyFile, offset: int, count: int, crc: bool) -> list[Item]:
        back = min(BACK_STEP_BYTES, 1024 * count)
        while True:
            search_start = max(file.start_offset, offset - back)
            try:
                is_first = search_start == file.start_offset
                start = search_start if is_first else self._first_unit(file, search_start, offset)
            except CannotRead:
                start = search_start = file.start_offset
            if start >= 0:
                piece = [
                    item
                    for item in self.walk(start, offset, crc)
                    if not isinstance(item, Stop) and item.offset < offset
                ]
                if len(piece) >= count or search_start == file.start_offset:
                    return piece[-count:]
            back *= 4

    def _first_unit(self, file: ReadOnlyFile, start: int, stop: int) -> int:
        """Offset of the first real unit in [start, stop) of ``file``; −1 if there is none."""
        position = find_in_file(self._bytes_of(file), start - file.start_offset, stop - file.start_offset)
        return -1 if position < 0 else file.start_offset + position

    def _behind_blank(self, file: ReadOnlyFile, blank: Blank) -> int:
        """Offset at which the log continues after a blank: the next file, or the blank itself if there is none
        (docs/formats/recovery.md#log).
        """
        number = self.sequence.position_of(file.start_offset)
        if number + 1 < len(self.files):
            return self.files[number + 1].start_offset
        return blank.offset

    def _look(self, file: ReadOnlyFile, position: int, crc: bool, first_size: int) -> Item | Stop:
        data = file.read(position, first_size)
        base = file.start_offset + position
        decode = decode_entry_item if self.has_entries(file) else decode_item
        item = decode(data, 0, len(data), base, crc)
        if isinstance(item, Stop) and item.kind == "cut" and len(data) == first_size:
            size = stored_size(data)
            if first_size < size <= MAX_UNIT_BYTES + dledger.HEADER_SIZE:
                data = file.read(position, size)
                return decode(data, 0, len(data), base, crc)
        return item

    def _bytes_of(self, file: ReadOnlyFile) -> _FileBytes:
        return _FileBytes(file, self.sequence)

    def _find_max_offset(self) -> int:
        self.sequence.require_complete()
        for file in reversed(self.files):
            if any(file.read(0, 8)):
                return self._end_in(file)
        return max(self.min_offset, 0)

    def _end_in(self, file: ReadOnlyFile) -> int:
        start = file.start_offset
        hints = sorted(self._hints() if self._hints else (), reverse=True)
        for offset, size in hints:
            if not file.start_offset <= offset < file.end_offset:
                continue
            unit = self._look(file, offset - file.start_offset, False, FIRST_READ_BYTES)
            if isinstance(unit, Unit) and unit.size == size and not unit.stale:
                start = offset
                break
        else:
            if file.size > 8 * BLOCK_BYTES:
                start = self._unit_near_zero_tail(file)
        end, log_continues = self._walked(start, UNITS_BETWEEN_TAIL_SEARCHES)
        while log_continues:
            # A writer is faster than this walk: if the queues lag far behind it, the zero tail is nearer.
            near = self._unit_near_zero_tail(file) if file.size > 8 * BLOCK_BYTES else end
            end, log_continues = self._walked(near, UNITS_BETWEEN_TAIL_SEARCHES) if near > end else self._walked(end)
        return end

    def _walked(self, start: int, max_items: int | None = None) -> tuple[int, bool]:
        """Offset that a walk from ``start`` reaches after ``max_items`` items, and whether the log continues there."""
        end = start
        for number, item in enumerate(self.walk(start, crc=False, resync=False)):
            if number == max_items and not isinstance(item, Stop):
                return item.offset, True
            end = _end_of(item) if isinstance(item, Stop) else end
        return end, False

    def _unit_near_zero_tail(self, file: ReadOnlyFile) -> int:
        """Offset of a unit shortly before the zero tail, found by bisection over blocks of 64 KiB."""
        lower, upper = 0, file.size // BACK_STEP_BYTES
        while lower < upper:
            middle = (lower + upper) // 2
            if any(file.read(middle * BACK_STEP_BYTES, BACK_STEP_BYTES)):
                lower = middle + 1
            else:
                upper = middle
        edge, back = lower * BACK_STEP_BYTES, 2 * BACK_STEP_BYTES
        while back < 64 * BLOCK_BYTES and edge - back > 0:
            unit_position = find_in_file(self._bytes_of(file), edge - back, edge)
            if unit_position >= 0:
                return file.start_offset + unit_position
            back *= 4
        return file.start_offset


def _end_of(item: Damage | Stop) -> int:
    """The end of the log at this item; raises :class:`CannotRead` if the bytes behind it cannot be read."""
    if item.kind == "unread" if isinstance(item, Stop) else item.unread:
        raise CannotRead(item.reason)
    return item.offset


class _FileBytes:
    """A file of the log with the interface that the walk needs."""

    __slots__ = ("_file", "_sequence", "read")

    def __init__(self, file: ReadOnlyFile, sequence: FileSequence) -> None:
        self._file = file
        self._sequence = sequence
        self.read = file.read

    @property
    def start_offset(self) -> int:
        return self._file.start_offset

    @property
    def size(self) -> int:
        return self._file.size

    def next_data(self, position: int) -> int:
        """Position of the next data, as the file system knows it: holes read as zero bytes."""
        return self._file.next_data(position)

    def is_followed(self) -> bool:
        """Return True if a later file begins with anything but zero bytes."""
        number = self._sequence.position_of(self._file.start_offset)
        return any(any(later.read(0, 8)) for later in self._sequence.files[number + 1 :])
