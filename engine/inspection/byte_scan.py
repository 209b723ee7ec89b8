"""Finds units that contain a text, by searching the raw bytes of the log; also finds what the index misses.

The effort depends on the bytes searched, not on the number of hits; memory is a few blocks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np
import numpy.typing as npt

from engine.codec.block_texts import rarest_first
from engine.codec.message import Unit
from engine.codec.unit_scan import Blank, Damage, Item, Stop
from engine.errors import CannotRead
from engine.inspection.log_reader import LogReader
from engine.mapped.read_only import ReadOnlyFile
from engine.sentences import sentence

Places = npt.NDArray[np.int64]

_BLOCK = 4 << 20
_CACHED = 1 << 18
"""Bytes read and searched at a time: they stay in the nearest caches."""
_THREADS = 2
_AHEAD = 4
_NEAR = 1 << 16
"""Bytes over which walking on costs less than searching for a unit's start."""


def units_with(
    log: LogReader,
    needle: bytes,
    start: int | None = None,
    progress: Callable[[int], None] | None = None,
    *,
    word: bool = False,
) -> Iterator[Unit]:
    """Every unit from offset ``start`` on whose bytes contain ``needle``, in the order of the log, each once; body CRCs
    are not checked.

    ``word``: only hits at the beginning of a property's value, or of a word in one.
    """
    for _, item in items_with(log, needle, start, progress, word=word):
        if isinstance(item, Unit):
            yield item


def items_with(
    log: LogReader,
    needle: bytes,
    start: int | None = None,
    progress: Callable[[int], None] | None = None,
    *,
    word: bool = False,
) -> Iterator[tuple[int, Item | Stop]]:
    """Like :func:`units_with`, but also yields what is not a unit; each with the first place of ``needle`` in it.

    A :class:`Stop` is the rest of a file in which no unit follows.
    """
    cover = _ItemFinder(log)
    for place in places_of(log, needle, start, progress, word=word, skip_until=lambda: cover.end):
        if place >= cover.end:
            yield place, cover.reach(place)


def places_of(
    log: LogReader,
    needle: bytes,
    start: int | None = None,
    progress: Callable[[int], None] | None = None,
    *,
    word: bool = False,
    skip_until: Callable[[], int] | None = None,
) -> Iterator[int]:
    """Absolute offset of every place from ``start`` on that holds ``needle``, inside or outside a unit; ascending.

    ``skip_until`` is called after each place: places before the offset that it returns may be left out. Two threads
    search the blocks, a few of them ahead.
    """
    begin = max(log.min_offset, 0) if start is None else start
    if not needle:
        return
    sought = _Needle(needle, word)
    ended = None
    for block, result in _in_turn(_blocks(log, begin, sought)):
        if block.file is ended:
            continue
        places, complete = result
        index = 0
        while index < len(places):
            yield int(places[index])
            least = skip_until() if skip_until else 0
            index = index + 1 if least <= places[index] + 1 else max(index + 1, int(np.searchsorted(places, least)))
        if not complete:
            ended = block.file
        elif progress:
            progress(block.file.start_offset + block.position + block.size - begin)


@dataclass(frozen=True, slots=True)
class _Block:
    """``size`` bytes from ``position`` of ``file`` on, in which a place may begin; ``room`` more may belong to it."""

    file: ReadOnlyFile
    position: int
    size: int
    room: int
    sought: _Needle

    def search(self) -> tuple[Places, bool]:
        """Return the absolute offsets of the places that begin in this block; False if the file could not be read up to
        its end.
        """
        buffer = np.empty(1 + _CACHED + len(self.sought.needle), np.uint8)
        masks = np.empty(
            (2, len(buffer)), np.bool_
        )  # allocated once: new memory for each piece costs as much as the search
        places: list[Places] = []
        position, end = self.position, self.position + self.size
        while position < end:
            margin, size = min(position, 1), min(_CACHED, end - position)
            read_size = margin + size + min(len(self.sought.needle) - 1, self.room + end - position - size)
            try:
                have = self.file.read_into(buffer[:read_size].data, position - margin)
            except CannotRead:
                return _concatenate(places), False
            piece_places = self.sought.places(buffer[:have], margin, masks)
            if len(piece_places):
                places.append(piece_places[piece_places < margin + size] + (self.file.start_offset + position - margin))
            if have < read_size:
                return _concatenate(places), False
            position += size
        return _concatenate(places), True


def _concatenate(pieces: list[Places]) -> Places:
    return np.concatenate(pieces) if pieces else np.empty(0, np.int64)


def _blocks(log: LogReader, begin: int, sought: _Needle) -> Iterator[_Block]:
    """Blocks to search from the absolute offset ``begin`` on."""
    for file in log.files:
        size = log.sequence.end_of(file) - file.start_offset
        for start, stop in _data_ranges(file, max(begin - file.start_offset, 0), size, sought):
            for position in range(start, stop, _BLOCK):
                count = min(_BLOCK, stop - position)
                yield _Block(file, position, count, size - position - count, sought)


