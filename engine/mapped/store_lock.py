"""The lock that keeps a second writer out of a store: this engine or a Java broker (docs/formats/checkpoint.md).

Java takes a POSIX record lock on byte 0 of the file ``lock``. Ours is a record lock on the same byte, but owned
by the open file ("OFD") if the system has that: it conflicts with Java's in both directions, it excludes a second
engine in the same process, and it is not lost when code in this process opens and closes the same file, for
example to copy the store. On other systems a plain record lock and a table of this process do the same, except
for the last point.

"""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from engine import system
from engine.errors import StoreLocked
from engine.sentences import sentence

TEXT = b"lock"
_HELD_ELSEWHERE = (errno.EAGAIN, errno.EACCES)
_ours: set[tuple[int, int]] = set()
_ours_lock = threading.Lock()


class StoreLock:
    """The lock at ``path``, taken at creation and held until :meth:`release`; also a context manager.

    Raises :class:`StoreLocked` if another holder has it, ``OSError`` if the file cannot be created or written.

    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | system.OPEN_FLAGS, 0o644)
        info = os.fstat(descriptor)
        self._key = (info.st_dev, info.st_ino)
        with _ours_lock:
            if self._key in _ours:
                # Closing here would drop a plain record lock of the holder; it is closed when the holder releases
                # the lock.
                _open_until_release.setdefault(self._key, []).append(descriptor)
                raise _locked(path, os.getpid())
            try:
                system.lock_first_byte(descriptor)
                system.pwrite(descriptor, TEXT, 0)
                os.fsync(descriptor)
            except OSError as error:
                pid = _holder(descriptor, path)
                os.close(descriptor)
                if error.errno in _HELD_ELSEWHERE:
                    raise _locked(path, pid) from None
                raise OSError(error.errno, error.strerror, str(path)) from None
            _ours.add(self._key)
        self._descriptor = descriptor

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def release(self) -> None:
        """Release the store for others. The file stays, as RocketMQ leaves it."""
        with _ours_lock:
            if self._descriptor < 0:
                return
            _ours.discard(self._key)
            for descriptor in (self._descriptor, *_open_until_release.pop(self._key, ())):
                os.close(descriptor)
            self._descriptor = -1


def holder_of(path: Path) -> int | None:
    """Return the process that holds the lock at ``path``; None if nobody does, or if that is unknown.

    Nothing is taken, created or written.

    """
    try:
        descriptor = os.open(path, os.O_RDONLY | system.OPEN_FLAGS)
    except OSError:
        return None
    try:
        return _holder(descriptor, path) if system.first_byte_lock(descriptor)[0] else None
    except OSError:
        return None
    finally:
        os.close(descriptor)


_open_until_release: dict[tuple[int, int], list[int]] = {}


def _locked(path: Path, pid: int | None) -> StoreLocked:
    holder = {None: "another process", os.getpid(): "this process"}.get(pid, f"process {pid}")
    return StoreLocked(sentence("{holder} has the store open for writing", holder=holder), file=str(path), pid=pid)


def _holder(descriptor: int, path: Path) -> int | None:
    """Return the process that holds the lock: from the system, else from the ``abort`` file beside it."""
    try:
        pid = system.first_byte_lock(descriptor)[1]
        if pid > 0:
            return pid
        text = path.with_name("abort").read_bytes()[:20].strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
