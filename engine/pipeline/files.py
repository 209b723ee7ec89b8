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

from engine.codec.foreign import FOLDER_PREFIX
from engine.errors import CannotRead, NotAStore, UsageError
from engine.layout import FILE_NAME_DIGITS, parse_file_name
from engine.pipeline.storage import Listed, LocalStorage, Storage, join, storage_of

LARGEST_OFFSET = (1 << 63) - 1
AT_ONCE = 16
"""Folders that are listed side by side."""
_SPECIAL = frozenset("*?[{")
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
_READABLE_SCHEMES = frozenset({"file", "s3", "s3a"})
_URI = re.compile(r"([a-z][a-z0-9+.-]+):/", re.IGNORECASE)
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Unread:
    """What of a store cannot be read: the path of a ``file`` or folder, and ``why``.

    It is a part of a plan as a split is, of no bytes: nothing is concluded from it, and whoever reads the plan tells
    it.
    """

    store: str
    broker: str | None
    file: str
    why: str
    start: int = 0
    stop: int = 0

    @classmethod
    def of(cls, store: StorePlace, error: CannotRead) -> Unread:
        """What ``error`` says of ``store``."""
        return cls(store.path, store.broker, error.file or store.path, error.what)

    @property
    def error(self) -> CannotRead:
        """As an error."""
        return CannotRead(self.why, file=self.file)


@dataclass(frozen=True, slots=True)
class StorePlace:
    """One store: its path, the broker that it belongs to where that is known, and the folders of its log.

    Where it cannot even be looked for, ``unread`` says why: whoever asks for its files is told that.
    """

    path: str
    broker: str | None
    log_folders: tuple[str, ...]
    unread: CannotRead | None = None


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file of a log: ``start`` is the absolute offset of its first byte, ``size`` its length, both in bytes."""

    path: str
    start: int
    size: int

    @property
    def end(self) -> int:
        return self.start + self.size


def find_stores(paths: str | Sequence[str], broker: str | None = None) -> list[StorePlace]:
    """The stores at ``paths``: each a store, a directory that holds ``store/``, a log folder, or a pattern of these.

    In a pattern ``*``, ``?``, ``[ab]`` and ``{this,that}`` stand for parts of names; a folder that is called so is
    itself. Without ``broker`` a store is named after the path parts that such signs matched (with ``/`` in between).
    What cannot be looked at may be one: it is a place that is ``unread``, named like the others. Raises
    :class:`NotAStore` for a path that names none, :class:`UsageError` for one in a storage that is not read.
    """
    found: dict[str, StorePlace] = {}
    for path in (paths,) if isinstance(paths, str) else paths:
        refuse_other_storage(path)
        storage, local = storage_of(path)
        lost: dict[str, CannotRead] = {}
        named = dict(match for way in _ways(storage, local) for match in _matches(storage, way, lost))
        named.update((folder, None) for folder in lost)
        places = at_once(partial(_place, storage), named)
        known = {p.path: replace(p, broker=broker or named[match]) for match, p in places if p is not None}
        if not known:
            raise NotAStore("expected a store (a directory that holds commitlog/), found none", file=path)
        found.update(known)
    return list(found.values())


def refuse_other_storage(path: str) -> None:
    """Raise :class:`UsageError` for a URI of any storage but this machine's disks and S3."""
    uri = _URI.match(path)
    if uri is not None and uri[1].lower() not in _READABLE_SCHEMES:
        raise UsageError(
            f"{uri[1].lower()}: is not read here: give the path of a disk that all machines see (a mount), or s3://BUCKET/…",
            file=path,
        )


def seen_from_anywhere(stores: Iterable[StorePlace]) -> list[StorePlace]:
    """``stores`` by paths that do not depend on the folder of a process: workers run elsewhere than this one."""
    return [
        replace(store, path=_whole_path(store.path), log_folders=tuple(map(_whole_path, store.log_folders)))
        for store in stores
    ]


def at_once(look: Callable[[T], R], things: Iterable[T]) -> Iterator[tuple[T, R]]:
    """``things`` in their order, each with what ``look`` gives for it: several wait for their storage side by side."""
    listed = list(things)
    if len(listed) < 2:
        yield from ((thing, look(thing)) for thing in listed)
        return
    with ThreadPoolExecutor(min(len(listed), AT_ONCE), "listing") as pool:
        yield from zip(listed, pool.map(look, listed), strict=True)


def log_files(store: StorePlace) -> list[LogFile]:
    """The files of the log in the order of their offsets; raises :class:`CannotRead`."""
    if store.unread is not None:
        raise store.unread
    found: dict[int, LogFile] = {}
    listed: list[tuple[str, LogFile]] = []
    for folder in store.log_folders:
        storage, local = storage_of(folder)
        for entry in storage.listing(local):
            start = parse_file_name(entry.name)
            if start is not None and entry.size >= 0 and 0 <= start <= LARGEST_OFFSET - entry.size:
                listed.append((entry.name, LogFile(entry.path, start, entry.size)))
    for _, file in sorted(listed, key=lambda item: (item[0], item[1].path)):
        found.setdefault(file.start, file)
    return [found[start] for start in sorted(found)]


