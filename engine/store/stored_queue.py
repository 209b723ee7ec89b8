"""What consume queues of both kinds have in common: files, bounds, and how recovery and cleaning change them (spec
3.4).

Queue offsets count messages, everything that says bytes or offset of files counts bytes of the queue.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar, Literal

from engine.codec.cq_ext import CqExtUnit
from engine.store.queue_files import QueueFiles
from engine.store.recovery.plan import QueueState

_PIECE = 1 << 16
Release = Literal["5.3", "4.9"]


class StoredQueue(ABC):
    """One queue of a topic. One thread puts; any thread reads, and never waits for it."""

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
        """Where the queue stands, in the words of recovery."""

    @abstractmethod
    def correct_min(self, log_min: int, release: Release = "5.3") -> None:
        """Move the minimum to the first entry whose unit the log still holds (correctMinOffset)."""

    # -- reading

    @property
    def file_size(self) -> int:
        """Bytes of one file."""
        return self.files.file_size

    @property
    def end_bytes(self) -> int:
        """Behind the last readable entry."""
        return self.files.end

    def read_bytes(self, offset: int, size: int) -> bytes:
        """Readable bytes from ``offset`` (bytes) on, within one file; empty where there are none."""
        size = min(size, self.files.end - offset)
        return self.files.read(offset, size) if size > 0 and offset >= 0 else b""

    def lend_bytes(self, offset: int, size: int) -> bytes | memoryview:
        """As :meth:`read_bytes`, or a view of the file that shows the same."""
        files = self.files
        size = min(size, files.end - offset)
        return files.lend(offset, size) if size > 0 and offset >= 0 else b""

    def spans(self) -> list[tuple[int, int]]:
        """(first byte, end of the readable bytes) of each file that holds any."""
        end, size = self.files.end, self.files.file_size
        return [(start, min(end, start + size)) for start in self.files.starts if start < end]

    def modified_times(self) -> list[int]:
        """When each file of :meth:`spans` was last written, ms."""
        return [self.files.modified(start) for start, _ in self.spans()]

    def ext_unit(self, address: int) -> CqExtUnit | None:  # noqa: ARG002 (only simple queues have some)
        """The ext unit at an address that an entry holds in place of its tags code, None where there is none."""
        return None

    # -- keeping

    def load(self, listed: Iterable[tuple[str, int]] | None = None) -> None:
        """Take the files as ``listed`` (name, length), or list them; nothing is read. Raises :class:`StoreError` for a
        file of a wrong length (spec 1).
        """
        self.files.load(listed)

    def restore(self, state: QueueState) -> list[str]:
        """Stand exactly as ``state`` says; gives the paths of files that were deleted for it."""
        gone = self.files.cut(state.last_file, state.end_bytes)
        self.max_physic_offset = state.max_physic
        return gone

    def clear(self, stop: int) -> None:
        """Zeros from the end of the entries to byte ``stop`` of the queue, within the last file, and on the disk: what
        stood there must not come back behind new entries. Raises ``OSError``.
        """
        begin = offset = self.files.end
        while offset < stop:
            count = min(_PIECE, stop - offset)
            self.files.write(offset, bytes(count))
            offset += count
        if offset > begin:
            self.files.flush_written(begin, offset)

    def flush(self, least_pages: int = 0) -> bool:
        """Bring entries to the disk (spec 6.1); True where nothing waits any more. Raises ``OSError``."""
        return self.files.flush(least_pages)

    def delete_expired(self, log_min: int, release: Release = "5.3") -> list[str]:
        """Delete files whose last entry points below ``log_min``, never the last file; gives their paths."""
        gone = []
        for start in self.files.starts[:-1]:
            raw = self.files.read(start + self.files.file_size - self.unit_size, 8)
            if len(raw) == 8 and int.from_bytes(raw, "big", signed=True) >= log_min:
                break
            gone.append(start)
        deleted = self.files.drop_first(gone)
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
        """Stand empty, without files: the topic was deleted, and whoever still holds this queue finds nothing in it."""
        self.files.detach()
        self.max_physic_offset = -1

    def forget(self) -> None:
        """Give back open files."""
        self.files.forget()

    def physical_at(self, offset: int) -> int:
        """What the entry at ``offset`` (bytes) holds as offset into the log, −1 where there is none."""
        raw = self.files.read(offset, 8)
        return int.from_bytes(raw, "big", signed=True) if len(raw) == 8 else -1

    def _state(self, min_logic: int, batch_min: int = -1, batch_max: int = 0) -> QueueState:
        starts: Sequence[int] = self.files.starts
        last = starts[-1] if starts else None
        return QueueState(last, self.files.end, self.max_physic_offset, min_logic, batch_min, batch_max)
