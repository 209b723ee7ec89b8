"""Keeping what is about to change: each thing is in the folder, and in its journal, before it changes.

A file that will be removed gets a second name in the folder, which costs nothing. One that is written in place shares
its bytes with such a name, so of it the bytes that may change are copied, holes left holes. Whoever writes goes through
:class:`engine.mapped.keeping.KeepingDisk`, which asks here first.

The folder beside a store in which a command keeps what it is about to change: its journal, and how a store stands.

``kept.jsonl`` has a line for the store as it was found, then one for each thing that was about to change, written and
synced before the change; after an orderly end one that tells how the store was left. A line that was cut short tells
of a change that was never made. Names are relative to the store's directory, of what lies elsewhere they are absolute.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import itertools
import json
import os
import stat
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from engine.errors import StoreError
from engine.mapped.disk import RealDisk
from engine.mapped.reading import data_extents
from engine.mapped.real_file import OpenFiles, RealFile
from engine.whole_file import sync_folder

JOURNAL = "kept.jsonl"
FILES = "files"
TREES = "trees"
VERSION = 1
Stamp = list[int]
"""Length in bytes, time of change in ns, and inode of a file."""


@dataclass(slots=True)
class Piece:
    """Bytes [start, stop) of a file as they were; ``kept`` is the file in the folder that has them, at the same place.

    ``sha256`` is theirs (see :func:`engine.mapped.keeping.digest_span`), None where blocks are shared with the file.
    """

    kept: str
    start: int
    stop: int
    sha256: str | None


@dataclass(slots=True)
class WasFile:
    """A file as it was: length (bytes), time of change (ns), mode, inode. ``link`` names a second name of it in the
    folder; else ``pieces`` hold what could change.
    """

    size: int
    modified: int
    mode: int
    inode: int
    link: str | None = None
    text: str | None = None  # of the lock's file: all of it
    pieces: list[Piece] = field(default_factory=list)


@dataclass(slots=True)
class Kept:
    """What a journal tells. ``files`` are the files that were there, ``absent`` those that were not, ``folders`` the
    (mode, time of change in ns) of folders whose names changed, ``new_folders`` those that were made, ``trees`` the
    inodes of whole folders that were exchanged (None: there was none).
    """

    folder: Path
    store: str
    inode: int
    command: str
    logs: tuple[str, ...]
    before: dict[str, Stamp]
    files: dict[str, WasFile] = field(default_factory=dict)
    absent: list[str] = field(default_factory=list)
    folders: dict[str, tuple[int, int]] = field(default_factory=dict)
    new_folders: list[str] = field(default_factory=list)
    trees: dict[str, int | None] = field(default_factory=dict)
    after: dict[str, Stamp] | None = None
    begun: bool = False
    undone: bool = False

    def place(self, root: Path, name: str) -> Path:
        """Where the thing called ``name`` is, in the store at ``root``."""
        return root / name  # an absolute name stays what it is

    @property
    def is_empty(self) -> bool:
        """The command was stopped before it did anything: the lock comes first."""
        return "lock" not in self.files and "lock" not in self.absent

    @property
    def made(self) -> list[str]:
        """Files that were not there, the lock's aside."""
        return [name for name in self.absent if name != "lock"]

    @property
    def amount(self) -> tuple[int, int]:
        """(files, bytes on the disk) that are kept."""
        places = [self.folder / was.link for was in self.files.values() if was.link is not None]
        places += [self.folder / piece.kept for was in self.files.values() for piece in was.pieces]
        files, found = len(self.files.keys() - {"lock"}), [place.lstat() for place in places if os.path.lexists(place)]
        for name, inode in self.trees.items():
            tree = self.folder / TREES / name
            if inode is not None and tree.exists():
                below = [path.lstat() for path in tree.rglob("*") if path.is_file()]
                files += len(below)
                found += below
        return files, sum(min(one.st_size, one.st_blocks * 512) for one in found)


def read(folder: Path) -> Kept:
    """What the journal in ``folder`` tells. Raises :class:`StoreError` where it is none, ``OSError``."""
    path = folder / JOURNAL
    try:
        lines = path.read_bytes().split(b"\n")
    except (FileNotFoundError, NotADirectoryError) as error:
        raise StoreError("expected a folder that a command kept, found no journal in it", file=str(path)) from error
    entries = [_parsed(line) for line in lines[:-1]]
    head = entries[0] if entries else None
    if head is None or head.get("storescopeKept") != VERSION or None in entries:
        raise StoreError("expected the journal of what a command kept, found something else", file=str(path))
    found = Kept(
        folder, str(head["store"]), int(head["inode"]), str(head["command"]), tuple(head["logs"]), dict(head["before"])
    )
    for entry in entries[1:]:
        if entry is not None:
            _take(found, entry)
    return found


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None


