"""Counts the equal bytes of ranges of two files, or of memory and a file, in machine code: it reads both in pieces that
stay in the processor's second cache. Its plain twin is in :mod:`engine.inspection.salvage.store_comparison`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.codec.columns import twin
from engine.codec.machine_code_build import twins

CHUNK_BYTES = 1 << 19
"""Bytes that are compared at a time."""
Int64 = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


def count_equal(
    source: Bytes | int, descriptor: int, positions: Int64, other_positions: Int64, sizes: Int64, buffer: Bytes
) -> Int64 | None:
    """Return for each range how many bytes are the same up to the first that differs or cannot be read.

    ``source`` holds the bytes at ``positions``, or is the descriptor of the file that does; ``descriptor`` is that of
    the file with the bytes at ``other_positions``. Memory must hold all of each range. ``buffer`` has room for two
    chunks. None without machine code.
    """
    if twin() is None:
        return None
    assert len(buffer) >= 2 * CHUNK_BYTES
    equal = np.zeros(len(sizes), np.int64)
    twins("compiled_search").compare(
        source if isinstance(source, int) else -1,
        descriptor,
        positions if isinstance(source, int) else positions + source.ctypes.data,
        other_positions,
        sizes,
        buffer.ctypes.data,
        CHUNK_BYTES,
        equal,
    )
    return equal
