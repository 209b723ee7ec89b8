"""Index file: header, slots, entries, and one step along a chain (docs/formats/index-file.md). Entries are numbered
from 1.

Pure. Whole tables are read through ``dtypes.INDEX_SLOT`` and ``dtypes.INDEX_ENTRY``.
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
    """The first 40 bytes. Times in ms since the epoch; ``index_count`` is the number of the next entry."""

    begin_timestamp: int
    end_timestamp: int
    begin_phy_offset: int
    end_phy_offset: int
    hash_slot_count: int
    index_count: int

    @property
    def entries(self) -> int:
        """The number of entries that the header states; a stored count of 0 is read as 1."""
        return max(self.index_count, 1) - 1


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """An entry: ``time_diff`` in seconds from the file's begin, ``prev`` the next older entry of the slot (0 =
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


def next_header(header: IndexHeader) -> IndexHeader:
    """Return the header of a new file behind the full file that has ``header``: it begins at the end of that file
    (docs/formats/index-file.md#insert).
    """
    time, offset = max(header.end_timestamp, 0), max(header.end_phy_offset, 0)
    return IndexHeader(time, time, offset, offset, 0, 1)


def encode_header(header: IndexHeader) -> bytes:
    """Return the 40 bytes of ``header``."""
    return _HEADER.pack(
        header.begin_timestamp,
        header.end_timestamp,
        header.begin_phy_offset,
        header.end_phy_offset,
        header.hash_slot_count,
        header.index_count,
    )


def decode_header(buf: bytes | bytearray | memoryview, position: int = 0) -> IndexHeader:
    """Return the header at ``buf[position]``; raises ``struct.error`` if fewer than 40 bytes remain."""
    return IndexHeader(*_HEADER.unpack_from(buf, position))


def encode_entry(entry: IndexEntry) -> bytes:
    """Return the 20 bytes of ``entry``."""
    return _ENTRY.pack(entry.key_hash, entry.phy_offset, entry.time_diff, entry.prev)


def decode_entry(buf: bytes | bytearray | memoryview, position: int = 0) -> IndexEntry:
    """Return the entry at ``buf[position]``; raises ``struct.error`` if fewer than 20 bytes remain."""
    return IndexEntry(*_ENTRY.unpack_from(buf, position))


def entry_time(header: IndexHeader, entry: IndexEntry) -> int:
    """Return the store time of an entry in ms, floored to seconds from the file's begin, as RocketMQ's queries use
    it.
    """
    return header.begin_timestamp + entry.time_diff * 1000


def chain_continues(prev: int, entry: int, index_count: int) -> bool:
    """Return True if a chain continues from ``entry`` to ``prev``: RocketMQ stops at 0, past the count and at
    itself.
    """
    return 0 < prev <= index_count and prev != entry


def time_matched(header: IndexHeader, begin: int, end: int) -> bool:
    """Decide as RocketMQ if the file matters for the window [begin, end] ms (IndexFile.isTimeMatched): enclosure is
    strict.
    """
    file_begin, file_end = header.begin_timestamp, header.end_timestamp
    return (begin < file_begin and end > file_end) or file_begin <= begin <= file_end or file_begin <= end <= file_end
