"""Memory that nobody uses goes back to the system: free pages of the heaps, and code that was needed to start.

The C library keeps what was freed, in a heap for each thread that ever asked for memory: after an hour beside a fast
writer it would hold as much again as is in use. Where it is another library than glibc, nothing is done.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import sys
from pathlib import Path
from typing import Any

LARGE = 512 << 10
"""Bytes from which on a piece of memory is the system's own and goes back when it is freed."""
HEAPS = 2
_MMAP_THRESHOLD, _ARENA_MAX = -3, -8
_PAGEOUT = 21
"""``MADV_PAGEOUT`` of Linux 5.4 and later; an older one refuses it."""


@functools.lru_cache(maxsize=1)
def _library() -> Any:
    """The C library, where it is glibc; else None."""
    if not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "mallopt") and hasattr(library, "malloc_trim") else None


def keep_little() -> bool:
    """Have few heaps, and large pieces outside them; called once, early. Whether the C library knows how."""
    library = _library()
    if library is None:
        return False
    return bool(library.mallopt(_ARENA_MAX, HEAPS)) and bool(library.mallopt(_MMAP_THRESHOLD, LARGE))


def give_back() -> None:
    """Give the free pages of all heaps back; takes milliseconds, in which other threads of Python go on."""
    library = _library()
    if library is not None:
        library.malloc_trim(ctypes.c_size_t(0))


def give_back_code() -> int:
    """Tell the system that the code of the libraries that were loaded may leave memory; gives how many bytes of
    address space that is.

    Most of what loads and starts a program runs once: 60 MiB of numba's compiler alone. Pages that are used again come
    back out of the page cache, a few microseconds each. Nothing that was written to is touched.
    """
    library = _library()
    if library is None:
        return 0
    advised_bytes = 0
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/maps").read_text("utf-8", "replace").splitlines():
            span, rights, _, _, inode, *path = line.split(maxsplit=5)
            if rights[1] == "-" and inode != "0" and path:
                start, stop = (int(text, 16) for text in span.split("-"))
                if library.madvise(ctypes.c_void_p(start), ctypes.c_size_t(stop - start), _PAGEOUT) == 0:
                    advised_bytes += stop - start
    return advised_bytes
