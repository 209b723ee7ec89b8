"""Units that hold a text, found by looking through the raw bytes of the log: what the index misses is found too.

The work follows the bytes looked through, however often the text stands in them; memory is a few blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from engine.codec.file_walk import Item
from engine.codec.message import Unit
from engine.codec.unit_scan import Blank, Damage, Stop
from engine.errors import CannotRead
from engine.inspection.log_reader import LogReader
from engine.mapped.read_only import ReadOnlyFile

_BLOCK = 4 << 20
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

    ``known`` is asked after each place: those before the offset that it gives may be left out.
    """
    begin = max(log.min_offset, 0) if start is None else start
    if not needle:
        return
    for file in log.files:
        size = log.sequence.behind(file) - file.start_offset
        position = max(begin - file.start_offset, 0)
        while position < size:
            lead = min(position, 1)
            wanted = min(lead + _BLOCK + len(needle) - 1, size - position + lead)
            try:
                data = file.read(position - lead, wanted)
            except CannotRead:
                break
            at = data.find(needle, lead)
            while at >= 0:
                if not word or at == 0 or data[at - 1] in b"\x01 ":
                    yield file.start_offset + position - lead + at
                    at = max(at, known() - file.start_offset - position + lead - 1) if known else at
                at = data.find(needle, at + 1)
            position += _BLOCK
            if progress:
                progress(file.start_offset + position - begin)
            if len(data) < wanted:
                break


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
