"""A file of a file queue with its positions (docs/formats/files.md#mapped-files; Java: DefaultMappedFile,
ReferenceResource).

``wrote`` is where the next append goes, ``committed`` the end of what the page cache has, ``flushed`` the end of
what survives a power loss; all are positions in the file, in bytes. One thread appends at a time (the caller's
lock); any number may read and flush meanwhile.

"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from engine.mapped.disk import DiskFile

if TYPE_CHECKING:
    from engine.mapped.transient_pool import BorrowedBuffer


PAGE_BYTES = 4096
_NUMBER = struct.Struct(">i")
RESERVE_STEP_BYTES = 8 << 20
"""Bytes of disk room allocated at a time ahead of appends through the map: a power of two.

As large as the largest folio: when the first byte of a folio is written, the kernel needs blocks for all of it, and
kills the process (SIGBUS) if there are none. So the last bytes of a full disk stay unused.
"""


class BorrowedBytes:
    """Bytes lent by a file: ``with lent as view:``. They are valid until the end of the block; copy what must live
    longer.
    """

    __slots__ = ("_file", "start_offset", "view")

    def __init__(self, view: memoryview, start_offset: int, file: MappedFile) -> None:
        self.view = view
        self.start_offset = start_offset  # absolute offset of the first byte
        self._file: MappedFile | None = file

    def __enter__(self) -> memoryview:
        return self.view

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def release(self) -> None:
        """Return the bytes; a second call does nothing."""
        file, self._file = self._file, None
        if file is not None:
            try:  # noqa: SIM105 (called for every read; suppress() would double the cost)
                self.view.release()
            except BufferError:
                pass  # an array still uses the bytes: they live as long as the array
            file.release()


class MappedFile:
    """A file of ``size`` bytes that begins at the absolute ``start_offset``.

    With ``mapped`` appends and reads go through the map. Without (queue files, of which there may be very many)
    they are written and read by position. With a ``pool_buffer`` appends go there and :meth:`commit` writes them
    to the file.

    """

    __slots__ = (
        "_available",
        "_buffer",
        "_cleaned",
        "_file",
        "_holders",
        "_lock",
        "_mapped",
        "_ready",
        "_shutdown_at",
        "ahead",
        "backed",
        "committed",
        "first_in_queue",
        "flushed",
        "open_view",
        "size",
        "start_offset",
        "store_timestamp",
        "wrote",
    )

    def __init__(
        self, disk_file: DiskFile, start_offset: int, *, pool_buffer: BorrowedBuffer | None = None, mapped: bool = True
    ) -> None:
        self._file = disk_file
        self.start_offset = start_offset
        self.size = disk_file.size
        self.wrote = 0
        self.committed = 0
        self.flushed = 0
        self.store_timestamp = 0  # of the message appended last, ms
        self.first_in_queue = False  # created when its queue had no file
        self._mapped = mapped
        self._buffer = pool_buffer
        self.open_view: memoryview | None = pool_buffer.view if pool_buffer is not None else None
        self.backed = (
            self.size if pool_buffer is not None or not mapped else 0
        )  # position up to which the disk has room
        self._ready = 0  # position up to which another thread has allocated room
        self.ahead: Callable[[MappedFile], None] | None = None
        """Called when bytes come so fast that another thread should run :meth:`reserve_ahead`."""
        self._holders: list[None] = [None]  # one item per holder, the first is the queue
        self._available = True
        self._cleaned = False
        self._shutdown_at = 0
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"MappedFile({self._file.path}, wrote={self.wrote}, flushed={self.flushed})"

    @property
    def path(self) -> str:
        return self._file.path

    def map_at_hand(self) -> memoryview | None:
        """Return the complete file if it is mapped now, else None."""
        return self._file.view if self._file.is_mapped else None

    @property
    def readable(self) -> int:
        """Position behind the last byte that may be read: ``committed`` with a pool buffer, else ``wrote``."""
        return self.wrote if self._buffer is None else self.committed

    @property
    def is_full(self) -> bool:
        return self.wrote == self.size

    @property
    def available(self) -> bool:
        """False after the first :meth:`shutdown`."""
        return self._available

    @property
    def is_lent(self) -> bool:
        """True if anyone except the queue itself holds the file."""
        return len(self._holders) > 1

    @property
    def has_buffer(self) -> bool:
        """True if appends go to a buffer of the transient pool."""
        return self._buffer is not None

    # Appending

    def append(self, data: bytes | memoryview, store_timestamp: int = 0) -> bool:
        """Put ``data`` at ``wrote``; returns False if it does not fit. Raises ``OSError`` (no room on the disk, …)."""
        start = self.wrote
        end = start + len(data)
        if end > self.backed:
            if end > self.size:
                return False
            self._reserve(end)
        target = self.open_view
        if target is not None:
            target[start:end] = data
        else:
            self._append_slowly(start, data)
        if store_timestamp:
            self.store_timestamp = store_timestamp
        self.wrote = end
        return True

    def target(self, size: int) -> memoryview:
        """Return the complete file for encoding at ``wrote``, with room on the disk for the next ``size`` bytes.

        Call :meth:`advance` to publish the bytes. Raises ``OSError`` if the disk has no room.

        """
        end = min(self.wrote + size, self.size)
        if end > self.backed:
            self._reserve(end)
        target = self.open_view
        return self._open_target() if target is None else target

    def advance(self, size: int, store_timestamp: int = 0) -> None:
        """Publish ``size`` bytes that were encoded at ``wrote``."""
        if store_timestamp:
            self.store_timestamp = store_timestamp
        self.wrote += size

    def set_positions(self, position: int) -> None:
        """Set all three positions, for recovery and truncation. The bytes behind stay as they are."""
        self.wrote = self.committed = self.flushed = position

    def note_rolled(self) -> None:
        """Release the map for appending, because the queue continues in the next file. The map and its descriptor
        may be closed when nobody reads.
        """
        if self._buffer is None:
            self.open_view = None

    def _append_slowly(self, start: int, data: bytes | memoryview) -> None:
        if self._mapped:
            self._open_target()[start : start + len(data)] = data
        else:
            self._file.write(start, data)

    def _open_target(self) -> memoryview:
        target = self.open_view = self._file.view
        return target

    def _reserve(self, end: int) -> None:
        """Allocate disk blocks up to ``end`` and on to the next step: no write through the map may meet a full disk."""
        start = max(self.backed, self.wrote) // RESERVE_STEP_BYTES * RESERVE_STEP_BYTES
        stop = min(self.size, -(-end // RESERVE_STEP_BYTES) * RESERVE_STEP_BYTES)
        is_fast_writer = (
            self.wrote - self.flushed >= RESERVE_STEP_BYTES
        )  # written faster than flushed: the pages are needed soon
        if stop > self._ready:
            self._file.reserve(start, stop, touch=is_fast_writer)
        self.backed = stop
        if is_fast_writer and self.ahead is not None and stop < self.size:
            self.ahead(self)

    def reserve_ahead(self) -> None:
        """Allocate blocks and pages for the step behind the one being written: the work of another thread when
        ``ahead`` is called.

        Raises ``OSError``.

        """
        start = self.backed
        stop = min(self.size, start + RESERVE_STEP_BYTES)
        if stop > max(start, self._ready):
            self._file.reserve(start, stop, touch=True)
            self._ready = stop

    # Reading

    def select(self, position: int, size: int | None = None) -> BorrowedBytes | None:
        """Lend ``size`` bytes from ``position``, or all readable bytes from there; None if they are not there."""
        readable = self.readable
        if size is None:
            if not 0 <= position < readable:
                return None
            size = readable - position
        elif position < 0 or size < 0 or position + size > readable:
            return None
        if not self.hold():
            return None
        try:
            if self._mapped:
                view = self._file.view[position : position + size]
            else:
                view = memoryview(self._file.read(position, size))
        except OSError:
            self.release()
            raise
        return BorrowedBytes(view, self.start_offset + position, self)

    def hold_unit(self, position: int) -> memoryview | None:
        """Return the bytes from ``position`` on whose length is their first number (four bytes, big-endian), of a
        mapped file.

        Returns None if so many bytes are not readable. Otherwise the file is held until :meth:`release`.

        """
        readable_bytes = (self.wrote if self._buffer is None else self.committed) - position
        if position < 0 or readable_bytes <= 4:
            return None
        self._holders.append(None)  # as hold() does
        try:
            if self._available:
                view = self._file.view
                (size,) = _NUMBER.unpack_from(view, position)
                if 4 < size <= readable_bytes:
                    return view[position : position + size]
        except BaseException:
            self.release()
            raise
        self.release()
        return None

    def read(self, position: int, size: int) -> bytes:
        """Return a copy of up to ``size`` readable bytes from ``position``; b"" if nothing is readable."""
        size = min(size, self.readable - position)
        if position < 0 or size <= 0 or not self.hold():
            return b""
        try:
            if self._file.is_mapped:
                return bytes(self._file.view[position : position + size])
            return self._file.read(position, size)
        finally:
            self.release()

    def appended(self, position: int, size: int) -> bytes:
        """Return a copy of appended bytes, including those still in the pool; missing bytes are left out."""
        size = min(size, self.wrote - position)
        buffer = self._buffer
        if buffer is None or position < 0 or size <= 0:
            return self.read(position, size)
        committed_bytes = self.read(position, min(size, self.committed - position))
        return committed_bytes + bytes(buffer.view[position + len(committed_bytes) : position + size])

    # Flushing and committing

    def flush(self, least_pages: int) -> int:
        """Sync readable bytes if enough of them are dirty (docs/formats/files.md#mapped-files); returns the flushed
        position.

        Raises ``OSError`` if the disk refuses, and again at every later flush of this file.

        """
        stop = self.readable
        start = self.flushed
        if not _is_due(start, stop, self.size, least_pages):
            return start
        if not self.hold():
            self.flushed = stop
            return stop
        try:
            self._file.flush(start, stop)
        finally:
            self.release()
        self.flushed = max(self.flushed, stop)
        if stop == self.size and self._buffer is None:
            self.open_view = None  # the map may be closed when nobody reads
        return self.flushed

    def commit(self, least_pages: int) -> int:
        """Write the bytes in the pool buffer to the file; returns the committed position.

        Without a buffer there is nothing to write. Raises ``OSError`` (no room on the disk); the bytes stay in
        the buffer and the next commit tries again.

        """
        buffer = self._buffer
        if buffer is None:
            self.committed = self.wrote
            return self.wrote
        start, stop = self.committed, self.wrote
        if _is_due(start, stop, self.size, least_pages) and self.hold():
            try:
                self._file.write(start, buffer.view[start:stop])
            finally:
                self.release()
            self.committed = stop
        if self.committed == self.size:
            self._buffer = None
            self.open_view = None
            buffer.give_back()
        return self.committed

    # Life

    def hold(self) -> bool:
        """Take a reference, so that the file is not closed; returns False if it is being closed.

        No lock: taking and releasing a reference is one step of the interpreter each. A reference that is taken
        during :meth:`shutdown` either exists before the queue releases its own, or sees the file shut and is
        released.

        """
        self._holders.append(None)
        if self._available:
            return True
        self.release()
        return False

    def release(self) -> None:
        """Release a reference; the last one closes the file."""
        holders = self._holders
        holders.pop()
        if not holders:
            self._clean()

    def _clean(self) -> None:
        with self._lock:
            if self._cleaned:
                return
            self._cleaned = True
        self.open_view = None
        self._file.close()

    def shutdown(self, interval_ms: int, now: int) -> None:
        """Lend nothing any more.

        A second call, at least ``interval_ms`` after the first, closes the file even if it is still held (lent
        bytes stay valid in memory).

        """
        with self._lock:
            was_available, self._available = self._available, False
            if was_available:
                self._shutdown_at = now
            overdue = now - self._shutdown_at >= interval_ms
        if was_available:
            self.release()
        elif overdue:
            self._clean()

    def destroy(self, interval_ms: int, now: int) -> bool:
        """Call :meth:`shutdown`, and delete the file if nobody holds it; returns True if it was deleted."""
        self.shutdown(interval_ms, now)
        with self._lock:
            if not self._cleaned:
                return False
        buffer, self._buffer = self._buffer, None
        if buffer is not None:
            buffer.give_back()
        self._file.delete()
        return True

    def close(self) -> None:
        """Release descriptor, map and buffer. Lent bytes stay valid; the file opens again when it is used."""
        buffer, self._buffer = self._buffer, None
        self.open_view = None
        if buffer is not None:
            buffer.give_back()
        self._file.close()


def _is_due(start: int, stop: int, size: int, least_pages: int) -> bool:
    """Return True if [start, stop) is large enough to be flushed (docs/formats/files.md#mapped-files)."""
    if stop <= start:
        return False
    if stop == size or least_pages <= 0:
        return True
    return stop // PAGE_BYTES - start // PAGE_BYTES >= least_pages
