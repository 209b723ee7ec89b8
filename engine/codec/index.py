"""Index file: header, slots, entries and the one step along a chain (spec 4). Entries are numbered from 1.

Pure. Reading whole tables goes through ``dtypes.INDEX_SLOT`` and ``dtypes.INDEX_ENTRY``.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

HEADER_SIZE = 40
SLOT_SIZE = 4
ENTRY_SIZE = 20

_HEADER = struct.Struct(">qqqqii")
_ENTRY = struct.Struct(">iqii")


@dataclass(frozen=True, slots=True)
class IndexHeader:
    """The first 40 bytes. Times in ms since the epoch; ``index_count`` is the number the next entry will get."""

    begin_timestamp: int
    end_timestamp: int
    begin_phy_offset: int
    end_phy_offset: int
    hash_slot_count: int
    index_count: int

    @property
    def entries(self) -> int:
        """How many entries the file holds by its own account; a stored count of 0 is read as 1."""
        return max(self.index_count, 1) - 1


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """One entry: ``time_diff`` in seconds from the file's begin, ``prev`` the next older entry of the slot (0 =
    none).
    """

    key_hash: int
    phy_offset: int
    time_diff: int
    prev: int


@dataclass(frozen=True, slots=True)
class Geometry:
    """Number of hash slots and of entries (entry 0, never used, included). Neither is written in the file."""

    slots: int
    entries: int

    @property
    def file_size(self) -> int:
        return HEADER_SIZE + SLOT_SIZE * self.slots + ENTRY_SIZE * self.entries

    def slot_position(self, slot: int) -> int:
        """Byte position of a slot in the file."""
        return HEADER_SIZE + SLOT_SIZE * slot

    def entry_position(self, entry: int) -> int:
        """Byte position of an entry in the file."""
        return HEADER_SIZE + SLOT_SIZE * self.slots + ENTRY_SIZE * entry


def following(header: IndexHeader) -> IndexHeader:
    """What a new file's header begins with behind the full file that has ``header``: the end of that one (spec 4.2)."""
    time, offset = max(header.end_timestamp, 0), max(header.end_phy_offset, 0)
    return IndexHeader(time, time, offset, offset, 0, 1)


def encode_header(header: IndexHeader) -> bytes:
    """The 40 bytes of ``header``."""
    return _HEADER.pack(
        header.begin_timestamp,
        header.end_timestamp,
        header.begin_phy_offset,
        header.end_phy_offset,
        header.hash_slot_count,
        header.index_count,
    )


def decode_header(buf: bytes | bytearray | memoryview, at: int = 0) -> IndexHeader:
    """The header at ``buf[at]``; raises ``struct.error`` where fewer than 40 bytes are left."""
    return IndexHeader(*_HEADER.unpack_from(buf, at))


def encode_entry(entry: IndexEntry) -> bytes:
    """The 20 bytes of ``entry``."""
    return _ENTRY.pack(entry.key_hash, entry.phy_offset, entry.time_diff, entry.prev)


def decode_entry(buf: bytes | bytearray | memoryview, at: int = 0) -> IndexEntry:
    """The entry at ``buf[at]``; raises ``struct.error`` where fewer than 20 bytes are left."""
    return IndexEntry(*_ENTRY.unpack_from(buf, at))


def entry_time(header: IndexHeader, entry: IndexEntry) -> int:
    """Store time of an entry in ms, floored to seconds from the file's begin, as RocketMQ's queries take it."""
    return header.begin_timestamp + entry.time_diff * 1000


def step_on(prev: int, entry: int, index_count: int) -> bool:
    """Whether a chain goes on from ``entry`` to ``prev``: RocketMQ stops at 0, past the count and at itself."""
    return 0 < prev <= index_count and prev != entry


def time_matched(header: IndexHeader, begin: int, end: int) -> bool:
    """RocketMQ's choice of a file for the window [begin, end] ms (IndexFile.isTimeMatched): enclosure is strict."""
    low, high = header.begin_timestamp, header.end_timestamp
    return (begin < low and end > high) or low <= begin <= high or low <= end <= high
