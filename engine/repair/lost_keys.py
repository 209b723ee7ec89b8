"""Let index entries of lost messages lead to the units that took their places (docs/formats/repair.md#index).

A query by the key of a lost message reads at the offset that the index says. Where a placeholder has another place than
the message had, no unit begins there, and RocketMQ's query ends with an error. So the entry gets the offset of the
placeholder over that place: the query finds a message without this key, which clients leave out.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.codec.dtypes import INDEX_ENTRY
from engine.codec.filler import BLANK_BYTES
from engine.codec.index import Geometry
from engine.codec.message import MAGIC_BLANK
from engine.codec.unit_flavours import MAGICS
from engine.errors import CorruptUnit
from engine.files.layout import parse_file_name
from engine.inspection.index_reader import IndexReader
from engine.inspection.snapshot import StoreSnapshot
from engine.patching.patches import Patch, WriteBytes, WriteFile
from engine.repair import log_damage, missing_files
from engine.repair.queue_entries import differences
from engine.sentences import sentence

MAX_FILE_BYTES = 1 << 30
_HEAD = struct.Struct(">iI")
_BEGIN_OFFSET_AT, _END_OFFSET_AT = 16, 24
"""Positions of beginPhyOffset and endPhyOffset in the header of an index file."""


class _Span(NamedTuple):
    """Bytes [start, end) of the log that are a unit or a blank."""

    start: int
    end: int
    is_blank: bool


Spans = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Starts and ends of spans of the log, ascending."""


def lost_key_patches(store: StoreSnapshot, patches: Iterable[Patch], name: str) -> list[Patch]:
    """Return patches of index entries that lead between the units that ``patches`` put into the log of ``store``.

    ``store`` is read as the patches leave it. Raises :class:`engine.errors.CannotRead` if an index file cannot be read.
    """
    geometry = store.geometry.index
    spans = _with_blanks(sorted(span for patch in patches for span in _new_units(patch)))
    if geometry is None or not spans or geometry.file_size > MAX_FILE_BYTES:
        return []
    starts, ends = (np.array(column, np.int64) for column in zip(*spans, strict=True))
    redirected: list[Patch] = []
    for reader in store.index_files():
        path = Path(reader.path)
        if reader.size == geometry.file_size and path.is_relative_to(store.path):
            file_name = path.relative_to(store.path).as_posix()
            redirected += _redirections(reader, geometry, file_name, (starts, ends), name)
    return redirected


def _with_blanks(spans: list[_Span]) -> list[tuple[int, int]]:
    """Return start and end of each unit; a blank behind one belongs to it."""
    units: list[tuple[int, int]] = []
    for span in spans:
        if not span.is_blank:
            units.append((span.start, span.end))
        elif units and units[-1][1] == span.start:
            units[-1] = (units[-1][0], span.end)
    return units


def _new_units(patch: Patch) -> Iterator[_Span]:
    """Yield each unit and blank that a patch writes into the log as a whole."""
    file_start = parse_file_name(Path(patch.file).name)
    is_of_log = patch.name in (log_damage.NAME, missing_files.NAME) and "consumequeue" not in Path(patch.file).parts
    if file_start is None or not is_of_log or not isinstance(patch, WriteBytes | WriteFile):
        return
    offset = file_start + (patch.offset if isinstance(patch, WriteBytes) else 0)
    place = 0
    while place + BLANK_BYTES <= len(patch.new):
        size, magic = _HEAD.unpack_from(patch.new, place)
        is_unit = magic in MAGICS and place + size <= len(patch.new)
        if size <= 0 or not (is_unit or magic == MAGIC_BLANK):
            break
        yield _Span(offset + place, offset + place + size, not is_unit)
        place += size


def _redirections(
    reader: IndexReader, geometry: Geometry, file_name: str, spans: Spans, name: str
) -> Iterator[WriteBytes]:
    starts, ends = spans
    try:
        header = reader.header
    except CorruptUnit:
        return
    if header.end_phy_offset < int(starts[0]) or header.begin_phy_offset >= int(ends.max()):
        return
    position, count = geometry.entry_position(1), min(header.entries, geometry.entries - 1)
    old = reader.file.read(position, count * INDEX_ENTRY.itemsize)
    entries = np.frombuffer(old, INDEX_ENTRY).copy()
    offsets = entries["phy_offset"].astype(np.int64)
    span = starts.searchsorted(offsets, "right") - 1
    is_inside = (span >= 0) & (offsets < ends[span])
    entries["phy_offset"][is_inside] = starts[span[is_inside]]
    why = sentence("keys of lost messages lead to the units that took their places")
    for field_position, entry in ((_BEGIN_OFFSET_AT, 0), (_END_OFFSET_AT, count - 1)):
        if not count or not is_inside[entry]:
            continue
        stored = reader.file.read(field_position, 8)
        offset = int(entries["phy_offset"][entry]).to_bytes(8, "big")
        if stored != offset:
            yield WriteBytes(file=file_name, offset=field_position, old=stored, new=offset, why=why, name=name)
    for patch in differences(file_name, old, entries.tobytes(), why, name):
        yield WriteBytes(
            file=file_name, offset=position + patch.offset, old=patch.old, new=patch.new, why=why, name=name
        )
