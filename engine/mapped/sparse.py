"""The last byte that says something in a file made at full size: holes and zero bytes behind it are skipped."""

from __future__ import annotations

import numpy as np

from engine.mapped.read_only import ReadOnlyFile

CHUNK = 4 << 20


def last_byte(file: ReadOnlyFile, position: int = 0) -> int:
    """Position behind the last byte of ``file`` at or behind ``position`` that is not zero; ``position`` for none.

    Raises :class:`engine.errors.CannotRead`.
    """
    for start, end in reversed(file.extents(position)):
        found = _last_in(file, start, end)
        if found > start:
            return found
    return position


def _last_in(file: ReadOnlyFile, start: int, end: int) -> int:
    while end > start:
        low = max(start, end - CHUNK)
        data = file.read(low, end - low)
        if np.frombuffer(data, np.uint8).any():
            return low + len(data.rstrip(b"\0"))
        end = low
    return start
