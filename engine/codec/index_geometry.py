"""The numbers of slots and entries that an index file gives away: RocketMQ writes neither into it (spec 4.1).

They are worked out from the length and checked against the chains. Nothing is opened here: bytes come from the caller.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Protocol

from engine.codec import index as codec
from engine.layout import INDEX_ENTRIES, INDEX_SLOTS

_DEFAULT = codec.Geometry(INDEX_SLOTS, INDEX_ENTRIES)
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


def derive_geometry(file: IndexBytes) -> tuple[codec.Geometry | None, str]:
    """Slots and entries of an index file, and how they are known.

    The default numbers are taken where the length is theirs and the newest entry's chain agrees; else every pair that
    the length allows is tried against the chains, and a pair is taken only where it is the only one.
    """
    header_bytes = file.read(0, codec.HEADER_SIZE)
    if len(header_bytes) < codec.HEADER_SIZE:
        return None, f"the file has {len(header_bytes):,} bytes, a header has {codec.HEADER_SIZE}"
    header = codec.decode_header(header_bytes)
    if file.size == _DEFAULT.file_size and _is_default(file, header):
        return _DEFAULT, "RocketMQ's defaults, by the file's length"
    if (file.size - codec.HEADER_SIZE) % 4:
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


def _is_default(file: IndexBytes, header: codec.IndexHeader) -> bool:
    for look in range(LOOKS):
        if look:
            header_bytes = file.read(0, codec.HEADER_SIZE)
            if len(header_bytes) < codec.HEADER_SIZE:
                return False
            header = codec.decode_header(header_bytes)
        if header.entries == 0 or _newest_agrees(file, header, _DEFAULT):
            return True
    return False


def _fitting(file: IndexBytes, header: codec.IndexHeader) -> list[codec.Geometry]:
    words = (file.size - codec.HEADER_SIZE) // 4
    found = []
    for slots in _candidates(file, header, words):
        geometry = codec.Geometry(slots, (words - slots) // 5)
        if geometry.entries > header.entries and _chains_agree(file, header, geometry):
            found.append(geometry)
            if len(found) > 8:
                break
    return found


def _candidates(file: IndexBytes, header: codec.IndexHeader, words: int) -> Iterator[int]:
    """Numbers of slots for which the newest entry is the head of its slot; small files byte by byte, big ones in
    bulk.
    """
    if file.size > 4 << 20:
        yield from _candidates_in_bulk(file, header, words)
        return
    data = file.read(0, file.size)
    for slots in range(words % 5 or 5, words, 5):
        geometry = codec.Geometry(slots, (words - slots) // 5)
        at = geometry.entry_position(header.entries)
        if geometry.entries <= header.entries or at + codec.ENTRY_SIZE > len(data):
            break
        key_hash = _I32.unpack_from(data, at)[0]
        if key_hash >= 0 and _I32.unpack_from(data, geometry.slot_position(key_hash % slots))[0] == header.entries:
            yield slots


def _candidates_in_bulk(file: IndexBytes, header: codec.IndexHeader, words: int) -> Iterator[int]:
    import numpy as np

    largest = words - 5 * (header.entries + 1)
    if largest <= 0:
        return
    data = np.frombuffer(file.read(codec.HEADER_SIZE, words * 4), ">i4")
    for first in range(words % 5 or 5, largest + 1, 5 * _AT_ONCE):
        slots = np.arange(first, min(first + 5 * _AT_ONCE, largest + 1), 5, dtype=np.int64)
        at = slots + 5 * header.entries
        slots, at = slots[at < len(data)], at[at < len(data)]
        key_hash = data[at].astype(np.int64)
        good = key_hash >= 0
        slots, key_hash = slots[good], key_hash[good]
        yield from (int(n) for n in slots[data[key_hash % slots] == header.entries])


def _newest_agrees(file: IndexBytes, header: codec.IndexHeader, geometry: codec.Geometry) -> bool:
    newest = _entry(file, geometry, header.entries)
    if newest is None or newest.key_hash < 0:
        return False
    head = file.read(geometry.slot_position(newest.key_hash % geometry.slots), codec.SLOT_SIZE)
    number = _I32.unpack(head)[0] if len(head) == codec.SLOT_SIZE else 0
    for _ in range(NEWER):
        if number <= header.entries:
            break
        newer = _entry(file, geometry, number)  # written since the header was read, or never counted
        if newer is None or newer.prev >= number or newer.key_hash % geometry.slots != newest.key_hash % geometry.slots:
            return False
        number = newer.prev
    return bool(number == header.entries)


def _entry(file: IndexBytes, geometry: codec.Geometry, number: int) -> codec.IndexEntry | None:
    if not 0 < number < geometry.entries:
        return None
    data = file.read(geometry.entry_position(number), codec.ENTRY_SIZE)
    return codec.decode_entry(data) if len(data) == codec.ENTRY_SIZE else None


def _chains_agree(file: IndexBytes, header: codec.IndexHeader, geometry: codec.Geometry) -> bool:
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
