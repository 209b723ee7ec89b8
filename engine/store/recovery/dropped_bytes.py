"""The part of the log that a recovery cuts off: bytes, and units that can still be read."""

from __future__ import annotations

import numpy as np

from engine.codec.columns import BLANK, UnitColumns, next_unit, scan_block
from engine.codec.topic_table import TopicTable
from engine.mapped.read_only import ReadOnlyFile
from engine.mapped.sparse import last_byte

CHUNK = 8 << 20
ROWS = 1 << 14
OVERLAP = 64


class DroppedBytes:
    """Counts over all ``files`` from ``end`` (offset of the log) on; ``data_end`` is where the last byte stands."""

    def __init__(self, files: list[ReadOnlyFile], end: int) -> None:
        self.bytes = 0
        self.units = 0
        self.data_end = end
        self._columns: UnitColumns | None = None
        for file in files:
            if file.end_offset > end:
                position = max(end - file.start_offset, 0)
                data_stop = last_byte(file, position)
                if data_stop > position:
                    self.bytes += data_stop - position
                    self.data_end = file.start_offset + data_stop
                    self._count(file, position, data_stop)

    def _count(self, file: ReadOnlyFile, position: int, data_stop: int) -> None:
        """Count the units of one file from ``position`` on, over damage to the next that is real."""
        columns = self._columns = self._columns or UnitColumns(ROWS)
        topics, read_size = TopicTable(), CHUNK
        while position < data_stop:
            data = file.read(position, read_size)
            base, n = file.start_offset + position, len(data)
            buffer = np.frombuffer(data, np.uint8)
            unit_position = max(next_unit(buffer, n, base, 0, file.end_offset), -1)
            while unit_position >= 0:
                scan = scan_block(buffer, n, base, unit_position, columns, topics, False, False)
                rows = columns.count
                if rows and columns.kind[rows - 1] == BLANK:
                    self.units += rows - 1
                    return
                self.units += rows
                unit_position = scan.next_position
                if scan.stopped in ("cut", "end") and (n == read_size or unit_position >= n):
                    break
                if scan.stopped != "full":
                    unit_position = next_unit(buffer, n, base, unit_position + 1, file.end_offset)
            if n < read_size:
                return
            if unit_position == 0:
                read_size = max(CHUNK, int.from_bytes(data[:4], "big", signed=True)) if read_size == CHUNK else CHUNK
                position += 0 if read_size > CHUNK else OVERLAP
                continue
            position += unit_position if unit_position > 0 else n - OVERLAP
            read_size = CHUNK
