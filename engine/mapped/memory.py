"""Calls to the system about pages of memory: lock them (``mlock``), touch them ahead of need, lend them as buffers
to a log, and ask which pages of a file are loaded (``mincore``).

Locking and touching only make things faster (docs/formats/files.md#allocation: warm-up): if the rights or the
system call are missing, a warning says so once, and everything continues.

"""

from __future__ import annotations

import ctypes
import logging
import mmap
import os
import threading
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from engine.errors import StoreError
from engine.mapped.disk import DiskFile
from engine.mapped.reading import Reading

_log = logging.getLogger(__name__)
PAGE = 4096


def lock_memory(view: memoryview, description: str) -> bool:
    """Keep the pages of ``view`` (writable) in memory; returns False if that is not allowed, with a warning that
    contains ``description``.
    """
    return _call("mlock", view, description)


def advise(view: memoryview, advice: int, description: str) -> bool:
    """Give the system ``madvise`` advice about ``view`` (writable, a complete map); returns False if it refuses,
    with a warning that contains ``description``.
    """
    return _call("madvise", view, description, ctypes.c_int(advice))


def warm(file: DiskFile, *, sync_pages: int = 0) -> None:
    """Write a zero to every page of a new ``file``, so that appends meet no page that must be allocated first.

    With ``sync_pages`` the file is flushed after every so many pages and at the end, as RocketMQ does under
    SYNC_FLUSH. Raises ``OSError`` (no room on the disk, …).

    """
    file.reserve(0, file.size)
    view = file.view
    step = sync_pages * PAGE if sync_pages > 0 else file.size
    for start in range(0, file.size, step):
        stop = min(start + step, file.size)
        view[start:stop:PAGE] = bytes(len(range(start, stop, PAGE)))
        if sync_pages > 0:
            file.flush(start, stop)


def _call(name: str, view: memoryview, description: str, *arguments: ctypes.c_int) -> bool:
    try:
        function = getattr(ctypes.CDLL(None, use_errno=True), name)
        place = ctypes.c_char.from_buffer(view)
        failed = function(ctypes.c_void_p(ctypes.addressof(place)), ctypes.c_size_t(len(view)), *arguments)
    except (OSError, AttributeError, TypeError) as error:
        _log.warning("%s: %s is not to be had here: %s", description, name, error)
        return False
    if failed:
        _log.warning("%s: %s failed: %s", description, name, os.strerror(ctypes.get_errno()))
    return not failed


# Buffers that appends go to before they are handed to the page cache (docs/formats/files.md#allocation; Java:
# TransientStorePool).
#
# A buffer is as long as a file of the log. Its content is lost with the process: that is the price of this pool.


class TransientStorePool:
    """``count`` buffers of ``size`` bytes each, locked in memory with ``lock`` if the rights allow it.

    The system provides the memory at the first write, so a pool of large buffers costs nothing by itself.

    """

    def __init__(self, count: int, size: int, *, lock: bool = False) -> None:
        self.count = count
        self.size = size
        self._lock = threading.Lock()
        self._free = [BorrowedBuffer(self, mmap.mmap(-1, size)) for _ in range(count)]
        if lock:
            for buffer in self._free:
                lock_memory(buffer.view, "a buffer of the transient store pool")

    @property
    def available(self) -> int:
        """The number of buffers that may be borrowed now."""
        return len(self._free)

    def borrow(self) -> BorrowedBuffer | None:
        """Return a buffer for one file, None if all are lent. It has its old content: write it before reading."""
        with self._lock:
            return self._free.pop() if self._free else None

    def give_back(self, buffer: BorrowedBuffer) -> None:
        """Take back a buffer; a second call does nothing."""
        with self._lock:
            if buffer not in self._free:
                self._free.append(buffer)


class BorrowedBuffer:
    """A buffer of the pool; ``view`` is the complete buffer, writable."""

    __slots__ = ("_pool", "view")

    def __init__(self, pool: TransientStorePool, memory: mmap.mmap) -> None:
        self._pool = pool
        self.view = memoryview(memory)

    def give_back(self) -> None:
        """See :meth:`TransientStorePool.give_back`."""
        self._pool.give_back(self)


