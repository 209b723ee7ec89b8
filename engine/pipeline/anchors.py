"""Places in a log file at which a walk may begin (docs/formats/commit-log.md#unit-check), and the file as such a walk
reads it.

An *anchor* is a unit or a blank that is whole, lies at its own physical offset, and is not hidden: no earlier unit or
blank covers it. This matters because a body may contain bytes of units, and old bytes may stand behind a blank.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Protocol

import numpy as np

from engine.codec.message import MAGIC_BLANK, MAX_UNIT_BYTES, MIN_UNIT_SIZE, Unit
from engine.codec.unit_flavours import PREFIX
from engine.codec.unit_scan import decode_item, find_in_file
from engine.errors import CannotRead
from engine.pipeline.storage import OpenFile

_BLANK_MAGIC = MAGIC_BLANK.to_bytes(4, "big")


class LogPart(Protocol):
    """The facts of a split that this module needs: its file's offset in the log and length, and whether a later file
    holds data.
    """

    @property
    def file_start(self) -> int: ...
    @property
    def file_size(self) -> int: ...
    @property
    def followed(self) -> bool: ...


def find_anchor(split: LogPart, file: OpenFile, cut: int, look_back: int, near: int) -> int:
    """Return the position of something that certainly starts at or before ``cut``: 0 if nothing nearer is
    certain.
    """
    file_bytes = SplitBytes(split, file)
    window_size = near
    while window_size < cut:
        window_start = cut - window_size
        unit_position = find_in_file(file_bytes, window_start, cut)
        if (
            unit_position >= 0
            and _is_whole(split, file, unit_position)
            and not _is_hidden(split, file, unit_position, look_back)
        ):
            return unit_position
        window_size *= 4
    return 0


def _is_whole(split: LogPart, file: OpenFile, position: int) -> bool:
    head = file.read(position, MIN_UNIT_SIZE)
    size = int.from_bytes(head[:4], "big", signed=True)
    if head[4:8] == _BLANK_MAGIC:
        return position + size == split.file_size
    data = file.read(position, max(size, 0)) if size <= MAX_UNIT_BYTES else b""
    return isinstance(decode_item(data, 0, len(data), split.file_start + position), Unit)


def _is_hidden(split: LogPart, file: OpenFile, position: int, look_back: int) -> bool:
    """Return True if a unit that begins before ``position`` reaches over it, or a blank begins there."""
    window_start = max(position - look_back, 0)
    data = np.frombuffer(file.read(window_start, position - window_start + 8), np.uint8)
    if len(data) < position - window_start + 8:
        return True
    head = data[4:]
    blanks = np.flatnonzero(head[:-3] == _BLANK_MAGIC[0])
    blanks = blanks[blanks < position - window_start]
    for i in (1, 2, 3):
        blanks = blanks[head[blanks + i] == _BLANK_MAGIC[i]]
    if len(blanks):
        return True
    units = np.flatnonzero(head[:-3] == PREFIX[0])
    units = units[units < position - window_start]
    for i in range(1, len(PREFIX)):
        units = units[head[units + i] == PREFIX[i]]
    sizes = np.zeros(len(units), np.int64)
    for i in range(4):
        sizes = sizes << 8 | data[units + i]
    reaching = (units + sizes > position - window_start) & (sizes <= MAX_UNIT_BYTES)
    candidates = zip(units[reaching].tolist(), sizes[reaching].tolist(), strict=True)
    return any(_is_unit(split, file, window_start + unit_start, size) for unit_start, size in candidates)


def _is_unit(split: LogPart, file: OpenFile, position: int, size: int) -> bool:
    data = file.read(position, size)
    return isinstance(decode_item(data, 0, len(data), split.file_start + position, crc=False), Unit)


class ErrorNotingFile:
    """An open file that keeps the first error of reading it."""

    def __init__(self, file: OpenFile) -> None:
        self._file = file
        self.descriptor = file.descriptor
        self.next_data = file.next_data
        self.close = file.close
        self.error: CannotRead | None = None

    def read(self, position: int, size: int) -> bytes:
        """Read, and remember an error."""
        with self._hearing():
            return self._file.read(position, size)

    def read_into(self, view: memoryview, position: int) -> int:
        """Read into a buffer, and remember an error."""
        with self._hearing():
            return self._file.read_into(view, position)

    @contextlib.contextmanager
    def _hearing(self) -> Iterator[None]:
        try:
            yield
        except CannotRead as error:
            self.error = self.error or error
            raise


class SplitBytes:
    """The file of a split with the interface that a walk needs."""

    __slots__ = ("_followed", "next_data", "read", "size", "start_offset")

    def __init__(self, split: LogPart, file: OpenFile) -> None:
        self.start_offset = split.file_start
        self.size = split.file_size
        self._followed = split.followed
        self.read = file.read
        self.next_data = file.next_data

    def is_followed(self) -> bool:
        """Return True if a later file held data when the log was listed."""
        return self._followed
