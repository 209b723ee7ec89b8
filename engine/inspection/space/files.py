"""Every file of a store with its length and what the disk gave it: the ground that all accounts of space are held to.

Folders that hold the store's parts may be links to other disks; any other link counts as the few bytes it is.
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
"""Bytes that ``st_blocks`` counts in."""
LOG = "commitlog"
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
"""Names right below a store that its account calls by their own name; everything else is ``other``."""


@dataclass(frozen=True, slots=True)
class StoreFile:
    """One file: ``size`` is its apparent length, ``allocated`` what the file system gave it (both bytes),
    ``modified`` in ms; ``name`` is relative to the store, with ``/``.
    """

    path: str
    name: str
    kind: str
    size: int
    allocated: int
    modified: int


def list_files(store: StoreSnapshot) -> list[StoreFile]:
    """Every file of the store: those of the log first, in its order, then by name. What cannot be looked at is
    left out, and noted by the store's door; nothing is raised.
    """
    found: dict[str, StoreFile] = {}
    for file in store.log.files if store.kind == "file" else ():
        with contextlib.suppress(CannotRead):
            found[file.path] = _file(file.path, f"{LOG}/{file.name}", LOG, file.about())
    if store.kind != "file":
        for number, folder in enumerate(store.log_folders):
            for entry in _walk(store.reading, str(folder), links=True):
                name = entry.path[len(str(folder)) + 1 :]
                shown = f"{LOG}/{name}" if len(store.log_folders) == 1 else f"{LOG}[{number}]/{name}"
                _add(store.reading, found, entry, shown, LOG, follow=True)
    if store.paths is not None:
        root = store.paths.root
        for entry in _scan(store.reading, str(root)):
            kind = entry.name if entry.name in KINDS and entry.name != LOG else "other"
            if Path(entry.path) in store.log_folders:
                continue
            links = kind != "other"
            inside = _is_folder(store.reading, entry, links)
            for one in _walk(store.reading, entry.path, links=links) if inside else (entry,):
                _add(store.reading, found, one, one.path[len(str(root)) + 1 :], kind, follow=kind != "other")
    return [_of_undecoded_part(file, store.undecoded) for file in found.values()]


def _of_undecoded_part(file: StoreFile, parts: Sequence[UndecodedPart]) -> StoreFile:
    """The file, of a kind of its own where it belongs to a part that is not decoded: the part's folder names it."""
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
    """How many of the files have another length now, or are gone: a broker went on meanwhile."""
    changed = 0
    for file in files:
        try:
            now, own = reading.look(file.path, listed=True), reading.look(file.path, listed=True, follow=False)
            changed += file.size not in {info.st_size for info in (now, own) if info is not None}
        except CannotRead:
            changed += 1
    return changed


def _add(
    reading: Reading, found: dict[str, StoreFile], entry: os.DirEntry[str], name: str, kind: str, *, follow: bool
) -> None:
    path = entry.path
    if path in found:
        return
    with contextlib.suppress(CannotRead):
        info = reading.look_at(entry, follow=False)
        if follow and stat.S_ISLNK(info.st_mode):
            with contextlib.suppress(CannotRead):  # a link to nowhere is still a name with a length
                info = reading.look_at(entry)
        if not stat.S_ISDIR(info.st_mode):
            found[path] = _file(path, name, kind, info)


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
        return stat.S_ISDIR(reading.look_at(entry).st_mode)
    except CannotRead:
        return False


def _walk(reading: Reading, folder: str, *, links: bool) -> Iterator[os.DirEntry[str]]:
    """Everything below ``folder`` that is no folder, by name; each folder once, whatever links say."""
    seen: set[tuple[int, int]] = set()
    pending = [folder]
    while pending:
        one = pending.pop()
        try:
            place = reading.look(one)
        except CannotRead:
            continue
        if place is None or (place.st_dev, place.st_ino) in seen:
            continue
        seen.add((place.st_dev, place.st_ino))
        folders = []
        for entry in _scan(reading, one):
            if _is_folder(reading, entry, links):
                folders.append(entry.path)
            else:
                yield entry
        pending += reversed(folders)


def _scan(reading: Reading, folder: str) -> list[os.DirEntry[str]]:
    """What is in a folder, by name; nothing where it cannot be listed: the door has noted it."""
    try:
        return reading.entries(folder)
    except CannotRead:
        return []