def _matches(storage: Storage, path: str, lost: dict[str, CannotRead]) -> list[tuple[str, str | None]]:
    """Paths that ``path`` stands for, each with the parts that its wild cards matched; folders that cannot be listed
    are put into ``lost``.
    """
    if not _SPECIAL & set(path) or (not {"*", "?"} & set(path) and _is_folder(storage, path)):
        return [(path.rstrip("/") or "/", None)]
    head, mark, rest = path.partition("://")
    root, parts = (f"{head}://", rest) if mark else ("/" if path.startswith("/") else "", path)
    found: list[tuple[str, tuple[str, ...]]] = [(root, ())]
    for part in (part for part in parts.split("/") if part):
        if not _SPECIAL & set(part):
            found = [(_below(folder, part), named) for folder, named in found]
        else:
            found = [
                (_below(folder, name), (*named, name) if name != part else named)
                for folder, named in found
                for name in _named(_inside(storage, folder or ".", lost), part)
            ]
    return [(folder, "/".join(named) or None) for folder, named in found]


def _ways(storage: Storage, path: str) -> list[str]:
    """The paths that braces around several folders leave: ``{a/x,b}/store`` is ``a/x/store`` and ``b/store``."""
    found = next((one for one in _BRACES.finditer(path) if "/" in one[1]), None)
    if found is None or _is_folder(storage, path):
        return [path]
    ways = (f"{path[: found.start()]}{way}{path[found.end() :]}" for way in found[1].split(","))
    return [each for way in ways for each in _ways(storage, way)]


def _is_folder(storage: Storage, path: str) -> bool:
    try:
        return storage.is_folder(path)
    except CannotRead:
        return True  # what it is cannot be told: whoever looks into it is told why


def _named(inside: Iterable[Listed], part: str) -> list[str]:
    """The folders of ``inside`` that ``part`` stands for; without ``*`` and ``?`` one that is called so is alone."""
    names = [entry.name for entry in inside if entry.may_be_folder]
    if part in names and not {"*", "?"} & set(part):
        return [part]
    patterns = _alternatives(part)
    return [name for name in names if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)]


def _alternatives(part: str) -> list[str]:
    """What the braces of a pattern leave: ``a{1,2}`` is ``a1`` and ``a2``."""
    found = _BRACES.search(part)
    if found is None:
        return [part.replace("[^", "[!")]
    ways = found[1].split(",")
    return [each for way in ways for each in _alternatives(f"{part[: found.start()]}{way}{part[found.end() :]}")]


def _inside(storage: Storage, folder: str, lost: dict[str, CannotRead]) -> list[Listed]:
    try:
        return storage.listing(folder)
    except CannotRead as error:
        lost[folder] = error
        return []


def _whole_path(path: str) -> str:
    """A path of a disk from its root on; what ``..`` leads to is left to the disk."""
    storage, local = storage_of(path)
    return os.path.join(os.getcwd(), local) if isinstance(storage, LocalStorage) else path  # noqa: PTH109, PTH118


def _below(folder: str, name: str) -> str:
    return f"{folder}{name}" if not folder or folder.endswith("/") else f"{folder}/{name}"


def _place(storage: Storage, path: str) -> StorePlace | None:
    try:
        return _store_at(storage, path)
    except CannotRead as error:
        return StorePlace(path, None, (), error)


def _store_at(storage: Storage, path: str) -> StorePlace | None:
    names = {entry.name: entry for entry in storage.listing(path)}
    dledger = next((e for e in names.values() if e.name.startswith(FOLDER_PREFIX) and e.may_be_folder), None)
    if dledger is not None and storage.listing(join(dledger.path, "data")):
        error = CannotRead("cannot be read: its log is a DLedger log, which is not decoded here", file=dledger.path)
        return StorePlace(path, None, (), error)
    if _holds_folder(storage, names, path, "commitlog"):
        return StorePlace(path, None, (join(path, "commitlog"),))
    if "store" in names:
        inner = join(path, "store")
        if _holds_folder(storage, {e.name: e for e in storage.listing(inner)}, inner, "commitlog"):
            return StorePlace(inner, None, (join(inner, "commitlog"),))
    if any(_is_log_file(entry) for entry in names.values()):
        return StorePlace(path, None, (path,))
    return None


def _holds_folder(storage: Storage, names: dict[str, Listed], path: str, name: str) -> bool:
    return name in names and (names[name].may_be_folder or storage.is_folder(join(path, name)))


def _is_log_file(entry: Listed) -> bool:
    return len(entry.name) == FILE_NAME_DIGITS and parse_file_name(entry.name) is not None and entry.size >= 0
