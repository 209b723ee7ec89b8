"""The backup folder beside a store, in which a command saves everything that it is about to change.

Its journal (``kept.jsonl``) lists the state of the store before the command, and each change.

A file that will be removed gets a hard link in the folder, which costs nothing. A file that is written in place would
change under the link too, so the bytes that may change are copied; holes stay holes. All writing goes through
:class:`BackupDisk`: every call that changes something calls the :class:`BackupWriter` first. A test checks all methods
of the protocol, so that no new method skips the backup.

The journal has a line for the store before the command, then one for each change, written and synced before the change.
After a normal end everything is synced, and a last line has the state after the command. A last line that is not
complete belongs to a change that was never made. Names are relative to the store's directory; those of files elsewhere
are absolute.
"""

from __future__ import annotations

import errno
import glob
import hashlib
import itertools
import json
import os
import shutil
import stat
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from engine import system
from engine.errors import StoreError
from engine.files.atomic_file import errors_of, write_atomically
from engine.mapped.disk import RealDisk
from engine.mapped.real_file import OpenFiles, RealFile
from engine.mapped.sparse import copy_span
from engine.sentences import sentence

JOURNAL = "kept.jsonl"
NOTE = "storescope.changing"
"""A file in a store while a command changes it without a backup."""
FILES = "files"
TREES = "trees"
VERSION = 1
CHANGING_COMMANDS = frozenset({"repair", "set-offset", "set-delay-offset", "set-checkpoint"})
"""Commands that change files as no start does. If another command is stopped, the next start completes its work."""
MAX_SYNCED_FILES = 1_000
"""Number of changed files that are synced one by one; with more of them the system syncs everything at once."""
SMALL_FILE_BYTES = 16 << 10
"""Maximum size of a file whose stamp has a digest: the checkpoint and most tables."""
Stamp = list[int | str]
"""Length in bytes, time of change in ns, and inode of a file; the SHA-256 of a small one."""


@dataclass(slots=True)
class SavedSpan:
    """Bytes [start, stop) of a file before the change; ``file_name`` is the file in the folder that has them, at the
    same position.

    ``sha256`` is their digest (see :func:`engine.mapped.sparse.digest_span`), None if blocks are shared with the
    file.

    """

    file_name: str
    start: int
    stop: int
    sha256: str | None


@dataclass(slots=True)
class SavedFile:
    """A file before the change: length (bytes), time of change (ns), mode, inode.

    ``link`` is a second name of the file in the folder; without one ``pieces`` hold the bytes that could change.

    """

    size: int
    modified: int
    mode: int
    inode: int
    link: str | None = None
    text: str | None = None  # content of the lock's file
    pieces: list[SavedSpan] = field(default_factory=list)


@dataclass(slots=True)
class BackupJournal:
    """The content of a journal.

    ``files`` are the files that existed, ``absent`` those that did not. ``folders`` have the (mode, time of
    change in ns) of folders whose names changed, ``new_folders`` are folders that were created. ``trees`` have
    the inodes of complete folders that were exchanged (None: there was none).

    """

    folder: Path
    store: str
    inode: int
    command: str
    logs: tuple[str, ...]
    stamps_before: dict[str, Stamp]
    files: dict[str, SavedFile] = field(default_factory=dict)
    absent: list[str] = field(default_factory=list)
    folders: dict[str, tuple[int, int]] = field(default_factory=dict)
    new_folders: list[str] = field(default_factory=list)
    trees: dict[str, int | None] = field(default_factory=dict)
    stamps_after: dict[str, Stamp] | None = None
    rewrites_log: bool = False
    """True if the command writes other bytes than zeros into the log."""
    begun: bool = False
    undone: bool = False

    @property
    def is_empty(self) -> bool:
        """True if the command changed nothing: taking the lock is its first change."""
        return "lock" not in self.files and "lock" not in self.absent

    @property
    def made(self) -> list[str]:
        """Files that did not exist, except the lock."""
        return [name for name in self.absent if name != "lock"]

    @property
    def amount(self) -> tuple[int, int]:
        """Number of saved files and their bytes on the disk."""
        places = [self.folder / was.link for was in self.files.values() if was.link is not None]
        places += [self.folder / piece.file_name for was in self.files.values() for piece in was.pieces]
        files, infos = len(self.files.keys() - {"lock"}), [place.lstat() for place in places if os.path.lexists(place)]
        for name, inode in self.trees.items():
            tree = self.folder / TREES / name
            if inode is not None and tree.exists():
                tree_infos = [path.lstat() for path in tree.rglob("*") if path.is_file()]
                files += len(tree_infos)
                infos += tree_infos
        return files, sum(min(info.st_size, system.allocated_bytes(info)) for info in infos)


