"""Find the last non-zero byte in a preallocated file: holes and zero bytes behind it are skipped."""

from __future__ import annotations

import numpy as np

from engine.mapped.read_only import ReadOnlyFile

CHUNK_BYTES = 4 << 20


def last_byte(file: ReadOnlyFile, position: int = 0) -> int:
    """Return the position behind the last non-zero byte of ``file`` at or behind ``position``; ``position`` if there
    is none.

    Raises :class:`engine.errors.CannotRead`.

    """
    for start, end in reversed(file.extents(position)):
        end_position = _last_in(file, start, end)
        if end_position > start:
            return end_position
    return position


def _last_in(file: ReadOnlyFile, start: int, end: int) -> int:
    while end > start:
        piece_start = max(start, end - CHUNK_BYTES)
        data = file.read(piece_start, end - piece_start)
        if np.frombuffer(data, np.uint8).any():
            return piece_start + len(data.rstrip(b"\0"))
        end = piece_start
    return start
