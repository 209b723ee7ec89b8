"""The stores that a path or a pattern names, and the files of their logs in order (docs/formats/files.md#folders).

What the engine's own listing leaves out is left out here too: names that are no numbers, a second file of one offset.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from engine.capsule.recognition import is_capsule
from engine.codec.dledger import FOLDER_PREFIX
from engine.errors import CannotRead, NotAStore, UsageError
from engine.files.layout import FILE_NAME_DIGITS, parse_file_name
from engine.pipeline.log_files import LogFile, without_remains
from engine.pipeline.storage import FolderEntry, LocalStorage, Storage, join, storage_of
from engine.sentences import sentence

MAX_OFFSET = (1 << 63) - 1
MAX_CONCURRENT_CALLS = 16
"""Folders that are listed side by side."""
_SPECIAL = frozenset("*?[{")
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
_READABLE_SCHEMES = frozenset({"file", "s3", "s3a"})
_URI = re.compile(r"([a-z][a-z0-9+.-]+):/", re.IGNORECASE)
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Unread:
    """A part of a store that cannot be read: the path of a ``file`` or folder, and ``why``.

    It stands in a plan like a split without bytes. Nothing is concluded from it, and the reader of the plan reports it.
    """

    store: str
    broker: str | None
    file: str
    why: str
    start: int = 0
    stop: int = 0

    @classmethod
    def of(cls, store: StorePlace, error: CannotRead) -> Unread:
        """Make the part for ``error`` at ``store``."""
        return cls(store.path, store.broker, error.file or store.path, error.what)

    @property
    def error(self) -> CannotRead:
        """Return it as an error."""
        return CannotRead(self.why, file=self.file)


@dataclass(frozen=True, slots=True)
class StorePlace:
    """The place of a store: its path, its broker if that is known, and the folders of its log. ``dledger_folder`` is
    that of them that has the data files of a DLedger log, "" without one.

    If the place itself cannot be read, ``unread`` says why, and listing its files raises that error.
    """

    path: str
    broker: str | None
    log_folders: tuple[str, ...]
    unread: CannotRead | None = None
    dledger_folder: str = ""


def find_stores(paths: str | Sequence[str], broker: str | None = None) -> list[StorePlace]:
    """Find the stores at ``paths``: each a store, a directory that holds ``store/``, a log folder, or a pattern of
    these.

    In a pattern ``*``, ``?``, ``[ab]`` and ``{this,that}`` stand for parts of names; a folder that is called so is
    itself. Without ``broker`` a store is named after the path parts that such signs matched (with ``/`` in between).
    What cannot be looked at may be one: it is a place that is ``unread``, named like the others. Raises
    :class:`NotAStore` for a path that names none, :class:`UsageError` for one in a storage that is not read.
    """
    stores: dict[str, StorePlace] = {}
    for path in (paths,) if isinstance(paths, str) else paths:
        refuse_other_storage(path)
        storage, local = storage_of(path)
        errors: dict[str, CannotRead] = {}
        broker_names = dict(
            match for way in _expand_folder_braces(storage, local) for match in _matches(storage, way, errors)
        )
        broker_names.update((folder, None) for folder in errors)
        places = map_concurrently(partial(_find_place, storage), broker_names)
        matched_stores = {
            place.path: replace(place, broker=broker or broker_names[match])
            for match, place in places
            if place is not None
        }
        if not matched_stores and is_capsule(path):
            raise NotAStore(sentence("this is a capsule of a store: pipeline jobs read stores only"), file=path)
        if not matched_stores:
            raise NotAStore(sentence("expected a store (a directory that holds commitlog/), found none"), file=path)
        stores.update(matched_stores)
    return list(stores.values())


def refuse_other_storage(path: str) -> None:
    """Raise :class:`UsageError` for a URI of any storage but this machine's disks and S3."""
    uri = _URI.match(path)
    if uri is not None and uri[1].lower() not in _READABLE_SCHEMES:
        raise UsageError(
            sentence(
                "{scheme}: is not read here: give the path of a disk that all machines see (a mount), or s3://BUCKET/…",
                scheme=uri[1].lower(),
            ),
            file=path,
        )


def seen_from_anywhere(stores: Iterable[StorePlace]) -> list[StorePlace]:
    """``stores`` by paths that do not depend on the folder of a process: workers run elsewhere than this one."""
    return [
        replace(
            store,
            path=_whole_path(store.path),
            log_folders=tuple(map(_whole_path, store.log_folders)),
            dledger_folder=_whole_path(store.dledger_folder) if store.dledger_folder else "",
        )
        for store in stores
    ]


def map_concurrently(function: Callable[[T], R], items: Iterable[T]) -> Iterator[tuple[T, R]]:
    """Yield ``items`` in their order, each with the result of ``function``, which is called for several at a time."""
    listed = list(items)
    if len(listed) < 2:
        yield from ((item, function(item)) for item in listed)
        return
    with ThreadPoolExecutor(min(len(listed), MAX_CONCURRENT_CALLS), "listing") as pool:
        yield from zip(listed, pool.map(function, listed), strict=True)


