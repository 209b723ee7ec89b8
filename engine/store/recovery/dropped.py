"""What a recovery drops: the bytes behind the new end of the log, and the units that could still be read there."""

from __future__ import annotations

import numpy as np

from engine.codec.columns import BLANK, UnitColumns, next_unit, scan_block
from engine.codec.topic_table import TopicTable
from engine.mapped.read_only import ReadOnlyFile
from engine.mapped.sparse import last_byte

CHUNK = 8 << 20
ROWS = 1 << 14
OVERLAP = 64


class Dropped:
    """Counts over all ``files`` from ``end`` (offset of the log) on; ``data_end`` is where the last byte stands."""

    def __init__(self, files: list[ReadOnlyFile], end: int) -> None:
        self.bytes = 0
        self.units = 0
        self.data_end = end
        self._columns: UnitColumns | None = None
        for file in files:
            if file.end_offset > end:
                position = max(end - file.start_offset, 0)
                last = last_byte(file, position)
                if last > position:
                    self.bytes += last - position
                    self.data_end = file.start_offset + last
                    self._count(file, position, last)

    def _count(self, file: ReadOnlyFile, position: int, last: int) -> None:
        """Units of one file from ``position`` on, over damage to the next that is real."""
        columns = self._columns = self._columns or UnitColumns(ROWS)
        topics, want = TopicTable(), CHUNK
        while position < last:
            data = file.read(position, want)
            base, n = file.start_offset + position, len(data)
            buffer = np.frombuffer(data, np.uint8)
            at = max(next_unit(buffer, n, base, 0, file.end_offset), -1)
            while at >= 0:
                done = scan_block(buffer, n, base, at, columns, topics, False, False)
                rows = columns.count
                if rows and columns.kind[rows - 1] == BLANK:
                    self.units += rows - 1
                    return
                self.units += rows
                at = done.next_position
                if done.stopped in ("cut", "end") and (n == want or at >= n):
                    break
                if done.stopped != "full":
                    at = next_unit(buffer, n, base, at + 1, file.end_offset)
            if n < want:
                return
            if at == 0:
                want = max(CHUNK, int.from_bytes(data[:4], "big", signed=True)) if want == CHUNK else CHUNK
                position += 0 if want > CHUNK else OVERLAP
                continue
            position += at if at > 0 else n - OVERLAP
            want = CHUNK
