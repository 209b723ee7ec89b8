"""Memory that nobody uses goes back to the system.

The C library keeps what was freed, in a heap for each thread that ever asked for memory: after an hour beside a fast
writer it would hold as much again as is in use. Where it is another library than glibc, nothing is done.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from typing import Any

LARGE = 512 << 10
"""Bytes from which on a piece of memory is the system's own and goes back when it is freed."""
HEAPS = 2
_MMAP_THRESHOLD, _ARENA_MAX = -3, -8


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
