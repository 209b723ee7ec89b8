"""Lists every file of a store with its length and its space on disk: the basis of all accounts of space.

Folders of the store's parts may be links to other disks; any other link counts as its own few bytes.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import CannotRead

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot
    from engine.mapped.reading import Reading
    from engine.rules.undecoded import UndecodedPart


SECTOR = 512
"""Unit of ``st_blocks``, in bytes."""
LOG = "commitlog"
TIERED = "tiered storage"
TIERED_INDEX_FOLDER = "tiered_index_file"
"""Folder of index files that were not copied to tiered storage yet."""
QUEUE_KINDS = ("consumequeue", "batchconsumequeue", "consumequeue_ext")
KINDS = (
    LOG,
    *QUEUE_KINDS,
    "index",
    "config",
    "checkpoint",
    "abort",
    "lock",
    "timerlog",
    "timerwheel",
    "compaction",
)
"""Entries of a store's folder that are kinds of their own in the account; everything else is ``other``."""


@dataclass(frozen=True, slots=True)
class StoreFile:
    """A file: ``size`` is its apparent length, ``allocated`` the space on disk (both bytes), ``modified`` in ms;
    ``name`` is relative to the store, with ``/``.
    """

    path: str
    name: str
    kind: str
    size: int
    allocated: int
    modified: int


def list_files(store: StoreSnapshot) -> list[StoreFile]:
    """Every file of the store: those of the log first, in its order, then by name.

    Unreadable files are left out and noted in the store's ``reading``; nothing is raised.
    """
    files: dict[str, StoreFile] = {}
    for file in store.log.files if store.kind == "file" else ():
        with contextlib.suppress(CannotRead):
            files[file.path] = _file(file.path, f"{LOG}/{file.name}", LOG, file.status())
    if store.kind != "file":
        for number, folder in enumerate(store.commit_log.folders):
            for entry in _walk(store.reading, str(folder), links=True):
                name = entry.path[len(str(folder)) + 1 :]
                shown = f"{LOG}/{name}" if len(store.commit_log.folders) == 1 else f"{LOG}[{number}]/{name}"
                _add(store.reading, files, entry, shown, LOG, follow=True)
    if store.paths is not None:
        root = store.paths.root
        for entry in _scan(store.reading, str(root)):
            kind = entry.name if entry.name in KINDS and entry.name != LOG else "other"
            if Path(entry.path) in store.commit_log.folders:
                continue
            links = kind != "other"
            inside = _is_folder(store.reading, entry, links)
            for inner_entry in _walk(store.reading, entry.path, links=links) if inside else (entry,):
                _add(
                    store.reading,
                    files,
                    inner_entry,
                    inner_entry.path[len(str(root)) + 1 :],
                    kind,
                    follow=kind != "other",
                )
    listed = [_of_undecoded_part(file, store.undecoded) for file in files.values()]
    return [_of_tiered_storage(file, store) for file in listed]


def _of_tiered_storage(file: StoreFile, store: StoreSnapshot) -> StoreFile:
    """The file, with tiered storage as its kind if it belongs to it (docs/formats/tiered.md)."""
    if file.kind != "other":
        return file
    if file.name.startswith(f"{TIERED_INDEX_FOLDER}/"):
        return replace(file, kind=TIERED)
    with contextlib.suppress(CannotRead):
        folder = store.tiered.folder if store.tiered is not None else None
        if folder is not None and file.path.startswith(f"{folder}{os.sep}"):
            return replace(file, kind=TIERED)
    return file


def _of_undecoded_part(file: StoreFile, parts: Sequence[UndecodedPart]) -> StoreFile:
    """The file, with the folder of an undecoded part as its kind if it belongs to one."""
    for part in parts:
        below = file.name.removeprefix(f"{part.folder}/")
        inside = below != file.name and file.kind != LOG
        if (inside and not (part.beside_files or part.folder == "consumequeue")) or (inside and "/" not in below):
            return replace(file, kind=f"{part.folder} ({part.format})")
    return file


def bytes_of(files: list[StoreFile]) -> int:
    """Apparent bytes of all of them."""
    return sum(file.size for file in files)


def still_as_listed(reading: Reading, files: list[StoreFile]) -> int:
    """Count the files that have another length now, or are gone because a broker went on."""
    changed = 0
    for file in files:
        try:
            now, unfollowed = (
                reading.status(file.path, listed=True),
                reading.status(file.path, listed=True, follow=False),
            )
            changed += file.size not in {info.st_size for info in (now, unfollowed) if info is not None}
        except CannotRead:
            changed += 1
    return changed


def _add(
    reading: Reading, files: dict[str, StoreFile], entry: os.DirEntry[str], name: str, kind: str, *, follow: bool
) -> None:
    path = entry.path
    if path in files:
        return
    with contextlib.suppress(CannotRead):
        info = reading.entry_status(entry, follow=False)
        if follow and stat.S_ISLNK(info.st_mode):
            with contextlib.suppress(CannotRead):  # a dangling link still has a name and a length
                info = reading.entry_status(entry)
        if not stat.S_ISDIR(info.st_mode):
            files[path] = _file(path, name, kind, info)


def _file(path: str, name: str, kind: str, info: os.stat_result) -> StoreFile:
    plain = stat.S_ISREG(info.st_mode) or stat.S_ISLNK(info.st_mode)
    allocated = getattr(info, "st_blocks", -(-info.st_size // SECTOR)) * SECTOR
    return StoreFile(
        path, name, kind, info.st_size if plain else 0, allocated if plain else 0, round(info.st_mtime * 1000)
    )


def _is_folder(reading: Reading, entry: os.DirEntry[str], follow: bool) -> bool:
    if entry.is_dir(follow_symlinks=False):
        return True
    if not follow or not entry.is_symlink():
        return False
    try:
        return stat.S_ISDIR(reading.entry_status(entry).st_mode)
    except CannotRead:
        return False


def _walk(reading: Reading, folder: str, *, links: bool) -> Iterator[os.DirEntry[str]]:
    """Every file below ``folder``, by name; each folder once, whatever links exist."""
    visited: set[tuple[int, int]] = set()
    pending = [folder]
    while pending:
        current_folder = pending.pop()
        try:
            place = reading.status(current_folder)
        except CannotRead:
            continue
        if place is None or (place.st_dev, place.st_ino) in visited:
            continue
        visited.add((place.st_dev, place.st_ino))
        folders = []
        for entry in _scan(reading, current_folder):
            if _is_folder(reading, entry, links):
                folders.append(entry.path)
            else:
                yield entry
        pending += reversed(folders)


def _scan(reading: Reading, folder: str) -> list[os.DirEntry[str]]:
    """Entries of a folder, by name; none if it cannot be listed (``reading`` has noted that)."""
    try:
        return reading.entries(folder)
    except CannotRead:
        return []
