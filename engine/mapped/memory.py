"""System calls for pages of memory: lock them (``mlock``), give advice (``madvise``), write to them ahead of need.

They only make the store faster (docs/formats/files.md#allocation: warm-up). If the rights or the call are missing, a
warning is logged, and the store works without.
"""

from __future__ import annotations

import ctypes
import logging
import os

from engine import system
from engine.mapped.disk import DiskFile

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
    """Write a zero to every page of a new ``file``, so that appends need not wait for the allocation of pages.

    With ``sync_pages`` the file is flushed after every so many pages and at the end, as RocketMQ does under
    SYNC_FLUSH. Raises ``OSError``, for example if the disk is full.
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
        function = getattr(system.c_library(), name)
        first_byte = ctypes.c_char.from_buffer(view)
        failed = function(ctypes.c_void_p(ctypes.addressof(first_byte)), ctypes.c_size_t(len(view)), *arguments)
    except (OSError, AttributeError, TypeError) as error:
        _log.warning("%s: %s is not available here: %s", description, name, error)
        return False
    if failed:
        _log.warning("%s: %s failed: %s", description, name, os.strerror(ctypes.get_errno()))
    return not failed
