"""Calls to the system about pages of memory: lock them (``mlock``), give advice about them, touch them ahead of need.

They only make things faster (docs/formats/files.md#allocation: warm-up): if the rights or the system call are missing,
a warning says so once, and everything continues.
"""

from __future__ import annotations

import ctypes
import logging
import os

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
