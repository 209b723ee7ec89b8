"""What a command kept, put back: every byte, length, name, folder and time is as before it.

Each step may be done twice, so an undo that was stopped is begun again. What was kept stays in its folder. A store
that somebody has written since is left alone: what it got since would be lost.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from engine.errors import StoreError, StoreLocked
from engine.mapped.keeping import (
    JOURNAL,
    NO_LINK,
    TREES,
    Keeper,
    Kept,
    Stamp,
    WasFile,
    copy_span,
    digest_span,
    pieces,
    read,
    stamps,
)
from engine.mapped.store_lock import StoreLock
from engine.whole_file import sync_folder, take_away

_EXCHANGE, _HERE = 2, -100
_BLOCK = 1 << 20


class CannotUndo(StoreError):
    """What was kept cannot be put back; nothing was changed."""


def check(kept: Kept, root: Path) -> None:
    """Raise :class:`CannotUndo` where the folder belongs to another store, something kept is missing or damaged, or the
    store has changed since. Nothing is written. The caller holds the store's lock; ``OSError`` as it comes.
    """
    real = root.resolve()
    if str(real) != kept.store and real.stat().st_ino != kept.inode:
        raise CannotUndo(f"what is kept here belongs to {kept.store}, not to {real}", file=str(kept.folder))
    for name, was in kept.files.items():
        _check_kept(kept, name, was)
    for name, inode in kept.trees.items():
        if inode is not None and _where(kept, root, name, inode) is None:
            text = f"the folder {name} as it was is missing"
            raise CannotUndo(text, file=str(kept.folder / TREES / name))
    if kept.trees and kept.folder.stat().st_dev != real.stat().st_dev:
        raise CannotUndo("whole folders are kept here: expected the file system of the store", file=str(kept.folder))
    _check_unchanged(kept, root)


def _check_kept(kept: Kept, name: str, was: WasFile) -> None:
    if was.link is not None:
        place = kept.folder / was.link
        info = place.lstat() if os.path.lexists(place) else None
        if info is None or (info.st_size, info.st_mtime_ns) != (was.size, was.modified):
            raise CannotUndo(f"what was kept of {name} is {'missing' if info is None else 'damaged'}", file=str(place))
    for piece in was.pieces:
        place = kept.folder / piece.kept
        if not place.exists():
            raise CannotUndo(f"what was kept of {name} is missing", file=str(place))
        descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
        try:
            whole = os.fstat(descriptor).st_size >= piece.stop
            same = piece.sha256 is None or digest_span(descriptor, piece.start, piece.stop) == piece.sha256
        finally:
            os.close(descriptor)
        if not (whole and same):
            raise CannotUndo(f"what was kept of {name} is damaged", file=str(place))


def _check_unchanged(kept: Kept, root: Path) -> None:
    """The store stands as the command left it; where that or an undo was stopped on the way, what it had not touched
    does.
    """
    now = stamps(root.absolute(), [Path(log) for log in kept.logs])
    expected = dict(kept.after if kept.after is not None else kept.before)
    touched: set[str] = set()
    if kept.after is None or kept.begun:
        touched = {*kept.files, *kept.absent}
        halves = (str(_beside(Path(name))) for name in kept.files)
        for name in (*touched, *halves, *_below(kept.trees, now), *_below(kept.trees, expected)):
            now.pop(name, None)
            expected.pop(name, None)
    for name in sorted({*now, *expected}):
        # the lock's file gets a new time by whoever looks whether the lock is free
        if name != "lock" and now.get(name) != expected.get(name):
            raise CannotUndo(
                "the store has changed since the command: this file " + _difference(now.get(name), expected.get(name)),
                file=str(root / name),
            )
    for name in sorted(touched & kept.files.keys() if kept.after is None else ()):
        _check_log(kept, root, name)


def _below(trees: dict[str, int | None], names: dict[str, Stamp]) -> list[str]:
    return [name for name in names if any(name.startswith(f"{tree}/") for tree in trees)]


def _difference(now: Stamp | None, then: Stamp | None) -> str:
    if now is None:
        return "is gone"
    return "was made" if then is None else "was written or replaced"


def _check_log(kept: Kept, root: Path, name: str) -> None:
    """Of a log file that the stopped command had begun to cut: what stands there is what stood there, or zeros."""
    was, place = kept.files[name], root / name
    if str(place.absolute().parent) not in kept.logs or not was.pieces or not place.exists():
        return
    reading = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
    try:
        for piece in was.pieces:
            before = os.open(kept.folder / piece.kept, os.O_RDONLY | os.O_CLOEXEC)
            try:
                for at, data in pieces(reading, piece.start, piece.stop):
                    old = os.pread(before, len(data), at)
                    if any(new not in (0, byte) for new, byte in zip(data, old, strict=False)):
                        raise CannotUndo(
                            "the store has changed since the command: this file got other bytes",
                            file=str(place),
                            offset=at,
                        )
            finally:
                os.close(before)
    finally:
        os.close(reading)


# -- the deed


def undo(kept: Kept, root: Path) -> None:
    """Put everything back; :func:`check` has passed. Raises ``OSError``; then it may be called again."""
    root = root.absolute()
    _note(kept, "begun")
    for name, inode in kept.trees.items():
        _exchange_back(kept, root, name, inode)
    for name in sorted(kept.folders):
        (root / name).mkdir(parents=True, exist_ok=True)
    for name, was in kept.files.items():
        if name != "lock":  # held by who does this
            _put_back(kept, root / name, was)
    for name in kept.absent:
        if name != "lock":
            (root / name).unlink(missing_ok=True)
    for name in sorted(kept.new_folders, reverse=True):
        if (root / name).is_dir() and not any((root / name).iterdir()):
            (root / name).rmdir()
    for folder in {(root / name).parent for name in (*kept.files, *kept.absent)}:
        if folder.is_dir():
            sync_folder(folder)


def finish(kept: Kept, root: Path) -> None:
    """The last of it, when the lock was given back: the lock's own file, and the times of folders."""
    root = root.absolute()
    lock = root / "lock"
    if "lock" in kept.absent:
        lock.unlink(missing_ok=True)
    else:
        was = kept.files["lock"]
        if lock.read_bytes() != (was.text or "").encode("latin-1"):
            lock.write_bytes((was.text or "").encode("latin-1"))
        os.utime(lock, ns=(was.modified, was.modified))
    for name, (mode, modified) in sorted(kept.folders.items(), reverse=True):
        place = root / name
        place.chmod(mode)
        os.utime(place, ns=(place.stat().st_atime_ns, modified))
    sync_folder(root)
    _note(kept, "done")
    for was in kept.files.values():  # the store has the file again: a second name would be in the next writer's way
        if was.link is not None:
            (kept.folder / was.link).unlink(missing_ok=True)