def log_files(store: StorePlace) -> list[LogFile]:
    """Return the files of the log in the order of their offsets; raises :class:`CannotRead`."""
    if store.unread is not None:
        raise store.unread
    files: dict[int, LogFile] = {}
    listed: list[tuple[str, LogFile]] = []
    for folder in store.log_folders:
        storage, local = storage_of(folder)
        for entry in storage.listing(local):
            start = parse_file_name(entry.name)
            if start is not None and entry.size >= 0 and 0 <= start <= MAX_OFFSET - entry.size:
                listed.append((entry.name, LogFile(entry.path, start, entry.size, folder == store.dledger_folder)))
    entries_start = min((file.start for _, file in listed if file.has_entries), default=None)
    if entries_start is not None:  # a classic log ends where the DLedger log begins
        listed = [(name, file) for name, file in listed if file.has_entries or file.start < entries_start]
    for _, file in sorted(listed, key=lambda item: (item[0], item[1].path)):
        files.setdefault(file.start, file)
    in_order = [files[start] for start in sorted(files)]
    return without_remains(store.dledger_folder, in_order) if store.dledger_folder else in_order


def _matches(storage: Storage, path: str, errors: dict[str, CannotRead]) -> list[tuple[str, str | None]]:
    """Return the paths that match ``path``, each with the parts that its wild cards matched; folders that cannot be
    listed are put into ``errors``.
    """
    if not _SPECIAL & set(path) or (not {"*", "?"} & set(path) and _is_folder(storage, path)):
        return [(path.rstrip("/") or "/", None)]
    scheme, mark, path_parts = path.partition("://")
    root, parts = (f"{scheme}://", path_parts) if mark else ("/" if path.startswith("/") else "", path)
    paths: list[tuple[str, tuple[str, ...]]] = [(root, ())]
    for part in (part for part in parts.split("/") if part):
        if not _SPECIAL & set(part):
            paths = [(_join_path(folder, part), named) for folder, named in paths]
        else:
            paths = [
                (_join_path(folder, name), (*named, name) if name != part else named)
                for folder, named in paths
                for name in _named(_list_folder(storage, folder or ".", errors), part)
            ]
    return [(folder, "/".join(named) or None) for folder, named in paths]


def _expand_folder_braces(storage: Storage, path: str) -> list[str]:
    """Expand braces around several folders: ``{a/x,b}/store`` is ``a/x/store`` and ``b/store``."""
    braces = next((match for match in _BRACES.finditer(path) if "/" in match[1]), None)
    if braces is None or _is_folder(storage, path):
        return [path]
    ways = (f"{path[: braces.start()]}{way}{path[braces.end() :]}" for way in braces[1].split(","))
    return [each for way in ways for each in _expand_folder_braces(storage, way)]


def _is_folder(storage: Storage, path: str) -> bool:
    try:
        return storage.is_folder(path)
    except CannotRead:
        return True  # its kind is unknown: reading it gives the reason


def _named(inside: Iterable[FolderEntry], part: str) -> list[str]:
    """The folders of ``inside`` that ``part`` stands for; without ``*`` and ``?`` one that is called so is alone."""
    names = [entry.name for entry in inside if entry.may_be_folder]
    if part in names and not {"*", "?"} & set(part):
        return [part]
    patterns = _expand_braces(part)
    return [name for name in names if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)]


def _expand_braces(part: str) -> list[str]:
    """Expand the braces of a pattern: ``a{1,2}`` is ``a1`` and ``a2``."""
    braces = _BRACES.search(part)
    if braces is None:
        return [part.replace("[^", "[!")]
    ways = braces[1].split(",")
    return [each for way in ways for each in _expand_braces(f"{part[: braces.start()]}{way}{part[braces.end() :]}")]


def _list_folder(storage: Storage, folder: str, lost: dict[str, CannotRead]) -> list[FolderEntry]:
    try:
        return storage.listing(folder)
    except CannotRead as error:
        lost[folder] = error
        return []


def _whole_path(path: str) -> str:
    """A path of a disk from its root on; what ``..`` leads to is left to the disk."""
    storage, local = storage_of(path)
    return os.path.join(os.getcwd(), local) if isinstance(storage, LocalStorage) else path  # noqa: PTH109, PTH118


def _join_path(folder: str, name: str) -> str:
    return f"{folder}{name}" if not folder or folder.endswith("/") else f"{folder}/{name}"


def _find_place(storage: Storage, path: str) -> StorePlace | None:
    try:
        return _store_at(storage, path)
    except CannotRead as error:
        return StorePlace(path, None, (), error)


def _store_at(storage: Storage, path: str) -> StorePlace | None:
    names = {entry.name: entry for entry in storage.listing(path)}
    members = [e.path for e in names.values() if e.name.startswith(FOLDER_PREFIX) and e.may_be_folder]
    entry_folders = [folder for member in members if storage.listing(folder := join(member, "data"))]
    if len(entry_folders) > 1:
        error = CannotRead(
            sentence(
                "cannot be read: it has {n} DLedger logs, and only the broker's dLegerSelfId says which one counts; "
                "commands with --config read it",
                n=len(entry_folders),
            ),
            file=path,
        )
        return StorePlace(path, None, (), error)
    log_folders = [join(path, "commitlog")] if _holds_folder(storage, names, path, "commitlog") else []
    if log_folders or entry_folders:
        return StorePlace(path, None, (*log_folders, *entry_folders), dledger_folder="".join(entry_folders))
    if "store" in names:
        inner = join(path, "store")
        if _holds_folder(storage, {e.name: e for e in storage.listing(inner)}, inner, "commitlog"):
            return StorePlace(inner, None, (join(inner, "commitlog"),))
    if any(_is_log_file(entry) for entry in names.values()):
        return StorePlace(path, None, (path,))
    return None


def _holds_folder(storage: Storage, names: dict[str, FolderEntry], path: str, name: str) -> bool:
    return name in names and (names[name].may_be_folder or storage.is_folder(join(path, name)))


def _is_log_file(entry: FolderEntry) -> bool:
    return len(entry.name) == FILE_NAME_DIGITS and parse_file_name(entry.name) is not None and entry.size >= 0
