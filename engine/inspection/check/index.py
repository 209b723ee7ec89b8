"""The index's part of a check: every file by itself, and its entries against the keys of the units
(docs/formats/index-file.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from engine.codec import index as codec
from engine.codec.columns import UnitColumns
from engine.codec.dtypes import INDEX_ENTRY
from engine.codec.index_builder import key_hashes
from engine.codec.message import ROLLBACK, TRANSACTION_MASK
from engine.codec.topic_table import TopicTable
from engine.errors import CannotRead
from engine.inspection.index_reader import IndexReader
from engine.layout import INDEX_ENTRIES, INDEX_SLOTS
from engine.rules import index_rules
from engine.rules.index_rules import BadLink, Chains
from engine.rules.proofs import KeyDigest, Proof

CHUNK = 1 << 17
MOST_SUSPECTS = 256
MOST_LANES = 8
_DEFAULT = codec.Geometry(INDEX_SLOTS, INDEX_ENTRIES)
Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class BadEntry:
    """An entry that leads to no unit with its key: file number, entry number, where it points."""

    file: int
    number: int
    physical: int
    key_hash: int
    unit_there: bool


@dataclass(slots=True)
class IndexAccount:
    """What one file showed by itself."""

    reader: IndexReader
    header: codec.IndexHeader | None = None
    geometry: codec.Geometry | None = None
    trouble: str | None = None
    entries: int = 0
    header_faults: list[str] = field(default_factory=list)
    links: list[BadLink] = field(default_factory=list)
    slots: list[BadLink] = field(default_factory=list)
    bad_links: int = 0
    ends: tuple[int, int] = (0, 0)  # where the first and the last entry point
    rising: bool = True  # each entry points as far as the one in front of it, or further


def look_at(reader: IndexReader, live: bool = False) -> IndexAccount:
    """Prove one file: its counts, its slots, every chain. One that a broker is writing just now (``live``) grows in the
    meantime: an entry is there before the slot that names it, and that before the header counts it, so they are read
    the other way round and each may be further than the one before.
    """
    account = IndexAccount(reader)
    data = reader.file.read(0, codec.HEADER_SIZE)
    if len(data) < codec.HEADER_SIZE:
        account.trouble = f"expected a header of {codec.HEADER_SIZE} bytes, found {len(data):,}"
        return account
    account.header = header = codec.decode_header(data)
    account.geometry = geometry = reader.geometry or (_DEFAULT if reader.size == _DEFAULT.file_size else None)
    if geometry is None:
        open_question = header.entries == 0 or reader.geometry_how.startswith("several")
        account.trouble = None if open_question else reader.geometry_how
        return account
    slots = _slots(reader, geometry)
    account.entries = _count_entries(reader, geometry, header.entries)
    moving = live and (account.entries != header.entries or reader.file.read(0, codec.HEADER_SIZE) != data)
    settled = account.entries
    if moving:  # the newest entry may be there in part: it is whole when a slot names it
        settled = min(header.entries, account.entries)
        account.entries = max(settled, int(slots[slots <= account.entries].max(initial=0)))
    chains = Chains(geometry.slots, account.entries + 1)
    ends: list[int] = []
    grown = _chunks(reader, geometry, settled + 1, account.entries + 1)
    for first, rows in chain(_chunks(reader, geometry, 1, settled + 1), grown):
        if moving and first == settled + 1:
            chains.settle()
        chains.feed(first, rows["key_hash"].astype(np.int64), rows["prev"].astype(np.int64))
        physical = rows["phy_offset"].astype(np.int64)
        account.rising &= not (ends and physical[0] < ends[1]) and not (physical[1:] < physical[:-1]).any()
        ends[:] = [ends[0] if ends else int(physical[0]), int(physical[-1])]
    if len(slots) == geometry.slots:
        account.slots = chains.slots(slots)
    account.links, account.bad_links = chains.bad, chains.total
    first_last = (ends[0], ends[1]) if ends else (None, None)
    account.ends = (ends[0], ends[1]) if ends else (0, 0)
    if not moving:
        account.header_faults = index_rules.header_faults(header, chains.used_slots, account.entries, *first_last)
    return account


def _slots(reader: IndexReader, geometry: codec.Geometry) -> NDArray[np.int32]:
    raw = reader.file.read(codec.HEADER_SIZE, geometry.slots * codec.SLOT_SIZE)
    return np.frombuffer(raw[: len(raw) - len(raw) % codec.SLOT_SIZE], ">i4").astype(np.int32)


def _look_if_readable(reader: IndexReader, live: bool) -> IndexAccount | None:
    try:
        return look_at(reader, live)
    except CannotRead:
        return None  # the door has noted it


def _count_entries(reader: IndexReader, geometry: codec.Geometry, told: int) -> int:
    """How many entries really stand in the file: as told if the bytes agree, else up to the last that is not zero."""
    told = min(max(told, 0), geometry.entries - 1)
    last = _entry_bytes(reader, geometry, told) if told else b"x"
    if any(last) and not any(_entry_bytes(reader, geometry, told + 1)):
        return told
    if any(last):
        number = told + 1
        while number < geometry.entries and any(_entry_bytes(reader, geometry, number)):
            number += 1
        return number - 1
    stop = told
    while stop > 0:
        start = max(stop - CHUNK, 0)
        data = reader.file.read(geometry.entry_position(start + 1), (stop - start) * codec.ENTRY_SIZE).rstrip(b"\0")
        if data:
            return start + -(-len(data) // codec.ENTRY_SIZE)
        stop = start
    return 0


def _entry_bytes(reader: IndexReader, geometry: codec.Geometry, number: int) -> bytes:
    if not 0 < number < geometry.entries:
        return b""
    return reader.file.read(geometry.entry_position(number), codec.ENTRY_SIZE)


def _chunks(
    reader: IndexReader, geometry: codec.Geometry, start: int, stop: int
) -> Iterator[tuple[int, NDArray[np.void]]]:
    while start < stop:
        count = min(CHUNK, stop - start)
        data = reader.file.read(geometry.entry_position(start), count * codec.ENTRY_SIZE)
        data = data[: len(data) - len(data) % codec.ENTRY_SIZE]
        if not data:
            return
        yield start, np.frombuffer(data, INDEX_ENTRY)
        start += len(data) // codec.ENTRY_SIZE


@dataclass(slots=True)
class _Piece:
    """A run of entries of one file that have not met their units yet."""

    file: int
    first: int
    physical: Int64
    key_hash: Int64
    used: int = 0


class _Lane:
    """Entries of files that go on where the one before ends. A healthy store has one lane; a start that lost the newest
    file dispatches from further back and begins another.
    """

    def __init__(self, pieces: Iterator[_Piece]) -> None:
        self._pieces = pieces
        self._piece = next(pieces, None)
        self.first = int(self._piece.physical[0]) if self._piece else -1

    def take(self, stop: int) -> Iterator[tuple[_Piece, slice]]:
        """Entries that point in front of ``stop`` and have not been taken yet."""
        while self._piece is not None:
            piece = self._piece
            end = piece.used + int(np.searchsorted(piece.physical[piece.used :], stop))
            if end > piece.used:
                yield piece, slice(piece.used, end)
                piece.used = end
            if end < len(piece.physical):
                return
            self._piece = next(self._pieces, None)

    def give_back(self, taken: list[tuple[_Piece, slice]]) -> None:
        """Entries that :meth:`take` gave last are taken no more."""
        if not taken:
            return
        for piece, part in taken:
            piece.used = part.start
        pieces = [piece for piece, _ in taken]
        if self._piece is not None and self._piece is not pieces[-1]:
            pieces.append(self._piece)
        self._piece, self._pieces = pieces[0], chain(pieces[1:], self._pieces)


def _ascending(accounts: list[IndexAccount]) -> list[list[int]]:
    """Numbers of the files in runs that go up the log, whatever the order of their names."""
    lanes: list[list[int]] = []
    ends: list[int] = []
    filled = [number for number, one in enumerate(accounts) if one.geometry and one.header and one.entries]
    for number in sorted(filled, key=lambda number: accounts[number].ends):
        first, last = accounts[number].ends
        at = next((at for at, end in enumerate(ends) if first >= end), None)
        if at is None and len(lanes) >= MOST_LANES:
            at = len(lanes) - 1
        if at is None:
            at = len(lanes)
            lanes.append([])
            ends.append(-1)
        lanes[at].append(number)
        ends[at] = last
    return lanes


class IndexCheck:
    """Fed with blocks of units in the order of the log, it reads along the entries of all files. With ``live`` somebody
    is writing the last of them.
    """

    def __init__(self, readers: list[IndexReader], topics: TopicTable, live: bool = False) -> None:
        looked = (_look_if_readable(reader, live and reader is readers[-1]) for reader in readers)
        self.accounts = [account for account in looked if account is not None]
        self._topics = topics
        self.bad: list[BadEntry] = []
        self.bad_count = 0
        self._lanes = [_Lane(self._read(numbers)) for numbers in _ascending(self.accounts)]
        self._rising = all(account.rising for account in self.accounts)
        starts = [lane.first for lane in self._lanes if lane.first >= 0]
        self.first_physical = min(starts, default=-1)
        self.keys = 0
        """Keys of units that the index should hold: tag entries may be there, and need not be."""
        self.missing = 0
        self.first_missing = -1
        self.last_missing = -1

    def block(self, columns: UnitColumns, good: NDArray[np.bool_]) -> None:
        """Compare the entries that point into this block with the keys of its units."""
        rows = len(good)
        if not rows or self.first_physical < 0:
            return
        offsets = columns.offset[:rows]
        stop = int(offsets[-1]) + int(columns.size[rows - 1])
        keys = key_hashes(columns, self._topics)
        indexed = good[keys.row] & ((columns.sys_flag[:rows][keys.row] & TRANSACTION_MASK) != ROLLBACK)
        keys = keys.choose(indexed)
        allowed = (keys.row.astype(np.int64) << 32) | keys.key_hash
        wanted = allowed[~keys.is_tag]
        self.keys += len(wanted)
        taken = [run for lane in self._lanes for run in lane.take(stop)]
        if self._as_written(taken, offsets, wanted) or self._as_written(taken, offsets, allowed):
            return
        met = [self._meet(piece, part, offsets, allowed) for piece, part in taken]
        have = np.concatenate(met) if met else np.zeros(0, np.int64)
        missing = wanted[~np.isin(wanted, have)]
        if len(missing):
            places = offsets[missing >> 32]
            places = places[places >= self.first_physical]
            if len(places):
                self.missing += len(places)
                self.first_missing = self.first_missing if self.first_missing >= 0 else int(places.min())
                self.last_missing = int(places.max())

    def pass_over(self, proof: Proof) -> bool:
        """As if the blocks of a proven stretch had gone by; False, and nothing is changed, where the entries that lead
        there are others, or not in one row.
        """
        if self.first_physical < 0:
            return True
        if len(self._lanes) > 1 or not self._rising:
            return False
        taken, digest = [], KeyDigest()
        for piece, part in self._lanes[0].take(proof.behind):
            taken.append((piece, part))
            digest.add(piece.physical[part], piece.key_hash[part])
            if digest.count > max(proof.keys.entries, proof.keys_and_tags.entries):
                break
        older = proof.behind <= self.first_physical and not taken
        if older or digest.sum in {proof.keys, proof.keys_and_tags}:
            self.keys += max(proof.keys.entries, 0)
            return True
        self._lanes[0].give_back(taken)
        return False

    @staticmethod
    def _as_written(taken: list[tuple[_Piece, slice]], offsets: Int64, wanted: Int64) -> bool:
        """Whether the entries are the units' keys one by one, in their order: so a healthy index was written."""
        if sum(part.stop - part.start for _, part in taken) != len(wanted):
            return False
        at = 0
        for piece, part in taken:
            end = at + part.stop - part.start
            codes = wanted[at:end]
            same = (codes & 0xFFFFFFFF == piece.key_hash[part]) & (offsets[codes >> 32] == piece.physical[part])
            if not same.all():
                return False
            at = end
        return True

    def _meet(self, piece: _Piece, part: slice, offsets: Int64, allowed: Int64) -> Int64:
        physical, key_hash = piece.physical[part], piece.key_hash[part]
        row = np.searchsorted(offsets, physical)
        inside = row < len(offsets)
        there = np.zeros(len(physical), bool)
        there[inside] = offsets[row[inside]] == physical[inside]
        codes = (row.astype(np.int64) << 32) | key_hash
        wrong = np.flatnonzero(~(there & np.isin(codes, allowed)))
        for at in wrong:
            number = piece.first + part.start + int(at)
            self._note(BadEntry(piece.file, number, int(physical[at]), int(key_hash[at]), bool(there[at])))
        return codes[there]

    def drain(self) -> None:
        """The log is over: entries that are left point behind it."""
        for piece, part in (run for lane in self._lanes for run in lane.take(1 << 62)):
            for at in range(part.start, part.stop):
                number = piece.first + at
                if self.bad_count > 100 * MOST_SUSPECTS:
                    self.bad_count += part.stop - at
                    break
                self._note(BadEntry(piece.file, number, int(piece.physical[at]), int(piece.key_hash[at]), False))

    def _note(self, bad: BadEntry) -> None:
        self.bad_count += 1
        if len(self.bad) < 16 * MOST_SUSPECTS:
            self.bad.append(bad)

    def _read(self, numbers: list[int]) -> Iterator[_Piece]:
        """Entries of some files in order; those out of order come as bad at once."""
        for number in numbers:
            account = self.accounts[number]
            assert account.geometry is not None
            for first, rows in _chunks(account.reader, account.geometry, 1, account.entries + 1):
                physical = rows["phy_offset"].astype(np.int64)
                key_hash = rows["key_hash"].astype(np.int64)
                odd = np.flatnonzero(index_rules.out_of_order(physical))
                for at in odd:
                    self._note(BadEntry(number, first + int(at), int(physical[at]), int(key_hash[at]), False))
                edges = [-1, *odd.tolist(), len(physical)]
                for low, high in pairwise(edges):
                    if high - low > 1:
                        part = slice(low + 1, high)
                        yield _Piece(number, first + low + 1, physical[part], key_hash[part])
