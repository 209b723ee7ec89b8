"""Recognises a path: a store, a directory above one, a bare commitlog folder, one file of a log, a copied tail
(product: open a part).

Creates and writes nothing. The error for a path that cannot be opened names what was found instead.

Also finds out whether a process holds a store's lock, by asking the kernel without taking the lock
(docs/formats/checkpoint.md).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from engine import system
from engine.codec.message import check_frame
from engine.codec.unit_flavours import MAGIC_BYTES
from engine.errors import CannotRead, NotAStore
from engine.files.layout import FILE_NAME_DIGITS, parse_file_name
from engine.mapped.reading import Reading
from engine.sentences import plural, sentence

Kind = Literal["store", "commitlog", "file"]

SEARCH_DEPTH = 4
SEARCH_FOLDERS = 2000
_STORE_MARKS = ("consumequeue", "index", "checkpoint", "config", "lock", "abort")
_TAIL_SEARCH = 8 << 20
_NEITHER = sentence("expected a store directory or a file of a commit log, found neither")


@dataclass(frozen=True, slots=True)
class Opening:
    """``path`` opened as ``kind``; ``start_offset`` is set for a file; ``notes`` explain the choice in sentences."""

    kind: Kind
    path: Path
    start_offset: int = 0
    notes: tuple[str, ...] = ()


def recognise(path: str | Path, reading: Reading | None = None) -> Opening:
    """Recognise ``path``.

    Raises :class:`NotAStore` with what was found there instead, :class:`CannotRead` if it could not be examined.
    """
    target = Path(path)
    reading = reading or Reading()
    info = _look(target, reading)
    if info is not None and stat.S_ISDIR(info.st_mode):
        return _recognise_folder(target, reading)
    if info is not None and stat.S_ISREG(info.st_mode):
        return _recognise_file(target, reading)
    if info is not None:
        raise NotAStore(_NEITHER, file=str(target))
    raise NotAStore(sentence("expected a store directory, found nothing of this name"), file=str(target))


def _look(target: Path, reading: Reading) -> os.stat_result | None:
    try:
        return reading.status(target)
    except CannotRead as error:
        if isinstance(error.__cause__, FileNotFoundError):  # a link to nothing
            raise NotAStore(_NEITHER, file=str(target)) from error
        raise


def _recognise_folder(folder: Path, reading: Reading) -> Opening:
    names = [entry.name for entry in reading.entries(folder, listed=True)]
    if _is_store(folder, names, reading):
        return Opening("store", folder)
    if _is_log_folder(names):
        return _recognise_log_folder(folder, names, reading)
    search = Reading(alone=True)  # errors outside the store do not count as unread bytes of the store
    below = _stores_below(folder, search)
    closed = tuple(
        sentence("{file} could not be looked into: {error}", file=unread.file, error=sentence(unread.error))
        for unread in search.unread
    )
    if len(below) == 1:
        note = sentence("The store was found below the directory that was given: {path}", path=below[0])
        return Opening("store", below[0], notes=(note, *closed))
    if below:
        store_names = ", ".join(str(store.relative_to(folder)) for store in below[:8])
        if len(below) > 8:
            store_names = sentence("{names} and {n} more", names=store_names, n=len(below) - 8)
        raise NotAStore(
            sentence(
                "expected one store, found {n} below it: {names}. Name one of them", n=len(below), names=store_names
            ),
            file=str(folder),
        )
    search.refuse("a store may be there")
    raise NotAStore(
        sentence("expected a store (a directory that holds commitlog/), found {what}", what=_what_is_there(names)),
        file=str(folder),
    )


def _recognise_log_folder(folder: Path, names: list[str], reading: Reading) -> Opening:
    if folder.name == "commitlog" or _looks_like_units(folder, names, reading):
        note = sentence("A commit log by itself: {folder}. Queues, index and positions are not here", folder=folder)
        return Opening("commitlog", folder, notes=(note,))
    raise NotAStore(
        sentence("expected a commit log, found queue files: open the store directory above them to see this queue"),
        file=str(folder),
    )


def _recognise_file(file: Path, reading: Reading) -> Opening:
    start = parse_file_name(file.name) if len(file.name) == FILE_NAME_DIGITS else None
    base = guess_base(file, reading)
    if base is None and start is None:
        raise NotAStore(sentence("expected a file of a commit log, found no message unit in it"), file=str(file))
    if base is None:
        if any(_head(file, 8, reading)):
            raise NotAStore(sentence("expected a file of a commit log, found no message unit in it"), file=str(file))
        return Opening(
            "file",
            file,
            start or 0,
            (sentence("One file of a commit log: {file}. Nothing is written in it", file=file),),
        )
    if start is None:
        note = sentence(
            "A piece of a commit log without a start offset in its name; its units say that it begins at {at:,}",
            at=base,
        )
        return Opening("file", file, base, (note,))
    if start != base:
        note = sentence(
            "The name says that the file begins at {start:,}, its units say {base:,}: the units are believed",
            start=start,
            base=base,
        )
        return Opening("file", file, base, (note,))
    return Opening("file", file, start, (sentence("One file of a commit log: {file}", file=file),))


def guess_base(file: Path, reading: Reading) -> int | None:
    """The absolute offset of the file's first byte, from the PHYSICALOFFSET of its first whole unit; None
    without one.
    """
    data = _head(file, _TAIL_SEARCH, reading)
    position = 0
    while True:
        hits = [hit for hit in (data.find(magic, position + 4) for magic in MAGIC_BYTES) if hit >= 0]
        if not hits:
            return None
        position = min(hits) - 4
        if not isinstance(check_frame(data, position, len(data)), str):
            base = int.from_bytes(data[position + 28 : position + 36], "big", signed=True) - position
            if base >= 0:
                return base
        position += 1


def _head(file: Path, size: int, reading: Reading) -> bytes:
    descriptor = reading.open(file)
    try:
        length = os.fstat(descriptor).st_size
        return reading.read(str(file), descriptor, min(size, length), 0, length) if length else b""
    finally:
        os.close(descriptor)


def _is_store(folder: Path, names: list[str], reading: Reading) -> bool:
    if "commitlog" in names and reading.is_folder(folder / "commitlog"):
        return True
    if any(name.startswith("dledger-") for name in names):
        return True
    return sum(name in names for name in _STORE_MARKS) >= 3


def _is_log_folder(names: list[str]) -> bool:
    return any(len(name) == FILE_NAME_DIGITS and parse_file_name(name) is not None for name in names)


def _looks_like_units(folder: Path, names: list[str], reading: Reading) -> bool:
    for name in names:
        if len(name) == FILE_NAME_DIGITS and parse_file_name(name) is not None:
            head = _head(folder / name, 8, reading)
            if head[4:8] in MAGIC_BYTES or guess_base(folder / name, reading) is not None:
                return True
    return False


def _stores_below(folder: Path, reading: Reading) -> list[Path]:
    """Stores in the folders below, breadth first. Visits a bounded number of folders and follows no links."""
    stores: list[Path] = []
    level, folder_count = [folder], 0
    for _ in range(SEARCH_DEPTH):
        following: list[Path] = []
        for parent in level:
            for child in _folders(parent, reading):
                folder_count += 1
                if folder_count > SEARCH_FOLDERS:
                    return stores
                if _holds_a_log(child, reading):
                    stores.append(child)
                else:
                    following.append(child)
        level = following
    return stores


def _holds_a_log(folder: Path, reading: Reading) -> bool:
    try:
        return reading.is_folder(folder / "commitlog")
    except CannotRead:
        return False


def _folders(parent: Path, reading: Reading) -> list[Path]:
    try:
        listed = reading.entries(parent)
    except CannotRead:
        return []
    return [Path(entry.path) for entry in listed if entry.is_dir(follow_symlinks=False)]


def _what_is_there(names: list[str]) -> str:
    if not names:
        return sentence("an empty directory")
    shown = ", ".join(names[:6])
    return plural(
        "{n} other entry: {names}",
        "{n} other entries: {names}",
        n=len(names),
        names=shown + (", …" if len(names) > 6 else ""),
    )


LockState = Literal["free", "held", "absent", "unknown"]
"""``unknown``: the file exists but could not be opened, or the kernel could not be asked."""


def lock_state(reading: Reading, path: Path) -> LockState:
    """The state of the lock file at ``path``."""
    try:
        descriptor = reading.open(path, listed=False)
    except CannotRead:
        return "unknown"
    if descriptor < 0:
        return "absent"
    try:
        return "held" if system.first_byte_lock(descriptor)[0] else "free"
    except OSError as error:
        reading.note(path, error, "ask")
        return "unknown"
    finally:
        os.close(descriptor)


def remote_lock_state(reading: Reading, ask: Callable[[str], LockState], path: Path) -> LockState:
    """The state of the lock file at ``path`` on another machine, which ``ask`` asks."""
    try:
        return ask(str(path))
    except OSError as error:
        reading.note(path, error, "ask")
        return "unknown"
