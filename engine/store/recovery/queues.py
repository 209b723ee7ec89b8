"""Consume queues in recovery, and the ext files beside them: recover, truncate, take entries, correct the minimum
(docs/formats/consume-queue.md#append, #bounds, #batch-queues, #ext).

Each method does what the class of the same name does in RocketMQ, 5.3.3 or 4.9.8, to positions only. Oddities are
kept: the first unit of a file survives a truncation without a look at it, an empty last file stops a 5.3 start.

Ext files change as ConsumeQueueExt changes them, in both releases. A cut moves a position and deletes later files; the
bytes behind it stay in their file until new units overwrite them. Only the recovery of the queue itself cuts. Cutting
the queue at the log's end leaves its ext files alone, because the address that would cut them is forgotten by then.
Units that are dispatched again are appended at ``end``; they are not counted here.
"""

from __future__ import annotations

import struct
from dataclasses import replace

import numpy as np

from engine.codec.consume_queue import ext_offset, is_ext_address
from engine.codec.cq_ext import END_MARK
from engine.codec.queue_placing import byte_of
from engine.mapped.read_only import FileSequence, ReadOnlyFile
from engine.mapped.sparse import last_byte
from engine.releases import Release, ReleaseRules, rules_of
from engine.rules.unit_check import Request
from engine.store.consume_queue import Span, corrected_minimum
from engine.store.recovery.plan import ExtCut, QueueState
from engine.store.recovery.queue_bytes import QueueBytes, VirtualFile
from engine.store.recovery.source import QueueFiles, QueueKind

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
        """Return what was cut and deleted; None if all that the files hold is kept."""
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
        self.cut_to: int | None = None  # bytes: where recovery cuts the queue, None if it does not
        self.dropped = 0
        self.added = 0
        self.shifted = 0
        self.deleted: list[str] = []
        self.bytes_read = 0
        self.max_ext_address = 1
        self._heal = False
        self.recovered_state: QueueState | None = None  # after recover
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
        self.recovered_state = self.state if self.ext is None else replace(self.state, ext_end=self.ext.end)
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
        elif not rules_of(release).minimum_by_halving:
            self._correct_min_linear(log_min)
        else:
            self._correct_min(log_min, rules_of(release))

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
