"""Recognizes copies of a log in other files by digests of the log's pages, without reading the log again.

The bytes of a page are hashed while they are in memory for the walk. A copy is hashed, too: that takes a fifth of the
time of reading the page of the log once more. Parts of pages are compared with the bytes of the log.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.codec.columns import UnitColumns, twin
from engine.codec.machine_code_build import twins

PAGE_BYTES = 4096
SAME, DIFFERENT, NOT_OPEN, UNREADABLE = 1, 0, -1, -2
"""What a comparison with the log says: its file is not open yet, or compiled code may not read it."""
MAX_PAGES = 1 << 24
"""Pages of a log that are hashed: the first 64 GiB, 128 MiB in memory. Others are read again and compared."""
Int64 = npt.NDArray[np.int64]


class LogBytes(NamedTuple):
    """The live ranges of a log, ascending; the digests of its pages from the number ``first_page`` on, 0 where there is
    none; and its files: the offsets of their first bytes and behind their last readable ones, and their descriptors, −1
    for one that is not open.
    """

    live_starts: Int64
    live_stops: Int64
    first_page: int
    digests: Int64
    file_starts: Int64
    file_stops: Int64
    descriptors: Int64


class PageDigests:
    """Digests of a log's pages from the offset ``start`` up to ``stop``."""

    def __init__(self, start: int, stop: int) -> None:
        self.first_page = start // PAGE_BYTES
        self.digests = np.zeros(min(max(-(-stop // PAGE_BYTES) - self.first_page, 0), MAX_PAGES), np.int64)

    def add(self, columns: UnitColumns, start: int, stop: int) -> None:
        """Add the pages that lie in [start, stop) of the log, all of which is in the buffer of ``columns``."""
        first, end = -(-start // PAGE_BYTES), min(stop // PAGE_BYTES, self.first_page + len(self.digests))
        if first < end and twin() is not None:
            address = columns.buffer.ctypes.data + first * PAGE_BYTES - columns.base
            digests = self.digests[first - self.first_page : end - self.first_page]
            twins("compiled_copies").digest_pages(address, digests)


def count_whole_rows(columns: UnitColumns, count: int, gap_bytes: int) -> int:
    """Return how many rows of a walk, from the first one on, are whole units at their own place, one behind the other
    or ``gap_bytes`` apart; 0 without machine code. A unit without a body CRC is not counted as whole.
    """
    if twin() is None:
        return 0
    whole_count: int = twins("compiled_copies").count_whole_rows(columns.addresses, count, gap_bytes)
    return whole_count