def _take(found: Kept, entry: dict[str, Any]) -> None:
    match entry:
        case {"absent": name}:
            found.absent.append(name)
        case {"newFolder": name}:
            found.new_folders.append(name)
        case {"folder": name, "mode": mode, "modified": modified}:
            found.folders[name] = (mode, modified)
        case {"tree": name, "inode": inode}:
            found.trees[name] = inode
        case {"file": name, "size": size, "modified": modified, "mode": mode, "inode": inode}:
            was = WasFile(size, modified, mode, inode, entry.get("link"), entry.get("text"))
            was = found.files.setdefault(name, was)
            if "start" in entry:
                was.pieces.append(Piece(entry["kept"], entry["start"], entry["stop"], entry["sha256"]))
        case {"after": after}:
            found.after = after
        case {"undo": word}:
            found.begun, found.undone = True, word == "done"


# -- how a store stands


def stamps(root: Path, logs: Iterable[Path]) -> dict[str, Stamp]:
    """Every file of a store by name. Raises ``OSError``."""
    found: dict[str, Stamp] = {}
    for place in (root, *(log for log in logs if not log.is_relative_to(root))):
        for path in _files(place):
            info = os.lstat(path)
            name = os.path.relpath(path, root) if place == root else path
            found[name] = [info.st_size, info.st_mtime_ns, info.st_ino]
    return found


def _files(root: Path) -> Iterator[str]:
    """Files below ``root``; a folder of the store that is a link is followed, a link further down is not."""
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


def is_plain(mode: int) -> bool:
    """Whether a mode is that of a regular file."""
    return stat.S_ISREG(mode)


_CHUNK = 1 << 20
_ZEROS = bytes(_CHUNK)
_FICLONE = 0x40049409
_CLONED_FROM = 8 << 20
"""Bytes from which on sharing a file's blocks is tried before they are copied."""
NO_LINK = {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP, errno.ENOSYS}
"""What says that a file cannot have a second name there."""


class CannotKeep(StoreError):
    """What is about to change cannot be kept beside the store. Nothing was changed."""


