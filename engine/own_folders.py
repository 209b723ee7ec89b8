"""Folders whose content is run (machine code, a small program) or stands for what is run: nobody else can write them.

A folder is one's own where it belongs to this user, and every folder from the root down to it belongs to this user or
to root and is writable by nobody else (by all where the sticky bit keeps their names, as in ``/tmp``), with no link
among them. Who is somebody else can then change nothing between the look and the use. Nothing but the standard library
is imported: executors look before they have the rest.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def user_cache() -> Path:
    """Where the user's environment keeps what can be made again."""
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return given if given.is_absolute() else Path("~").expanduser() / ".cache"


def for_a_while() -> Path:
    """A place below the system's folder for temporary files that is the same for all processes of a user."""
    return Path(tempfile.gettempdir(), f"storescope-{os.geteuid() if hasattr(os, 'geteuid') else 'user'}")


def own_folder(places: Iterable[Path], *names: str) -> Path:
    """:func:`find_own` below the first of ``places`` that has one, else a new folder of this process. Raises
    ``OSError`` where that cannot be made either.
    """
    for place in places:
        folder = find_own(place, *names)
        if folder is not None:
            return folder
    return Path(os.path.realpath(tempfile.mkdtemp(prefix="storescope-")))


def find_own(place: Path, *names: str) -> Path | None:
    """The folder ``names`` below ``place``, made where it is not there; None where it, or something in it, is not this
    user's alone.
    """
    folder = _made(place, names)
    return folder if folder is not None and is_own(folder) and holds_own_only(folder) else None


def _made(place: Path, names: Iterable[str]) -> Path | None:
    """The folder by the path that ``place`` leads to; new ones are closed to others. None where it cannot be made."""
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
    """Whether ``folder``, an absolute path, is this user's, and only this user and root can write on the way to it."""
    if not hasattr(os, "geteuid"):  # the system guards the user's folders by lists of its own
        return folder.is_dir()
    me = os.geteuid()
    for step in (*reversed(folder.parents), folder):
        try:
            found = step.lstat()
        except OSError:
            return False
        if not stat.S_ISDIR(found.st_mode) or found.st_uid not in (0, me):
            return False
        names_are_kept = found.st_mode & stat.S_ISVTX and step != folder
        if found.st_mode & _OTHERS_WRITE and not names_are_kept:
            return False
    return found.st_uid == me and os.access(folder, os.W_OK)


def holds_own_only(folder: Path) -> bool:
    """Whether all that lies in a folder of one's own is this user's too, no link, and was never open to others."""
    if not hasattr(os, "geteuid"):
        return True
    me = os.geteuid()
    closed = not folder.lstat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    waiting: list[str] = [str(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                found = [(entry.path, kind) for entry in entries if (kind := _kind_of(entry)) is not None]
        except OSError:
            return False
        for path, one in found:
            if one.st_uid != me or stat.S_ISLNK(one.st_mode) or (not closed and one.st_mode & _OTHERS_WRITE):
                return False
            if stat.S_ISDIR(one.st_mode):
                waiting.append(path)
    return True


def _kind_of(entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return entry.stat(follow_symlinks=False)
    except FileNotFoundError:  # another process made it for a moment
        return None
