"""Undo a command: every byte, length, name, folder and time is restored from the backup folder.

Each step may be repeated, so an undo that was stopped can start again. The saved files stay in their folder. A
store that was written since the command is left alone, because the newer data would be lost.

"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

from engine import system
from engine.errors import StoreError, StoreLocked
from engine.files.atomic_file import errors_of, remove_folder_tree
from engine.files.store_folders import lock_beside
from engine.mapped.backup import (
    JOURNAL,
    NO_LINK_ERRORS,
    TREES,
    BackupJournal,
    BackupWriter,
    SavedFile,
    Stamp,
    complete_length,
    read,
    stamps,
)
from engine.mapped.sparse import copy_span, digest_span, pieces
from engine.mapped.store_lock import StoreLock
from engine.sentences import sentence

_EXCHANGE, _CURRENT_FOLDER = 2, -100
_BLOCK = 1 << 20


class CannotUndo(StoreError):
    """The store cannot be restored; nothing was changed."""


def refuse_other_store(journal: BackupJournal, root: Path) -> None:
    """Raise :class:`CannotUndo` if the folder belongs to another store than ``root``."""
    real = root.resolve()
    if str(real) != journal.store and real.stat().st_ino != journal.inode:
        raise CannotUndo(
            sentence("what is kept here belongs to {store}, not to {real}", store=journal.store, real=real),
            file=str(journal.folder),
        )


def check(journal: BackupJournal, root: Path) -> None:
    """Raise :class:`CannotUndo` if the folder belongs to another store, something saved is missing or damaged, or
    the store has changed since.

    Nothing is written. The caller holds the store's lock. Raises ``OSError`` too.

    """
    refuse_other_store(journal, root)
    for name, was in journal.files.items():
        _check_kept(journal, name, was)
    for name, inode in journal.trees.items():
        if inode is not None and _present_place(journal, root, name, inode) is None:
            text = sentence("the folder {name} as it was is missing", name=name)
            raise CannotUndo(text, file=str(journal.folder / TREES / name))
    if journal.trees and journal.folder.stat().st_dev != root.stat().st_dev:
        raise CannotUndo(
            sentence("whole folders are kept here: expected the file system of the store"), file=str(journal.folder)
        )
    _check_unchanged(journal, root)


def _check_kept(journal: BackupJournal, name: str, was: SavedFile) -> None:
    if was.link is not None:
        place = journal.folder / was.link
        info = place.lstat() if os.path.lexists(place) else None
        if info is None or (info.st_size, info.st_mtime_ns) != (was.size, was.modified):
            raise CannotUndo(
                sentence(
                    "what was kept of {name} is missing" if info is None else "what was kept of {name} is damaged",
                    name=name,
                ),
                file=str(place),
            )
    for piece in was.pieces:
        place = journal.folder / piece.file_name
        if not place.exists():
            raise CannotUndo(sentence("what was kept of {name} is missing", name=name), file=str(place))
        descriptor = os.open(place, os.O_RDONLY | system.OPEN_FLAGS)
        try:
            is_complete = os.fstat(descriptor).st_size >= piece.stop
            is_same = piece.sha256 is None or digest_span(descriptor, piece.start, piece.stop) == piece.sha256
        finally:
            os.close(descriptor)
        if not (is_complete and is_same):
            raise CannotUndo(sentence("what was kept of {name} is damaged", name=name), file=str(place))


def _check_unchanged(journal: BackupJournal, root: Path) -> None:
    """Check that the store is as the command left it.

    If the command or an undo was stopped, only the files that it had not touched are checked.

    """
    now = stamps(root.absolute(), [Path(log) for log in journal.logs])
    expected = dict(journal.stamps_after if journal.stamps_after is not None else journal.stamps_before)
    touched: set[str] = set()
    if journal.stamps_after is None or journal.begun:
        touched = {*journal.files, *journal.absent}
        temporary_names = (str(_temporary_path(Path(name))) for name in journal.files)
        for name in (*touched, *temporary_names, *_below(journal.trees, now), *_below(journal.trees, expected)):
            now.pop(name, None)
            expected.pop(name, None)
    for name in sorted({*now, *expected}):
        # testing whether the lock is free changes the time of the lock's file
        if name != "lock" and not _same(now.get(name), expected.get(name)):
            raise CannotUndo(
                _difference(now.get(name), expected.get(name)),
                file=str(root / name),
            )
    for name in sorted(touched & journal.files.keys() if journal.stamps_after is None else ()):
        _check_log(journal, root, name)


def _below(trees: dict[str, int | None], names: dict[str, Stamp]) -> list[str]:
    return [name for name in names if any(name.startswith(f"{tree}/") for tree in trees)]


def _same(now: Stamp | None, then: Stamp | None) -> bool:
    """Return True if the stamps agree in what both have: an older version's stamps have no digest."""
    if now is None or then is None:
        return now is then
    common = min(len(now), len(then))
    return now[:common] == then[:common]


