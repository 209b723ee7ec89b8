"""Consume queues over their files: of 20-byte entries (docs/formats/consume-queue.md#entry, #append, #bounds; Java:
ConsumeQueue), and of 46-byte entries for batches (docs/formats/consume-queue.md#batch-queues; Java: BatchConsumeQueue);
with what both have in common, and the ext units beside them (docs/formats/consume-queue.md#ext; Java: ConsumeQueueExt).

The minimum is the first entry whose unit the log still holds (Java: ConsumeQueue.correctMinOffset). RocketMQ's steps
are kept, so that a queue with disorderly entries (pre-filled ones point to 0) is judged as there.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from engine.codec.batch_consume_queue import BATCH_CQ_UNIT_SIZE, BatchCqUnit
from engine.codec.batch_consume_queue import decode as decode_batch
from engine.codec.consume_queue import CQ_UNIT_SIZE, ext_offset, is_ext_address
from engine.codec.cq_ext import CqExtStop, CqExtUnit, decode
from engine.codec.dtypes import BATCH_CQ_UNIT, CQ_UNIT
from engine.codec.queue_placing import MAX_EXT_UNIT_BYTES, put, put_batch, put_ext, put_run
from engine.releases import NEWEST, Release, rules_of
from engine.store.queue_files import QueueFiles
from engine.store.recovery.plan import QueueState

UNIT = 20
PhysicalAt = Callable[[int], int]


class Span(NamedTuple):
    """A file's first byte in the queue, and the end of what is readable in it."""

    start: int
    end: int


def corrected_minimum(
    minimum: int,
    first_span: Span,
    last_span: Span,
    log_min: int,
    physical_at: PhysicalAt,
    *,
    past_empty_last: bool = False,
) -> int:
    """Return the minimum (bytes) of a queue as 5.x corrects it: by the last entry, then by a search in the first file.

    Where the last file has no entry, 5.5 goes on with that search (``past_empty_last``); older releases do not.
    """
    if minimum >= last_span.end or (last_span.end == last_span.start and not past_empty_last):
        return minimum
    if last_span.end > last_span.start and physical_at(last_span.end - UNIT) < log_min:
        return last_span.end
    begin, intact = minimum, True
    if begin < first_span.start:
        begin, intact = first_span.start, False
    if begin >= first_span.end or (intact and physical_at(begin) >= log_min):
        return minimum
    low_distance, high_distance = 0, first_span.end - begin - UNIT
    while high_distance - low_distance > UNIT:
        middle = (low_distance + high_distance) // 2 // UNIT * UNIT
        physical = physical_at(begin + middle)
        if physical == log_min:
            low_distance = high_distance = middle
        elif physical > log_min:
            high_distance = middle
        else:
            low_distance = middle
    for offset in range(begin + low_distance, begin + high_distance + 1, UNIT):
        if physical_at(offset) >= log_min:
            return offset
    return minimum


_PIECE = 1 << 16


