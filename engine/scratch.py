"""Folders in which something grows that is not there yet: each held by its run, and taken away when that run is dead.

A run that is killed can take nothing away. So each holds a lock on its folder, which the system gives back with the
process, and who begins to write the same thing next takes away what nobody holds. Where folders cannot be locked
(some network disks) nothing is known of others, and nothing of theirs is touched. What is whole
(:func:`staged`) gets its name at the end, and nothing is left where it does not come so far.
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

from engine.whole_file import sync_folder, take_away

KEPT_DAYS = 3
"""Days that a log stays behind the last word in it: somebody may still ask for it."""
_RANDOM = "[a-z0-9_]{8}"
_LOG = re.compile(rf"storescope-[a-z]+-{_RANDOM}\.log")


class Scratch:
    """A folder that this process holds until :meth:`give_up`."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    def give_up(self) -> None:
        """Take the folder away, if it still has its name, and let go of it; once."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            if _is(self.path, descriptor):
                take_away(self.path)
            os.close(descriptor)


def hold_new(place: Path, prefix: str, suffix: str = "") -> Scratch:
    """A new folder in ``place``, for this user alone; what dead runs left there under such names goes first. Raises
    ``OSError``.
    """
    for left in _named(place, prefix, suffix):
        _take_if_dead(left)
    while True:
        path = Path(tempfile.mkdtemp(prefix=prefix, suffix=suffix, dir=place))
        descriptor = os.open(path, os.O_RDONLY)
        try:
            flock(descriptor, LOCK_EX | LOCK_NB)
        except BlockingIOError:  # somebody looks whether we are dead
            os.close(descriptor)
            continue
        except OSError:
            return Scratch(path, descriptor)
        if _is(path, descriptor):
            return Scratch(path, descriptor)
        os.close(descriptor)


@contextlib.contextmanager
def growing(place: Path, prefix: str, suffix: str = "") -> Iterator[Path]:
    """:func:`hold_new` for a block; a folder that was renamed in it stays."""
    held = hold_new(place, prefix, suffix)
    try:
        yield held.path
    finally:
        held.give_up()


def take_old_logs(place: Path) -> None:
    """Remove this user's logs of earlier runs into which nothing was written for :data:`KEPT_DAYS`."""
    before = time.time() - KEPT_DAYS * 86_400
    with contextlib.suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            if _LOG.fullmatch(entry.name):
                with contextlib.suppress(OSError):
                    found = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(found.st_mode) and _is_ours(found) and found.st_mtime < before:
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
            take_away(path)
    except OSError:  # it is held, or that cannot be known
        return
    finally:
        os.close(descriptor)


def _is_ours(found: os.stat_result) -> bool:
    return not hasattr(os, "geteuid") or found.st_uid == os.geteuid()


def _is(path: Path, descriptor: int) -> bool:
    """Whether the open folder still has that name."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except OSError:
        return False


@contextmanager
def staged(target: Path, suffix: str) -> Iterator[Path]:
    """A new folder beside ``target`` (absent or an empty directory), hidden and named with ``suffix``; it is renamed to
    ``target`` at the end of the block, and removed where the block raises. What a killed run left of such a folder
    goes. Raises ``OSError``.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with growing(target.parent, f".{target.name}.", suffix) as staging:
        staging.chmod(0o755)
        yield staging
        if target.is_dir():
            target.rmdir()
        staging.rename(target)
    sync_folder(target.parent)