def _difference(now: Stamp | None, then: Stamp | None) -> str:
    if now is None:
        return sentence("the store has changed since the command: this file is gone")
    return sentence(
        "the store has changed since the command: this file was made"
        if then is None
        else "the store has changed since the command: this file was written or replaced"
    )


def _check_log(journal: BackupJournal, root: Path, name: str) -> None:
    """Check a log file that the stopped command had begun to cut: each byte must be the old one or zero."""
    was, place = journal.files[name], root / name
    if journal.rewrites_log or str(place.absolute().parent) not in journal.logs:
        return
    if not was.pieces or not place.exists():
        return
    current = os.open(place, os.O_RDONLY | system.OPEN_FLAGS)
    try:
        for piece in was.pieces:
            saved = os.open(journal.folder / piece.file_name, os.O_RDONLY | system.OPEN_FLAGS)
            try:
                for position, data in pieces(current, piece.start, piece.stop):
                    old = system.pread(saved, len(data), position)
                    if any(new not in (0, byte) for new, byte in zip(data, old, strict=False)):
                        raise CannotUndo(
                            sentence("the store has changed since the command: this file got other bytes"),
                            file=str(place),
                            offset=position,
                        )
            finally:
                os.close(saved)
    finally:
        os.close(current)


# -- the restoration


def undo(journal: BackupJournal, root: Path) -> None:
    """Restore everything, after :func:`check` has passed. Raises ``OSError``; then it may be called again."""
    root = root.absolute()
    _note(journal, "begun")
    for name, inode in journal.trees.items():
        _exchange_back(journal, root, name, inode)
    for name in journal.absent:  # first: a new folder may have the name of a file that was moved
        if name != "lock":
            with suppress(FileNotFoundError, NotADirectoryError):  # the latter if that file is back already
                (root / name).unlink()
    for name in sorted(journal.new_folders, reverse=True):
        if (root / name).is_dir() and not any((root / name).iterdir()):
            (root / name).rmdir()
    for name in sorted(journal.folders):
        (root / name).mkdir(parents=True, exist_ok=True)
    for name, was in journal.files.items():
        if name != "lock":  # held by the caller
            _restore(journal, root / name, was)
    for folder in {(root / name).parent for name in (*journal.files, *journal.absent, *journal.new_folders)}:
        if folder.is_dir():
            system.sync_folder(folder)


def finish(journal: BackupJournal, root: Path) -> None:
    """Restore the lock's own file and the times of folders, after the lock is released."""
    root = root.absolute()
    lock = root / "lock"
    if "lock" in journal.absent:
        lock.unlink(missing_ok=True)
    else:
        was = journal.files["lock"]
        if lock.read_bytes() != (was.text or "").encode("latin-1"):
            lock.write_bytes((was.text or "").encode("latin-1"))
        os.utime(lock, ns=(was.modified, was.modified))
        system.sync_file(lock)
    for name, (mode, modified) in sorted(journal.folders.items(), reverse=True):
        place = root / name
        place.chmod(mode)
        os.utime(place, ns=(place.stat().st_atime_ns, modified))
        system.sync_folder(place)
    system.sync_folder(root)
    _note(journal, "done")
    for was in journal.files.values():  # the store has the file again: a second name would stop the next writer
        if was.link is not None:
            (journal.folder / was.link).unlink(missing_ok=True)


def restore(journal: BackupJournal, root: Path) -> None:
    """Undo under the locks of all folders that are written.

    Raises :class:`CannotUndo` before anything is changed, :class:`StoreLocked` where another process has the store
    open, ``OSError``; then it may be called again.
    """
    with ExitStack() as locks:
        for path in (root / "lock", *_locks_elsewhere(journal)):
            locks.enter_context(StoreLock(path))
        check(journal, root)
        undo(journal, root)
    finish(journal, root)


def _locks_elsewhere(journal: BackupJournal) -> list[Path]:
    """Return the locks of folders outside of the store that an undo writes; their files have absolute names."""
    names = (*journal.files, *journal.made)
    return sorted({lock_beside(Path(name).parent) for name in names if Path(name).is_absolute()})


def take_back(backup: BackupWriter, error: BaseException) -> None:
    """Undo a command that ``error`` has stopped, and delete its folder.

    Raises :class:`StoreError` with the folder's name if that fails.

    """
    backup.close()
    try:
        journal = read(backup.folder)
        if {*journal.files, *journal.absent, *journal.trees, *journal.new_folders} != {"lock"}:
            with StoreLock(backup.root / "lock"):
                undo(journal, backup.root)
        if not isinstance(error, StoreLocked):  # then the lock's file belongs to another process
            finish(journal, backup.root)
    except (OSError, StoreError) as undo_error:
        text = sentence(
            "{error}; what was changed until then is kept here and could not be put back ({undo_error})",
            error=error,
            undo_error=undo_error,
        )
        raise StoreError(text, file=str(backup.folder)) from error
    remove_folder_tree(backup.folder)


