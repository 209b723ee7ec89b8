"""The journal of a backup folder, ``kept.jsonl``: how the store was, and each change.

It has a line for the store before the command, then one for each change, written and synced before the change. After a
normal end a last line says how the store was left. An incomplete line belongs to a change that was never made. Names
are relative to the store's directory; those of files elsewhere are absolute.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.errors import StoreError

JOURNAL = "kept.jsonl"
FILES = "files"
TREES = "trees"
VERSION = 1
Stamp = list[int]
"""Length in bytes, time of change in ns, and inode of a file."""


@dataclass(slots=True)
class SavedSpan:
    """Bytes [start, stop) of a file before the change; ``file_name`` is the file in the folder that has them, at the
    same position.

    ``sha256`` is their digest (see :func:`engine.mapped.backup.digest_span`), None if blocks are shared with the
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
    begun: bool = False
    undone: bool = False

    def place(self, root: Path, name: str) -> Path:
        """Return the path of ``name`` in the store at ``root``."""
        return root / name  # an absolute name stays as it is

    @property
    def is_empty(self) -> bool:
        """True if the command was stopped before it did anything: the lock comes first."""
        return "lock" not in self.files and "lock" not in self.absent

    @property
    def made(self) -> list[str]:
        """Files that did not exist, except the lock."""
        return [name for name in self.absent if name != "lock"]

    @property
    def amount(self) -> tuple[int, int]:
        """The number of files that are saved, and their bytes on the disk."""
        places = [self.folder / was.link for was in self.files.values() if was.link is not None]
        places += [self.folder / piece.file_name for was in self.files.values() for piece in was.pieces]
        files, infos = len(self.files.keys() - {"lock"}), [place.lstat() for place in places if os.path.lexists(place)]
        for name, inode in self.trees.items():
            tree = self.folder / TREES / name
            if inode is not None and tree.exists():
                tree_infos = [path.lstat() for path in tree.rglob("*") if path.is_file()]
                files += len(tree_infos)
                infos += tree_infos
        return files, sum(min(info.st_size, info.st_blocks * 512) for info in infos)


def read(folder: Path) -> BackupJournal:
    """Read the journal in ``folder``. Raises :class:`StoreError` if it is none, ``OSError``."""
    path = folder / JOURNAL
    try:
        lines = path.read_bytes().split(b"\n")
    except (FileNotFoundError, NotADirectoryError) as error:
        raise StoreError("expected a backup folder, found no journal in it", file=str(path)) from error
    entries = [_parsed(line) for line in lines[:-1]]
    head = entries[0] if entries else None
    if head is None or head.get("storescopeKept") != VERSION or None in entries:
        raise StoreError("expected a backup journal, found something else", file=str(path))
    journal = BackupJournal(
        folder, str(head["store"]), int(head["inode"]), str(head["command"]), tuple(head["logs"]), dict(head["before"])
    )
    for entry in entries[1:]:
        if entry is not None:
            _apply_entry(journal, entry)
    return journal


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
    """Return the stamp of every file of a store by name. Raises ``OSError``."""
    stamp_by_name: dict[str, Stamp] = {}
    for place in (root, *(log for log in logs if not log.is_relative_to(root))):
        for path in _files(place):
            info = os.lstat(path)
            name = os.path.relpath(path, root) if place == root else path
            stamp_by_name[name] = [info.st_size, info.st_mtime_ns, info.st_ino]
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
