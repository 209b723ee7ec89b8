"""What a path is: a store, a directory above one, a bare commitlog folder, one file of a log, a copied tail (product:
open a part).

Nothing is created and nothing is written; what cannot be opened is named with what was found instead.

Whether a process holds a store's lock; asked of the kernel, never taken (docs/formats/checkpoint.md).
"""

from __future__ import annotations

import fcntl
import os
import stat
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from engine.codec.message import check_frame
from engine.codec.unit_flavours import MAGIC_BYTES
from engine.errors import CannotRead, NotAStore
from engine.layout import FILE_NAME_DIGITS, parse_file_name
from engine.mapped.reading import Reading

Kind = Literal["store", "commitlog", "file"]

SEARCH_DEPTH = 4
SEARCH_FOLDERS = 2000
_STORE_MARKS = ("consumequeue", "index", "checkpoint", "config", "lock", "abort")
_TAIL_SEARCH = 8 << 20
_NEITHER = "expected a store directory or a file of a commit log, found neither"


@dataclass(frozen=True, slots=True)
class Opening:
    """``path`` is what is to be opened as ``kind``; ``start_offset`` is set for a file; ``notes`` say it in
    sentences.
    """

    kind: Kind
    path: Path
    start_offset: int = 0
    notes: tuple[str, ...] = ()


def recognise(path: str | Path, reading: Reading | None = None) -> Opening:
    """What ``path`` is, or :class:`NotAStore` with what was found there instead; :class:`CannotRead` where that could
    not be found out.
    """
    given = Path(path)
    reading = reading or Reading()
    info = _look(given, reading)
    if info is not None and stat.S_ISDIR(info.st_mode):
        return _recognise_folder(given, reading)
    if info is not None and stat.S_ISREG(info.st_mode):
        return _recognise_file(given, reading)
    if info is not None:
        raise NotAStore(_NEITHER, file=str(given))
    raise NotAStore("expected a store directory, found nothing of this name", file=str(given))


def _look(given: Path, reading: Reading) -> os.stat_result | None:
    try:
        return reading.look(given)
    except CannotRead as error:
        if isinstance(error.__cause__, FileNotFoundError):  # a link to nothing
            raise NotAStore(_NEITHER, file=str(given)) from error
        raise


def _recognise_folder(folder: Path, reading: Reading) -> Opening:
    names = [entry.name for entry in reading.entries(folder, listed=True)]
    if _is_store(folder, names, reading):
        return Opening("store", folder)
    if _is_log_folder(names):
        return _recognise_log_folder(folder, names, reading)
    search = Reading(alone=True)  # what is no store is none of its bytes
    below = _stores_below(folder, search)
    closed = tuple(f"{one.file} could not be looked into: {one.error}" for one in search.unread)
    if len(below) == 1:
        note = f"The store was found below the directory that was given: {below[0]}"
        return Opening("store", below[0], notes=(note, *closed))
    if below:
        found = ", ".join(str(store.relative_to(folder)) for store in below[:8])
        more = f" and {len(below) - 8} more" if len(below) > 8 else ""
        raise NotAStore(
            f"expected one store, found {len(below)} below it: {found}{more}. Name one of them", file=str(folder)
        )
    search.refuse("a store may be there")
    raise NotAStore(
        f"expected a store (a directory that holds commitlog/), found {_what_is_there(names)}", file=str(folder)
    )


def _recognise_log_folder(folder: Path, names: list[str], reading: Reading) -> Opening:
    if folder.name == "commitlog" or _looks_like_units(folder, names, reading):
        note = f"A commit log by itself: {folder}. Queues, index and positions are not here"
        return Opening("commitlog", folder, notes=(note,))
    raise NotAStore(
        "expected a commit log, found queue files: open the store directory above them to see this queue",
        file=str(folder),
    )


def _recognise_file(file: Path, reading: Reading) -> Opening:
    start = parse_file_name(file.name) if len(file.name) == FILE_NAME_DIGITS else None
    base = guess_base(file, reading)
    if base is None and start is None:
        raise NotAStore("expected a file of a commit log, found no message unit in it", file=str(file))
    if base is None:
        if any(_head(file, 8, reading)):
            raise NotAStore("expected a file of a commit log, found no message unit in it", file=str(file))
        return Opening("file", file, start or 0, (f"One file of a commit log: {file}. Nothing is written in it",))
    if start is None:
        note = f"A piece of a commit log without a start offset in its name; its units say that it begins at {base:,}"
        return Opening("file", file, base, (note,))
    if start != base:
        note = f"The name says that the file begins at {start:,}, its units say {base:,}: the units are believed"
        return Opening("file", file, base, (note,))
    return Opening("file", file, start, (f"One file of a commit log: {file}",))


def guess_base(file: Path, reading: Reading) -> int | None:
    """The absolute offset of the file's first byte by the PHYSICALOFFSET of its first whole unit, or None without
    one.
    """
    data = _head(file, _TAIL_SEARCH, reading)
    at = 0
    while True:
        hits = [hit for hit in (data.find(magic, at + 4) for magic in MAGIC_BYTES) if hit >= 0]
        if not hits:
            return None
        at = min(hits) - 4
        if not isinstance(check_frame(data, at, len(data)), str):
            base = int.from_bytes(data[at + 28 : at + 36], "big", signed=True) - at
            if base >= 0:
                return base
        at += 1


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
    """Stores in the folders below, breadth first; at most a bounded number of folders is looked at, links are not
    followed.
    """
    found: list[Path] = []
    level, seen = [folder], 0
    for _ in range(SEARCH_DEPTH):
        following: list[Path] = []
        for parent in level:
            for child in _folders(parent, reading):
                seen += 1
                if seen > SEARCH_FOLDERS:
                    return found
                if _holds_a_log(child, reading):
                    found.append(child)
                else:
                    following.append(child)
        level = following
    return found


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
        return "an empty directory"
    shown = ", ".join(names[:6])
    return f"{len(names)} other entries: {shown}{', …' if len(names) > 6 else ''}"


LockState = Literal["free", "held", "absent", "unknown"]
"""``unknown``: the file is there and could not be opened or asked about."""


def lock_state(reading: Reading, path: Path) -> LockState:
    """The state of the lock file at ``path``."""
    try:
        descriptor = reading.open(path, listed=False)
    except CannotRead:
        return "unknown"
    if descriptor < 0:
        return "absent"
    try:
        asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
        answer = fcntl.fcntl(descriptor, fcntl.F_GETLK, asked)
        return "free" if struct.unpack("hhqqi4x", answer)[0] == fcntl.F_UNLCK else "held"
    except OSError as error:
        reading.note(path, error, "ask")
        return "unknown"
    finally:
        os.close(descriptor)
