"""Audit of a piece of code: every opening and every change of files below some folders."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
from collections.abc import Iterator
from pathlib import Path

CHANGES = {
    "os.chmod",
    "os.chown",
    "os.link",
    "os.mkdir",
    "os.remove",
    "os.removexattr",
    "os.rename",
    "os.rmdir",
    "os.setxattr",
    "os.symlink",
    "os.truncate",
    "os.utime",
    "shutil.move",
    "shutil.rmtree",
    "tempfile.mkstemp",
    "tempfile.mkdtemp",
    "mmap.__new__",
    "fcntl.flock",
    "fcntl.lockf",
}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
LOCKING = {fcntl.F_SETLK, fcntl.F_SETLKW, getattr(fcntl, "F_OFD_SETLK", -1), getattr(fcntl, "F_OFD_SETLKW", -1)}

_watched: list[tuple[str, list[str]]] = []
_installed: list[bool] = []


@contextlib.contextmanager
def watching(folder: Path) -> Iterator[list[str]]:
    """Yield a list that gets every forbidden access in or beside ``folder`` while the block runs."""
    if not _installed:  # a hook cannot be taken out again: one for the whole process, quiet outside of the block
        sys.addaudithook(_hook)
        _installed.append(True)
    observed: list[str] = []
    _watched.append((str(folder.parent), observed))
    try:
        yield observed
    finally:
        _watched.pop()


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    if not _watched:
        return
    root, observed = _watched[-1]
    if event == "open":
        path, mode, flags = arguments
        writes = isinstance(flags, int) and bool(flags & WRITING)
        if writes and _below(path, root):
            observed.append(f"open {path!r} {mode} {flags:#x}")
    elif event == "fcntl.fcntl":
        if arguments[1] in LOCKING:
            observed.append(f"fcntl {arguments!r}")
    elif event == "os.symlink":  # only the new name is a change; what it leads to stays as it is
        if _below(arguments[1], root):
            observed.append(f"{event} {arguments!r}"[:300])
    elif event.startswith("fcntl"):
        if event in CHANGES and _below(arguments[0], root):
            observed.append(f"{event} {arguments!r}"[:300])
    elif event in CHANGES and (event.startswith("mmap") or any(_below(named, root) for named in _named(arguments))):
        observed.append(f"{event} {arguments!r}"[:300])


def _named(arguments: tuple[object, ...]) -> list[object]:
    """Return the files that an event names: paths, and a descriptor as the first argument. Other numbers are modes."""
    return [argument for number, argument in enumerate(arguments) if number == 0 or not isinstance(argument, int)]


def _below(path: object, root: str) -> bool:
    if not isinstance(path, (str, bytes, os.PathLike)):
        return isinstance(path, int) and not isinstance(path, bool) and _of_descriptor(path, root)
    return os.path.abspath(os.fsdecode(path)).startswith(root)  # noqa: PTH100 - links are not to be followed


def _of_descriptor(descriptor: int, root: str) -> bool:
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/self/fd/{descriptor}").startswith(root)  # noqa: PTH115
    return False
