"""Rows of several blocks gathered before they are looked at: what is done once for each queue costs the same for ten
rows as for a thousand.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.codec.columns import UnitColumns

ROWS = 1 << 16


class GatheredRows:
    """Copies of those columns that queues are compared with; :attr:`rows` of them are filled, in the log's order."""

    def __init__(self, room: int = ROWS) -> None:
        self.rows = 0
        self.topic_id = np.empty(room, np.int32)
        self.queue_id = np.empty(room, np.int32)
        self.queue_offset = np.empty(room, np.int64)
        self.offset = np.empty(room, np.int64)
        self.size = np.empty(room, np.int32)
        self.tags_code = np.empty(room, np.int64)
        self.store_timestamp = np.empty(room, np.int64)

    def has_room(self, rows: int) -> bool:
        """Whether so many rows more can be added."""
        return self.rows + rows <= len(self.offset)

    def add(self, columns: UnitColumns, wanted: NDArray[np.intp]) -> None:
        """Copy the ``wanted`` rows of a block."""
        place = slice(self.rows, self.rows + len(wanted))
        self.topic_id[place] = columns.topic_id[wanted]
        self.queue_id[place] = columns.queue_id[wanted]
        self.queue_offset[place] = columns.queue_offset[wanted]
        self.offset[place] = columns.offset[wanted]
        self.size[place] = columns.size[wanted]
        self.tags_code[place] = columns.tags_code[wanted]
        self.store_timestamp[place] = columns.store_timestamp[wanted]
        self.rows += len(wanted)
