"""Pages kept in memory (``mlock``), and pages touched ahead of need (spec 6.2: warm-up). Both only make things faster:
where the rights or the system are missing a warning says so once, and everything goes on.
"""

from __future__ import annotations

import ctypes
import logging
import os

from engine.mapped.disk import DiskFile

_log = logging.getLogger(__name__)
PAGE = 4096


def lock_memory(view: memoryview, what: str) -> bool:
    """Keep the pages of ``view`` (writable) in memory; False where that is not allowed, with a warning that names
    ``what``.
    """
    return _call("mlock", view, what)


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


def _call(name: str, view: memoryview, what: str) -> bool:
    try:
        function = getattr(ctypes.CDLL(None, use_errno=True), name)
        place = ctypes.c_char.from_buffer(view)
        failed = function(ctypes.c_void_p(ctypes.addressof(place)), ctypes.c_size_t(len(view)))
    except (OSError, AttributeError, TypeError) as error:
        _log.warning("%s: %s is not to be had here: %s", what, name, error)
        return False
    if failed:
        _log.warning("%s: %s failed: %s", what, name, os.strerror(ctypes.get_errno()))
    return not failed