def read(folder: Path) -> BackupJournal:
    """Read the journal in ``folder``. Raises :class:`StoreError` if it is not a journal, and ``OSError``."""
    path = folder / JOURNAL
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise StoreError(sentence("expected a backup folder, found no journal in it"), file=str(path)) from error
    return parse(content, folder)


def parse(content: bytes, folder: Path) -> BackupJournal:
    """Return the journal in ``folder`` with this content. Raises :class:`StoreError` if it is not a journal."""
    path = folder / JOURNAL
    entries = [_parsed(line) for line in content[: complete_length(content)].split(b"\n")[:-1]]
    head = entries[0] if entries else None
    if head is None or head.get("storescopeKept") != VERSION or None in entries:
        raise StoreError(sentence("expected a backup journal, found something else"), file=str(path))
    journal = BackupJournal(
        folder, str(head["store"]), int(head["inode"]), str(head["command"]), tuple(head["logs"]), dict(head["before"])
    )
    journal.rewrites_log = head.get("rewritesLog") is True
    for entry in entries[1:]:
        if entry is not None:
            _apply_entry(journal, entry)
    return journal


def find_backups(root: Path) -> list[BackupJournal]:
    """Return the backups of the store at ``root`` that lie beside it, newest first. Folders that cannot be read are
    left out.
    """
    real = root.resolve()
    journals = []
    for folder in sorted(real.parent.glob(f"{glob.escape(real.name)}.kept-*"), reverse=True):
        with suppress(OSError, StoreError, KeyError, ValueError, TypeError):
            journal = read(folder)
            if journal.store == str(real) and not journal.is_empty:
                journals.append(journal)
    return journals


def find_interrupted_change(root: Path) -> BackupJournal | None:
    """Return the newest backup beside the store of a command of :data:`CHANGING_COMMANDS`, or of its undo, that was
    stopped before its end: the store is partly changed. A command that is still at work looks the same.
    """
    return next((journal for journal in find_backups(root) if is_interrupted_change(journal)), None)


def is_interrupted_change(journal: BackupJournal) -> bool:
    """Return True for a command of :data:`CHANGING_COMMANDS`, or its undo, that was stopped before its end."""
    is_open = journal.stamps_after is None or journal.begun
    return journal.command in CHANGING_COMMANDS and not journal.undone and is_open


def begin_unsaved_change(root: Path, command: str) -> None:
    """Note in the store that ``command`` changes it without a backup; only :func:`end_unsaved_change` removes the note.

    Raises ``OSError``; then nothing was changed.
    """
    write_atomically(root / NOTE, json.dumps({"command": command}))
    system.sync_folder(root)


def end_unsaved_change(root: Path) -> None:
    """Remove the note of a change that is complete, if there is one. Raises ``OSError``."""
    with suppress(FileNotFoundError):
        (root / NOTE).unlink()
        system.sync_folder(root)


def find_unsaved_change(root: Path) -> str:
    """Return the command that was stopped while it changed the store without a backup; "" for none. A command that is
    still at work looks the same.
    """
    with suppress(OSError):
        return command_of_note((root / NOTE).read_bytes())
    return ""


def command_of_note(content: bytes) -> str:
    """Return the command that the note in a store names; "" if it names none."""
    entry = _parsed(content)
    return str(entry.get("command", "")) if entry is not None else ""


def complete_length(content: bytes) -> int:
    """Return the length of a journal without a last line that is not complete: its end is missing, or a power loss left
    zeros in the place of a part of it.
    """
    end = content.rfind(b"\n") + 1
    start = content.rfind(b"\n", 0, max(end - 1, 0)) + 1
    return start if b"\0" in content[start:end] else end


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None


