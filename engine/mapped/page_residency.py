"""Which pages of a file the system holds in memory (``mincore``), without touching one of them.

The file is mapped with read rights and never read through the map: a file that shrinks meanwhile does no harm, and
the question loads no page. numpy is not needed.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from engine import system
from engine.errors import StoreError
from engine.mapped.reading import Reading
from engine.sentences import sentence

PIECE_BYTES = 16 << 20
"""Bytes per mapping. A range without a page in memory is not looked at page by page."""
_LOWEST_BIT = bytes(value & 1 for value in range(256))
"""The other bits of a result are undefined."""
_CACHESTAT = 451
"""Linux has this system call since 6.5, under the same number on every processor."""


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
    library = _library()
    descriptor = (reading or Reading()).open(path)
    try:
        info = os.fstat(descriptor)
        if not is_answer_true(info.st_uid, path):
            raise ResidencyUnknown(
                sentence("the system tells only the file's owner, and users who may write it"), file=path
            )
        size = info.st_size
        pieces = [
            bytes(-(-length // mmap.PAGESIZE))
            if _has_no_page(library, descriptor, position, length)
            else _resident_pages(library, descriptor, position, length, path)
            for position in range(0, size, PIECE_BYTES)
            for length in (min(PIECE_BYTES, size - position),)
        ]
        return PageMap(size, mmap.PAGESIZE, b"".join(pieces))
    finally:
        os.close(descriptor)


def is_answer_true(owner: int, path: str) -> bool:
    """Return True if the system's answer is true for this user: to others the kernel reports all pages as loaded
    since 5.2.
    """
    return system.user_id() in {0, owner} or os.access(path, os.W_OK)


def _library() -> Any:
    """Return the C library with its three calls declared."""
    try:
        library = system.c_library()
        address, length, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
        library.mmap.argtypes = (address, length, number, number, number, ctypes.c_longlong)
        library.mmap.restype = address
        library.munmap.argtypes = (address, length)
        library.mincore.argtypes = (address, length, address)
        library.syscall.argtypes = (ctypes.c_long, number, address, address, ctypes.c_uint)
        library.syscall.restype = ctypes.c_long
    except (OSError, AttributeError, TypeError) as error:
        raise ResidencyUnknown(sentence("this system has no mincore")) from error
    return library


def _has_no_page(library: Any, descriptor: int, start: int, length: int) -> bool:
    """Return True if the system says that no page of a range is in memory. False: ask page by page, which takes some
    milliseconds a GiB.
    """
    if not system.IS_LINUX:
        return False
    wanted_range, counts = (ctypes.c_uint64 * 2)(start, length), (ctypes.c_uint64 * 5)()
    failed = library.syscall(_CACHESTAT, descriptor, ctypes.addressof(wanted_range), ctypes.addressof(counts), 0)
    return not failed and counts[0] == 0


def _resident_pages(library: Any, descriptor: int, start: int, length: int, path: str) -> bytes:
    protection, flags = system.read_only_shared_map()
    place = library.mmap(None, length, protection, flags, descriptor, start)
    if place is None or place == ctypes.c_void_p(-1).value:
        reason = os.strerror(ctypes.get_errno())
        raise ResidencyUnknown(sentence("the file cannot be mapped: {reason}", reason=reason), file=path, offset=start)
    answer = (ctypes.c_ubyte * -(-length // mmap.PAGESIZE))()
    try:
        failed = library.mincore(place, length, ctypes.addressof(answer))
        reason = os.strerror(ctypes.get_errno())
    finally:
        library.munmap(place, length)
    if failed:
        raise ResidencyUnknown(
            sentence("{place}: {what}", place="mincore", what=sentence(reason)), file=path, offset=start
        )
    return bytes(answer).translate(_LOWEST_BIT)
