"""Groups the units of a block into runs: units that lie back to back and whose physical offsets do, too.

Two twins: numpy here, and ``runs`` of :mod:`engine.codec.compiled_search`. A block of thousands of units has few runs,
so the rest of the search never looks at single units.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.codec import dledger
from engine.codec.block_search import HEAD
from engine.codec.columns import BAD, OK, UNCHECKED, UnitColumns, twin
from engine.codec.crc import crc31
from engine.codec.machine_code_build import twins

LIVE, BAD_BODY, HAS_ENTRIES, HAS_ENTRIES_BEFORE_LAST, GOES_ON = 1, 2, 4, 8, 16
"""Bits of ``BlockRuns.flags``: the store has the same bytes; one unit whose body CRC is wrong; headers of DLedger
entries lie between the units, or between those before the last one; the next run begins where this one ends.
"""
_ENTRY_BYTES = dledger.HEADER_SIZE
_FIRST_BYTES = np.arange(8)
Int64 = npt.NDArray[np.int64]


class BlockRuns(NamedTuple):
    """The runs of a block, one row each. Positions are those in the file."""

    first_row: Int64
    last_row: Int64
    unit_count: Int64
    position: Int64
    physical_offset: Int64
    last_position: Int64
    last_size: Int64
    last_physical_offset: Int64
    end_before_last: Int64
    """The end of the unit before the last one; :attr:`position` if the run has one unit."""
    flags: Int64

    @property
    def end_position(self) -> Int64:
        """The position behind the last unit."""
        return self.last_position + self.last_size


FIELD_COUNT = len(BlockRuns._fields)


def find_runs(columns: UnitColumns, count: int, live: npt.NDArray[np.uint8]) -> BlockRuns:
    """Return the runs of the first ``count`` rows of a search. ``live`` is 1 for each row that the store has, too.

    The bodies of other rows are checked, as far as the search did not: the result is in ``columns.crc``.
    """
    if twin() is None:
        return _find_runs_plain(columns, count, live)
    table = np.empty(count * FIELD_COUNT, np.int64)
    run_count = twins("compiled_search").runs(
        columns.buffer.ctypes.data, columns.base, columns.addresses, count, live, table
    )
    fields = np.ascontiguousarray(table[: run_count * FIELD_COUNT].reshape(run_count, FIELD_COUNT).T)
    return BlockRuns(*fields)


def _find_runs_plain(columns: UnitColumns, count: int, live: npt.NDArray[np.uint8]) -> BlockRuns:
    rows = np.flatnonzero(columns.kind[:count] != HEAD)
    if not len(rows):
        return BlockRuns(*np.empty((FIELD_COUNT, 0), np.int64))
    is_live = live[rows] != 0
    has_crc = ~is_live & (columns.body_crc[rows] != 0)  # 0: the writer stored none
    for row in rows[has_crc & (columns.crc[rows] == UNCHECKED)].tolist():
        matches = not columns.body_length[row] or crc31(columns.body(row)) == columns.body_crc[row]
        columns.crc[row] = OK if matches else BAD
    bad = has_crc & (columns.crc[rows] == BAD)
    positions, offsets = columns.offset[rows], columns.physical_offset[rows]
    sizes = columns.size[rows].astype(np.int64)
    ends = positions + sizes
    is_contiguous = positions[1:] == ends[:-1]
    goes_on = is_contiguous & (offsets[1:] == offsets[:-1] + sizes[:-1])
    has_entry = _behind_entries(columns, ends[:-1], positions[1:], sizes[1:])
    chained = (is_contiguous | has_entry) & (offsets[1:] - offsets[:-1] == positions[1:] - positions[:-1])
    chained &= (is_live[1:] == is_live[:-1]) & ~(bad[1:] | bad[:-1])
    breaks = np.flatnonzero(~chained) + 1
    firsts, lasts = np.concatenate(([0], breaks)), np.concatenate((breaks, [len(rows)])) - 1
    entry_counts = np.concatenate(([0], np.cumsum(has_entry)))
    before_last = np.maximum(lasts - 1, firsts)
    flags = is_live[firsts] * LIVE + bad[firsts] * BAD_BODY
    flags += (entry_counts[lasts] > entry_counts[firsts]) * HAS_ENTRIES
    flags += (entry_counts[before_last] > entry_counts[firsts]) * HAS_ENTRIES_BEFORE_LAST
    flags[:-1] += goes_on[breaks - 1] * GOES_ON
    return BlockRuns(
        rows[firsts],
        rows[lasts],
        lasts - firsts + 1,
        positions[firsts],
        offsets[firsts],
        positions[lasts],
        sizes[lasts],
        offsets[lasts],
        np.where(lasts > firsts, ends[before_last], positions[firsts]),
        flags,
    )


def _behind_entries(columns: UnitColumns, ends: Int64, positions: Int64, sizes: Int64) -> npt.NDArray[np.bool_]:
    """Return which units have only the header of their DLedger entry between them and the end of the one before."""
    has_entry = np.zeros(len(ends), np.bool_)
    rows = np.flatnonzero(positions == ends + _ENTRY_BYTES)
    if len(rows):
        starts = ends[rows] - columns.base
        heads = np.ascontiguousarray(columns.buffer[starts[:, None] + _FIRST_BYTES]).view(">i4")
        has_entry[rows] = (heads[:, 0] == dledger.MAGIC) & (heads[:, 1] == sizes[rows] + _ENTRY_BYTES)
    return has_entry
