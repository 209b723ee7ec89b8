"""Searches a file for units, groups them into runs and joins units that were cut, all in one call of machine code.

It goes on through the whole file as long as everything is simple to see, and stops in front of what is not: that is
left to :mod:`engine.codec.block_search` and :mod:`engine.codec.unit_runs`. There is no plain twin, because those do the
same without it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.codec.columns import UnitColumns, Window, aligned_buffer, twin
from engine.codec.log_copies import PAGE_BYTES, LogBytes
from engine.codec.machine_code_build import twins
from engine.codec.topic_table import TopicTable

OTHER_UNIT, OPEN_END, DAMAGED_UNIT, PAUSED, CLOSED_FILE, COPY = 1, 2, 3, 4, 5, 6
"""Reasons why a survey stopped at its cursor: a search must go on there; the end of the unit there is not simple to
see; the body of the unit there does not match its CRC; the stop is reached or no row is left; a file of the store must
be opened, which has the unit at ``Survey.wanted_offset``. ``COPY`` is used within the survey.
"""
RUN_WIDTH, HEAD_WIDTH, JOIN_WIDTH = 5, 6, 5
START_COUNT = 4
"""Places of beginnings that are noted for :attr:`Survey.joins`."""
JOINED_BYTES = 1 << 16
"""Bytes of the largest unit that is joined, with the head of the unit behind it."""
PROBE_BYTES = 128
"""Bytes of a unit that are compared with the store's before it is followed as a copy."""
AHEAD_BYTES = 1 << 15
"""Bytes of the log that are read for probes where one follows the other."""
(
    RUN_COUNT,
    HEAD_COUNT,
    JOIN_COUNT,
    CURSOR,
    VALID_FROM,
    UNIT_COUNT,
    RUN_POSITION,
    RUN_OFFSET,
    LAST_POSITION,
    LAST_SIZE,
    COPY_OFFSET,
    OTHER_POSITION,
    READ_FROM,
    READ_TO,
    NEXT_START,
    FIRST_START,
) = range(16)
"""Numbers in the state. Positions count from the beginning of the file: that of the row in work, that of the first byte
in memory, and of the open run its units (0: none is open), its place, and that of its last unit; the offset of the
unit that is or may be a copy of the store's; the position of one that is none, although it begins as one; the bytes of
the log in the scratch memory.
"""
_ROWS = 128
"""Rows of a search: few enough that their bytes are still in the nearest cache when they are grouped."""
_TABLE_ROWS = 8192
_NO_DELAYS = np.empty(0, np.int64)
Int64 = npt.NDArray[np.int64]


class Survey(NamedTuple):
    """Rows of numbers. ``runs``: position, physical offset, size, number of units, is live. ``heads``: position, size,
    physical offset, queue id, queue offset, store time. ``joins``: position of a unit that was cut, that of the unit
    behind it, physical offset, size, and the offset in the log at which its second piece begins.
    """

    runs: Int64
    heads: Int64
    joins: Int64
    reason: int
    wanted_offset: int


class Surveyor:
    """Keeps the tables of surveys; the rows of one are valid until the next one."""

    def __init__(self) -> None:
        self._columns = UnitColumns(_ROWS)
        self._runs = np.empty(_TABLE_ROWS * RUN_WIDTH, np.int64)
        self._heads = np.empty(_TABLE_ROWS * HEAD_WIDTH, np.int64)
        self._joins = np.empty(_TABLE_ROWS * JOIN_WIDTH, np.int64)
        self._scratch = aligned_buffer(JOINED_BYTES + PAGE_BYTES + AHEAD_BYTES)

    def survey(self, window: Window, stop: int, log: LogBytes, topics: TopicTable) -> Survey | None:
        """Survey the units that begin from the cursor on and before the position ``stop`` of the file, and advance the
        window. ``log`` is that of the store.

        None without machine code.
        """
        if twin() is None:
            return None
        state = np.zeros(FIRST_START + 3 * START_COUNT, np.int64)
        state[FIRST_START:] = state[OTHER_POSITION] = -1
        state[VALID_FROM] = window.base + window.cursor
        window.cursor, window.filled, window.file_position, window.base, reason = twins("compiled_survey").survey(
            window.descriptor,
            window.file_position,
            window.chunk_size,
            window.buffer.ctypes.data,
            window.filled,
            len(window.buffer),
            window.cursor,
            window.base,
            self._columns.addresses,
            self._columns.capacity,
            topics.table(),
            _NO_DELAYS,
            *log,
            stop,
            self._runs,
            self._heads,
            self._joins,
            state,
            self._scratch.ctypes.data,
        )
        run_count, head_count, join_count = state[:3].tolist()
        return Survey(
            self._runs[: run_count * RUN_WIDTH].reshape(-1, RUN_WIDTH),
            self._heads[: head_count * HEAD_WIDTH].reshape(-1, HEAD_WIDTH),
            self._joins[: join_count * JOIN_WIDTH].reshape(-1, JOIN_WIDTH),
            reason,
            int(state[COPY_OFFSET]),
        )