class StoredQueue(ABC):
    """A queue of a topic. One thread puts; any thread reads, and never waits for it."""

    __slots__ = ("files", "max_physic_offset", "queue_id", "topic")

    kind: ClassVar[Literal["simple", "batch"]]
    unit_size: ClassVar[int]

    def __init__(self, topic: str, queue_id: int, files: QueueFiles) -> None:
        self.topic = topic
        self.queue_id = queue_id
        self.files = files
        self.max_physic_offset = -1
        """End in the log of the last unit that has an entry (batch queues: its start); −1 before any."""

    @property
    @abstractmethod
    def min_offset(self) -> int:
        """Smallest queue offset."""

    @property
    @abstractmethod
    def max_offset(self) -> int:
        """Queue offset of the next message."""

    @abstractmethod
    def state(self) -> QueueState:
        """The queue's present state, as recovery describes it."""

    @abstractmethod
    def correct_min(self, log_min: int, release: Release = NEWEST) -> None:
        """Move the minimum to the first entry whose unit the log still holds (correctMinOffset)."""

    # -- reading

    @property
    def file_size(self) -> int:
        """Bytes of one file."""
        return self.files.file_size

    @property
    def end_bytes(self) -> int:
        """Byte behind the last readable entry."""
        return self.files.end

    def read_bytes(self, offset: int, size: int) -> bytes:
        """Readable bytes from ``offset`` (bytes) on, within one file; empty if there are none."""
        size = min(size, self.files.end - offset)
        return self.files.read(offset, size) if size > 0 and offset >= 0 else b""

    def lend_bytes(self, offset: int, size: int) -> bytes | memoryview:
        """Like :meth:`read_bytes`, but may return a view of the file itself."""
        files = self.files
        size = min(size, files.end - offset)
        return files.lend(offset, size) if size > 0 and offset >= 0 else b""

    def spans(self) -> list[tuple[int, int]]:
        """(first byte, end of the readable bytes) of each file that holds any."""
        end, size = self.files.end, self.files.file_size
        return [(start, min(end, start + size)) for start in self.files.starts if start < end]

    def modified_times(self) -> list[int]:
        """Time (ms) at which each file of :meth:`spans` was last written."""
        return [self.files.modified(start) for start, _ in self.spans()]

    def ext_unit(self, address: int) -> CqExtUnit | None:  # noqa: ARG002 (only simple queues have some)
        """The ext unit at an address that an entry holds in place of its tags code, None if there is none."""
        return None

    # -- keeping

    def load(self, listed: Iterable[tuple[str, int]] | None = None) -> None:
        """Load the files ``listed`` (name, length), or list the folder; nothing is read. Raises :class:`StoreError`
        for a file of a wrong length (docs/formats/files.md#folders).
        """
        self.files.load(listed)

    def restore(self, state: QueueState) -> list[str]:
        """Set the queue exactly to ``state``; returns the paths of files that were deleted for it."""
        deleted_paths = self.files.cut(state.last_file, state.end_bytes)
        self.max_physic_offset = state.max_physic
        return deleted_paths

    def clear(self, stop: int) -> None:
        """Write zeros from the end of the entries to byte ``stop`` of the queue, within the last file, and flush
        them: old bytes must not come back behind new entries. Raises ``OSError``.
        """
        begin = offset = self.files.end
        while offset < stop:
            count = min(_PIECE, stop - offset)
            self.files.write(offset, bytes(count))
            offset += count
        if offset > begin:
            self.files.flush_written(begin, offset)

    def flush(self, least_pages: int = 0) -> bool:
        """Flush entries to the disk (docs/formats/files.md#mapped-files); True if nothing waits any more. Raises
        ``OSError``.
        """
        return self.files.flush(least_pages)

    def delete_expired(self, log_min: int, release: Release = NEWEST) -> list[str]:
        """Delete files whose last entry points below ``log_min``, never the last file; gives their paths."""
        expired_starts = []
        for start in self.files.starts[:-1]:
            raw = self.files.read(start + self.files.file_size - self.unit_size, 8)
            if len(raw) == 8 and int.from_bytes(raw, "big", signed=True) >= log_min:
                break
            expired_starts.append(start)
        deleted = self.files.drop_first(expired_starts)
        self.correct_min(log_min, release)
        return deleted

    def destroy(self) -> None:
        """Delete every file and the folders that are empty then."""
        self.files.destroy()
        self.max_physic_offset = -1

    def distrust(self) -> None:
        """See :meth:`QueueFiles.distrust`."""
        self.files.distrust()

    def detach(self) -> None:
        """Become empty, without files: the topic was deleted, and code that still holds this queue finds nothing in
        it.
        """
        self.files.detach()
        self.max_physic_offset = -1

    def forget(self) -> None:
        """Close open files."""
        self.files.forget()

    def physical_at(self, offset: int) -> int:
        """Return the log offset that the entry at ``offset`` (bytes) holds, −1 if there is none."""
        raw = self.files.read(offset, 8)
        return int.from_bytes(raw, "big", signed=True) if len(raw) == 8 else -1

    def _state(self, min_logic: int, batch_min: int = -1, batch_max: int = 0) -> QueueState:
        starts: Sequence[int] = self.files.starts
        last_file = starts[-1] if starts else None
        return QueueState(last_file, self.files.end, self.max_physic_offset, min_logic, batch_min, batch_max)


_CHUNK = 4096 * CQ_UNIT_SIZE
_log = logging.getLogger(__name__)


