"""Units that hold a text, found by looking through the raw bytes of the log: what the index misses is found too.

The work follows the bytes looked through, however often the text stands in them; memory is a few blocks.
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

Places = npt.NDArray[np.int64]

_BLOCK = 4 << 20
_CACHED = 1 << 18
"""Bytes that are read and looked through at a time: they stay in the nearest caches."""
_THREADS = 2
_AHEAD = 4
_NEAR = 1 << 16
"""Bytes over which walking on costs less than finding a unit's start anew."""


def units_with(
    log: LogReader,
    needle: bytes,
    start: int | None = None,
    progress: Callable[[int], None] | None = None,
    *,
    word: bool = False,
) -> Iterator[Unit]:
    """Every unit from offset ``start`` on whose bytes hold ``needle``, in the order of the log, each once; body CRCs
    are not checked.

    ``word``: only where it begins a property's value, or a word of one.
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
    """As :func:`units_with`, and what is no unit too, each with the first place where ``needle`` stands in it.

    A :class:`Stop` is the rest of a file in which no unit follows.
    """
    cover = _Cover(log)
    for place in places_of(log, needle, start, progress, word=word, known=lambda: cover.end):
        if place >= cover.end:
            yield place, cover.reach(place)


def places_of(
    log: LogReader,
    needle: bytes,
    start: int | None = None,
    progress: Callable[[int], None] | None = None,
    *,
    word: bool = False,
    known: Callable[[], int] | None = None,
) -> Iterator[int]:
    """Absolute offset of every place from ``start`` on where ``needle`` stands, be it in a unit or not; ascending.

    ``known`` is asked after each place: those before the offset that it gives may be left out. Blocks are looked
    through by two threads, a few of them ahead.
    """
    begin = max(log.min_offset, 0) if start is None else start
    if not needle:
        return
    sought = _Sought(needle, word)
    ended = None
    for block, found in _in_turn(_blocks(log, begin, sought)):
        if block.file is ended:
            continue
        places, whole = found
        at = 0
        while at < len(places):
            yield int(places[at])
            least = known() if known else 0
            at = at + 1 if least <= places[at] + 1 else max(at + 1, int(np.searchsorted(places, least)))
        if not whole:
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
    sought: _Sought

    def look(self) -> tuple[Places, bool]:
        """Absolute offsets of the places that begin in it; False where the file could not be read so far."""
        buffer = np.empty(1 + _CACHED + len(self.sought.needle), np.uint8)
        masks = np.empty((2, len(buffer)), np.bool_)  # made once: new memory for each piece costs as much as the search
        found: list[Places] = []
        at, end = self.position, self.position + self.size
        while at < end:
            lead, size = min(at, 1), min(_CACHED, end - at)
            wanted = lead + size + min(len(self.sought.needle) - 1, self.room + end - at - size)
            try:
                have = self.file.read_into(buffer[:wanted].data, at - lead)
            except CannotRead:
                return _joined(found), False
            places = self.sought.places(buffer[:have], lead, masks)
            if len(places):
                found.append(places[places < lead + size] + (self.file.start_offset + at - lead))
            if have < wanted:
                return _joined(found), False
            at += size
        return _joined(found), True


def _joined(found: list[Places]) -> Places:
    return np.concatenate(found) if found else np.empty(0, np.int64)


def _blocks(log: LogReader, begin: int, sought: _Sought) -> Iterator[_Block]:
    """What is to be looked through from the absolute offset ``begin`` on."""
    for file in log.files:
        size = log.sequence.behind(file) - file.start_offset
        for start, stop in _spans(file, max(begin - file.start_offset, 0), size, sought):
            for position in range(start, stop, _BLOCK):
                count = min(_BLOCK, stop - position)
                yield _Block(file, position, count, size - position - count, sought)


def _spans(file: ReadOnlyFile, start: int, stop: int, sought: _Sought) -> Iterator[tuple[int, int]]:
    """Where in [``start``, ``stop``) a place may begin: not in holes, which are zeros, as in a file made ahead."""
    if sought.needle.startswith(b"\0"):
        yield start, stop
        return
    try:
        spans = file.extents(start)
    except CannotRead:  # whoever reads it meets it again
        spans = [(start, stop)]
    for low, high in spans:
        if max(low, start) < min(high, stop):
            yield max(low, start), min(high, stop)


def _in_turn(blocks: Iterator[_Block]) -> Iterator[tuple[_Block, tuple[Places, bool]]]:
    """What was found in each block, in their order; :data:`_AHEAD` of them are looked through at once."""
    waiting: deque[tuple[_Block, Future[tuple[Places, bool]]]] = deque()
    pool = ThreadPoolExecutor(_THREADS, "byte scan")
    try:
        first = list(islice(blocks, 2))
        if len(first) == 1:  # a small log
            yield first[0], first[0].look()
            return
        for block in chain(first, blocks):
            waiting.append((block, pool.submit(block.look)))
            if len(waiting) == _AHEAD:
                done, found = waiting.popleft()
                yield done, found.result()
        while waiting:
            done, found = waiting.popleft()
            yield done, found.result()
    finally:
        pool.shutdown(cancel_futures=True)


class _Sought:
    """A text that is looked for; ``word``: only where it begins a property's value, or a word of one."""

    def __init__(self, needle: bytes, word: bool) -> None:
        self.needle = needle
        self._word = word
        self._order = [(place, needle[place]) for place in rarest_first(needle)]

    def places(self, data: npt.NDArray[np.uint8], lead: int, masks: npt.NDArray[np.bool_]) -> Places:
        """Positions in ``data`` from ``lead`` on where the text stands; ``masks`` are two rows to work in.

        Two bytes of it that are likely to be rare are compared everywhere, the others where those two stand.
        """
        count = len(data) - len(self.needle) + 1 - lead
        if count <= 0:
            return np.empty(0, np.int64)
        (first, byte), *others = self._order
        there, also = masks[:, :count]
        np.equal(data[lead + first : lead + first + count], byte, out=there)
        for place, byte in others[:1]:
            np.equal(data[lead + place : lead + place + count], byte, out=also)
            np.logical_and(there, also, out=there)
        if not there.any():
            return np.empty(0, np.int64)
        found: Places = np.flatnonzero(there) + lead
        for place, byte in others[1:]:
            found = found[data[found + place] == byte]
            if not len(found):
                return found
        if self._word:
            before = data[found - 1]
            found = found[(found == 0) | (before == 1) | (before == 32)]
        return found


