"""Proves the ends of many units at once in machine code: of those in memory, and of those in two pieces of which the
second lies in front of the next unit.

Only what is simple to see is proven here: ASCII texts, a unit or a blank behind. The others are judged one by one
(:func:`engine.codec.unit_search.judge_end`), and so are all without machine code.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.codec.columns import Window, aligned_buffer, twin
from engine.codec.machine_code_build import twins

MAX_BORDERS = 4
"""Edges of pages at which a unit is tried to be cut."""
_CAPACITY = 1 << 16
Int64 = npt.NDArray[np.int64]


PROVEN, OTHER_BYTES = 1, 2
"""Verdicts: the end is the unit's own; it is bytes of another file, in which no unit begins. 0: not simple to see."""


def judge_ends(window: Window, positions: Int64, sizes: Int64, offsets: Int64) -> npt.NDArray[np.uint8]:
    """Return a verdict for the end of each unit of ``window``, at its position and with its size and physical offset.

    The body of each matches its CRC.
    """
    verdicts = np.zeros(len(sizes), np.uint8)
    if twin() is not None and len(sizes):
        columns = (np.ascontiguousarray(column, np.int64) for column in (positions, sizes, offsets))
        twins("compiled_search").judge(window.buffer.ctypes.data, window.filled, *columns, verdicts)
    return verdicts


def find_borders(
    descriptors: Int64, positions: Int64, run_descriptors: Int64, run_positions: Int64, offsets: Int64, sizes: Int64
) -> Int64:
    """Return for each unit the offset at which its second piece begins; −1 if that is not proven.

    The unit begins at its position in one file; at its run's position in another, or the same, the next unit begins.
    """
    borders = np.full(len(sizes), -1, np.int64)
    if twin() is not None and len(sizes):
        buffer = aligned_buffer(2 * _CAPACITY)
        columns = descriptors, positions, run_descriptors, run_positions, offsets, sizes
        twins("compiled_search").join(*columns, buffer.ctypes.data, _CAPACITY, borders)
    return borders