def _apply_entry(journal: BackupJournal, entry: dict[str, Any]) -> None:
    match entry:
        case {"absent": name}:
            journal.absent.append(name)
        case {"newFolder": name}:
            journal.new_folders.append(name)
        case {"folder": name, "mode": mode, "modified": modified}:
            journal.folders[name] = (mode, modified)
        case {"tree": name, "inode": inode}:
            journal.trees[name] = inode
        case {"file": name, "size": size, "modified": modified, "mode": mode, "inode": inode}:
            was = SavedFile(size, modified, mode, inode, entry.get("link"), entry.get("text"))
            was = journal.files.setdefault(name, was)
            if "start" in entry:
                was.pieces.append(SavedSpan(entry["kept"], entry["start"], entry["stop"], entry["sha256"]))
        case {"after": after}:
            journal.stamps_after = after
        case {"undo": word}:
            journal.begun, journal.undone = True, word == "done"


def stamps(root: Path, logs: Iterable[Path]) -> dict[str, Stamp]:
    """Return the stamp of every file of a store by name: size, time of change (ns), inode, and of a small file its
    SHA-256. Raises ``OSError``.

    On tmpfs the time does not change when a broker writes through a mapping: only the bytes show that the checkpoint
    has changed.
    """
    stamp_by_name: dict[str, Stamp] = {}
    for place in (root, *(log for log in logs if not log.is_relative_to(root))):
        for path in _files(place):
            info = os.lstat(path)
            name = os.path.relpath(path, root) if place == root else path
            stamp_by_name[name] = [info.st_size, info.st_mtime_ns, info.st_ino]
            if info.st_size <= SMALL_FILE_BYTES and stat.S_ISREG(info.st_mode):
                stamp_by_name[name].append(hashlib.sha256(Path(path).read_bytes()).hexdigest())
    return stamp_by_name


def _files(root: Path) -> Iterator[str]:
    """Yield files below ``root``. A folder of the store that is a link is followed, a link further down is not."""
    pending = [str(root)]
    while pending:
        folder = pending.pop()
        try:
            with os.scandir(folder) as entries:
                listed = list(entries)
        except FileNotFoundError:
            continue
        for entry in listed:
            if entry.is_dir(follow_symlinks=folder == str(root)):
                pending.append(entry.path)
            else:
                yield entry.path


def is_regular(mode: int) -> bool:
    """Return True for the mode of a regular file."""
    return stat.S_ISREG(mode)


NO_LINK_ERRORS = {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP, errno.ENOSYS}
"""Errors that mean that a file cannot have a second name there."""


class CannotBackUp(StoreError):
    """A file cannot be saved beside the store before its change. Nothing was changed."""


