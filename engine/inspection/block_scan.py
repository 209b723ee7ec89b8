"""The commit log in blocks of columns: :meth:`LogReader.walk` in bulk, for everything that looks at many units.

Only whole, unbroken stretches of units are walked here; at the first thing that is none, the log's own walk is asked,
so both tell the same story about damage, gaps and the end. Reading goes by ``pread`` into one buffer that is used again
and again, in pieces that still lie in the processor's nearest cache when they are walked. That is why no second thread
reads ahead: it would fill another processor's cache. The system's own read-ahead is asked for instead.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from engine.codec.columns import BLANK, UnitColumns, Window, fill, scan_block, stop_at, twin
from engine.codec.message import DEFAULT_DELAY_LEVELS, Unit
from engine.codec.topic_table import TopicTable
from engine.codec.unit_scan import BLANK_SIZE, Damage, Stop
from engine.errors import CannotRead
from engine.inspection.log_reader import Item, LogReader
from engine.mapped.read_only import ReadOnlyFile

ROWS = 8192
CHUNK = 1 << 17
ROOM = 1 << 22
PAGE = 4096
LINE = 64
"""Bytes of a cache line. The kernel copies five times slower to an address 16 bytes off one (measured on
Zen 3).
"""


Block = UnitColumns | Damage | Stop


def scan_log(
    log: LogReader,
    start: int | None = None,
    stop: int | None = None,
    crc: bool = True,
    want_tags: bool = True,
    topics: TopicTable | None = None,
    levels: tuple[int, ...] = DEFAULT_DELAY_LEVELS,
    rows: int = ROWS,
) -> Iterator[Block]:
    """Every unit and blank from ``start`` to ``stop`` (exclusive) in blocks, damage in between, last a :class:`Stop`.

    The same things in the same order as ``log.walk``. A block and its buffer are good until the next one is asked for.
    Memory is one block and one buffer whatever the log's size; a file that shrinks on the way ends the scan with a
    value.
    """
    scan = _Scan(log, crc, want_tags, TopicTable() if topics is None else topics, levels, UnitColumns(rows))
    offset = scan.end = log.min_offset if start is None else start
    while stop is None or offset < stop:
        file = log.sequence.find(offset)
        for block in scan.stretch(file, offset, stop) if file else ():
            yield block
            offset = scan.next_offset
        if stop is not None and offset >= stop:
            break
        for item in _next_items(log, offset, stop, crc):
            if isinstance(item, Stop):
                yield Stop(scan.end, item.kind, item.reason)
                return
            if isinstance(item, Damage):
                yield item
                offset = item.offset + item.size
            else:
                yield scan.single(item)
                offset = scan.next_offset
    yield Stop(scan.end, "limit", "end of the range")


def _next_items(log: LogReader, offset: int, stop: int | None, crc: bool) -> list[Item | Stop]:
    """What the log's own walk sees at ``offset``: one item, and the stop where the log ends right behind it."""
    walk = log.walk(offset, stop, crc)
    found = [next(walk)]
    if isinstance(found[0], Damage):
        following = next(walk)
        if isinstance(following, Stop):
            found.append(following)
    return found


class _Scan:
    """One scan's block, buffer and place."""

    def __init__(
        self,
        log: LogReader,
        crc: bool,
        want_tags: bool,
        topics: TopicTable,
        levels: tuple[int, ...],
        out: UnitColumns,
    ) -> None:
        self._log = log
        self._how = (crc, want_tags, levels)
        self._topics = topics
        self._out = out
        self._buffer = _aligned(ROOM)
        self._chunk = CHUNK if twin() else 0
        self.next_offset = 0
        self.end = 0

    def stretch(self, file: ReadOnlyFile, offset: int, stop: int | None) -> Iterator[UnitColumns]:
        """Blocks of ``file`` from ``offset`` on up to the first thing that is no unit; nothing where that is at
        once.
        """
        try:
            descriptor = file.descriptor()
        except CannotRead:
            return
        position = (offset - file.start_offset) // PAGE * PAGE
        window = Window(self._buffer, file.start_offset + position, 0, 0, descriptor, position, self._chunk)
        window.at = offset - window.base
        try:
            if hasattr(os, "posix_fadvise"):
                os.posix_fadvise(descriptor, position, 0, os.POSIX_FADV_SEQUENTIAL)
            going = True
            while going:
                going = self._block(window)
                if stop is not None:
                    self._cut(stop)
                    going = going and window.base + window.at < stop
                if self._out.count:
                    self._note(file)
                    yield self._out
        except OSError:
            return  # the log's own walk meets the same error and puts it in words
        finally:
            os.close(descriptor)

    def single(self, item: Item) -> UnitColumns:
        """The block of one item that the log's own walk had to read."""
        crc, want_tags, levels = self._how
        data = self._log.read(item.offset, item.size if isinstance(item, Unit) else BLANK_SIZE)
        scan_block(data, len(data), item.offset, 0, self._out, self._topics, crc, want_tags, levels)
        file = self._log.sequence.find(item.offset)
        if file is not None and self._out.count:
            self._note(file)
        return self._out

    def _block(self, window: Window) -> bool:
        """Fill the block from the window; False where the file can give no more units in a row."""
        room = len(window.buffer)
        least = max(self._chunk, 1)
        if window.have + least > room:
            _shift(window)
        crc, want_tags, levels = self._how
        if not self._chunk:
            _read_on(window)
        if fill(window, self._out, self._topics, crc, want_tags, levels):
            return True
        left = -(-(window.have - window.at) // LINE) * LINE
        if window.have + least > room >= left + least:
            return True
        if window.have > window.at:
            stop_at(window, self._out)
        return False

    def _cut(self, stop: int) -> None:
        self._out.count = int(np.searchsorted(self._out["offset"], stop))

    def _note(self, file: ReadOnlyFile) -> None:
        """Where the log goes on behind the block's last row, and where its readable part ends so far (spec 10.2)."""
        last = self._out.count - 1
        self.next_offset = self.end = int(self._out.offset[last]) + int(self._out.size[last])
        if self._out.kind[last] == BLANK:
            self.next_offset = self._log.sequence.behind(file)
            number = self._log.sequence.position_of(file.start_offset) + 1
            files = self._log.files
            self.end = files[number].start_offset if number < len(files) else int(self._out.offset[last])


def _aligned(size: int) -> npt.NDArray[np.uint8]:
    raw = np.zeros(size + LINE, np.uint8)
    skip = -raw.ctypes.data % LINE
    return raw[skip : skip + size]


def _shift(window: Window) -> None:
    """Move what is not yet walked to the front, so that the next read goes to the beginning of a cache line."""
    left = window.have - window.at
    have = -(-left // LINE) * LINE
    window.buffer[have - left : have] = window.buffer[window.at : window.have].copy()
    window.base += window.at - (have - left)
    window.at, window.have = have - left, have


def _read_on(window: Window) -> None:
    view = window.buffer.data
    while window.have < len(window.buffer):
        got = os.preadv(window.descriptor, [view[window.have :]], window.position)
        if got == 0:
            return
        window.have += got
        window.position += got