class Keeper:
    """The folder for what ``command`` changes of the store at ``root``, made beside it; ``logs`` are the folders of its
    log. Raises :class:`CannotKeep`.
    """

    def __init__(self, root: Path, command: str, logs: Iterable[Path] = ()) -> None:
        self.root = root.absolute()
        self.logs = tuple(log.absolute() for log in logs)
        self._lock = threading.RLock()
        self._number = 0
        self._from: dict[str, int] = {}  # file that was there → lowest byte of it that is safe
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
            self._journal = os.open(self.folder / JOURNAL, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            head = {"storescopeKept": VERSION, "store": str(real), "inode": real.stat().st_ino, "command": command}
            self._write({**head, "logs": list(map(str, self.logs)), "before": stamps(self.root, self.logs)})
            self._note_lock(self.root / "lock")
            sync_folder(self.folder)
            sync_folder(self.folder.parent)
        except OSError as error:
            self.close()
            place = str(self.folder if self.folder != real else real.parent)
            text = f"what is about to change cannot be kept here: {error.strerror}"
            raise CannotKeep(f"{text} (nothing was changed; --no-backup does without)", file=place) from error

    def is_log(self, path: str) -> bool:
        """Whether a file is one of the log: written behind its end only."""
        return Path(path).absolute().parent in self.logs

    # -- before a change

    def before_change(self, path: Path, start: int = 0) -> int:
        """Bytes from ``start`` on are about to change, or the length is; gives the lowest byte that is safe now."""
        with self._lock:
            name = self._name(path)
            if name in self._absent:
                return 0
            info = self._sizes.get(name)
            if info is None:
                try:
                    info = path.stat()
                except FileNotFoundError:
                    self.before_make(path)
                    return 0
                start = min(start, info.st_size)
                self._copy(path, name, info, start, info.st_size)
            elif start < self._from[name]:
                self._copy(path, name, info, start, self._from[name])
            self._from[name] = min(start, self._from.get(name, start))
            return self._from[name]

    def before_delete(self, path: Path) -> None:
        """The file is about to lose its name, by removal or because another takes it."""
        with self._lock:
            name = self._name(path)
            if name in self._absent:
                return
            if name in self._sizes:
                if self._from[name] > 0:  # what could not change until now goes, too
                    self.before_change(path)
                return
            try:
                info = path.lstat()
            except FileNotFoundError:
                return
            self._note_folder(path.parent)
            kept = self._next()
            try:
                os.link(path, self.folder / kept, follow_symlinks=False)
            except OSError as error:
                if error.errno not in NO_LINK or not is_plain(info.st_mode):
                    raise
                self.before_change(path)
                return
            sync_folder(self.folder / FILES)
            self._write({**_of_file(name, info), "link": kept})
            self._sizes[name], self._from[name] = info, 0

    def before_make(self, path: Path) -> None:
        """The file is about to be made; its folders, too, where they are missing."""
        with self._lock:
            name = self._name(path)
            if name in self._absent or name in self._sizes or os.path.lexists(path):
                return
            self._note_new_folder(path.parent)
            self._write({"absent": name})
            self._absent.add(name)

    def before_folder_goes(self, path: Path) -> None:
        """The folder is about to be removed, if it is empty."""
        with self._lock:
            if path.is_dir():
                self._note_folder(path.parent)
                self._note_folder(path)

    def before_folder_moves(self, source: Path, target: Path) -> None:
        """The folder is about to get another name, with all that is in it."""
        with self._lock:
            for place, _folders, names in os.walk(source):
                folder, moved = Path(place), target / Path(place).relative_to(source)
                self._note_folder(folder)
                self._note_new_folder(moved)
                for name in names:
                    self.before_delete(folder / name)
                    self.before_make(moved / name)

    def before_exchange(self, name: str) -> None:
        """The folder ``name`` of the store is about to change places with what is built in the folder's ``trees``."""
        with self._lock:
            place = self.root / name
            self._note_folder(self.root)
            self._write({"tree": name, "inode": place.stat().st_ino if place.exists() else None})

    # -- at the end

    def finish(self) -> None:
        """The command has done its work: tell how it leaves the store."""
        self._write({"after": stamps(self.root, self.logs)})
        self.close()

    def close(self) -> None:
        """Close the journal."""
        if self._journal >= 0:
            os.close(self._journal)
            self._journal = -1

    def _name(self, path: Path) -> str:
        place = path.absolute()
        return str(place.relative_to(self.root)) if place.is_relative_to(self.root) else str(place)

    def _next(self) -> str:
        self._number += 1
        return f"{FILES}/{self._number}"

    def _note_lock(self, path: Path) -> None:
        """Whoever takes the lock makes its file, or gives it another time and text."""
        self._note_folder(path.parent)
        try:
            info, text = path.stat(), path.read_bytes()
        except FileNotFoundError:
            self._write({"absent": "lock"})
            self._absent.add("lock")
            return
        self._write({**_of_file("lock", info), "text": text.decode("latin-1")})
        self._sizes["lock"], self._from["lock"] = info, 0

    def _note_folder(self, path: Path) -> None:
        name = self._name(path)
        if name not in self._folders:
            info = path.stat()
            self._write({"folder": name, "mode": stat.S_IMODE(info.st_mode), "modified": info.st_mtime_ns})
            self._folders.add(name)

    def _note_new_folder(self, path: Path) -> None:
        """The folder is about to be made, and those above it that are missing; one that is there gets another name."""
        missing = list(itertools.takewhile(lambda folder: not folder.exists(), (path, *path.parents)))
        self._note_folder((path, *path.parents)[len(missing)])
        for folder in reversed(missing):
            if self._name(folder) not in self._folders:
                self._write({"newFolder": self._name(folder)})
                self._folders.add(self._name(folder))

    def _copy(self, path: Path, name: str, info: os.stat_result, start: int, stop: int) -> None:
        entry = _of_file(name, info)
        if start < stop:
            kept = self._next()
            digest = copy_span(path, self.folder / kept, start, stop)
            sync_folder(self.folder / FILES)
            entry |= {"kept": kept, "start": start, "stop": stop, "sha256": digest}
        self._note_folder(path.parent)
        self._write(entry)
        self._sizes[name] = info

    def _write(self, entry: dict[str, Any]) -> None:
        line = memoryview(json.dumps(entry, ensure_ascii=True, separators=(",", ":")).encode() + b"\n")
        while line:
            line = line[os.write(self._journal, line) :]
        os.fsync(self._journal)


def copy_span(source: Path, target: Path, start: int, stop: int) -> str | None:
    """Copy bytes [start, stop) to the same place of the new file ``target``, zeros left out, and sync it; gives their
    SHA-256 (see :func:`digest_span`), None where the blocks are shared. Raises ``OSError``.
    """
    reading = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    try:
        writing = os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            if stop - start >= _CLONED_FROM and _clone(reading, writing):
                os.fsync(writing)
                return None
            os.ftruncate(writing, stop)
            digest = hashlib.sha256()
            for at, data in pieces(reading, start, stop):
                digest.update(b"%d:" % at + data)
                written = 0
                while written < len(data):
                    written += os.pwrite(writing, memoryview(data)[written:], at + written)
            os.fsync(writing)
            return digest.hexdigest()
        finally:
            os.close(writing)
    finally:
        os.close(reading)


def digest_span(descriptor: int, start: int, stop: int) -> str:
    """SHA-256 over place and bytes of each stretch of :func:`pieces`."""
    digest = hashlib.sha256()
    for at, data in pieces(descriptor, start, stop):
        digest.update(b"%d:" % at + data)
    return digest.hexdigest()


def pieces(descriptor: int, start: int, stop: int) -> Iterator[tuple[int, bytes]]:
    """(place, bytes) of the stretches of [start, stop), cut at whole MiB, that are not all zeros."""
    behind = start
    for low, high in data_extents(descriptor, start, stop):
        at = max(low - low % _CHUNK, behind)
        while at < high:
            behind = min(at - at % _CHUNK + _CHUNK, stop)
            data = os.pread(descriptor, behind - at, at)
            if data and data != _ZEROS[: len(data)]:
                yield at, data
            at = behind


def _clone(reading: int, writing: int) -> bool:
    try:
        fcntl.ioctl(writing, _FICLONE, reading)
    except OSError:
        return False
    return True


def _of_file(name: str, info: os.stat_result) -> dict[str, Any]:
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


# The real disk that keeps what is about to change: every call that changes something asks :class:`Keeper` first.
#
# A test walks the names of the protocol, so that a new call cannot forget it.

_NOTHING: Final = 1 << 62


class KeepingDisk(RealDisk):
    """See :class:`engine.mapped.disk.Disk`; what changes is kept by ``keeper`` until :meth:`rest`. How the lock's file
    was, ``keeper`` knows from its beginning.
    """

    def __init__(self, keeper: Keeper) -> None:
        super().__init__()
        self.keeper = keeper
        self.keeps = True

    def rest(self) -> None:
        """From now on nothing more is kept."""
        self.keeps = False

    def open(self, path: Path, size: int) -> RealFile:
        if self.keeps:
            try:
                length = path.stat().st_size
            except FileNotFoundError:
                self.keeper.before_make(path)
            else:
                if length < size:
                    self.keeper.before_change(path, length)
        return super().open(path, size)

    def _file(self, path: str, size: int, new_folders: tuple[str, ...] = ()) -> RealFile:
        return KeepingFile(path, size, self._files, new_folders, self)

    def write_file(self, path: Path, data: bytes, *, sync: bool = False) -> None:
        if self.keeps:
            self.keeper.before_change(path)
        super().write_file(path, data, sync=sync)

    def replace(self, source: Path, target: Path) -> None:
        if self.keeps:
            self.keeper.before_delete(source)
            self.keeper.before_delete(target)
            self.keeper.before_make(target)
        super().replace(source, target)

    def delete(self, path: Path) -> None:
        if self.keeps:
            self.keeper.before_delete(path)
        super().delete(path)

    def move_folder(self, source: Path, target: Path) -> None:
        if self.keeps:
            self.keeper.before_folder_moves(source, target)
        super().move_folder(source, target)

    def remove_folder(self, path: Path) -> bool:
        if self.keeps:
            self.keeper.before_folder_goes(path)
        return super().remove_folder(path)

    def set_modified(self, path: Path, ms: int) -> None:
        if self.keeps:
            self.keeper.before_change(path, _NOTHING)
        super().set_modified(path, ms)


class KeepingFile(RealFile):
    """See :class:`engine.mapped.disk.DiskFile`. A view may be written anywhere, so the whole file is kept before one is
    handed out; of a log file nothing is: views of it are read, and written behind its end alone, where zeros are.
    """

    __slots__ = ("_disk", "_log", "_safe_from")

    def __init__(self, path: str, size: int, files: OpenFiles, new_folders: tuple[str, ...], disk: KeepingDisk) -> None:
        super().__init__(path, size, files, new_folders)
        self._disk = disk
        self._log = disk.keeper.is_log(path)
        self._safe_from = _NOTHING

    def write(self, position: int, data: bytes | memoryview) -> None:
        if position < self._safe_from and self._disk.keeps:
            self._safe_from = self._disk.keeper.before_change(Path(self.path), position)
        super().write(position, data)

    def reserve(self, start: int, stop: int, *, touch: bool = False) -> None:
        self._keep_from(start)
        super().reserve(start, stop, touch=touch)

    def delete(self) -> None:
        if self._disk.keeps:
            self._disk.keeper.before_delete(Path(self.path))
        super().delete()

    def _map(self) -> memoryview:
        if not self._log:
            self._keep_from(0)
        return super()._map()

    def _keep_from(self, position: int) -> None:
        if position < self._safe_from and self._disk.keeps and os.path.lexists(self.path):
            self._safe_from = self._disk.keeper.before_change(Path(self.path), position)