class _Cover:
    """What holds a place, for places in ascending order: walked on from item to item, a start found anew only far on.

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
        if file is None:  # it was there when its bytes were read
            return Stop(place, "end", "no file of the log holds this offset")
        try:
            found = self._reach(file, place)
        except CannotRead as error:
            found = Stop(place, "damage", str(error))
        behind = self._log.sequence.behind(file)
        self.end = behind if isinstance(found, (Stop, Blank)) else min(found.offset + found.size, behind)
        return found

    def _reach(self, file: ReadOnlyFile, place: int) -> Item | Stop:
        if self._began < 0 or place - self.end > _NEAR:
            self._begin(file, place)
        while True:
            item = next((item for item in self._items if self._is_it(item, file, place)), None)
            if isinstance(item, Blank) and item.offset + item.size != file.end_offset:
                found = self._log.next_unit(item.offset + 1)
                if found < 0 or found > place:
                    end = file.end_offset if found < 0 else found
                    item = Damage(item.offset, end - item.offset, "an end of the file that is none")
                self._walk(found if found >= 0 else file.end_offset)
                if isinstance(item, Blank):
                    continue
            elif (item is None or isinstance(item, Stop)) and self._began < file.start_offset:
                self._begin(file, place)  # the walk ended in a file before
                continue
            return item or Stop(place, "end", "end of the files")

    def _is_it(self, item: Item | Stop, file: ReadOnlyFile, place: int) -> bool:
        if isinstance(item, Stop):
            return True
        return item.offset >= file.start_offset and (isinstance(item, Blank) or item.offset + item.size > place)

    def _begin(self, file: ReadOnlyFile, place: int) -> None:
        """Walk from a unit near by, not from before where the last item ended."""
        self._walk(self._log.walk_start(place, max(self.end, file.start_offset)))

    def _walk(self, start: int) -> None:
        self._began = start
        self._items = self._log.walk(start, crc=False)
