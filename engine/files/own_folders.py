"""Folders for files that are executed (machine code, a small program): no other user can write to them.

A folder is the user's own if it belongs to this user, and every folder from the root down to it belongs to this user or
to root and is writable by nobody else (or by all with the sticky bit, as ``/tmp``), with no link among them. Then no
other user can change anything between the check and the use. Only the standard library is imported: Spark executors
check a folder before they load anything else.

"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path

from engine import system

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def user_cache() -> Path:
    """Return the folder for recreatable files in the user's environment."""
    configured = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return configured if configured.is_absolute() else Path("~").expanduser() / ".cache"


def user_temporary() -> Path:
    """Return a folder below the system's temporary folder that is the same for all processes of a user."""
    return Path(tempfile.gettempdir(), f"storescope-{'user' if (user := system.user_id()) is None else user}")


def own_folder(places: Iterable[Path], *names: str) -> Path:
    """Return :func:`find_own` below the first of ``places`` that has one, else a new folder of this process. Raises
    ``OSError`` if that cannot be created.
    """
    for place in places:
        folder = find_own(place, *names)
        if folder is not None:
            return folder
    return Path(os.path.realpath(tempfile.mkdtemp(prefix="storescope-")))


def find_own(place: Path, *names: str) -> Path | None:
    """Return the folder ``names`` below ``place``, created if missing; None if it, or something in it, does not
    belong only to this user.
    """
    folder = _made(place, names)
    return folder if folder is not None and is_own(folder) and holds_own_only(folder) else None


def _made(place: Path, names: Iterable[str]) -> Path | None:
    """Return the folder with links in ``place`` resolved; new folders are private. None if it cannot be created."""
    try:
        _make(place)
        folder = Path(os.path.realpath(place), *names)
        _make(folder)
    except OSError:
        return None
    return folder


def _make(folder: Path) -> None:
    if not os.path.lexists(folder):
        _make(folder.parent)
        try:
            folder.mkdir(0o700)
        except FileExistsError:  # another process was first
            return


def is_own(folder: Path) -> bool:
    """Return True if ``folder``, an absolute path, belongs to this user, and only this user and root can write on
    the way to it.
    """
    own_uid = system.user_id()
    if own_uid is None:  # the system guards the user's folders by lists of its own
        return folder.is_dir()
    for step in (*reversed(folder.parents), folder):
        try:
            info = step.lstat()
        except OSError:
            return False
        if not stat.S_ISDIR(info.st_mode) or info.st_uid not in (0, own_uid):
            return False
        is_sticky = info.st_mode & stat.S_ISVTX and step != folder
        if info.st_mode & _OTHERS_WRITE and not is_sticky:
            return False
    return info.st_uid == own_uid and os.access(folder, os.W_OK)


def holds_own_only(folder: Path) -> bool:
    """Return True if everything in an own folder belongs to this user too, is no link, and was never open to others."""
    own_uid = system.user_id()
    if own_uid is None:
        return True
    is_private = not folder.lstat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    pending: list[str] = [str(folder)]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                listed = [(entry.path, status) for entry in entries if (status := _stat_of(entry)) is not None]
        except OSError:
            return False
        for path, info in listed:
            if (
                info.st_uid != own_uid
                or stat.S_ISLNK(info.st_mode)
                or (not is_private and info.st_mode & _OTHERS_WRITE)
            ):
                return False
            if stat.S_ISDIR(info.st_mode):
                pending.append(path)
    return True


def _stat_of(entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return entry.stat(follow_symlinks=False)
    except FileNotFoundError:  # another process made it for a moment
        return None