class ConsumeQueue(StoredQueue):
    """A queue of 20-byte entries: entry *n* lies at byte 20·n. ``min_logic_offset`` (bytes) is the first entry that
    points into the log.
    """

    __slots__ = ("ext", "min_logic_offset")

    kind: ClassVar[Literal["simple", "batch"]] = "simple"
    unit_size: ClassVar[int] = CQ_UNIT_SIZE

    def __init__(self, topic: str, queue_id: int, files: QueueFiles, ext: ConsumeQueueExt | None = None) -> None:
        super().__init__(topic, queue_id, files)
        self.min_logic_offset = 0
        self.ext = ext

    @property
    def min_offset(self) -> int:
        return self.min_logic_offset // CQ_UNIT_SIZE

    @property
    def max_offset(self) -> int:
        return self.files.end // CQ_UNIT_SIZE

    def load(self, listed: Iterable[tuple[str, int]] | None = None) -> None:
        super().load(listed)
        if self.ext is not None:
            self.ext.load()

    def state(self) -> QueueState:
        return self._state(self.min_logic_offset)

    def restore(self, state: QueueState) -> list[str]:
        deleted_paths = super().restore(state)
        self.min_logic_offset = state.min_logic
        if self.ext is not None and state.ext_end is not None:
            deleted_paths += self.ext.cut(state.ext_end)
        return deleted_paths

    put = put
    put_run = put_run

    def note_gap(self, queue_offset: int) -> None:
        """Log, for debugging, an entry that does not follow the last one."""
        last_number = self.files.end // CQ_UNIT_SIZE - 1
        _log.debug("%s/%d: entry %d follows entry %d", self.topic, self.queue_id, queue_offset, last_number)

    def read(self, queue_offset: int, count: int) -> npt.NDArray[np.void]:
        """Up to ``count`` entries from ``queue_offset`` on as rows of ``dtypes.CQ_UNIT``; fewer at the end or at a
        gap.
        """
        offset, stop = queue_offset * CQ_UNIT_SIZE, (queue_offset + count) * CQ_UNIT_SIZE
        pieces = []
        while offset < stop:
            piece = self.read_bytes(offset, stop - offset)
            if not piece:
                break
            pieces.append(piece)
            offset += len(piece)
        return np.frombuffer(b"".join(pieces), CQ_UNIT)

    def ext_unit(self, address: int) -> CqExtUnit | None:
        return self.ext.unit(address) if self.ext is not None else None

    # -- keeping

    def correct_min(self, log_min: int, release: Release = NEWEST) -> None:
        spans = self.spans()
        if not spans:
            return
        old_minimum = self.min_logic_offset
        if not rules_of(release).minimum_by_halving:
            self.min_logic_offset = self._linear_minimum(Span(*spans[0]), log_min)
        else:
            last_span = Span(self.files.starts[-1], self.files.end)
            first_span, past_empty_last = Span(*spans[0]), not rules_of(release).minimum_needs_entries
            self.min_logic_offset = corrected_minimum(
                old_minimum, first_span, last_span, log_min, self.physical_at, past_empty_last=past_empty_last
            )
        if self.ext is not None and self.min_logic_offset < self.files.end:
            unit = self.read(self.min_offset, 1)
            address = int(unit["tags_code"][0]) if len(unit) else 0
            if is_ext_address(address) and (
                self.min_logic_offset != old_minimum or not rules_of(release).minimum_by_halving
            ):
                self.ext.forget_before(address)

    def _linear_minimum(self, span: Span, log_min: int) -> int:
        offset = span.start
        while offset < span.end:
            raw = self.files.read(offset, min(_CHUNK, span.end - offset))
            rows = np.frombuffer(raw, CQ_UNIT)
            hits = np.flatnonzero(rows["physical_offset"] >= log_min)
            if len(hits) or not len(rows):
                return offset + int(hits[0]) * CQ_UNIT_SIZE if len(hits) else self.min_logic_offset
            offset += len(raw)
        return self.min_logic_offset

    def flush(self, least_pages: int = 0) -> bool:
        done = super().flush(least_pages)
        return self.ext.flush(least_pages) and done if self.ext is not None else done

    def forget(self) -> None:
        super().forget()
        if self.ext is not None:
            self.ext.files.forget()

    def distrust(self) -> None:
        super().distrust()
        if self.ext is not None:
            self.ext.files.distrust()

    def detach(self) -> None:
        super().detach()
        self.min_logic_offset = 0
        if self.ext is not None:
            self.ext.files.detach()

    def destroy(self) -> None:
        super().destroy()
        self.min_logic_offset = 0
        if self.ext is not None:
            self.ext.destroy()


_BATCH_CHUNK = 2048 * BATCH_CQ_UNIT_SIZE
_BASE_AT = 28


