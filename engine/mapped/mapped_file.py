"""One file of a file queue with its positions (docs/formats/files.md#mapped-files; Java: DefaultMappedFile,
ReferenceResource).

``wrote`` is where the next append goes, ``committed`` what has been handed to the page cache, ``flushed`` what survives
a power loss; all are positions in the file, in bytes. One thread appends at a time (the caller's lock); any number may
read and flush meanwhile.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Protocol

from engine.mapped.disk import DiskFile

PAGE = 4096
_NUMBER = struct.Struct(">i")
RESERVE_STEP = 8 << 20
"""Bytes, a power of two, for which the disk is asked for room at a time, ahead of appends through the map.

As large as the largest folio: the kernel wants blocks for all of one when a single byte of it is written first, and
kills the process (SIGBUS) where it finds none. So the last bytes of a full disk stay unused.
"""


class PoolBuffer(Protocol):
    """A buffer of the transient store pool, as long as the file it stands before."""

    view: memoryview

    def give_back(self) -> None:
        """The pool may lend it to another file."""


class Lent:
    """Bytes lent by a file: ``with lent as view:``. They end with the block; what outlives it is a copy."""

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
        """Give the bytes back; a second time does nothing."""
        file, self._file = self._file, None
        if file is not None:
            try:  # noqa: SIM105 (a reader's every call comes by here, and suppress() costs as much as the rest)
                self.view.release()
            except BufferError:
                pass  # an array still looks at them: they live as long as it does
            file.release()


class MappedFile:
    """A file of ``size`` bytes that begins at the absolute ``start_offset``.

    With ``mapped`` appends and reads go through the map; without (queue files, of which there may be very many) they
    are written and read by position. With a ``pool_buffer`` appends go there and are handed on by :meth:`commit`.
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
        self, disk_file: DiskFile, start_offset: int, *, pool_buffer: PoolBuffer | None = None, mapped: bool = True
    ) -> None:
        self._file = disk_file
        self.start_offset = start_offset
        self.size = disk_file.size
        self.wrote = 0
        self.committed = 0
        self.flushed = 0
        self.store_timestamp = 0  # of the message appended last, ms
        self.first_in_queue = False  # made when its queue had no file
        self._mapped = mapped
        self._buffer = pool_buffer
        self.open_view: memoryview | None = pool_buffer.view if pool_buffer is not None else None
        self.backed = self.size if pool_buffer is not None or not mapped else 0  # behind it the disk may have no room
        self._ready = 0  # as far as another thread has made room ahead of need
        self.ahead: Callable[[MappedFile], None] | None = None
        """Told when bytes come so fast that :meth:`reserve_ahead` is worth another thread's while."""
        self._holders: list[None] = [None]  # one item each, the first is the queue's own
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
        """The whole file where it is mapped now."""
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
        """False from the first :meth:`shutdown` on."""
        return self._available

    @property
    def is_lent(self) -> bool:
        """Whether anyone but the queue itself holds the file."""
        return len(self._holders) > 1

    @property
    def has_buffer(self) -> bool:
        """Whether appends go to a buffer of the transient pool."""
        return self._buffer is not None

    # Appending

    def append(self, data: bytes | memoryview, store_timestamp: int = 0) -> bool:
        """Put ``data`` at ``wrote``; False where it does not fit. Raises ``OSError`` (no room on the disk, …)."""
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
        """The whole file to encode into at ``wrote``, with room on the disk for the next ``size`` bytes.

        What has been encoded is published by :meth:`advance`. Raises ``OSError`` where the disk has no room.
        """
        end = min(self.wrote + size, self.size)
        if end > self.backed:
            self._reserve(end)
        target = self.open_view
        return self._open_target() if target is None else target

    def advance(self, size: int, store_timestamp: int = 0) -> None:
        """Publish ``size`` bytes that have been encoded at ``wrote``."""
        if store_timestamp:
            self.store_timestamp = store_timestamp
        self.wrote += size

    def set_positions(self, position: int) -> None:
        """All three positions at once: what recovery and truncation do. The bytes behind stay as they are."""
        self.wrote = self.committed = self.flushed = position

    def note_rolled(self) -> None:
        """Nothing is appended here any more: the map, and the descriptor that is in it, may go when nobody reads."""
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
        """Room on the disk up to ``end`` and on to the next step: no write through the map may meet a full disk."""
        start = max(self.backed, self.wrote) // RESERVE_STEP * RESERVE_STEP
        stop = min(self.size, -(-end // RESERVE_STEP) * RESERVE_STEP)
        hurried = self.wrote - self.flushed >= RESERVE_STEP  # written faster than flushed: the pages are wanted soon
        if stop > self._ready:
            self._file.reserve(start, stop, touch=hurried)
        self.backed = stop
        if hurried and self.ahead is not None and stop < self.size:
            self.ahead(self)

    def reserve_ahead(self) -> None:
        """Room and pages for the step behind the one that is written to: what another thread does when ``ahead`` is
        called. Raises ``OSError``.
        """
        start = self.backed
        stop = min(self.size, start + RESERVE_STEP)
        if stop > max(start, self._ready):
            self._file.reserve(start, stop, touch=True)
            self._ready = stop

    # Reading

    def select(self, position: int, size: int | None = None) -> Lent | None:
        """Lend ``size`` bytes from ``position``, or all that may be read from there; None where that is not there."""
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
        return Lent(view, self.start_offset + position, self)

    def hold_unit(self, position: int) -> memoryview | None:
        """The bytes from ``position`` on that begin with their own number (four bytes, big-endian), of a mapped file;
        None where that many may not be read. Otherwise the file is held until :meth:`release`.
        """
        room = (self.wrote if self._buffer is None else self.committed) - position
        if position < 0 or room <= 4:
            return None
        self._holders.append(None)  # as hold() does
        try:
            if self._available:
                view = self._file.view
                (size,) = _NUMBER.unpack_from(view, position)
                if 4 < size <= room:
                    return view[position : position + size]
        except BaseException:
            self.release()
            raise
        self.release()
        return None

    def read(self, position: int, size: int) -> bytes:
        """A copy of up to ``size`` readable bytes from ``position``; b"" where nothing may be read."""
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
        """A copy of bytes that were appended, though they may still be in the pool; what is not there is left out."""
        size = min(size, self.wrote - position)
        buffer = self._buffer
        if buffer is None or position < 0 or size <= 0:
            return self.read(position, size)
        early = self.read(position, min(size, self.committed - position))
        return early + bytes(buffer.view[position + len(early) : position + size])

    # Flushing and committing

    def flush(self, least_pages: int) -> int:
        """Sync what may be read if enough of it is dirty (docs/formats/files.md#mapped-files); gives the position
        flushed up to.

        Raises ``OSError`` if the disk refuses, and again at every later flush of this file.
        """
        stop = self.readable
        start = self.flushed
        if not _due(start, stop, self.size, least_pages):
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
            self.open_view = None  # the map may go when nobody reads any more
        return self.flushed

    def commit(self, least_pages: int) -> int:
        """Hand what is in the pool buffer to the file; gives the position committed up to.

        Without a buffer there is nothing to hand on. Raises ``OSError`` (no room on the disk); what it was about stays
        in the buffer and the next commit tries again.
        """
        buffer = self._buffer
        if buffer is None:
            self.committed = self.wrote
            return self.wrote
        start, stop = self.committed, self.wrote
        if _due(start, stop, self.size, least_pages) and self.hold():
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
        """Take a reference, so that the file is not taken away; False where that is under way already.

        No lock: a reference is taken and given back in one step of the interpreter each. One that is taken beside
        :meth:`shutdown` is either there when the queue gives back its own, or finds the file shut and goes.
        """
        self._holders.append(None)
        if self._available:
            return True
        self.release()
        return False

    def release(self) -> None:
        """Give a reference back; the last one closes the file."""
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
        """Lend nothing any more. A later call, at least ``interval_ms`` after the first one, takes the file away from
        whoever still holds it (bytes already lent stay valid in memory).
        """
        with self._lock:
            first, self._available = self._available, False
            if first:
                self._shutdown_at = now
            overdue = now - self._shutdown_at >= interval_ms
        if first:
            self.release()
        elif overdue:
            self._clean()

    def destroy(self, interval_ms: int, now: int) -> bool:
        """:meth:`shutdown`, and delete the file if nobody holds it: True then, else the file hangs on."""
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
        """Give back descriptor, map and buffer. What is lent stays valid; the file opens again when it is used."""
        buffer, self._buffer = self._buffer, None
        self.open_view = None
        if buffer is not None:
            buffer.give_back()
        self._file.close()


def _due(start: int, stop: int, size: int, least_pages: int) -> bool:
    """Whether [start, stop) is worth the work (docs/formats/files.md#mapped-files)."""
    if stop <= start:
        return False
    if stop == size or least_pages <= 0:
        return True
    return stop // PAGE - start // PAGE >= least_pages