def _note(journal: BackupJournal, word: str) -> None:
    path = journal.folder / JOURNAL
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | system.OPEN_FLAGS)
    try:
        with errors_of(path):
            content = system.pread(descriptor, os.fstat(descriptor).st_size, 0)
            os.ftruncate(descriptor, complete_length(content))  # an incomplete line belongs to no change
            os.write(descriptor, json.dumps({"undo": word}).encode() + b"\n")
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _restore(journal: BackupJournal, place: Path, was: SavedFile) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    if was.link is not None:
        source = journal.folder / was.link
        if not (os.path.lexists(place) and place.lstat().st_ino == source.lstat().st_ino):
            _replace(place, lambda beside: _link(source, beside, was))
        return
    if place.exists() and (place.stat().st_ino == was.inode or was.size == 0):
        _restore_bytes(journal, place, was)
        return
    _replace(place, lambda beside: _restore_bytes(journal, beside, was))


def _temporary_path(place: Path) -> Path:
    return place.with_name(f".{place.name}.undo")


def _replace(place: Path, make: Callable[[Path], None]) -> None:
    beside = _temporary_path(place)
    beside.unlink(missing_ok=True)
    make(beside)
    owner = place.lstat() if os.path.lexists(place) else place.parent.stat()
    info = beside.lstat()
    if system.user_id() == 0 and info.st_uid != owner.st_uid and info.st_nlink == 1:  # else it is the file itself
        system.change_owner(beside, owner.st_uid, owner.st_gid)
    beside.replace(place)


def _link(source: Path, target: Path, was: SavedFile) -> None:
    """Give the file a second name; copy it if the folder was moved to another file system."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        if error.errno not in NO_LINK_ERRORS or source.is_symlink():
            raise
        copy_span(source, target, 0, was.size)
        target.chmod(was.mode)
        os.utime(target, ns=(was.modified, was.modified))
        system.sync_file(target)


def _restore_bytes(journal: BackupJournal, place: Path, was: SavedFile) -> None:
    with errors_of(place):
        _write_pieces(journal, place, was)


def _write_pieces(journal: BackupJournal, place: Path, was: SavedFile) -> None:
    target = os.open(place, os.O_RDWR | os.O_CREAT | system.OPEN_FLAGS, 0o600)
    try:
        if os.fstat(target).st_size != was.size:
            os.ftruncate(target, was.size)
        for piece in was.pieces:
            source = os.open(journal.folder / piece.file_name, os.O_RDONLY | system.OPEN_FLAGS)
            try:
                for position, old in _read_blocks(source, piece.start, piece.stop):
                    if system.pread(target, len(old), position) != old:
                        _write(target, position, old)
            finally:
                os.close(source)
        place.chmod(was.mode)
        os.utime(target, ns=(os.fstat(target).st_atime_ns, was.modified))
        os.fsync(target)
    finally:
        os.close(target)


def _write(descriptor: int, position: int, data: bytes) -> None:
    written = 0
    while written < len(data):
        written += system.pwrite(descriptor, memoryview(data)[written:], position + written)


def _read_blocks(descriptor: int, start: int, stop: int) -> Iterator[tuple[int, bytes]]:
    position = start
    while position < stop:
        size = min(_BLOCK, stop - position)
        yield position, system.pread(descriptor, size, position).ljust(size, b"\0")
        position += size


# -- whole folders


def _present_place(journal: BackupJournal, root: Path, name: str, inode: int) -> Path | None:
    """Return the present place of the folder that had the name ``name`` before."""
    for place in (root / name, journal.folder / TREES / name, journal.folder / TREES / f"{name}.old"):
        if place.exists() and place.stat().st_ino == inode:
            return place
    return None


def _exchange_back(journal: BackupJournal, root: Path, name: str, inode: int | None) -> None:
    new, old = root / name, journal.folder / TREES / name
    if inode is None:
        if new.exists():
            shutil.rmtree(old, ignore_errors=True)
            new.rename(old)
        return
    place = _present_place(journal, root, name, inode)
    if place is not None and place != new:
        if new.exists():
            exchange(place, new)
        else:
            place.rename(new)


def _system_call() -> Callable[..., int] | None:
    """Return ``renameat2`` of the C library; None if it has none."""
    with suppress(OSError):
        function: Callable[..., int] | None = getattr(system.c_library(), "renameat2", None)
        return function
    return None


def exchange(new: Path, old: Path) -> None:
    """Swap the names of two folders: atomically if the system can, else in two steps with a way back."""
    swap = _system_call()
    if swap is not None and swap(_CURRENT_FOLDER, os.fsencode(new), _CURRENT_FOLDER, os.fsencode(old), _EXCHANGE) == 0:
        return
    aside = new.with_name(f"{new.name}.old")
    old.rename(aside)
    try:
        new.rename(old)
    except OSError:
        aside.rename(old)
        raise
    aside.rename(new)