class BatchConsumeQueue(StoredQueue):
    """A queue of batch entries, back to back from byte 0; each holds the queue offset of its batch's first message."""

    __slots__ = ("_max_offset", "_min_offset")

    kind: ClassVar[Literal["simple", "batch"]] = "batch"
    unit_size: ClassVar[int] = BATCH_CQ_UNIT_SIZE

    def __init__(self, topic: str, queue_id: int, files: QueueFiles) -> None:
        super().__init__(topic, queue_id, files)
        self._min_offset = -1
        self._max_offset = 0

    @property
    def min_offset(self) -> int:
        """Queue offset of the first message that the log still holds, −1 in an empty queue."""
        return self._min_offset

    @property
    def max_offset(self) -> int:
        return self._max_offset

    def state(self) -> QueueState:
        return self._state(0, self._min_offset, self._max_offset)

    def restore(self, state: QueueState) -> list[str]:
        deleted_paths = super().restore(state)
        self._min_offset, self._max_offset = state.batch_min, state.batch_max
        return deleted_paths

    def put(self, unit: BatchCqUnit) -> None:
        """Append one entry; skips a unit that the queue has already, or that makes no entry. Raises ``OSError``."""
        if not put_batch(self, unit):
            return
        self._max_offset = unit.next_offset
        if self._min_offset == -1 and self.files.starts[-1] == self.files.first_created:
            self._min_offset = self._first_base()

    # -- keeping

    def correct_min(self, log_min: int, release: Release = NEWEST) -> None:  # noqa: ARG002 (batch queues came with 5.0)
        spans = self.spans()
        if not spans:
            self._min_offset, self._max_offset = -1, 0
            return
        minimum, (offset, stop) = self._first_base(), spans[0]
        while offset < stop:
            raw = self.files.read(offset, min(_BATCH_CHUNK, stop - offset))
            rows = np.frombuffer(raw, BATCH_CQ_UNIT)
            live_rows = np.flatnonzero(rows["physical_offset"] >= log_min)
            expired_count = int(live_rows[0]) if len(live_rows) else len(rows)
            if expired_count:
                minimum = int(rows["msg_base_offset"][expired_count - 1]) + int(rows["batch_size"][expired_count - 1])
            if len(live_rows) or not len(rows):
                break
            offset += len(raw)
        self._min_offset = minimum

    def detach(self) -> None:
        super().detach()
        self._min_offset, self._max_offset = -1, 0

    def destroy(self) -> None:
        super().destroy()
        self._min_offset, self._max_offset = -1, 0

    def _first_base(self) -> int:
        starts = self.files.starts
        raw = self.read_bytes(starts[0] + _BASE_AT, 8) if starts else b""
        return int.from_bytes(raw, "big", signed=True) if len(raw) == 8 else -1

    def _revise(self) -> None:
        """Set the bounds by the first and the last entry (reviseMaxAndMinOffsetInQueue)."""
        self._min_offset, self._max_offset = self._first_base(), 0
        spans = self.spans()
        if spans and spans[-1][1] - spans[-1][0] >= BATCH_CQ_UNIT_SIZE:
            last_entry = decode_batch(self.files.read(spans[-1][1] - BATCH_CQ_UNIT_SIZE, BATCH_CQ_UNIT_SIZE))
            self._max_offset = last_entry.next_offset


class ConsumeQueueExt:
    """The ext files of one queue. An address is the unit's byte offset in them minus 2⁶³."""

    __slots__ = ("files",)

    def __init__(self, files: QueueFiles) -> None:
        self.files = files

    def load(self) -> None:
        """List the files; raises :class:`StoreError` for one of a wrong length."""
        self.files.load()

    put = put_ext

    def unit(self, address: int) -> CqExtUnit | None:
        """Return the unit at ``address``, None if there is none."""
        if not is_ext_address(address):
            return None
        offset = ext_offset(address)
        raw = self.files.read(offset, min(MAX_EXT_UNIT_BYTES, self.files.end - offset))
        decoded = decode(raw, 0, offset) if raw else None
        return None if decoded is None or isinstance(decoded, CqExtStop) else decoded

    def recover(self) -> None:
        """Set the end behind the last unit (docs/formats/consume-queue.md#ext): from the first file on, by the
        units' own sizes.
        """
        starts = self.files.starts
        end = starts[0] if starts else 0
        for start in starts:
            raw = self.files.read(start, self.files.file_size)
            position = 0
            while position + 2 <= len(raw):
                size = int.from_bytes(raw[position : position + 2], "big", signed=True)
                if size <= 0:
                    break
                position += size
            end = start + min(position, self.files.file_size)
        self.cut(end)

    def cut(self, end: int) -> list[str]:
        """Let the next unit go to byte ``end``; later files are deleted, and their paths returned."""
        starts = [start for start in self.files.starts if start <= end]
        return self.files.cut(starts[-1] if starts else None, end)

    def forget_before(self, address: int) -> list[str]:
        """Delete files that end before ``address``; gives their paths."""
        offset = ext_offset(address)
        old_starts = [start for start in self.files.starts if start + self.files.file_size < offset]
        return self.files.drop_first(old_starts)

    def flush(self, least_pages: int = 0) -> bool:
        """Flush units to the disk; True if nothing waits any more. Raises ``OSError``."""
        return self.files.flush(least_pages)

    def destroy(self) -> None:
        """Delete every file and the folders that are empty then."""
        self.files.destroy()
