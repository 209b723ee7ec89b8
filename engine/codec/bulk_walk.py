"""Whole, unbroken stretches of units of one file as columns, through one buffer that is used again and again (spec 2).

The compiled walk reads by ``pread`` in pieces that still lie in the processor's nearest cache when they are walked.
That is why no second thread reads ahead: it would fill another processor's cache. Bytes that only a call can fetch are
fetched a buffer at a time. Nothing is opened here; at the first thing that is no unit a stretch ends, and
:mod:`engine.codec.file_walk` tells what it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
import numpy.typing as npt

from engine.codec.columns import UnitColumns, Window, fill, stop_at, twin
from engine.codec.message import DEFAULT_DELAY_LEVELS
from engine.codec.topic_table import TopicTable

ROWS = 8192
CHUNK = 1 << 17
ROOM = 1 << 22
PAGE = 4096
LINE = 64
"""Bytes of a cache line. The kernel copies five times slower to an address 16 bytes off one (measured on
Zen 3).
"""


class Source(Protocol):
    """What lends the bytes of one file: an open descriptor, or −1 and a call."""

    @property
    def descriptor(self) -> int: ...

    def read_into(self, view: memoryview, position: int) -> int:
        """Fill ``view`` from ``position`` on; gives the number of bytes, short where the file ends."""


class BulkWalk:
    """One walk's block and buffer; both are good until the next block is asked for."""

    def __init__(
        self,
        crc: bool = True,
        want_tags: bool = True,
        topics: TopicTable | None = None,
        levels: tuple[int, ...] = DEFAULT_DELAY_LEVELS,
        rows: int = ROWS,
    ) -> None:
        self.how = (crc, want_tags, levels)
        self.topics = TopicTable() if topics is None else topics
        self.out = UnitColumns(rows)
        self._buffer = _aligned(ROOM)

    def stretch(self, source: Source, file_start: int, position: int, stop: int | None = None) -> Iterator[UnitColumns]:
        """Blocks from the unit at ``position`` of the file on, up to the first thing that is no unit (a blank is the
        last row) or to the absolute offset ``stop``; nothing where that is at once.

        Raises what ``source`` raises.
        """
        chunk = CHUNK if source.descriptor >= 0 and twin() else 0
        page = position // PAGE * PAGE
        window = Window(self._buffer, file_start + page, position - page, 0, source.descriptor, page, chunk)
        going = True
        while going:
            going = self._block(window, source)
            if stop is not None:
                self.out.count = int(np.searchsorted(self.out["offset"], stop))
                going = going and window.base + window.at < stop
            if self.out.count:
                yield self.out

    def _block(self, window: Window, source: Source) -> bool:
        """Fill the block from the window; False where the file can give no more units in a row."""
        room = len(window.buffer)
        least = max(window.chunk, 1)
        if window.have + least > room:
            _shift(window)
        crc, want_tags, levels = self.how
        if not window.chunk:
            _read_on(window, source)
        if fill(window, self.out, self.topics, crc, want_tags, levels):
            return True
        left = -(-(window.have - window.at) // LINE) * LINE
        if window.have + least > room >= left + least:
            return True
        if window.have > window.at:
            stop_at(window, self.out)
        return False


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


def _read_on(window: Window, source: Source) -> None:
    view = window.buffer.data
    while window.have < len(window.buffer):
        got = source.read_into(view[window.have :], window.position)
        if got == 0:
            return
        window.have += got
        window.position += got
