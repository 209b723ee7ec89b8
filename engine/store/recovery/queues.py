"""Consume queues in recovery: recover, truncate, take entries, correct the minimum
(docs/formats/consume-queue.md#append, #bounds, #batch-queues).

Each method does what the class of the same name does in RocketMQ, 5.3.3 or 4.9.8, to positions only. Oddities are
kept: the first unit of a file survives a truncation without a look at it, an empty last file stops a 5.3 start.

The ext files beside a queue (docs/formats/consume-queue.md#ext) change as ConsumeQueueExt changes them, in both
releases. A cut moves a position and deletes later files; the bytes behind it stay in their file until new units
overwrite them. Only the recovery of the queue itself cuts. Cutting the queue at the log's end leaves its ext
files alone, because the address that would cut them is forgotten by then. Units that are dispatched again are
appended at ``end``; they are not counted here.

:class:`QueueBytes` is a queue as recovery will leave it: the bytes on disk, and over them what dispatch will have
appended. Nothing is written. Appended entries are remembered as ranges, never one by one, so memory does not grow
with the log. An appended entry points into the log that has just been walked; only the rare ones that point
elsewhere (units whose PHYSICALOFFSET field is wrong) are kept singly, and not more than :data:`MOST_ODD` of them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from engine.codec.consume_queue import MAX_EXT_ADDRESS, PREFILLED_SIZE, ext_offset, is_ext_address
from engine.codec.cq_ext import END_MARK
from engine.codec.dtypes import BATCH_CQ_UNIT, CQ_UNIT
from engine.codec.queue_placing import byte_of
from engine.files.layout import queue_file_name
from engine.mapped.read_only import FileSequence, ReadOnlyFile
from engine.mapped.sparse import last_byte
from engine.releases import Release, ReleaseRules, of
from engine.rules.unit_check import Request
from engine.store.queue_minimum import Span, corrected_minimum
from engine.store.recovery.plan import ExtCut, QueueState
from engine.store.recovery.source import QueueFiles, QueueKind

MOST_ODD = 100_000
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
    known: bytes = b""
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
        if physical != place and len(self.odd) < MOST_ODD:
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
                file.known = data[: (good + 1) * CQ_UNIT.itemsize]
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
        if file.known:
            return _prefix_of_units(file.known, log_end)
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
        data = file.known[position : position + _UNIT_HEAD.size]
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


FIRST_FILES = 3


class EmptyLastFile(Exception):
    """A 5.3 broker dies here: it asks for the unit in front of the first byte of an empty last file."""


class RecoveredQueue:
    """A queue on its way through recovery; offsets in entries unless a name says bytes."""

    def __init__(
        self,
        topic: str,
        queue_id: int,
        kind: QueueKind,
        data: QueueBytes,
        *,
        existed: bool,
        ext: RecoveredExt | None = None,
    ) -> None:
        self.topic = topic
        self.queue_id = queue_id
        self.kind: QueueKind = kind
        self.data = data
        self.ext = ext
        self.existed = existed
        self.max_physic = -1
        self.min_logic = 0  # bytes
        self.batch_min = -1
        self.batch_max = 0
        self.end_found = 0  # bytes: end of the readable entries before anything was cut
        self.cut_to: int | None = None  # bytes: where recovery cuts the queue, None where it does not
        self.dropped = 0
        self.added = 0
        self.shifted = 0
        self.deleted: list[str] = []
        self.bytes_read = 0
        self.max_ext_address = 1
        self._heal = False
        self.found: QueueState | None = None  # after recover
        self.cut: QueueState | None = None  # after truncate
        self.clear_to = 0  # bytes: end of what stands behind the entries in the last file

    @classmethod
    def of(cls, files: QueueFiles, file_size: int) -> RecoveredQueue:
        data = QueueBytes.of(files.kind, file_size, files.sequence)
        ext = RecoveredExt(files.ext) if files.ext is not None else None
        return cls(files.topic, files.queue_id, files.kind, data, existed=True, ext=ext)

    @property
    def min_offset(self) -> int:
        return self.batch_min if self.kind == "batch" else self.min_logic // 20

    @property
    def max_offset(self) -> int:
        return self.batch_max if self.kind == "batch" else self.data.end // 20

    @property
    def state(self) -> QueueState:
        """The queue's present state."""
        last_file = self.data.files[-1].start if self.data.files else None
        batch = (self.batch_min, self.batch_max) if self.kind == "batch" else (-1, 0)
        return QueueState(last_file, self.data.end, self.max_physic, self.min_logic, *batch)

    # -- recover

    def recover(self, *, look_behind: bool = False, heal: bool = False) -> None:
        """Find the end of the entries in the last three files and cut the queue there.

        ``look_behind`` asks, too, how far the last file holds bytes behind that end. With ``heal`` a last file whose
        first entry never reached the disk is deleted later on (:meth:`truncate`, :meth:`correct_min`): RocketMQ keeps
        it, and takes its zero bytes for an entry or dies of it.
        """
        self._heal = heal
        self._recover()
        self.found = self.state if self.ext is None else replace(self.state, ext_end=self.ext.end)
        if look_behind and self.data.files:
            last_file = self.data.files[-1]
            if last_file.disk is not None and last_file.wrote < self.data.file_size:
                self.clear_to = last_file.start + last_byte(last_file.disk, last_file.wrote)

    def _recover(self) -> None:
        files = self.data.files
        if not files:
            return
        end = 0
        for file in files[max(len(files) - FIRST_FILES, 0) :]:
            end = file.start + self._scan(file)
            if end - file.start < self.data.file_size:
                break
        self.end_found = end
        self._truncate_files(end)
        self._revise_batch()
        if self.ext is not None:
            self.ext.recover(self.max_ext_address)
            self.bytes_read += self.ext.bytes_read

    def _scan(self, file: VirtualFile) -> int:
        """Length of the valid prefix of one file in bytes; remembers the last unit seen."""
        done = 0
        if self.kind == "simple" and self.ext is None:
            done, physical, size = self.data.valid_prefix(file)
            self.bytes_read += min(done + self.data.unit_size, self.data.file_size)
            if done:
                self._remember(physical, size)
            return done
        for rows in self.data.rows(file):
            bad = np.flatnonzero(~rows.valid)
            good = int(bad[0]) if len(bad) else len(rows.valid)
            self.bytes_read += len(rows.valid) * self.data.unit_size
            if good:
                self._remember(int(rows.physical[good - 1]), int(rows.size[good - 1]))
                ext = rows.ext_address[:good]
                self.max_ext_address = int(ext[ext != 1][-1]) if (ext != 1).any() else self.max_ext_address
                done = rows.position + good * self.data.unit_size
            if len(bad):
                break
        return done

    def _remember(self, physical: int, size: int) -> None:
        self.max_physic = physical if self.kind == "batch" else physical + size

    def _truncate_files(self, end: int) -> None:
        """MappedFileQueue.truncateDirtyFiles: positions down to ``end``, later files away
        (docs/formats/files.md#sequences).
        """
        kept_files = []
        for file in self.data.files:
            if file.start + self.data.file_size > end:
                if end < file.start:
                    self._delete(file)
                    continue
                file.wrote = end % self.data.file_size
            kept_files.append(file)
        self.data.files = kept_files

    def _delete(self, file: VirtualFile) -> None:
        if file.disk is not None:
            self.deleted.append(file.disk.path)

    # -- truncate by the log's end

    def truncate(self, log_end: int) -> None:
        """Drop entries that point at or behind ``log_end`` (truncateDirtyLogicFiles)."""
        old_end = self.data.end
        self.max_physic = log_end if self.kind == "simple" else log_end - 1
        while self.data.files:
            file = self.data.files[-1]
            physical, size = self.data.head(file, 0)
            if physical < log_end and not (self._heal and size <= 0):
                file.wrote = self._kept_bytes(file, log_end)
                break
            self._delete(file)
            self.data.files.pop()
        if self.data.end != old_end:
            self.cut_to = self.data.end
            self.dropped += (old_end - self.data.end) // self.data.unit_size
        self._revise_batch()
        self.cut = self.state

    def _kept_bytes(self, file: VirtualFile, log_end: int) -> int:
        done = 0
        data = self.data
        if self.kind == "simple" and file.disk is not None and not (data.appended or data.prefilled):
            done, physical, size = data.prefix_before(file, log_end)
            if done:
                self._remember(physical, size)
            return done
        for rows in self.data.rows(file):
            wrong = ~rows.valid | (rows.physical >= log_end)
            if rows.position == 0:
                wrong[0] = False  # kept unchecked
            bad = np.flatnonzero(wrong)
            good = int(bad[0]) if len(bad) else len(wrong)
            if good:
                self._remember(int(rows.physical[good - 1]), int(rows.size[good - 1]))
                done = rows.position + good * self.data.unit_size
            if len(bad):
                break
        return done

    # -- take an entry

    def put(self, physical: int, place: int, size: int, queue_offset: int) -> None:
        """Add one dispatched unit (docs/formats/consume-queue.md#append); ``place`` is where it stands, ``physical``
        what it says of itself.
        """
        if physical + size <= self.max_physic:
            return
        entry_byte = byte_of(queue_offset)
        data = self.data
        last_file = data.files[-1] if data.files else None
        if last_file is None:
            last_file = data.create_file(entry_byte - entry_byte % data.file_size)
        elif last_file.wrote == data.file_size:
            last_file = data.create_file(last_file.start + data.file_size)
        if last_file.first_created and queue_offset != 0 and last_file.wrote == 0:
            self.min_logic = entry_byte
            data.prefill(entry_byte)
        if queue_offset != 0:
            if entry_byte < data.end:
                return
            if entry_byte != data.end:
                self.shifted += 1
        self.max_physic = physical + size
        data.append(physical, place, size, 0)
        self.added += 1

    def put_run(self, physical: int, size: int, count: int) -> None:
        """Add ``count`` units that continue the queue without a gap, the last of them at ``physical``."""
        data = self.data
        remaining = count
        while remaining:
            last_file = data.files[-1]
            if last_file.wrote == data.file_size:
                last_file = data.create_file(last_file.start + data.file_size)
            fitting = min(remaining, (data.file_size - last_file.wrote) // 20)
            data.append_run(data.end, fitting)
            remaining -= fitting
        data.last_appended, data.appended_place = (physical, size, 0), physical
        self.max_physic = physical + size
        self.added += count

    def put_batch(self, request: Request, place: int) -> None:
        """Add one dispatched unit to a batch queue (docs/formats/consume-queue.md#batch-queues)."""
        if request.base_offset < 0 or request.batch_size < 0 or request.physical_offset <= self.max_physic:
            return
        data = self.data
        if not data.files or data.files[-1].wrote == data.file_size:
            data.create_file(data.files[-1].start + data.file_size if data.files else 0)
        following = request.base_offset + request.batch_size
        data.append(request.physical_offset, place, request.size, following)
        self.max_physic, self.batch_max = request.physical_offset, following
        self.added += 1
        if self.batch_min == -1 and data.files[-1].first_created:
            self.batch_min = request.base_offset

    # -- minimum

    def correct_min(self, log_min: int, release: Release) -> None:
        """Set the smallest offset whose unit the log still holds (correctMinOffset)."""
        if self.kind == "batch":
            self._correct_batch_min(log_min)
        elif not of(release).minimum_by_halving:
            self._correct_min_linear(log_min)
        else:
            self._correct_min(log_min, of(release))

    def _correct_min(self, log_min: int, rules: ReleaseRules) -> None:
        data = self.data
        if self.min_logic >= data.end or not data.files:
            return
        last_file = data.files[-1]
        if last_file.wrote == 0:
            if self._heal:
                self._delete(data.files.pop())
                self._correct_min(log_min, rules)
                return
            if rules.minimum_needs_entries:
                raise EmptyLastFile
        first_file = data.files[0]

        def physical_at(offset: int) -> int:
            file = last_file if offset >= last_file.start else first_file
            return data.head(file, offset - file.start)[0]

        spans = (
            Span(first_file.start, first_file.start + first_file.wrote),
            Span(last_file.start, last_file.start + last_file.wrote),
        )
        minimum = corrected_minimum(
            self.min_logic, *spans, log_min, physical_at, past_empty_last=not rules.minimum_needs_entries
        )
        if minimum != self.min_logic and minimum < data.end:
            self._forget_ext(int(data.unit(first_file, minimum - first_file.start).ext_address[0]))
        self.min_logic = minimum

    def _correct_min_linear(self, log_min: int) -> None:
        if not self.data.files:
            return
        file = self.data.files[0]
        for rows in self.data.rows(file, 0, file.wrote):
            hits = np.flatnonzero(rows.physical >= log_min)
            if len(hits):
                self.min_logic = file.start + rows.position + int(hits[0]) * 20
                self._forget_ext(int(rows.ext_address[hits[0]]))
                return

    def _forget_ext(self, address: int) -> None:
        if self.ext is not None:
            self.ext.forget_before(address)

    def _correct_batch_min(self, log_min: int) -> None:
        if not self.data.files:
            self.batch_min, self.batch_max = -1, 0
            return
        file = self.data.files[0]
        minimum = self.batch_min
        appended = bool(self.data.appended and self.data.appended[0][0] == file.start)
        if not appended:
            minimum = self._first_base(file)
        for rows in self.data.rows(file, 0, file.wrote):
            expired_rows = np.flatnonzero(rows.physical < log_min)
            expired_count = (
                int(np.flatnonzero(rows.physical >= log_min)[0])
                if len(expired_rows) < len(rows.physical)
                else len(expired_rows)
            )
            if expired_count:
                minimum = int(rows.next_offset[expired_count - 1])
            if expired_count < len(rows.physical):
                break
        self.batch_min = minimum

    def _first_base(self, file: VirtualFile) -> int:
        if file.wrote < 46 or file.disk is None:
            return -1
        return int.from_bytes(file.disk.read(28, 8), "big", signed=True)

    def _revise_batch(self) -> None:
        if self.kind != "batch":
            return
        files = self.data.files
        self.batch_min = self._first_base(files[0]) if files else -1
        holder = next((f for f in reversed(files[-2:]) if f.wrote >= 46), None)
        self.batch_max = int(self.data.unit(holder, holder.wrote - 46).next_offset[0]) if holder else 0

    def as_destroyed(self) -> None:
        """Delete every file of the queue, as a broker does when the log is empty."""
        for file in self.data.files:
            self._delete(file)
        if self.ext is not None:
            self.ext.destroy()
        first_start = self.data.files[0].start if self.data.files else 0
        self.dropped = max(self.data.end - first_start, 0) // self.data.unit_size
        self.data.files = []
        self.min_logic, self.batch_min, self.batch_max, self.cut_to, self.max_physic = 0, -1, 0, 0, -1


_SIZE = struct.Struct(">h")
_CHUNK = 1 << 20


class RecoveredExt:
    """The ext files of one queue on their way through recovery; offsets are bytes of the ext queue."""

    def __init__(self, sequence: FileSequence) -> None:
        self.files = [file for file in sequence.files if file.size]
        self.file_size = sequence.file_size
        self.end = self.files[-1].start_offset + self.file_size if self.files else 0
        self.deleted: list[ReadOnlyFile] = []
        self.bytes_read = 0

    def recover(self, max_address: int) -> None:
        """Find the end of the units in the last file and cut behind the unit at the queue's last ext address.

        Earlier files count as full whatever they hold: a broker walks them too, and forgets where that ended.
        """
        if not self.files:
            return
        last_file = self.files[-1]
        self.end = last_file.start_offset + self._units_end(last_file)
        if is_ext_address(max_address):
            self._cut_behind(ext_offset(max_address))

    def _units_end(self, file: ReadOnlyFile) -> int:
        """Position behind the last unit, skipping from size to size."""
        position = start = 0
        data = b""
        while True:
            if position + _SIZE.size > start + len(data):
                start, data = position, file.read(position, _CHUNK)
                self.bytes_read += len(data)
                if len(data) < _SIZE.size:
                    return position
            (size,) = _SIZE.unpack_from(data, position - start)
            if size <= 0 or position + size > self.file_size:
                return position
            position += size

    def _cut_behind(self, offset: int) -> None:
        """Cut behind the unit at ``offset``; nothing is cut where there is none."""
        file = next((f for f in reversed(self.files) if f.start_offset <= offset), None)
        if file is None or offset >= min(file.start_offset + self.file_size, self.end):
            return
        head = file.read(offset - file.start_offset, _SIZE.size)
        if len(head) < _SIZE.size or (size := _SIZE.unpack(head)[0]) < 1:
            return
        self.end = offset + size
        self._delete([f for f in self.files if f.start_offset > self.end])

    def forget_before(self, min_address: int) -> None:
        """Delete files that end before the ext address of the queue's first entry."""
        if is_ext_address(min_address):
            offset = ext_offset(min_address)
            self._delete([f for f in self.files if f.start_offset + self.file_size < offset])

    def destroy(self) -> None:
        """Delete every file, as a broker does on an empty log."""
        self._delete(self.files)
        self.end = 0

    def _delete(self, deleted_files: list[ReadOnlyFile]) -> None:
        self.deleted += deleted_files
        self.files = [file for file in self.files if file not in deleted_files]

    def cut(self, topic: str, queue_id: int) -> ExtCut | None:
        """Return what was cut and deleted; None where all that the files hold is kept."""
        dropped = sum(last_byte(file) for file in self.deleted)
        if self.files:
            last_file = self.files[-1]
            end = self.end - last_file.start_offset
            if last_file.read(end, _SIZE.size) == _SIZE.pack(END_MARK):
                end += _SIZE.size
            dropped += last_byte(last_file, end) - end
        if not dropped and not self.deleted:
            return None
        return ExtCut(topic, queue_id, self.end, dropped, tuple(file.path for file in self.deleted))
