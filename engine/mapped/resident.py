"""Which pages of a file the system holds in memory (``mincore``), without touching one of them.

The file is mapped with read rights and asked about, never read through the map: a file that shrinks meanwhile does no
harm, and no page comes into memory by being asked for.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.errors import StoreError
from engine.mapped.read_only import open_read_only

PIECE = 1 << 30
"""Bytes that are mapped at once."""


class ResidencyUnknown(StoreError):
    """The system does not tell which pages are in memory; says why."""


@dataclass(frozen=True, slots=True)
class PageMap:
    """One flag a page: in memory or not. ``size`` is the file's length in bytes, the last page may be cut by it."""

    size: int
    page: int
    flags: npt.NDArray[np.bool_]

    @property
    def resident(self) -> int:
        """Bytes of the file that are in memory."""
        held = int(np.count_nonzero(self.flags)) * self.page
        cut = len(self.flags) * self.page - self.size
        return held - cut if len(self.flags) and self.flags[-1] else held

    def shares(self, cells: int) -> tuple[float, ...]:
        """How much of each of ``cells`` equal stretches is in memory, from 0 to 1; fewer where pages are fewer."""
        count = min(cells, len(self.flags))
        if not count:
            return ()
        edges = np.linspace(0, len(self.flags), count + 1).astype(np.int64)
        held = np.add.reduceat(self.flags.astype(np.int64), edges[:-1])
        return tuple(float(share) for share in held / np.diff(edges))


def page_map(path: str) -> PageMap:
    """Ask the system about the whole file. Raises :class:`ResidencyUnknown`, ``OSError`` where it cannot be opened."""
    ask = _mincore()
    descriptor = open_read_only(path)
    try:
        info = os.fstat(descriptor)
        if not may_know(info.st_uid, path):
            raise ResidencyUnknown("the system tells it to the file's owner only, and to who may write it", file=path)
        pieces = [
            _ask(ask, descriptor, start, min(PIECE, info.st_size - start), path)
            for start in range(0, info.st_size, PIECE)
        ]
        flags = np.concatenate(pieces) if pieces else np.zeros(0, np.bool_)
        return PageMap(info.st_size, mmap.PAGESIZE, flags)
    finally:
        os.close(descriptor)


def may_know(owner: int, path: str) -> bool:
    """Whether the answer is true: to others the kernel says "all of it" since 5.2."""
    return os.geteuid() in {0, owner} or os.access(path, os.W_OK)


def _mincore() -> Callable[[int, int, int], int]:
    try:
        function = ctypes.CDLL(None, use_errno=True).mincore
    except (OSError, AttributeError, TypeError) as error:
        raise ResidencyUnknown("this system has no mincore") from error
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
    function.restype = ctypes.c_int
    return function


def _ask(
    ask: Callable[[int, int, int], int], descriptor: int, start: int, length: int, path: str
) -> npt.NDArray[np.bool_]:
    try:
        mapped = mmap.mmap(descriptor, length, mmap.MAP_SHARED, mmap.PROT_READ, offset=start)
    except (ValueError, OSError) as error:
        raise ResidencyUnknown(f"the file cannot be mapped: {error}", file=path, offset=start) from error
    pages = -(-length // mmap.PAGESIZE)
    answer = np.zeros(pages, np.uint8)
    view = np.frombuffer(mapped, np.uint8)
    try:
        failed = ask(view.ctypes.data, length, answer.ctypes.data)
    finally:
        del view
        mapped.close()
    if failed:
        raise ResidencyUnknown(f"mincore: {os.strerror(ctypes.get_errno())}", file=path, offset=start)
    return (answer & 1).astype(np.bool_)