class BackupWriter:
    """The folder for everything that ``command`` changes in the store at ``root``, created beside it.

    ``logs`` are the folders of its log; ``rewrites_log`` says that the command writes other bytes than zeros there.
    Raises :class:`CannotBackUp`.

    """

    def __init__(self, root: Path, command: str, logs: Iterable[Path] = (), *, rewrites_log: bool = False) -> None:
        self.root = root.absolute()
        self.logs = tuple(log.absolute() for log in logs)
        self._lock = threading.RLock()
        self._number = 0
        self._saved_from: dict[str, int] = {}  # existing file → everything from this byte on is saved
        self._saved_spans: dict[str, list[tuple[int, int]]] = {}  # existing file → spans before that byte
        self._sizes: dict[str, os.stat_result] = {}
        self._absent: set[str] = set()
        self._folders: set[str] = set()
        self._journal = -1
        real = self.root.resolve()
        self.folder = real
        try:
            self.folder = _new_folder(real)
            (self.folder / FILES).mkdir()
            (self.folder / TREES).mkdir()
            self._journal = os.open(
                self.folder / JOURNAL, os.O_WRONLY | os.O_CREAT | os.O_APPEND | system.OPEN_FLAGS, 0o644
            )
            head = {"storescopeKept": VERSION, "store": str(real), "inode": real.stat().st_ino, "command": command}
            head |= {"logs": list(map(str, self.logs)), "before": stamps(self.root, self.logs)}
            self._write({**head, "rewritesLog": True} if rewrites_log else head)
            self._note_lock(self.root / "lock")
            system.sync_folder(self.folder)
            system.sync_folder(self.folder.parent)
        except OSError as error:
            self.close()
            if self.folder != real:
                shutil.rmtree(self.folder, ignore_errors=True)
            text = sentence("the backup cannot be written: {strerror}", strerror=error.strerror)
            raise CannotBackUp(
                sentence("{text} (nothing was changed; --no-backup works without a backup)", text=text),
                file=str(real.parent),
            ) from error

    def is_log(self, path: str) -> bool:
        """Return True for a file of the log, which is written only after its end."""
        return Path(path).absolute().parent in self.logs

    # -- before a change

    def before_change(self, path: Path, start: int = 0) -> int:
        """Save bytes from ``start`` on, which are about to change (or the length is); returns the lowest byte that
        is saved now.
        """
        with self._lock:
            name = self._name(path)
            if name in self._absent:
                return 0
            info = self._sizes.get(name)
            if info is None:
                try:
                    info = path.stat()
                except FileNotFoundError:
                    self.before_create(path)
                    return 0
                start = min(start, info.st_size)
                self._copy(path, name, info, start, info.st_size)
            elif start < self._saved_from[name]:
                self._copy_unsaved(path, name, info, start, self._saved_from[name])
            self._saved_from[name] = min(start, self._saved_from.get(name, start))
            return self._saved_from[name]

    def before_span(self, path: Path, start: int, stop: int) -> None:
        """Save bytes [start, stop) of an existing file, which are about to change; its length and all else stay."""
        with self._lock:
            name = self._name(path)
            if name in self._absent:
                return
            info = self._sizes.get(name) or path.stat()
            self._copy_unsaved(path, name, info, start, min(stop, self._saved_from.setdefault(name, info.st_size)))
            self._saved_spans.setdefault(name, []).append((start, stop))

    def before_delete(self, path: Path) -> None:
        """Save a file that is about to be removed or replaced."""
        with self._lock:
            name = self._name(path)
            if name in self._absent:
                return
            if name in self._sizes:
                if self._saved_from[name] > 0:  # the bytes that are not saved yet will be lost too
                    self.before_change(path)
                return
            try:
                info = path.lstat()
            except FileNotFoundError:
                return
            self._note_folder(path.parent)
            backup_name = self._next()
            try:
                os.link(path, self.folder / backup_name, follow_symlinks=False)
            except OSError as error:
                if error.errno not in NO_LINK_ERRORS or not is_regular(info.st_mode):
                    raise
                self.before_change(path)
                return
            system.sync_folder(self.folder / FILES)
            self._write({**_file_entry(name, info), "link": backup_name})
            self._sizes[name], self._saved_from[name] = info, 0

    def before_create(self, path: Path) -> None:
        """Record a file that is about to be created, and its missing folders."""
        with self._lock:
            name = self._name(path)
            if name in self._absent or name in self._sizes or os.path.lexists(path):
                return
            self._note_new_folder(path.parent)
            self._write({"absent": name})
            self._absent.add(name)

    def before_folder_removal(self, path: Path) -> None:
        """Record a folder that is about to be removed, if it is empty."""
        with self._lock:
            if path.is_dir():
                self._note_folder(path.parent)
                self._note_folder(path)

    def before_folder_move(self, source: Path, target: Path) -> None:
        """Record a folder that is about to get another name, with its content."""
        with self._lock:
            if source.exists():
                self._note_folder(source.parent)
            for place, _folders, names in os.walk(source):
                folder, moved = Path(place), target / Path(place).relative_to(source)
                self._note_folder(folder)
                self._note_new_folder(moved)
                for name in names:
                    self.before_delete(folder / name)
                    self.before_create(moved / name)

    def before_exchange(self, name: str) -> None:
        """Record that the folder ``name`` of the store is about to be swapped with the one built in ``trees``."""
        with self._lock:
            place = self.root / name
            self._note_folder(self.root)
            self._write({"tree": name, "inode": place.stat().st_ino if place.exists() else None})

    # -- at the end

    def finish(self) -> None:
        """Make everything that the command changed durable, record the state after it, and close the journal."""
        self._sync_changes()
        self._write({"after": stamps(self.root, self.logs)})
        self.close()

    def close(self) -> None:
        """Close the journal."""
        if self._journal >= 0:
            os.close(self._journal)
            self._journal = -1

    def _sync_changes(self) -> None:
        """Sync bytes, names and times of all that was changed: the last line of the journal says what they are."""
        names = {*self._sizes, *self._absent}
        folders = {self.root.joinpath(name) for name in self._folders}
        if len(names) + len(folders) > MAX_SYNCED_FILES:
            system.sync_file_system(self.root)
            return
        for name in sorted(names):
            path = self.root / name
            folders.add(path.parent)
            if path.is_file() and not path.is_symlink():
                system.sync_file(path)
        for folder in sorted(folders, reverse=True):
            if folder.is_dir():
                system.sync_folder(folder)

    def _name(self, path: Path) -> str:
        place = path.absolute()
        return str(place.relative_to(self.root)) if place.is_relative_to(self.root) else str(place)

    def _next(self) -> str:
        self._number += 1
        return f"{FILES}/{self._number}"

    def _note_lock(self, path: Path) -> None:
        """Record the lock's file: taking the lock creates it, or changes its time and text."""
        self._note_folder(path.parent)
        try:
            info, text = path.stat(), path.read_bytes()
        except FileNotFoundError:
            self._write({"absent": "lock"})
            self._absent.add("lock")
            return
        self._write({**_file_entry("lock", info), "text": text.decode("latin-1")})
        self._sizes["lock"], self._saved_from["lock"] = info, 0

    def _note_folder(self, path: Path) -> None:
        name = self._name(path)
        if name not in self._folders:
            info = path.stat()
            self._write({"folder": name, "mode": stat.S_IMODE(info.st_mode), "modified": info.st_mtime_ns})
            self._folders.add(name)

    def _note_new_folder(self, path: Path) -> None:
        """Record the missing folders among ``path`` and its parents, which are about to be created, and the existing
        folder above them.
        """
        missing = list(itertools.takewhile(lambda folder: not folder.exists(), (path, *path.parents)))
        self._note_folder((path, *path.parents)[len(missing)])
        for folder in reversed(missing):
            if self._name(folder) not in self._folders:
                self._write({"newFolder": self._name(folder)})
                self._folders.add(self._name(folder))

    def _copy(self, path: Path, name: str, info: os.stat_result, start: int, stop: int) -> None:
        entry = _file_entry(name, info)
        if start < stop:
            backup_name = self._next()
            digest = copy_span(path, self.folder / backup_name, start, stop)
            system.sync_folder(self.folder / FILES)
            entry |= {"kept": backup_name, "start": start, "stop": stop, "sha256": digest}
        self._note_folder(path.parent)
        self._write(entry)
        self._sizes[name] = info

    def _copy_unsaved(self, path: Path, name: str, info: os.stat_result, start: int, stop: int) -> None:
        """Save what of [start, stop) is in no saved span: those bytes may have changed already."""
        for saved_start, saved_stop in sorted(self._saved_spans.get(name, ())):
            if start < min(saved_start, stop):
                self._copy(path, name, info, start, min(saved_start, stop))
            start = max(start, saved_stop)
        if start < stop:
            self._copy(path, name, info, start, stop)

    def _write(self, entry: dict[str, Any]) -> None:
        line = memoryview(json.dumps(entry, ensure_ascii=True, separators=(",", ":")).encode() + b"\n")
        with errors_of(self.folder / JOURNAL):
            while line:
                line = line[os.write(self._journal, line) :]
            os.fsync(self._journal)


