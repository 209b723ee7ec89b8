"""Index file: header, slots, entries and the one step along a chain (docs/formats/index-file.md). Entries are numbered
from 1.

Pure. Reading whole tables goes through ``dtypes.INDEX_SLOT`` and ``dtypes.INDEX_ENTRY``.

The numbers of slots and entries that an index file gives away: RocketMQ writes neither into it
(docs/formats/index-file.md#layout).

They are worked out from the length and checked against the chains. Nothing is opened here: bytes come from the caller.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from engine.layout import INDEX_ENTRIES, INDEX_SLOTS

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
    """What a new file's header begins with behind the full file that has ``header``: the end of that one
    (docs/formats/index-file.md#insert).
    """
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


_DEFAULT = Geometry(INDEX_SLOTS, INDEX_ENTRIES)
_I32 = struct.Struct(">i")
NEWER = 4096
"""Entries of one slot that may have come since the header was read: a writer does not wait for us."""
LOOKS = 3
"""Times that a file of the default length is looked at before other numbers are tried: a writer counts an entry, and
its bytes are there a moment later.
"""
_AT_ONCE = 1 << 20
"""Numbers of slots that are tried in one go."""


class IndexBytes(Protocol):
    """An index file: its length in bytes, and its bytes by position, short where it ends."""

    @property
    def size(self) -> int: ...

    def read(self, position: int, size: int) -> bytes: ...


def derive_geometry(file: IndexBytes) -> tuple[Geometry | None, str]:
    """Slots and entries of an index file, and how they are known.

    The default numbers are taken where the length is theirs and the newest entry's chain agrees; else every pair that
    the length allows is tried against the chains, and a pair is taken only where it is the only one.
    """
    header_bytes = file.read(0, HEADER_SIZE)
    if len(header_bytes) < HEADER_SIZE:
        return None, f"the file has {len(header_bytes):,} bytes, a header has {HEADER_SIZE}"
    header = decode_header(header_bytes)
    if file.size == _DEFAULT.file_size and _is_default(file, header):
        return _DEFAULT, "RocketMQ's defaults, by the file's length"
    if (file.size - HEADER_SIZE) % 4:
        return None, f"no numbers of slots and entries give a length of {file.size:,} bytes"
    if header.entries == 0:
        return None, "the file has no entries to try a number of slots against"
    fitting = _fitting(file, header)
    if not fitting:
        return None, f"no number of slots agrees with the chains in a file of {file.size:,} bytes"
    if len(fitting) > 1:
        names = ", ".join(f"{g.slots:,}" for g in fitting[:4])
        return None, f"several numbers of slots agree with the chains: {names}"
    return fitting[0], f"{fitting[0].slots:,} slots: the only number that the length and the chains allow"


def _is_default(file: IndexBytes, header: IndexHeader) -> bool:
    for look in range(LOOKS):
        if look:
            header_bytes = file.read(0, HEADER_SIZE)
            if len(header_bytes) < HEADER_SIZE:
                return False
            header = decode_header(header_bytes)
        if header.entries == 0 or _newest_agrees(file, header, _DEFAULT):
            return True
    return False


def _fitting(file: IndexBytes, header: IndexHeader) -> list[Geometry]:
    words = (file.size - HEADER_SIZE) // 4
    found = []
    for slots in _candidates(file, header, words):
        geometry = Geometry(slots, (words - slots) // 5)
        if geometry.entries > header.entries and _chains_agree(file, header, geometry):
            found.append(geometry)
            if len(found) > 8:
                break
    return found


def _candidates(file: IndexBytes, header: IndexHeader, words: int) -> Iterator[int]:
    """Numbers of slots for which the newest entry is the head of its slot; small files byte by byte, big ones in
    bulk.
    """
    if file.size > 4 << 20:
        yield from _candidates_in_bulk(file, header, words)
        return
    data = file.read(0, file.size)
    for slots in range(words % 5 or 5, words, 5):
        geometry = Geometry(slots, (words - slots) // 5)
        at = geometry.entry_position(header.entries)
        if geometry.entries <= header.entries or at + ENTRY_SIZE > len(data):
            break
        key_hash = _I32.unpack_from(data, at)[0]
        if key_hash >= 0 and _I32.unpack_from(data, geometry.slot_position(key_hash % slots))[0] == header.entries:
            yield slots


def _candidates_in_bulk(file: IndexBytes, header: IndexHeader, words: int) -> Iterator[int]:
    import numpy as np

    largest = words - 5 * (header.entries + 1)
    if largest <= 0:
        return
    data = np.frombuffer(file.read(HEADER_SIZE, words * 4), ">i4")
    for first in range(words % 5 or 5, largest + 1, 5 * _AT_ONCE):
        slots = np.arange(first, min(first + 5 * _AT_ONCE, largest + 1), 5, dtype=np.int64)
        at = slots + 5 * header.entries
        slots, at = slots[at < len(data)], at[at < len(data)]
        key_hash = data[at].astype(np.int64)
        good = key_hash >= 0
        slots, key_hash = slots[good], key_hash[good]
        yield from (int(n) for n in slots[data[key_hash % slots] == header.entries])


def _newest_agrees(file: IndexBytes, header: IndexHeader, geometry: Geometry) -> bool:
    newest = _entry(file, geometry, header.entries)
    if newest is None or newest.key_hash < 0:
        return False
    head = file.read(geometry.slot_position(newest.key_hash % geometry.slots), SLOT_SIZE)
    number = _I32.unpack(head)[0] if len(head) == SLOT_SIZE else 0
    for _ in range(NEWER):
        if number <= header.entries:
            break
        newer = _entry(file, geometry, number)  # written since the header was read, or never counted
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
    """Most links of a sample of entries lead to an older entry of the same slot (a few may be damaged)."""
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
