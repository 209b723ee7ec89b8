"""One index file of a store that is only looked at, and the numbers of slots and entries that its bytes give away.

RocketMQ writes neither number into the file (spec 4.1): they come from the configuration, or are worked out here and
checked against the chains.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from engine.codec import index as codec
from engine.errors import CorruptUnit
from engine.layout import INDEX_ENTRIES, INDEX_SLOTS
from engine.mapped.read_only import ReadOnlyFile

_CHUNK = 4096
_DEFAULT = codec.Geometry(INDEX_SLOTS, INDEX_ENTRIES)
_I32 = struct.Struct(">i")


class IndexReader:
    """Reading face of one index file; the header is read anew on each ask, as a broker may be writing it."""

    def __init__(self, file: ReadOnlyFile, geometry: codec.Geometry | None, how: str) -> None:
        self.file = file
        self.geometry = geometry
        self.geometry_how = how

    @property
    def name(self) -> str:
        return self.file.name

    @property
    def path(self) -> str:
        return self.file.path

    @property
    def size(self) -> int:
        return self.file.size

    @property
    def header(self) -> codec.IndexHeader:
        """Raises :class:`CorruptUnit` where the file is shorter than a header."""
        data = self.file.read(0, codec.HEADER_SIZE)
        if len(data) < codec.HEADER_SIZE:
            raise CorruptUnit(
                f"expected a header of {codec.HEADER_SIZE} bytes, found {len(data)}", file=self.file.path, offset=0
            )
        return codec.decode_header(data)

    @property
    def slots(self) -> int:
        """Number of hash slots; raises :class:`CorruptUnit` where it could not be worked out."""
        return self._known().slots

    @property
    def last_entry(self) -> int:
        """Number of the newest entry: by the header's count, and not beyond what the file can hold."""
        return min(self.header.entries, self._known().entries - 1)

    def slot(self, number: int) -> int:
        """Newest entry of a slot's chain, 0 for none."""
        data = self.file.read(self._known().slot_position(number), codec.SLOT_SIZE)
        return int(_I32.unpack(data)[0]) if len(data) == codec.SLOT_SIZE else 0

    def entry(self, number: int) -> codec.IndexEntry | None:
        """An entry by its number (from 1), or None where the file does not hold it."""
        geometry = self._known()
        if not 0 < number < geometry.entries:
            return None
        data = self.file.read(geometry.entry_position(number), codec.ENTRY_SIZE)
        return codec.decode_entry(data) if len(data) == codec.ENTRY_SIZE else None

    def entries(self, start: int = 1, stop: int | None = None) -> Iterator[tuple[int, codec.IndexEntry]]:
        """(number, entry) from ``start`` to ``stop`` (exclusive; default: behind the newest)."""
        end = self.last_entry + 1 if stop is None else min(stop, self._known().entries)
        number = max(start, 1)
        while number < end:
            count = min(_CHUNK, end - number)
            data = self.file.read(self._known().entry_position(number), count * codec.ENTRY_SIZE)
            if len(data) < codec.ENTRY_SIZE:
                return
            for at in range(0, len(data) - codec.ENTRY_SIZE + 1, codec.ENTRY_SIZE):
                yield number, codec.decode_entry(data, at)
                number += 1

    def _known(self) -> codec.Geometry:
        if self.geometry is None:
            raise CorruptUnit(
                f"the numbers of slots and entries are not known: {self.geometry_how}", file=self.file.path, offset=0
            )
        return self.geometry


def derive_geometry(file: ReadOnlyFile) -> tuple[codec.Geometry | None, str]:
    """Slots and entries of an index file, and how they are known.

    The default numbers are taken where the length is theirs and the newest entry's chain agrees; else every pair that
    the
    length allows is tried against the chains, and a pair is taken only where it is the only one.
    """
    header_bytes = file.read(0, codec.HEADER_SIZE)
    if len(header_bytes) < codec.HEADER_SIZE:
        return None, f"the file has {len(header_bytes)} bytes, a header has {codec.HEADER_SIZE}"
    header = codec.decode_header(header_bytes)
    if file.size == _DEFAULT.file_size and (header.entries == 0 or _newest_agrees(file, header, _DEFAULT)):
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


def _fitting(file: ReadOnlyFile, header: codec.IndexHeader) -> list[codec.Geometry]:
    words = (file.size - codec.HEADER_SIZE) // 4
    found = []
    for slots in _candidates(file, header, words):
        geometry = codec.Geometry(slots, (words - slots) // 5)
        if geometry.entries > header.entries and _chains_agree(file, header, geometry):
            found.append(geometry)
            if len(found) > 8:
                break
    return found


def _candidates(file: ReadOnlyFile, header: codec.IndexHeader, words: int) -> Iterator[int]:
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


def _candidates_in_bulk(file: ReadOnlyFile, header: codec.IndexHeader, words: int) -> Iterator[int]:
    import numpy as np

    largest = words - 5 * (header.entries + 1)
    if largest <= 0:
        return
    data = np.frombuffer(file.read(codec.HEADER_SIZE, words * 4), ">i4")
    slots = np.arange(words % 5 or 5, largest + 1, 5, dtype=np.int64)
    at = slots + 5 * header.entries
    slots, at = slots[at < len(data)], at[at < len(data)]
    key_hash = data[at].astype(np.int64)
    good = key_hash >= 0
    slots, key_hash = slots[good], key_hash[good]
    yield from (int(n) for n in slots[data[key_hash % slots] == header.entries])


def _newest_agrees(file: ReadOnlyFile, header: codec.IndexHeader, geometry: codec.Geometry) -> bool:
    reader = IndexReader(file, geometry, "")
    newest = reader.entry(header.entries)
    if newest is None or newest.key_hash < 0:
        return False
    return reader.slot(newest.key_hash % geometry.slots) == header.entries


def _chains_agree(file: ReadOnlyFile, header: codec.IndexHeader, geometry: codec.Geometry) -> bool:
    """Most links of a sample of entries lead to an older entry of the same slot (a few may be damaged)."""
    reader = IndexReader(file, geometry, "")
    sample = range(1, header.entries + 1, max(header.entries // 256, 1))
    good = bad = 0
    for number in sample:
        entry = reader.entry(number)
        if entry is None or entry.key_hash < 0:
            bad += 1
            continue
        older = reader.entry(entry.prev) if 0 < entry.prev < number else None
        if entry.prev == 0 or (
            older is not None and older.key_hash % geometry.slots == entry.key_hash % geometry.slots
        ):
            good += 1
        else:
            bad += 1
    return good > 9 * bad