def _file_entry(name: str, info: os.stat_result) -> dict[str, Any]:
    mode = stat.S_IMODE(info.st_mode)
    return {"file": name, "size": info.st_size, "modified": info.st_mtime_ns, "mode": mode, "inode": info.st_ino}


def _new_folder(real: Path) -> Path:
    name = f"{real.name}.kept-{time.strftime('%Y%m%d-%H%M%S')}"
    for number in itertools.count(1):
        folder = real.with_name(name if number == 1 else f"{name}-{number}")
        try:
            folder.mkdir(mode=0o755)
        except FileExistsError:
            continue
        return folder
    raise AssertionError


_NO_BYTES: Final = 1 << 62


class BackupDisk(RealDisk):
    """A :class:`engine.mapped.disk.Disk` that lets ``backup`` save everything before it changes, until
    :meth:`stop_backup`.

    ``backup`` saves the lock's file when it is created.
    """

    def __init__(self, backup: BackupWriter) -> None:
        super().__init__()
        self.backup = backup
        self.saves = True

    def stop_backup(self) -> None:
        """Stop saving."""
        self.saves = False

    def open(self, path: Path, size: int) -> RealFile:
        if self.saves:
            try:
                length = path.stat().st_size
            except FileNotFoundError:
                self.backup.before_create(path)
            else:
                if length < size:
                    self.backup.before_change(path, length)
        return super().open(path, size)

    def _file(self, path: str, size: int, new_folders: tuple[str, ...] = ()) -> RealFile:
        return BackupFile(path, size, self._files, new_folders, self)

    def write_file(self, path: Path, data: bytes, *, sync: bool = False) -> None:
        if self.saves:
            self.backup.before_change(path)
        super().write_file(path, data, sync=sync)

    def replace(self, source: Path, target: Path) -> None:
        if self.saves:
            self.backup.before_delete(source)
            self.backup.before_delete(target)
            self.backup.before_create(target)
        super().replace(source, target)

    def delete(self, path: Path) -> None:
        if self.saves:
            self.backup.before_delete(path)
        super().delete(path)

    def move_folder(self, source: Path, target: Path) -> None:
        if self.saves:
            self.backup.before_folder_move(source, target)
        super().move_folder(source, target)

    def remove_folder(self, path: Path) -> bool:
        if self.saves:
            self.backup.before_folder_removal(path)
        return super().remove_folder(path)

    def set_modified(self, path: Path, ms: int) -> None:
        if self.saves:
            self.backup.before_change(path, _NO_BYTES)
        super().set_modified(path, ms)

    def set_size(self, path: Path, size: int) -> None:
        if self.saves:
            self.backup.before_change(path, size)
        super().set_size(path, size)


