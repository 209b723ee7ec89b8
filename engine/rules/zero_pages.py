"""Whole pages of zeros inside what was written: the mark of a write that never reached the disk."""

from __future__ import annotations

import re

PAGE = 4096
_ZEROS = re.compile(rb"\0{%d,}" % PAGE)


def zero_pages(data: bytes, base: int) -> tuple[int, int] | None:
    """(offset, bytes) of the longest run of whole zero pages in ``data``, which begins at ``base`` of the log; None
    where there is none. A file of the log begins on a page, and its name is its first offset.
    """
    best: tuple[int, int] | None = None
    for found in _ZEROS.finditer(data):
        low = -(-(base + found.start()) // PAGE) * PAGE
        high = (base + found.end()) // PAGE * PAGE
        if high > low and (best is None or high - low > best[1]):
            best = (low, high - low)
    return best