def _data_ranges(file: ReadOnlyFile, start: int, stop: int, sought: _Needle) -> Iterator[tuple[int, int]]:
    """Ranges within [``start``, ``stop``) in which a place may begin: holes read as zeros and are skipped, as in a
    preallocated file.
    """
    if sought.needle.startswith(b"\0"):
        yield start, stop
        return
    try:
        spans = file.extents(start)
    except CannotRead:  # the read meets the same error
        spans = [(start, stop)]
    for data_start, data_end in spans:
        if max(data_start, start) < min(data_end, stop):
            yield max(data_start, start), min(data_end, stop)


def _in_turn(blocks: Iterator[_Block]) -> Iterator[tuple[_Block, tuple[Places, bool]]]:
    """Yield the places of each block, in the order of the blocks; :data:`_AHEAD` of them are searched at once."""
    waiting: deque[tuple[_Block, Future[tuple[Places, bool]]]] = deque()
    pool = ThreadPoolExecutor(_THREADS, "byte scan")
    try:
        first_blocks = list(islice(blocks, 2))
        if len(first_blocks) == 1:  # a small log
            yield first_blocks[0], first_blocks[0].search()
            return
        for block in chain(first_blocks, blocks):
            waiting.append((block, pool.submit(block.search)))
            if len(waiting) == _AHEAD:
                done, future = waiting.popleft()
                yield done, future.result()
        while waiting:
            done, future = waiting.popleft()
            yield done, future.result()
    finally:
        pool.shutdown(cancel_futures=True)


class _Needle:
    """A text to search for; ``word``: only hits at the beginning of a property's value, or of a word in one."""

    def __init__(self, needle: bytes, word: bool) -> None:
        self.needle = needle
        self._word = word
        self._order = [(place, needle[place]) for place in rarest_first(needle)]

    def places(self, data: npt.NDArray[np.uint8], margin: int, masks: npt.NDArray[np.bool_]) -> Places:
        """Positions in ``data`` from ``margin`` on at which the text begins; ``masks`` are two rows of scratch memory.

        Two bytes of it that are likely to be rare are compared everywhere, the others where those two stand.
        """
        count = len(data) - len(self.needle) + 1 - margin
        if count <= 0:
            return np.empty(0, np.int64)
        (rare_index, byte), *more_bytes = self._order
        match, next_match = masks[:, :count]
        np.equal(data[margin + rare_index : margin + rare_index + count], byte, out=match)
        for index, byte in more_bytes[:1]:
            np.equal(data[margin + index : margin + index + count], byte, out=next_match)
            np.logical_and(match, next_match, out=match)
        if not match.any():
            return np.empty(0, np.int64)
        hits: Places = np.flatnonzero(match) + margin
        for index, byte in more_bytes[1:]:
            hits = hits[data[hits + index] == byte]
            if not len(hits):
                return hits
        if self._word:
            preceding = data[hits - 1]
            hits = hits[(hits == 0) | (preceding == 1) | (preceding == 32)]
        return hits


class _ItemFinder:
    """Finds the item that covers a place, for places in ascending order: walks from item to item and only searches for
    a new start when the next place is far ahead.

    ``end`` is where the item ends that was reached last: no place before it need be asked for.
    """

    def __init__(self, log: LogReader) -> None:
        self._log = log
        self._items: Iterator[Item | Stop] = iter(())
        self._began = -1
        self.end = -1

    def reach(self, place: int) -> Item | Stop:
        """The item that holds the byte at ``place``."""
        file = self._log.sequence.find(place)
        if file is None:  # the file existed when its bytes were read
            return Stop(place, "end", sentence("no file of the log holds this offset"))
        try:
            item = self._reach(file, place)
        except CannotRead as error:
            item = Stop(place, "damage", str(error))
        file_end = self._log.sequence.end_of(file)
        self.end = file_end if isinstance(item, (Stop, Blank)) else min(item.offset + item.size, file_end)
        return item

    def _reach(self, file: ReadOnlyFile, place: int) -> Item | Stop:
        if self._began < 0 or place - self.end > _NEAR:
            self._begin(file, place)
        while True:
            item = next((item for item in self._items if self._covers(item, file, place)), None)
            if isinstance(item, Blank) and item.offset + item.size != file.end_offset:
                next_offset = self._log.next_unit(item.offset + 1)
                if next_offset < 0 or next_offset > place:
                    end = file.end_offset if next_offset < 0 else next_offset
                    item = Damage(item.offset, end - item.offset, sentence("an end of the file that is none"))
                self._walk(next_offset if next_offset >= 0 else file.end_offset)
                if isinstance(item, Blank):
                    continue
            elif (item is None or isinstance(item, Stop)) and self._began < file.start_offset:
                self._begin(file, place)  # the walk ended in an earlier file
                continue
            return item or Stop(place, "end", sentence("end of the files"))

    def _covers(self, item: Item | Stop, file: ReadOnlyFile, place: int) -> bool:
        if isinstance(item, Stop):
            return True
        return item.offset >= file.start_offset and (isinstance(item, Blank) or item.offset + item.size > place)

    def _begin(self, file: ReadOnlyFile, place: int) -> None:
        """Start at a unit nearby, but not before the end of the last item."""
        self._walk(self._log.walk_start(place, max(self.end, file.start_offset)))

    def _walk(self, start: int) -> None:
        self._began = start
        self._items = self._log.walk(start, crc=False)
