"""A map of one log file: equal ranges of it with the topics that share them, bad bodies, damage and holes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from engine.callbacks import Cancelled
from engine.codec.columns import BAD, BLANK, UnitColumns
from engine.codec.topic_table import TopicTable
from engine.codec.unit_scan import Damage, Stop
from engine.errors import CannotRead, StoreError
from engine.inspection.block_scan import scan_log
from engine.sentences import sentence

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot
    from engine.mapped.read_only import ReadOnlyFile

CELLS = 400


@dataclass(frozen=True, slots=True)
class MapCell:
    """The range [start, end) of the log, in bytes.

    ``topics`` are (topic, bytes) of the units in it, largest first; ``bad`` the number of bodies with a wrong CRC;
    ``damaged``, ``blank`` and ``zero`` bytes that are no unit; ``held`` the bytes for which the file system has data.
    """

    start: int
    end: int
    topics: tuple[tuple[str, int], ...]
    bad: int
    damaged: int
    blank: int
    zero: int
    held: int


@dataclass(frozen=True, slots=True)
class FileMap:
    """A file's map.

    ``bad`` are the offsets of units with a wrong CRC, ``damage`` (offset, size) of invalid bytes, both up to a
    thousand. Not ``complete`` if it was cancelled.
    """

    name: str
    start: int
    end: int
    cells: tuple[MapCell, ...]
    units: int
    bad: tuple[int, ...]
    damage: tuple[tuple[int, int], ...]
    complete: bool


MAX_PLACES = 1000


def file_map(
    store: StoreSnapshot,
    name: str,
    cells: int = CELLS,
    cancelled: Cancelled | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> FileMap:
    """Walk the file called ``name`` with its CRCs. Raises :class:`StoreError` if the log has no such file."""
    file = next((log_file for log_file in store.log.files if log_file.name == name), None)
    if file is None:
        raise StoreError(sentence("expected a file of the log, found none called {name}", name=name))
    map_builder = _MapBuilder(file, max(1, min(cells, file.size)))
    complete = True
    stop = store.log.sequence.end_of(file)
    for block in scan_log(store.log, file.start_offset, stop, topics=map_builder.topics):
        if isinstance(block, Stop):
            break
        if isinstance(block, Damage):
            map_builder.add_damage(block)
        else:
            map_builder.add(block)
        if progress is not None:
            progress(map_builder.at - file.start_offset, file.size)
        if cancelled is not None and cancelled():
            complete = False
            break
    return map_builder.finished(complete)


class _MapBuilder:
    """Stretches filled block by block."""

    def __init__(self, file: ReadOnlyFile, cells: int) -> None:
        self._file = file
        self.topics = TopicTable(4096)
        self._edges = [file.start_offset + file.size * n // cells for n in range(cells + 1)]
        self._bytes: list[dict[int, int]] = [{} for _ in range(cells)]
        self._bad = [0] * cells
        self._damaged, self._blank = [0] * cells, [0] * cells
        self._units = 0
        self._bad_at: list[int] = []
        self._damage: list[tuple[int, int]] = []
        self.at = file.start_offset

    def add(self, block: UnitColumns) -> None:
        count = block.count
        if not count:
            return
        offsets, sizes = block["offset"].astype(np.int64), block["size"].astype(np.int64)
        units = block["kind"] != BLANK
        self._units += int(np.count_nonzero(units))
        edges = np.array(self._edges, np.int64)
        first_cell = np.clip(np.searchsorted(edges, offsets, "right") - 1, 0, len(self._bytes) - 1)
        last_cell = np.clip(np.searchsorted(edges, offsets + sizes, "left") - 1, 0, len(self._bytes) - 1)
        inside = units & (first_cell == last_cell)
        key = first_cell[inside] << 32 | (block["topic_id"][inside].astype(np.int64) + 1)
        for value, size in zip(*_sums(key, sizes[inside]), strict=True):
            self._unit(value >> 32, (value & 0xFFFFFFFF) - 1, size)
        for row in np.flatnonzero(units & (first_cell != last_cell)).tolist():
            for cell, size in self._spread(int(offsets[row]), int(sizes[row])):
                self._unit(cell, int(block.topic_id[row]), size)
        for row in np.flatnonzero(block["crc"] == BAD).tolist():
            self._bad[int(first_cell[row])] += 1
            if len(self._bad_at) < MAX_PLACES:
                self._bad_at.append(int(offsets[row]))
        for row in np.flatnonzero(~units).tolist():
            for cell, size in self._spread(int(offsets[row]), self._file.end_offset - int(offsets[row])):
                self._blank[cell] += size
        self.at = int(offsets[-1]) + int(sizes[-1])

    def add_damage(self, item: Damage) -> None:
        """A span that is no unit."""
        if len(self._damage) < MAX_PLACES:
            self._damage.append((item.offset, item.size))
        for cell, size in self._spread(item.offset, item.size):
            self._damaged[cell] += size
        self.at = item.offset + item.size

    def _unit(self, cell: int, topic: int, size: int) -> None:
        self._bytes[cell][topic] = self._bytes[cell].get(topic, 0) + size

    def _spread(self, offset: int, size: int) -> list[tuple[int, int]]:
        """Split a span into (cell, bytes)."""
        end, parts = min(offset + size, self._file.end_offset), []
        cells = len(self._bytes)
        cell = min(max((offset - self._file.start_offset) * cells // max(self._file.size, 1) - 1, 0), cells - 1)
        while cell < cells and self._edges[cell] < end:
            part = min(end, self._edges[cell + 1]) - max(offset, self._edges[cell])
            if part > 0:
                parts.append((cell, part))
            cell += 1
        return parts

    def finished(self, complete: bool) -> FileMap:
        """The cells; bytes of a cell that are not accounted for are zeros. With the bytes that the file system
        holds.
        """
        names, held_bytes = self.topics.names, self._bytes_on_disk()
        cells = []
        for n, topics in enumerate(self._bytes):
            start, end = self._edges[n], self._edges[n + 1]
            listed = sorted(
                ((names[t] if 0 <= t < len(names) else "", size) for t, size in topics.items()),
                key=lambda item: (-item[1], item[0]),
            )
            accounted = sum(topics.values()) + self._damaged[n] + self._blank[n]
            cells.append(
                MapCell(
                    start,
                    end,
                    tuple(listed),
                    self._bad[n],
                    self._damaged[n],
                    self._blank[n],
                    max(end - start - accounted, 0),
                    held_bytes[n],
                )
            )
        file = self._file
        return FileMap(
            file.name,
            file.start_offset,
            file.end_offset,
            tuple(cells),
            self._units,
            tuple(self._bad_at),
            tuple(self._damage),
            complete,
        )

    def _bytes_on_disk(self) -> list[int]:
        held_bytes = [0] * len(self._bytes)
        try:
            extents = self._file.extents(0)
        except CannotRead:
            return held_bytes
        for start, end in extents:
            for cell, size in self._spread(self._file.start_offset + start, end - start):
                held_bytes[cell] += size
        return held_bytes


def _sums(keys: np.ndarray, sizes: np.ndarray) -> tuple[list[int], list[int]]:
    """Each key and the sum of its sizes."""
    unique_keys, where = np.unique(keys, return_inverse=True)
    totals = np.bincount(where, sizes, minlength=len(unique_keys)) if len(unique_keys) else np.zeros(0)
    return unique_keys.tolist(), [int(total) for total in totals]
