"""Index file: header, slots, entries, one step along a chain, and how many slots and entries a file has
(docs/formats/index-file.md, #layout). Entries are numbered from 1.

RocketMQ writes neither number into a file: they follow from its length and are checked against the chains. Pure: bytes
come from the caller. Whole tables are read through ``dtypes.INDEX_SLOT`` and ``dtypes.INDEX_ENTRY``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from engine.files.layout import INDEX_ENTRIES, INDEX_SLOTS
from engine.sentences import plural, sentence

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


def geometry_of_slots(slots: int, file_size: int) -> Geometry:
    """Return the geometry of a file of this length (bytes) with so many slots."""
    return Geometry(slots, (file_size - HEADER_SIZE - SLOT_SIZE * slots) // ENTRY_SIZE)


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


_DEFAULT = Geometry(INDEX_SLOTS, INDEX_ENTRIES)
_I32 = struct.Struct(">i")
MAX_NEWER_ENTRIES = 4096
"""Maximum entries of one slot that a concurrent writer may add after the header was read."""
READ_ATTEMPTS = 3
"""Attempts on a file of the default length before other numbers are tried: a writer counts an entry first, and
its bytes follow a moment later.
"""
_CANDIDATES_AT_ONCE = 1 << 20
"""Candidate numbers of slots per numpy operation."""


class IndexBytes(Protocol):
    """An index file: its length in bytes, and its bytes by position, fewer at its end."""

    @property
    def size(self) -> int: ...

    def read(self, position: int, size: int) -> bytes: ...


def derive_geometry(file: IndexBytes) -> tuple[Geometry | None, str]:
    """Return slots and entries of an index file, and a sentence about how they are known.

    RocketMQ's defaults are taken if the length matches and the newest entry's chain agrees. Otherwise every pair
    that the length allows is tried against the chains, and a pair is taken only if it is the only one that fits.

    """
    header_bytes = file.read(0, HEADER_SIZE)
    if len(header_bytes) < HEADER_SIZE:
        return None, plural(
            "the file has {n:,} byte, a header has {size}",
            "the file has {n:,} bytes, a header has {size}",
            n=len(header_bytes),
            size=HEADER_SIZE,
        )
    header = decode_header(header_bytes)
    if file.size == _DEFAULT.file_size and _is_default(file, header):
        return _DEFAULT, sentence("RocketMQ's defaults, by the file's length")
    if (file.size - HEADER_SIZE) % 4:
        return None, plural(
            "no numbers of slots and entries give a length of {n:,} byte",
            "no numbers of slots and entries give a length of {n:,} bytes",
            n=file.size,
        )
    if header.entries == 0:
        return None, sentence("the file has no entries to try a number of slots against")
    fitting = _fitting_geometries(file, header)
    if not fitting:
        return None, plural(
            "no number of slots agrees with the chains in a file of {n:,} byte",
            "no number of slots agrees with the chains in a file of {n:,} bytes",
            n=file.size,
        )
    if len(fitting) > 1:
        names = ", ".join(f"{g.slots:,}" for g in fitting[:4])
        return None, sentence("several numbers of slots agree with the chains: {names}", names=names)
    return fitting[0], plural(
        "{n:,} slot: the only number that the length and the chains allow",
        "{n:,} slots: the only number that the length and the chains allow",
        n=fitting[0].slots,
    )


def _is_default(file: IndexBytes, header: IndexHeader) -> bool:
    for attempt in range(READ_ATTEMPTS):
        if attempt:
            header_bytes = file.read(0, HEADER_SIZE)
            if len(header_bytes) < HEADER_SIZE:
                return False
            header = decode_header(header_bytes)
        if header.entries == 0 or _newest_agrees(file, header, _DEFAULT):
            return True
    return False


def _fitting_geometries(file: IndexBytes, header: IndexHeader) -> list[Geometry]:
    words = (file.size - HEADER_SIZE) // 4
    geometries = []
    for slots in _candidates(file, header, words):
        geometry = Geometry(slots, (words - slots) // 5)
        if geometry.entries > header.entries and _chains_agree(file, header, geometry):
            geometries.append(geometry)
            if len(geometries) > 8:
                break
    return geometries


def _candidates(file: IndexBytes, header: IndexHeader, words: int) -> Iterator[int]:
    """Yield numbers of slots for which the newest entry is the head of its slot; small files one by one, big ones in
    bulk.
    """
    if file.size > 4 << 20:
        yield from _candidates_in_bulk(file, header, words)
        return
    data = file.read(0, file.size)
    for slots in range(words % 5 or 5, words, 5):
        geometry = Geometry(slots, (words - slots) // 5)
        entry_position = geometry.entry_position(header.entries)
        if geometry.entries <= header.entries or entry_position + ENTRY_SIZE > len(data):
            break
        key_hash = _I32.unpack_from(data, entry_position)[0]
        if key_hash >= 0 and _I32.unpack_from(data, geometry.slot_position(key_hash % slots))[0] == header.entries:
            yield slots


def _candidates_in_bulk(file: IndexBytes, header: IndexHeader, words: int) -> Iterator[int]:
    import numpy as np

    largest = words - 5 * (header.entries + 1)
    if largest <= 0:
        return
    data = np.frombuffer(file.read(HEADER_SIZE, words * 4), ">i4")
    for start_slots in range(words % 5 or 5, largest + 1, 5 * _CANDIDATES_AT_ONCE):
        slots = np.arange(start_slots, min(start_slots + 5 * _CANDIDATES_AT_ONCE, largest + 1), 5, dtype=np.int64)
        entry_words = slots + 5 * header.entries
        slots, entry_words = slots[entry_words < len(data)], entry_words[entry_words < len(data)]
        key_hash = data[entry_words].astype(np.int64)
        has_hash = key_hash >= 0
        slots, key_hash = slots[has_hash], key_hash[has_hash]
        yield from (int(n) for n in slots[data[key_hash % slots] == header.entries])


def _newest_agrees(file: IndexBytes, header: IndexHeader, geometry: Geometry) -> bool:
    newest = _entry(file, geometry, header.entries)
    if newest is None or newest.key_hash < 0:
        return False
    head = file.read(geometry.slot_position(newest.key_hash % geometry.slots), SLOT_SIZE)
    number = _I32.unpack(head)[0] if len(head) == SLOT_SIZE else 0
    for _ in range(MAX_NEWER_ENTRIES):
        if number <= header.entries:
            break
        newer = _entry(file, geometry, number)  # written after the header was read, or never counted
        if newer is None or newer.prev >= number or newer.key_hash % geometry.slots != newest.key_hash % geometry.slots:
            return False
        number = newer.prev
    return bool(number == header.entries)


def _entry(file: IndexBytes, geometry: Geometry, number: int) -> IndexEntry | None:
    if not 0 < number < geometry.entries:
        return None
    data = file.read(geometry.entry_position(number), ENTRY_SIZE)
    return decode_entry(data) if len(data) == ENTRY_SIZE else None


def _chains_agree(file: IndexBytes, header: IndexHeader, geometry: Geometry) -> bool:
    """Return True if most links of a sample of entries lead to an older entry of the same slot (a few may be
    damaged).
    """
    sample = range(1, header.entries + 1, max(header.entries // 256, 1))
    good = bad = 0
    for number in sample:
        entry = _entry(file, geometry, number)
        if entry is None or entry.key_hash < 0:
            bad += 1
            continue
        older = _entry(file, geometry, entry.prev) if 0 < entry.prev < number else None
        if entry.prev == 0 or (
            older is not None and older.key_hash % geometry.slots == entry.key_hash % geometry.slots
        ):
            good += 1
        else:
            bad += 1
    return good > 9 * bad