def take_back(keeper: Keeper, error: BaseException) -> None:
    """Nothing of what was begun stays, and neither does the folder: ``error`` has stopped the command.

    Raises :class:`StoreError` where that cannot be done, with the folder's name.
    """
    keeper.close()
    try:
        kept = read(keeper.folder)
        if {*kept.files, *kept.absent, *kept.trees, *kept.new_folders} != {"lock"}:
            with StoreLock(keeper.root / "lock"):
                undo(kept, keeper.root)
        if not isinstance(error, StoreLocked):  # then the lock's file is somebody else's
            finish(kept, keeper.root)
    except (OSError, StoreError) as second:
        text = f"{error}; what was changed until then is kept here and could not be put back ({second})"
        raise StoreError(text, file=str(keeper.folder)) from error
    take_away(keeper.folder)


def _note(kept: Kept, word: str) -> None:
    descriptor = os.open(kept.folder / JOURNAL, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
    try:
        told = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
        os.ftruncate(descriptor, told.rfind(b"\n") + 1)  # a line that was cut short tells of nothing
        os.write(descriptor, json.dumps({"undo": word}).encode() + b"\n")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _put_back(kept: Kept, place: Path, was: WasFile) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    if was.link is not None:
        source = kept.folder / was.link
        if not (os.path.lexists(place) and place.lstat().st_ino == source.lstat().st_ino):
            _replace(place, lambda beside: _link(source, beside, was))
        return
    if place.exists() and (place.stat().st_ino == was.inode or was.size == 0):
        _write_back(kept, place, was)
        return
    _replace(place, lambda beside: _write_back(kept, beside, was))


def _beside(place: Path) -> Path:
    return place.with_name(f".{place.name}.undo")


def _replace(place: Path, make: Callable[[Path], None]) -> None:
    beside = _beside(place)
    beside.unlink(missing_ok=True)
    make(beside)
    beside.replace(place)


def _link(source: Path, target: Path, was: WasFile) -> None:
    """Another name of the file; a copy where the folder was brought to another file system."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        if error.errno not in NO_LINK or source.is_symlink():
            raise
        copy_span(source, target, 0, was.size)
        target.chmod(was.mode)
        os.utime(target, ns=(was.modified, was.modified))


def _write_back(kept: Kept, place: Path, was: WasFile) -> None:
    writing = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if os.fstat(writing).st_size != was.size:
            os.ftruncate(writing, was.size)
        for piece in was.pieces:
            reading = os.open(kept.folder / piece.kept, os.O_RDONLY | os.O_CLOEXEC)
            try:
                for at, old in _stretches(reading, piece.start, piece.stop):
                    if os.pread(writing, len(old), at) != old:
                        _write(writing, at, old)
            finally:
                os.close(reading)
        os.fchmod(writing, was.mode)
        os.fsync(writing)
        os.utime(writing, ns=(os.fstat(writing).st_atime_ns, was.modified))
    finally:
        os.close(writing)


def _write(descriptor: int, at: int, data: bytes) -> None:
    done = 0
    while done < len(data):
        done += os.pwrite(descriptor, memoryview(data)[done:], at + done)


def _stretches(descriptor: int, start: int, stop: int) -> Iterator[tuple[int, bytes]]:
    at = start
    while at < stop:
        size = min(_BLOCK, stop - at)
        yield at, os.pread(descriptor, size, at).ljust(size, b"\0")
        at += size


# -- whole folders


def _where(kept: Kept, root: Path, name: str, inode: int) -> Path | None:
    """Where the folder is that was called ``name`` before."""
    for place in (root / name, kept.folder / TREES / name, kept.folder / TREES / f"{name}.old"):
        if place.exists() and place.stat().st_ino == inode:
            return place
    return None


def _exchange_back(kept: Kept, root: Path, name: str, inode: int | None) -> None:
    new, old = root / name, kept.folder / TREES / name
    if inode is None:
        if new.exists():
            shutil.rmtree(old, ignore_errors=True)
            new.rename(old)
        return
    place = _where(kept, root, name, inode)
    if place is not None and place != new:
        if new.exists():
            exchange(place, new)
        else:
            place.rename(new)


def _system_call() -> Callable[..., int] | None:
    """``renameat2`` of the C library; None where it has none."""
    found: Callable[..., int] | None = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    return found


def exchange(new: Path, old: Path) -> None:
    """Swap the names of two folders: in one step where the system can, else in two with a way back."""
    swap = _system_call()
    if swap is not None and swap(_HERE, os.fsencode(new), _HERE, os.fsencode(old), _EXCHANGE) == 0:
        return
    aside = new.with_name(f"{new.name}.old")
    old.rename(aside)
    try:
        new.rename(old)
    except OSError:
        aside.rename(old)
        raise
    aside.rename(new)
