"""Temporary folders for results. Each is locked by its process, and removed when that process is dead.

A killed process cannot remove its folder. So each process holds a lock on its folder, which the system releases
with the process, and the next process that writes the same kind of result removes folders that are not locked. If
folders cannot be locked (some network disks), nothing is known about others, and their folders are not touched. A
complete result (:func:`staged`) is renamed at the end; an incomplete one is removed.

"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine import system
from engine.files.atomic_file import remove_folder_tree

LOG_RETENTION_DAYS = 3
"""Days for which a log is retained after its last line: the user may still need it."""
_RANDOM = "[a-z0-9_]{8}"
_LOG = re.compile(rf"storescope-[a-z]+-{_RANDOM}\.log")


class TemporaryFolder:
    """A folder that this process holds until :meth:`give_up`, with a lock where the system has that."""

    def __init__(self, path: Path, descriptor: int | None) -> None:
        self.path = path
        self._descriptor = descriptor
        self._info: os.stat_result | None = path.lstat()

    def give_up(self) -> None:
        """Remove the folder, unless it was renamed, and release the lock. A second call does nothing."""
        info, self._info = self._info, None
        if info is None:
            return
        if _is(self.path, info):
            remove_folder_tree(self.path)
        if self._descriptor is not None:
            os.close(self._descriptor)


def hold_new(place: Path, prefix: str, suffix: str = "") -> TemporaryFolder:
    """Return a new private folder in ``place``, after removing what dead processes left there under such names.

    Where folders cannot be locked, nobody can tell whether a process is dead, and nothing is removed. Raises
    ``OSError``.

    """
    for leftover in _named(place, prefix, suffix) if system.CAN_LOCK_FOLDERS else ():
        _take_if_dead(leftover)
    while True:
        path = Path(tempfile.mkdtemp(prefix=prefix, suffix=suffix, dir=place))
        if not system.CAN_LOCK_FOLDERS:
            return TemporaryFolder(path, None)
        try:
            descriptor = system.hold_folder(path)
        except (FileNotFoundError, BlockingIOError):  # another process takes it for that of a dead one
            continue
        except OSError:
            return TemporaryFolder(path, None)
        if _is(path, os.fstat(descriptor)):
            return TemporaryFolder(path, descriptor)
        os.close(descriptor)


@contextlib.contextmanager
def growing(place: Path, prefix: str, suffix: str = "") -> Iterator[Path]:
    """Yield a folder of :func:`hold_new`, and remove it after the block unless it was renamed."""
    folder = hold_new(place, prefix, suffix)
    try:
        yield folder.path
    finally:
        folder.give_up()


def take_old_logs(place: Path) -> None:
    """Remove this user's logs of earlier runs that were not written for :data:`LOG_RETENTION_DAYS`."""
    oldest_time = time.time() - LOG_RETENTION_DAYS * 86_400
    with contextlib.suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            if _LOG.fullmatch(entry.name):
                with contextlib.suppress(OSError):
                    info = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(info.st_mode) and _is_ours(info) and info.st_mtime < oldest_time:
                        Path(entry.path).unlink()


def _named(place: Path, prefix: str, suffix: str) -> list[Path]:
    name = re.compile(re.escape(prefix) + _RANDOM + re.escape(suffix))
    try:
        return [path for path in place.iterdir() if name.fullmatch(path.name)]
    except OSError:
        return []


def _take_if_dead(path: Path) -> None:
    try:
        if not _is_ours(path.lstat()):
            return
        descriptor = system.hold_folder(path)
    except OSError:  # it is locked, or that is unknown
        return
    try:
        if _is_ours(os.fstat(descriptor)):
            remove_folder_tree(path)
    finally:
        os.close(descriptor)


def _is_ours(info: os.stat_result) -> bool:
    return system.user_id() in {None, info.st_uid}


def _is(path: Path, info: os.stat_result) -> bool:
    """Return True if the folder with ``info`` still has that name."""
    try:
        return os.path.samestat(path.lstat(), info)
    except OSError:
        return False


@contextmanager
def staged(target: Path, suffix: str) -> Iterator[Path]:
    """Yield a new hidden folder beside ``target`` (absent or an empty directory), named with ``suffix``.

    At the end of the block it is renamed to ``target``; if the block raises it is removed. Leftovers of killed
    processes are removed first. Raises ``OSError``.

    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with growing(target.parent, f".{target.name}.", suffix) as staging:
        staging.chmod(0o755)
        yield staging
        if target.is_dir():
            target.rmdir()
        staging.rename(target)
    system.sync_folder(target.parent)
