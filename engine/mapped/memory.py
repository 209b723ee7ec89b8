"""What the engine asks the system about pages of memory: kept (``mlock``), touched ahead of need, lent as buffers to a
log, and which pages of a file are there (``mincore``).

Keeping and touching only make things faster (docs/formats/files.md#allocation: warm-up): where the rights or the system
are missing a warning says so once, and everything goes on.
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


def lock_memory(view: memoryview, what: str) -> bool:
    """Keep the pages of ``view`` (writable) in memory; False where that is not allowed, with a warning that names
    ``what``.
    """
    return _call("mlock", view, what)


def advise(view: memoryview, advice: int, what: str) -> bool:
    """Tell the system how ``view`` (writable, a whole map) will be read: one of ``madvise``'s words; False where it
    does not listen, with a warning that names ``what``.
    """
    return _call("madvise", view, what, ctypes.c_int(advice))


def warm(file: DiskFile, *, sync_pages: int = 0) -> None:
    """Write a zero into every page of a new ``file``, so that appends meet no page that has to be made first.

    With ``sync_pages`` the file is flushed after every so many pages and at the end, as RocketMQ does under SYNC_FLUSH.
    Raises ``OSError`` (no room on the disk, …).
    """
    file.reserve(0, file.size)
    view = file.view
    step = sync_pages * PAGE if sync_pages > 0 else file.size
    for start in range(0, file.size, step):
        stop = min(start + step, file.size)
        view[start:stop:PAGE] = bytes(len(range(start, stop, PAGE)))
        if sync_pages > 0:
            file.flush(start, stop)


def _call(name: str, view: memoryview, what: str, *more: ctypes.c_int) -> bool:
    try:
        function = getattr(ctypes.CDLL(None, use_errno=True), name)
        place = ctypes.c_char.from_buffer(view)
        failed = function(ctypes.c_void_p(ctypes.addressof(place)), ctypes.c_size_t(len(view)), *more)
    except (OSError, AttributeError, TypeError) as error:
        _log.warning("%s: %s is not to be had here: %s", what, name, error)
        return False
    if failed:
        _log.warning("%s: %s failed: %s", what, name, os.strerror(ctypes.get_errno()))
    return not failed


# Buffers that appends go to before they are handed to the page cache (docs/formats/files.md#allocation; Java:
# TransientStorePool).
#
# A buffer is as long as a file of the log. What is in it is lost with the process: that is the bargain of this pool.


class TransientStorePool:
    """``count`` buffers of ``size`` bytes each, locked in memory where ``lock`` asks for it and the rights are there.

    The memory is taken from the system when it is first written to, so a pool of large buffers is no cost by itself.
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
        """Buffers that may be borrowed now."""
        return len(self._free)

    def borrow(self) -> BorrowedBuffer | None:
        """A buffer for one file, None where all are lent. Its old content is still in it: it is written before read."""
        with self._lock:
            return self._free.pop() if self._free else None

    def give_back(self, buffer: BorrowedBuffer) -> None:
        """Take back a buffer; a second time does nothing."""
        with self._lock:
            if buffer not in self._free:
                self._free.append(buffer)


class BorrowedBuffer:
    """A buffer of the pool; ``view`` is all of it, writable."""

    __slots__ = ("_pool", "view")

    def __init__(self, pool: TransientStorePool, memory: mmap.mmap) -> None:
        self._pool = pool
        self.view = memoryview(memory)

    def give_back(self) -> None:
        """See :meth:`TransientStorePool.give_back`."""
        self._pool.give_back(self)


# Which pages of a file the system holds in memory (``mincore``), without touching one of them.
#
# The file is mapped with read rights and asked about, never read through the map: a file that shrinks meanwhile does
# no harm, and no page comes into memory by being asked for. numpy is not needed.

PIECE = 1 << 30
"""Bytes that are mapped at once."""
_LOWEST_BIT = bytes(value & 1 for value in range(256))
"""The other bits of an answer mean nothing."""


class ResidencyUnknown(StoreError):
    """The system does not tell which pages are in memory; says why."""


@dataclass(frozen=True, slots=True)
class PageMap:
    """One byte a page: 1 in memory, 0 not. ``size`` is the file's length in bytes, the last page may be cut by it."""

    size: int
    page: int
    flags: bytes

    @property
    def resident(self) -> int:
        """Bytes of the file that are in memory."""
        held = self.flags.count(1) * self.page
        return held - (len(self.flags) * self.page - self.size) if self.flags[-1:] == b"\1" else held

    def shares(self, cells: int) -> tuple[float, ...]:
        """How much of each of ``cells`` equal stretches is in memory, from 0 to 1; fewer where pages are fewer."""
        pages = len(self.flags)
        count = min(cells, pages)
        edges = [pages * n // count for n in range(count + 1)] if count else []
        return tuple(self.flags.count(1, low, high) / (high - low) for low, high in pairwise(edges))


def page_map(path: str, reading: Reading | None = None) -> PageMap:
    """Ask the system about the whole file. Raises :class:`ResidencyUnknown`, :class:`CannotRead`."""
    system = _system()
    descriptor = (reading or Reading()).open(path)
    try:
        info = os.fstat(descriptor)
        if not may_know(info.st_uid, path):
            raise ResidencyUnknown("the system tells it to the file's owner only, and to who may write it", file=path)
        size = info.st_size
        pieces = [_ask(system, descriptor, at, min(PIECE, size - at), path) for at in range(0, size, PIECE)]
        return PageMap(size, mmap.PAGESIZE, b"".join(pieces))
    finally:
        os.close(descriptor)


def may_know(owner: int, path: str) -> bool:
    """Whether the answer is true: to others the kernel says "all of it" since 5.2."""
    return os.geteuid() in {0, owner} or os.access(path, os.W_OK)


def _system() -> Any:
    """The C library, its three calls declared."""
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


def _ask(system: Any, descriptor: int, start: int, length: int, path: str) -> bytes:
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
