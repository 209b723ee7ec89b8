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
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path

from engine.files.atomic_file import remove_folder_tree, sync_folder

LOG_RETENTION_DAYS = 3
"""Days for which a log is retained after its last line: the user may still need it."""
_RANDOM = "[a-z0-9_]{8}"
_LOG = re.compile(rf"storescope-[a-z]+-{_RANDOM}\.log")


class TemporaryFolder:
    """A folder that this process holds until :meth:`give_up`."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    def give_up(self) -> None:
        """Remove the folder, unless it was renamed, and release the lock. A second call does nothing."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            if _is(self.path, descriptor):
                remove_folder_tree(self.path)
            os.close(descriptor)


def hold_new(place: Path, prefix: str, suffix: str = "") -> TemporaryFolder:
    """Return a new private folder in ``place``, after removing what dead processes left there under such names.

    Raises ``OSError``.

    """
    for leftover in _named(place, prefix, suffix):
        _take_if_dead(leftover)
    while True:
        path = Path(tempfile.mkdtemp(prefix=prefix, suffix=suffix, dir=place))
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except FileNotFoundError:  # another process took it for that of a dead one, before it was locked
            continue
        try:
            flock(descriptor, LOCK_EX | LOCK_NB)
        except BlockingIOError:  # another process tests whether we are dead
            os.close(descriptor)
            continue
        except OSError:
            return TemporaryFolder(path, descriptor)
        if _is(path, descriptor):
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
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        if _is_ours(os.fstat(descriptor)):
            flock(descriptor, LOCK_EX | LOCK_NB)
            remove_folder_tree(path)
    except OSError:  # it is locked, or that is unknown
        return
    finally:
        os.close(descriptor)


def _is_ours(info: os.stat_result) -> bool:
    return not hasattr(os, "geteuid") or info.st_uid == os.geteuid()


def _is(path: Path, descriptor: int) -> bool:
    """Return True if the open folder still has that name."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
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
    sync_folder(target.parent)