# Which pages of a file the system holds in memory (``mincore``), without touching one of them.
#
# The file is mapped with read rights and never read through the map: a file that shrinks meanwhile does no harm, and
# the question loads no page. numpy is not needed.

PIECE_BYTES = 1 << 30
"""Bytes per mapping."""
_LOWEST_BIT = bytes(value & 1 for value in range(256))
"""The other bits of a result are undefined."""


class ResidencyUnknown(StoreError):
    """The system does not say which pages are in memory; contains the reason."""


@dataclass(frozen=True, slots=True)
class PageMap:
    """A byte for each page: 1 in memory, 0 not. ``size`` is the file's length in bytes; the last page may be
    shorter.
    """

    size: int
    page: int
    flags: bytes

    @property
    def resident(self) -> int:
        """Bytes of the file that are in memory."""
        resident_bytes = self.flags.count(1) * self.page
        return (
            resident_bytes - (len(self.flags) * self.page - self.size) if self.flags[-1:] == b"\1" else resident_bytes
        )

    def shares(self, cells: int) -> tuple[float, ...]:
        """Return the share in memory of each of ``cells`` equal ranges, from 0 to 1; fewer if there are fewer pages."""
        pages = len(self.flags)
        count = min(cells, pages)
        edges = [pages * n // count for n in range(count + 1)] if count else []
        return tuple(
            self.flags.count(1, start_page, end_page) / (end_page - start_page)
            for start_page, end_page in pairwise(edges)
        )


def page_map(path: str, reading: Reading | None = None) -> PageMap:
    """Ask the system about the complete file. Raises :class:`ResidencyUnknown`, :class:`CannotRead`."""
    system = _system()
    descriptor = (reading or Reading()).open(path)
    try:
        info = os.fstat(descriptor)
        if not is_answer_true(info.st_uid, path):
            raise ResidencyUnknown("the system tells it to the file's owner only, and to who may write it", file=path)
        size = info.st_size
        pieces = [
            _resident_pages(system, descriptor, position, min(PIECE_BYTES, size - position), path)
            for position in range(0, size, PIECE_BYTES)
        ]
        return PageMap(size, mmap.PAGESIZE, b"".join(pieces))
    finally:
        os.close(descriptor)


def is_answer_true(owner: int, path: str) -> bool:
    """Return True if the system's answer is true for this user: to others the kernel reports all pages as loaded
    since 5.2.
    """
    return os.geteuid() in {0, owner} or os.access(path, os.W_OK)


def _system() -> Any:
    """Return the C library with its three calls declared."""
    try:
        system = ctypes.CDLL(None, use_errno=True)
        address, length, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
        system.mmap.argtypes = (address, length, number, number, number, ctypes.c_longlong)
        system.mmap.restype = address
        system.munmap.argtypes = (address, length)
        system.mincore.argtypes = (address, length, address)
    except (OSError, AttributeError, TypeError) as error:
        raise ResidencyUnknown("this system has no mincore") from error
    return system


def _resident_pages(system: Any, descriptor: int, start: int, length: int, path: str) -> bytes:
    place = system.mmap(None, length, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, start)
    if place is None or place == ctypes.c_void_p(-1).value:
        reason = os.strerror(ctypes.get_errno())
        raise ResidencyUnknown(f"the file cannot be mapped: {reason}", file=path, offset=start)
    answer = (ctypes.c_ubyte * -(-length // mmap.PAGESIZE))()
    try:
        failed = system.mincore(place, length, ctypes.addressof(answer))
        reason = os.strerror(ctypes.get_errno())
    finally:
        system.munmap(place, length)
    if failed:
        raise ResidencyUnknown(f"mincore: {reason}", file=path, offset=start)
    return bytes(answer).translate(_LOWEST_BIT)
