"""Files of the commit log that stand in its folder under another name, or packed (docs/formats/commit-log.md).

A broker does not start with them, and nothing of them is read: what they hold is neither lost nor deleted.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from engine.codec.unit_flavours import MAGICS
from engine.files.layout import queue_file_name
from engine.mapped.folder_listing import ReadingListing

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot

_PACKED = re.compile(r"([0-9]{20})\.(?:gz|xz|bz2|zst|lz4|zip|tgz|tar\.gz)")
_HEAD = struct.Struct(">iI20xq")
"""Length, magic number and own offset of a unit."""


class MisnamedFile(NamedTuple):
    """A file of the log under another name; ``offset`` is where it begins."""

    path: str
    offset: int
    is_packed: bool

    @property
    def name(self) -> str:
        return Path(self.path).name

    @property
    def own_name(self) -> str:
        return queue_file_name(self.offset)


def misnamed_log_files(store: StoreSnapshot) -> Iterator[MisnamedFile]:
    """Yield files of the log whose names are no numbers: packed ones by their names, others by their first unit."""
    for oddity in store.log.sequence.oddities:
        if oddity.kind != "name":
            continue
        packed = _PACKED.fullmatch(Path(oddity.path).name)
        offset = int(packed[1]) if packed is not None else own_offset(store, Path(oddity.path))
        if offset is not None:
            yield MisnamedFile(oddity.path, offset, packed is not None)


def own_offset(store: StoreSnapshot, path: Path) -> int | None:
    """The offset at which a file of the log should begin, by its first unit; None if it is no such file."""
    head = ReadingListing(store.reading, path.parent).head(path.name, _HEAD.size)
    if len(head) < _HEAD.size:
        return None
    _, magic, offset = _HEAD.unpack(head)
    return int(offset) if magic in MAGICS and offset >= 0 else None
