"""Which pages of a file the system holds in memory (``mincore``), without touching one of them.

The file is mapped with read rights and asked about, never read through the map: a file that shrinks meanwhile does no
harm, and no page comes into memory by being asked for. numpy is not needed.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from engine.errors import StoreError
from engine.mapped.reading import Reading

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
