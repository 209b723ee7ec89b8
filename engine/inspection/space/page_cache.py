"""Which parts of a store's files are in the page cache: for the log file by file, for queues and index in all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import CannotRead
from engine.mapped.page_residency import ResidencyUnknown, page_map
from engine.sentences import sentence

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot


CELLS = 2048
"""Largest number of ranges into which the log is divided."""
MAX_FILES = 4096
"""Number of files of one kind that are examined."""


@dataclass(frozen=True, slots=True)
class FileCache:
    """A log file: bytes, bytes in memory, and the share in memory of equal ranges of it, from 0 to 1."""

    name: str
    start_offset: int
    size: int
    resident: int
    shares: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class KindCache:
    """All files of one kind: number of files asked about, their bytes, and bytes in memory."""

    kind: str
    files: int
    size: int
    resident: int


@dataclass(frozen=True, slots=True)
class PageCache:
    """The answer; ``why`` is the reason if the system does not tell, and then the rest is empty."""

    files: tuple[FileCache, ...] = ()
    kinds: tuple[KindCache, ...] = ()
    why: str = ""

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def resident(self) -> int:
        return sum(file.resident for file in self.files)


def page_cache(store: StoreSnapshot, cells: int = CELLS) -> PageCache:
    """Ask the system now. Files that disappear meanwhile are left out; nothing is read, nothing is raised."""
    log_pages = log_cache(store, MAX_FILES, cells)
    if log_pages.why:
        return log_pages
    try:
        queues = (
            f.path
            for queues in store.queues.used_files(note_unread=True).values()
            for queue in queues.values()
            for f in queue.files
        )
        index = (reader.path for reader in store.index_files())
        kinds = (_kind(store, "consumequeue", queues), _kind(store, "index", index))
    except ResidencyUnknown as error:
        return PageCache(why=str(error))
    log = KindCache("commitlog", len(log_pages.files), log_pages.size, log_pages.resident)
    return PageCache(log_pages.files, tuple(kind for kind in (log, *kinds) if kind.files))


def log_cache(store: StoreSnapshot, max_files: int = MAX_FILES, cells: int = CELLS) -> PageCache:
    """The page cache of the newest ``max_files`` files of the log alone."""
    if store.capsule is not None:
        return PageCache(why=sentence("a capsule does not say what was in memory"))
    if store.remote_disk is not None:
        return PageCache(why=sentence("the store is on another machine"))
    files = list(store.log.files)[-max_files:]
    total = sum(file.size for file in files) or 1
    file_caches: list[FileCache] = []
    for file in files:
        try:
            pages = page_map(file.path, store.reading)
        except ResidencyUnknown as error:
            return PageCache(why=str(error))
        except CannotRead:
            continue
        file_cells = max(1, round(cells * file.size / total))
        file_caches.append(
            FileCache(file.name, file.start_offset, pages.size, pages.resident, pages.shares(file_cells))
        )
    return PageCache(tuple(file_caches))


def _kind(store: StoreSnapshot, kind: str, paths: Iterable[str]) -> KindCache:
    files = size = resident = 0
    for path in paths:
        if files >= MAX_FILES:
            break
        try:
            pages = page_map(path, store.reading)
        except CannotRead:
            continue
        files, size, resident = files + 1, size + pages.size, resident + pages.resident
    return KindCache(kind, files, size, resident)
