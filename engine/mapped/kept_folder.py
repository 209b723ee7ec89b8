"""The folder beside a store in which a command keeps what it is about to change: its journal, and how a store stands.

``kept.jsonl`` has a line for the store as it was found, then one for each thing that was about to change, written and
synced before the change; after an orderly end one that tells how the store was left. A line that was cut short tells
of a change that was never made. Names are relative to the store's directory, of what lies elsewhere they are absolute.
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
