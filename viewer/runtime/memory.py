"""Return memory that is not used any more to the system: free pages of the heaps, and code that only a start needs.

glibc keeps freed memory, in one heap per thread that ever allocated: after an hour beside a fast writer it would keep
as much again as is in use. With another C library nothing is done.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
from typing import Any

from engine import system

LARGE = 512 << 10
"""Size in bytes from which on an allocation is mapped separately and returned when it is freed."""
HEAPS = 2
_MMAP_THRESHOLD, _ARENA_MAX = -3, -8
_PAGEOUT = 21
"""``MADV_PAGEOUT`` of Linux 5.4 and later; older ones reject it."""


@functools.lru_cache(maxsize=1)
def _library() -> Any:
    """The C library if it is glibc; else None."""
    if not system.IS_LINUX:
        return None
    library = system.c_library()
    return library if hasattr(library, "mallopt") and hasattr(library, "malloc_trim") else None


def keep_little() -> bool:
    """Limit the number of heaps, and map large allocations separately. Call it once, early. False without glibc."""
    library = _library()
    if library is None:
        return False
    return bool(library.mallopt(_ARENA_MAX, HEAPS)) and bool(library.mallopt(_MMAP_THRESHOLD, LARGE))


def give_back() -> None:
    """Return the free pages of all heaps. Takes milliseconds, during which other Python threads continue."""
    library = _library()
    if library is not None:
        library.malloc_trim(ctypes.c_size_t(0))


def give_back_code() -> int:
    """Tell the system that it may page out the code of the loaded libraries. Return the bytes of address space.

    Most of the code that loads and starts a program runs once: 60 MiB of numba's compiler alone. Pages that are used
    again come back from the page cache in a few microseconds each. Pages that were written to are not touched.
    """
    library = _library()
    if library is None:
        return 0
    advised_bytes = 0
    with contextlib.suppress(OSError):
        for line in (system.PROC / "self" / "maps").read_text("utf-8", "replace").splitlines():
            span, rights, _, _, inode, *path = line.split(maxsplit=5)
            if rights[1] == "-" and inode != "0" and path:
                start, stop = (int(text, 16) for text in span.split("-"))
                if library.madvise(ctypes.c_void_p(start), ctypes.c_size_t(stop - start), _PAGEOUT) == 0:
                    advised_bytes += stop - start
    return advised_bytes
