"""Reads one consume queue of a store, without writing: its entries, and the bounds that a broker would give it.

Queue offsets count messages, positions and file offsets are bytes (docs/formats/consume-queue.md#entry, #bounds, #ext,
#batch-queues). No file is held in memory.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from engine.codec import consume_queue as cq
from engine.errors import CannotRead
from engine.inspection.log_reader import LogReader
from engine.mapped.read_only import FileSequence, ReadOnlyFile
from engine.store import queue_entry
from engine.store.queue_entry import CqEntry

if TYPE_CHECKING:
    import numpy as np


BATCH_UNIT_SIZE = 46
_BATCH = struct.Struct(">qiqqqhii")
_EXT_HEAD = struct.Struct(">hqqh")
_CHUNK = 1024
_BLOCK = 65_536

__all__ = ["BATCH_UNIT_SIZE", "CqEntry", "CqExt", "Kind", "QueueReader"]

Kind = Literal["simple", "batch"]


@dataclass(frozen=True, slots=True)
class CqExt:
    """The unit of the ext file that a stored tagsCode points at (docs/formats/consume-queue.md#ext)."""

    address: int
    size: int
    tags_code: int
    store_timestamp: int
    bit_map: bytes


class QueueReader:
    """Reading face of one queue; ``log`` gives the commit log's bounds, ``ext`` the files of consumequeue_ext.

    ``ends_with_log=False``: where the log ends is not known, so every readable entry counts.
    """

    in_rocksdb = False

    def __init__(
        self,
        topic: str,
        queue_id: int,
        kind: Kind,
        sequence: FileSequence,
        log: LogReader,
        ext: FileSequence | None = None,
        *,
        ends_with_log: bool = True,
    ) -> None:
        self.topic = topic
        self.queue_id = queue_id
        self.kind: Kind = kind
        self.sequence = sequence
        self.ext = ext
        self._log = log
        self._ends_with_log = ends_with_log
        self.unit_size = BATCH_UNIT_SIZE if kind == "batch" else cq.CQ_UNIT_SIZE
        self._raw_end: int | None = None
        self._bounds: tuple[int, int] | None = None

    @property
    def files(self) -> list[ReadOnlyFile]:
        return self.sequence.files

    def entry_position(self, queue_offset: int) -> int | None:
        """Byte of an entry, counted from the queue's very first; None in a batch queue."""
        return queue_offset * self.unit_size if self.kind == "simple" else None

    @property
    def folder(self) -> Path:
        """The folder of its files."""
        return self.sequence.folders[0]

    @property
    def entries_per_file(self) -> int:
        return max(self.sequence.file_size // self.unit_size, 1)

    @property
    def file_size(self) -> int:
        """Bytes of one file."""
        return self.sequence.file_size

    def read_bytes(self, offset: int, size: int) -> bytes:
        """Up to ``size`` bytes from byte ``offset`` on, never beyond the end of one file."""
        return self.sequence.read(offset, size)

    lend_bytes = read_bytes

    def spans(self) -> list[tuple[int, int]]:
        """(first byte, end of the bytes that a broker would read) of each file that has any."""
        end = self.valid_end
        spans = ((file.start_offset, min(file.end_offset, end)) for file in self.files)
        return [span for span in spans if span[1] > span[0]]

    def refresh(self) -> bool:
        """List the files again, including those of the ext queue, and forget the bounds; True if files changed."""
        self._raw_end = None
        self._bounds = None
        changed = self.sequence.refresh()
        return bool(self.ext is not None and self.ext.refresh()) or changed

    def forget_bounds(self) -> None:
        """Compute the bounds again at the next request, because the log's end has changed."""
        self._bounds = None

    @property
    def raw_end(self) -> int:
        """Byte offset behind the last readable entry, including stale ones: the result of a broker's scan of the
        queue.
        """
        end = self._raw_end  # another thread may refresh meanwhile
        if end is None:
            end = self._raw_end = self._find_raw_end()
        return end

    @property
    def min_offset(self) -> int:
        """Smallest queue offset as a broker would correct it after opening these files
        (docs/formats/consume-queue.md#bounds); −1 in an empty batch queue.
        """
        return self._find_bounds()[0]

    @property
    def first_in_log(self) -> int:
        """Queue offset of the first entry whose unit is still in the log; :attr:`max_offset` if there is none.

        A broker that opens such files may begin its count at 0 (see :attr:`min_offset`), and answers later.
        """
        if self.kind == "batch":
            return max(self.min_offset, 0)
        lower, upper = max(self.sequence.min_offset, 0) // self.unit_size, self.valid_end // self.unit_size
        least = self._log.min_offset
        while lower < upper:
            middle = (lower + upper) // 2
            unit = self._unit(middle * self.unit_size)
            if unit is None or unit.state != "entry" or unit.physical_offset < least:
                lower = middle + 1
            else:
                upper = middle
        return lower

    @property
    def max_offset(self) -> int:
        """Next queue offset: entries behind the end of the log do not count."""
        return self._find_bounds()[1]

    @property
    def valid_end(self) -> int:
        """Byte offset behind the last entry that points before the start of the log's end."""
        return self._cut_behind_log(self.raw_end)

    @property
    def _listed_end(self) -> int:
        """:attr:`valid_end`; if the log cannot be read, every entry is listed, because it is unknown which of them
        count.
        """
        try:
            return self.valid_end
        except CannotRead:
            return self.raw_end

    def newest(self) -> tuple[int, int] | None:
        """(physical offset, size) of the newest readable entry, whatever the log says; None in an empty queue."""
        end = self.raw_end
        if end - self.unit_size < self.sequence.min_offset or not self.files:
            return None
        unit = self._unit(end - self.unit_size)
        return (unit.physical_offset, unit.size) if unit and unit.state == "entry" else None

    @property
    def first_number(self) -> int:
        """Number of the first entry that a file holds whole, whether a broker serves it or not (in a batch queue: of
        the first unit).
        """
        return -(-max(self.sequence.min_offset, 0) // self.unit_size)

    @property
    def free_slots(self) -> int:
        """Entries for which the files have room behind :attr:`raw_end`."""
        return max(0, (self.sequence.end_offset - self.raw_end) // self.unit_size) if self.files else 0

    def stored_entries(self, start: int, stop: int) -> Iterator[CqEntry]:
        """Entries of a simple queue by number, [start, stop), also those that do not count; over gaps."""
        return self.entries(start, stop)

    def stored_bytes(self, number: int) -> tuple[bytes, str, int]:
        """(bytes, file name, number in that file) of the entry ``number``; empty if no file holds it."""
        offset = number * self.unit_size
        file = self.sequence.find(offset)
        if file is None:
            return b"", "", 0
        position = offset - file.start_offset
        return file.read(position, self.unit_size), file.name, position // self.unit_size

    def is_written(self, number: int) -> bool:
        """Return True if ``number``, counted from the queue's very first entry, holds an entry (in a batch queue: a
        unit).
        """
        file = self.sequence.find(number * self.unit_size)
        return file is not None and self._is_valid(file, number - file.start_offset // self.unit_size)

    def entry_place(self, data: bytes) -> tuple[int, int] | None:
        """(physical offset, size) that the bytes of an entry point to; None if they are no entry."""
        if len(data) < self.unit_size:
            return None
        if self.kind == "batch":
            unit = queue_entry.batch_entry(data)
            return (unit.physical_offset, unit.size) if unit.state == "entry" else None
        entry = cq.decode(data)
        return (entry.physical_offset, entry.size) if entry.state == "entry" else None

    def entry(self, queue_offset: int) -> CqEntry | None:
        """The entry at ``queue_offset`` (in a batch queue: the one that contains it), or None if no file holds it."""
        if self.kind == "batch":
            number = queue_entry.find_batch(self, queue_offset)
            batch = self._batch_at(number) if number is not None else None
            return batch if batch and batch.queue_offset <= queue_offset < batch.next_offset else None
        return self._unit(queue_offset * self.unit_size)

    def entries(self, start: int | None = None, stop: int | None = None) -> Iterator[CqEntry]:
        """Entries from queue offset ``start`` (default: the first in the files) to ``stop`` (exclusive, default: the
        end).
        """
        if self.kind == "batch":
            yield from self._batch_entries(start, stop)
            return
        for number, unit in self._units(*self._numbers(start, stop)):
            yield self._simple_entry(number, unit)

    def blocks(self, start: int | None = None, stop: int | None = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The entries of a simple queue that :meth:`entries` yields, many at once: queue offsets, and rows of
        ``dtypes.CQ_UNIT``.
        """
        import numpy as np

        from engine.codec.dtypes import CQ_UNIT

        number, end = self._numbers(start, stop)
        while number < end:
            data = self.sequence.read(number * self.unit_size, min(end - number, _BLOCK) * self.unit_size)
            if len(data) < self.unit_size:
                number = self._next_held(number)
                if number < 0:
                    return
                continue
            rows = np.frombuffer(data, CQ_UNIT, len(data) // self.unit_size)
            yield np.arange(number, number + len(rows)), rows
            number += len(rows)

    def _numbers(self, start: int | None, stop: int | None) -> tuple[int, int]:
        """The numbers [first, end) of the entries of a simple queue from ``start`` to ``stop``."""
        first_number = max(self.sequence.min_offset, 0) // self.unit_size
        begin = first_number if start is None else max(start, first_number)
        end = self._listed_end // self.unit_size if stop is None else stop
        return begin, min(end, self.sequence.end_offset // self.unit_size)

    def array(self, start: int, stop: int) -> np.ndarray:
        """Entries [start, stop) as rows of ``dtypes.CQ_UNIT`` (batch queues: units by number, ``BATCH_CQ_UNIT``);
        shorter at a gap.
        """
        import numpy as np

        from engine.codec.dtypes import BATCH_CQ_UNIT, CQ_UNIT

        pieces = []
        offset, end = start * self.unit_size, stop * self.unit_size
        while offset < end:
            piece = self.sequence.read(offset, end - offset)
            piece = piece[: len(piece) - len(piece) % self.unit_size]
            if not piece:
                break
            pieces.append(piece)
            offset += len(piece)
        return np.frombuffer(b"".join(pieces), BATCH_CQ_UNIT if self.kind == "batch" else CQ_UNIT)

    def ext_unit(self, address: int) -> CqExt | None:
        """The ext unit at an address, or None if it is missing or invalid."""
        if self.ext is None:
            return None
        head = self.ext.read(cq.ext_offset(address), _EXT_HEAD.size)
        if len(head) < _EXT_HEAD.size:
            return None
        size, tags_code, stored, length = _EXT_HEAD.unpack(head)
        if length < 0 or size != _EXT_HEAD.size + length:
            return None
        bit_map = self.ext.read(cq.ext_offset(address) + _EXT_HEAD.size, length)
        return CqExt(address, size, tags_code, stored, bit_map) if len(bit_map) == length else None

    # -- simple queues

    def _unit(self, offset: int) -> CqEntry | None:
        data = self.sequence.read(offset, self.unit_size)
        if len(data) < self.unit_size:
            return None
        if self.kind == "batch":
            return queue_entry.batch_entry(data)
        return queue_entry.simple_entry(self, offset // self.unit_size, data)

    def _simple_entry(self, number: int, unit: cq.CqUnit) -> CqEntry:
        ext = self.ext_unit(unit.tags_code) if self.ext and cq.is_ext_address(unit.tags_code) else None
        return CqEntry(number, unit.physical_offset, unit.size, unit.tags_code, unit.state, ext)

    def _units(self, begin: int, end: int) -> Iterator[tuple[int, cq.CqUnit]]:
        number = begin
        while number < end:
            data = self.sequence.read(number * self.unit_size, min(end - number, _CHUNK) * self.unit_size)
            if len(data) < self.unit_size:
                number = self._next_held(number)
                if number < 0:
                    return
                continue
            for position in range(0, len(data) - self.unit_size + 1, self.unit_size):
                yield number, cq.decode(data, position)
                number += 1

    def _next_held(self, number: int) -> int:
        """Number of the first entry behind a gap in the files, −1 if there is none."""
        file_index = self.sequence.position_of(number * self.unit_size)
        later = self.files[file_index + 1 :]
        return -(-later[0].start_offset // self.unit_size) if later else -1

    # -- bounds

    def _find_raw_end(self) -> int:
        """Like ConsumeQueue.recover: counts units of the last three files up to the first invalid one."""
        self.sequence.require_complete()
        end = max(self.sequence.min_offset, 0)
        for file in self.files[-3:]:
            valid = self._valid_prefix(file)
            end = file.start_offset + valid * self.unit_size
            if valid < file.size // self.unit_size:
                break
        return end

    def _valid_prefix(self, file: ReadOnlyFile) -> int:
        lower, upper = 0, file.size // self.unit_size
        if upper and self._is_valid(file, upper - 1):
            return upper
        while lower < upper:
            middle = (lower + upper) // 2
            if self._is_valid(file, middle):
                lower = middle + 1
            else:
                upper = middle
        return lower

    def _is_valid(self, file: ReadOnlyFile, number: int) -> bool:
        data = file.read(number * self.unit_size, self.unit_size)
        if len(data) < self.unit_size:
            return False
        if self.kind == "batch":
            physical, size, _, _, base, count, _, _ = _BATCH.unpack(data)
            return bool(physical >= 0 and size > 0 and base >= 0 and count > 0)
        return cq.decode(data).state != "empty"

    def _cut_behind_log(self, end: int) -> int:
        """Lower ``end`` over entries that point at or behind the end of the log: a broker would truncate them
        (docs/formats/consume-queue.md#bounds).
        """
        start = max(self.sequence.min_offset, 0)
        if end <= start or not self.files or not self._ends_with_log:
            return end
        limit = self._log.max_offset
        newest = self._unit(end - self.unit_size)
        if newest is None or newest.physical_offset < limit:
            return end
        lower, upper = start // self.unit_size, end // self.unit_size
        while lower < upper:
            middle = (lower + upper) // 2
            unit = self._unit(middle * self.unit_size)
            if unit is not None and unit.physical_offset < limit:
                lower = middle + 1
            else:
                upper = middle
        return lower * self.unit_size

    def _find_bounds(self) -> tuple[int, int]:
        bounds = self._bounds  # another thread may refresh meanwhile
        if bounds is None:
            bounds = self._bounds = self._batch_bounds() if self.kind == "batch" else self._simple_bounds()
        return bounds

    def _simple_bounds(self) -> tuple[int, int]:
        end = self.valid_end
        least = self._log.min_offset
        start = max(self.sequence.min_offset, 0)
        if not self.files or end <= start:
            return 0, end // self.unit_size if self.files else 0
        last_entry = self._unit(end - self.unit_size)
        if last_entry is not None and last_entry.physical_offset < least:
            return end // self.unit_size, end // self.unit_size
        return self._corrected_min(end, least), end // self.unit_size

    def _corrected_min(self, end: int, least: int) -> int:
        """ConsumeQueue.correctMinOffset with a remembered minimum of 0, as after a start."""
        file = self.files[0]
        size = min(file.size, end - file.start_offset)
        count = size // self.unit_size
        if count <= 0:
            return 0
        if file.start_offset == 0 and self._physical(file, 0) >= least:
            return 0
        lower, upper = 0, count - 1
        while upper - lower > 1:
            middle = (lower + upper) // 2
            physical = self._physical(file, middle)
            if physical > least:
                upper = middle
            elif physical == least:
                lower = upper = middle
                break
            else:
                lower = middle
        for number in range(lower, upper + 1):
            if self._physical(file, number) >= least:
                return file.start_offset // self.unit_size + number
        return 0

    def _physical(self, file: ReadOnlyFile, number: int) -> int:
        data = file.read(number * self.unit_size, 8)
        return int.from_bytes(data, "big", signed=True) if len(data) == 8 else -1

    # -- batch queues

    def batch(self, number: int) -> CqEntry | None:
        """The unit of a batch queue by its number in the files; None for −1 and for a missing one."""
        return self._batch_at(number) if number >= 0 else None

    def _batch_at(self, number: int) -> CqEntry | None:
        batch = self._unit(number * BATCH_UNIT_SIZE)
        return batch if batch is not None and batch.state == "entry" else None

    def _batch_count(self) -> tuple[int, int]:
        """Number of the first unit, and the number behind the last."""
        first_number = max(self.sequence.min_offset, 0) // BATCH_UNIT_SIZE
        return first_number, max(self.valid_end // BATCH_UNIT_SIZE, first_number)

    def _batch_entries(self, start: int | None, stop: int | None) -> Iterator[CqEntry]:
        first_number, end = self._batch_count()
        number = first_number if start is None else queue_entry.find_batch(self, start)
        for unit_number in range(first_number if number is None else number, end):
            batch = self._batch_at(unit_number)
            if batch is None or (stop is not None and batch.queue_offset >= stop):
                return
            if start is None or batch.next_offset > start:
                yield batch

    def _batch_bounds(self) -> tuple[int, int]:
        first_number, end = self._batch_count()
        last_batch = self._batch_at(end - 1) if end > first_number else None
        if last_batch is None:
            return -1, 0
        least = self._log.min_offset
        first_batch = self._batch_at(first_number)
        smallest = first_batch.queue_offset if first_batch else -1
        per_file = self.files[0].size // BATCH_UNIT_SIZE
        for unit_number in range(first_number, min(end, first_number + per_file)):
            unit = self._batch_at(unit_number)
            if unit is None or unit.physical_offset >= least:
                break
            smallest = unit.next_offset
        return smallest, last_batch.next_offset
