"""A consume queue as recovery will leave it: the bytes on disk, and over them what dispatch will have appended.

Nothing is written. Appended entries are remembered as ranges, never one by one, so memory does not grow with the log.
An appended entry points into the log that has just been walked; only the rare ones that point elsewhere (units whose
PHYSICALOFFSET field is wrong) are kept singly, and not more than :data:`MAX_ODD_UNITS` of them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from engine.codec.consume_queue import MAX_EXT_ADDRESS, PREFILLED_SIZE
from engine.codec.dtypes import BATCH_CQ_UNIT, CQ_UNIT
from engine.files.layout import queue_file_name
from engine.mapped.read_only import FileSequence, ReadOnlyFile
from engine.store.recovery.source import QueueKind

MAX_ODD_UNITS = 100_000
_CHUNK_UNITS = 4096
_PREFIX_BYTES = 1_000_000
_FIRST_BYTES = 4_000  # of a file: most queues of a store with very many are short
_MAX_KNOWN_UNITS = 16  # units of a file that stay in memory after its first read
_UNIT_HEAD = struct.Struct(">qi")
_UNIT = struct.Struct(">qi8x")
Int64 = NDArray[np.int64]


@dataclass(slots=True)
class VirtualFile:
    """A file of the queue: on disk or only to be created; ``wrote`` is where a broker would append next (bytes)."""

    start: int
    name: str
    disk: ReadOnlyFile | None
    wrote: int
    first_created: bool = False
    first_bytes: bytes = b""
    """First bytes of a short file on disk: its valid units, and the invalid one behind them."""


@dataclass(frozen=True, slots=True)
class Rows:
    """A run of units: position of the first in its file (bytes), offsets into the log, sizes, validity."""

    position: int
    physical: Int64
    size: Int64
    valid: NDArray[np.bool_]
    ext_address: Int64
    next_offset: Int64  # batch queues: base + batchSize


@dataclass(slots=True)
class QueueBytes:
    """Files of one queue with appended and pre-filled ranges laid over them (absolute byte ranges of the queue)."""

    kind: QueueKind
    file_size: int
    files: list[VirtualFile]
    appended: list[tuple[int, int]] = field(default_factory=list)
    prefilled: list[tuple[int, int]] = field(default_factory=list)
    odd: dict[int, int] = field(default_factory=dict)  # byte offset of an appended entry → its offset into the log
    appended_place: int = 0  # where the newest unit really stands: the others stand before it
    last_appended: tuple[int, int, int] = (0, 0, 0)  # physical offset, size, next queue offset of the newest

    @classmethod
    def of(cls, kind: QueueKind, file_size: int, sequence: FileSequence) -> QueueBytes:
        """The files as a broker loads them: every file counts as full."""
        files = [VirtualFile(f.start_offset, f.name, f, file_size) for f in sequence.files if f.size]
        return cls(kind, file_size, files)

    @property
    def unit_size(self) -> int:
        return 20 if self.kind == "simple" else 46

    @property
    def end(self) -> int:
        """Absolute byte at which the next entry goes, 0 without files."""
        return self.files[-1].start + self.files[-1].wrote if self.files else 0

    def create_file(self, start: int) -> VirtualFile:
        """Add a file of zero bytes at the end."""
        file = VirtualFile(start, queue_file_name(start), None, 0, first_created=not self.files)
        self.files.append(file)
        return file

    def append(self, physical: int, place: int, size: int, next_offset: int) -> None:
        """Remember one entry at the end; ``place`` is where its unit really stands."""
        offset = self.end
        self.append_run(offset, 1)
        self.last_appended, self.appended_place = (physical, size, next_offset), place
        if physical != place and len(self.odd) < MAX_ODD_UNITS:
            self.odd[offset] = physical

    def append_run(self, offset: int, count: int) -> None:
        """Remember ``count`` entries from byte offset ``offset`` on; they must fit into the last file."""
        end = offset + count * self.unit_size
        self.files[-1].wrote += count * self.unit_size
        if self.appended and self.appended[-1][1] == offset:
            self.appended[-1] = (self.appended[-1][0], end)
        else:
            self.appended.append((offset, end))

    def prefill(self, until: int) -> None:
        """Fill the last file up to byte ``until`` of the queue with units that point nowhere
        (docs/formats/consume-queue.md).
        """
        file = self.files[-1]
        file.wrote = until - file.start
        self.prefilled.append((file.start, until))

    def rows(self, file: VirtualFile, position: int = 0, stop: int | None = None) -> Iterator[Rows]:
        """Units of one file from byte ``position`` on, in chunks, to ``stop`` (default: the end of the file)."""
        end = self.file_size if stop is None else stop
        step = _CHUNK_UNITS * self.unit_size
        while position < end:
            count = min(step, end - position) // self.unit_size
            if count <= 0:
                return
            yield self._chunk(file, position, count)
            position += count * self.unit_size

    def valid_prefix(self, file: VirtualFile) -> tuple[int, int, int]:
        """(bytes of the valid units that a simple queue's file on disk begins with, offset and size of the last one's
        message).
        """
        assert file.disk is not None
        done, last_unit = 0, b""
        while done < self.file_size:
            data = file.disk.read(done, min(_PREFIX_BYTES if done else _FIRST_BYTES, self.file_size - done))
            count = len(data) // CQ_UNIT.itemsize
            good = _count_valid(np.frombuffer(data, np.uint8, count * CQ_UNIT.itemsize))
            if not done and 0 < good < min(count, _MAX_KNOWN_UNITS):
                file.first_bytes = data[: (good + 1) * CQ_UNIT.itemsize]
            if good:
                last_unit = data[(good - 1) * CQ_UNIT.itemsize :]
                done += good * CQ_UNIT.itemsize
            if good < count or not count:
                break
        physical, size = _UNIT_HEAD.unpack_from(last_unit) if last_unit else (0, 0)
        return done, physical, size

    def prefix_before(self, file: VirtualFile, log_end: int) -> tuple[int, int, int]:
        """(bytes of the units that are kept where the log ends at ``log_end``, offset and size of the last one): the
        first one without a look, the others while they are valid and point before it. A simple queue's file on disk.
        """
        assert file.disk is not None
        if file.first_bytes:
            return _prefix_of_units(file.first_bytes, log_end)
        done, last_unit = 0, b""
        while done < self.file_size:
            data = file.disk.read(done, min(_PREFIX_BYTES if done else _FIRST_BYTES, self.file_size - done))
            raw = np.frombuffer(data, np.uint8, len(data) // CQ_UNIT.itemsize * CQ_UNIT.itemsize)
            unchecked_bytes = CQ_UNIT.itemsize if not done else 0
            good = min(unchecked_bytes, len(raw)) // CQ_UNIT.itemsize + _count_valid(raw[unchecked_bytes:])
            dropped_rows = np.flatnonzero(raw.view(CQ_UNIT)["physical_offset"][:good] >= log_end)
            dropped_rows = dropped_rows[dropped_rows > 0] if not done else dropped_rows
            good = int(dropped_rows[0]) if len(dropped_rows) else good
            if good:
                last_unit = data[(good - 1) * CQ_UNIT.itemsize :]
                done += good * CQ_UNIT.itemsize
            if good * CQ_UNIT.itemsize < len(raw) or not len(raw):
                break
        physical, size = _UNIT_HEAD.unpack_from(last_unit) if last_unit else (0, 0)
        return done, physical, size

    def head(self, file: VirtualFile, position: int) -> tuple[int, int]:
        """(offset, size) of the unit at ``position``."""
        if file.disk is None or self.appended or self.prefilled or self.odd:
            unit = self.unit(file, position)
            return int(unit.physical[0]), int(unit.size[0])
        data = file.first_bytes[position : position + _UNIT_HEAD.size]
        if len(data) < _UNIT_HEAD.size:
            data = file.disk.read(position, _UNIT_HEAD.size)
        physical, size = _UNIT_HEAD.unpack(data.ljust(_UNIT_HEAD.size, b"\0"))
        return physical, size

    def unit(self, file: VirtualFile, position: int) -> Rows:
        """Return the single unit at ``position``."""
        return self._chunk(file, position, 1)

    def _chunk(self, file: VirtualFile, position: int, count: int) -> Rows:
        length = count * self.unit_size
        data = file.disk.read(position, length) if file.disk else b""
        raw = np.frombuffer(data.ljust(length, b"\0"), CQ_UNIT if self.kind == "simple" else BATCH_CQ_UNIT)
        physical, size = raw["physical_offset"].astype(np.int64), raw["size"].astype(np.int64)
        valid = (physical >= 0) & (size > 0)
        tags = raw["tags_code"].astype(np.int64)
        ext = np.where(tags <= MAX_EXT_ADDRESS, tags, 1)
        following = np.zeros(count, np.int64)
        if self.kind == "batch":
            base, number = raw["msg_base_offset"].astype(np.int64), raw["batch_size"].astype(np.int64)
            valid &= (base >= 0) & (number > 0)
            following = base + number
        rows = Rows(position, physical, size, valid, ext, following)
        self._apply_overlays(file.start + position, rows)
        return rows

    def _apply_overlays(self, start: int, rows: Rows) -> None:
        count = len(rows.physical)
        for ranges, physical, size in ((self.prefilled, 0, PREFILLED_SIZE), (self.appended, self.appended_place, 1)):
            for range_start, range_end in ranges:
                start_row = max((range_start - start) // self.unit_size, 0)
                stop_row = min((range_end - start) // self.unit_size, count)
                if start_row < stop_row:
                    rows.physical[start_row:stop_row], rows.size[start_row:stop_row] = physical, size
                    rows.valid[start_row:stop_row], rows.ext_address[start_row:stop_row] = True, 1
        if self.odd:
            for number in range(count):
                rows.physical[number] = self.odd.get(start + number * self.unit_size, rows.physical[number])
        position = self.appended[-1][1] - self.unit_size - start if self.appended else -1
        if position >= 0 and position % self.unit_size == 0 and position // self.unit_size < count:
            number = position // self.unit_size
            rows.physical[number], rows.size[number], rows.next_offset[number] = self.last_appended


def _prefix_of_units(units: bytes, log_end: int) -> tuple[int, int, int]:
    """:meth:`QueueBytes.prefix_before` for the few units of a short file."""
    done, last_unit = 0, (0, 0)
    for physical, size in _UNIT.iter_unpack(units):
        if done and (physical < 0 or size <= 0 or physical >= log_end):
            break
        done, last_unit = done + CQ_UNIT.itemsize, (physical, size)
    return done, *last_unit


def _count_valid(raw: NDArray[np.uint8]) -> int:
    """Count the 20-byte units that are valid, up to the first that is not; signs and zeros need no swapping of
    bytes.
    """
    units = raw.reshape(-1, CQ_UNIT.itemsize)
    sizes = (
        np.ndarray((len(units),), np.int32, raw.data, 8, (CQ_UNIT.itemsize,)) if len(units) else np.empty(0, np.int32)
    )
    wrong = ((units[:, 0] | units[:, 8]) >= 0x80) | (sizes == 0)
    first_wrong = int(wrong.argmax()) if len(wrong) else 0
    return first_wrong if len(wrong) and wrong[first_wrong] else len(wrong)