class BackupFile(RealFile):
    """A :class:`engine.mapped.disk.DiskFile` that is saved before it changes.

    A view may be written anywhere, so the complete file is saved before a view is returned. A log file is the
    exception: its views are only read, and written only after its end, where zeros are.

    """

    __slots__ = ("_disk", "_log", "_safe_from")

    def __init__(self, path: str, size: int, files: OpenFiles, new_folders: tuple[str, ...], disk: BackupDisk) -> None:
        super().__init__(path, size, files, new_folders)
        self._disk = disk
        self._log = disk.backup.is_log(path)
        self._safe_from = _NO_BYTES

    def write(self, position: int, data: bytes | memoryview) -> None:
        if position < self._safe_from and self._disk.saves:
            self._safe_from = self._disk.backup.before_change(Path(self.path), position)
        super().write(position, data)

    def overwrite(self, position: int, data: bytes | memoryview) -> None:
        if self._disk.saves:
            self._disk.backup.before_span(Path(self.path), position, position + len(data))
        super().overwrite(position, data)

    def reserve(self, start: int, stop: int, *, touch: bool = False) -> None:
        self._save_from(start)
        super().reserve(start, stop, touch=touch)

    def delete(self) -> None:
        if self._disk.saves:
            self._disk.backup.before_delete(Path(self.path))
        super().delete()

    def _map(self) -> memoryview:
        if not self._log:
            self._save_from(0)
        return super()._map()

    def _save_from(self, position: int) -> None:
        if position < self._safe_from and self._disk.saves and os.path.lexists(self.path):
            self._safe_from = self._disk.backup.before_change(Path(self.path), position)
