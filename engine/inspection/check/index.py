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
from engine.files.layout import INDEX_ENTRIES, INDEX_SLOTS
from engine.inspection.index_reader import IndexReader
from engine.rules import index_rules
from engine.rules.index_rules import BadLink, Chains
from engine.rules.proofs import KeyDigest, Proof
from engine.sentences import sentence

CHUNK = 1 << 17
MAX_SUSPECTS = 256
MAX_LANES = 8
_DEFAULT = codec.Geometry(INDEX_SLOTS, INDEX_ENTRIES)
Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class BadEntry:
    """An entry that points to no unit with its key: file number, entry number, target."""

    file: int
    number: int
    physical: int
    key_hash: int
    unit_there: bool


@dataclass(slots=True)
class IndexAccount:
    """Results of checking one index file by itself."""

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
    rising: bool = True  # True if the targets of the entries never fall


def prove_file(reader: IndexReader, live: bool = False) -> IndexAccount:
    """Prove one file: its counts, its slots, every chain.

    A file that a broker is writing (``live``) grows meanwhile. The broker writes an entry before the slot that names
    it, and the slot before the header counts it. So they are read in the opposite order, and each may be ahead of the
    one before.
    """
    account = IndexAccount(reader)
    data = reader.file.read(0, codec.HEADER_SIZE)
    if len(data) < codec.HEADER_SIZE:
        account.trouble = sentence(
            "expected a header of {size} bytes, found {found:,}", size=codec.HEADER_SIZE, found=len(data)
        )
        return account
    account.header = header = codec.decode_header(data)
    account.geometry = geometry = reader.geometry or (_DEFAULT if reader.size == _DEFAULT.file_size else None)
    if geometry is None:
        open_question = header.entries == 0 or reader.geometry_source.startswith("several")
        account.trouble = None if open_question else reader.geometry_source
        return account
    slots = _slots(reader, geometry)
    account.entries = _count_entries(reader, geometry, header.entries)
    moving = live and (account.entries != header.entries or reader.file.read(0, codec.HEADER_SIZE) != data)
    settled = account.entries
    if moving:  # the newest entry may be partly written: it is complete when a slot names it
        settled = min(header.entries, account.entries)
        account.entries = max(settled, int(slots[slots <= account.entries].max(initial=0)))
    chains = Chains(geometry.slots, account.entries + 1)
    ends: list[int] = []
    grown = _chunks(reader, geometry, settled + 1, account.entries + 1)
    for first_number, rows in chain(_chunks(reader, geometry, 1, settled + 1), grown):
        if moving and first_number == settled + 1:
            chains.settle()
        chains.feed(first_number, rows["key_hash"].astype(np.int64), rows["prev"].astype(np.int64))
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


def _prove_if_readable(reader: IndexReader, live: bool) -> IndexAccount | None:
    try:
        return prove_file(reader, live)
    except CannotRead:
        return None  # ``reading`` has noted it


def _count_entries(reader: IndexReader, geometry: codec.Geometry, header_count: int) -> int:
    """Count the entries that the file really holds: the header's number if the bytes agree, else up to the last entry
    that is not zero.
    """
    header_count = min(max(header_count, 0), geometry.entries - 1)
    last_entry = _entry_bytes(reader, geometry, header_count) if header_count else b"x"
    if any(last_entry) and not any(_entry_bytes(reader, geometry, header_count + 1)):
        return header_count
    if any(last_entry):
        number = header_count + 1
        while number < geometry.entries and any(_entry_bytes(reader, geometry, number)):
            number += 1
        return number - 1
    stop = header_count
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
    """Entries of files, each of which continues where the previous one ends.

    A healthy store has one lane. A start that lost the newest file dispatches from further back and begins another
    lane.
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

    def give_back(self, runs: list[tuple[_Piece, slice]]) -> None:
        """Put back the entries that the last :meth:`take` returned."""
        if not runs:
            return
        for piece, part in runs:
            piece.used = part.start
        pieces = [piece for piece, _ in runs]
        if self._piece is not None and self._piece is not pieces[-1]:
            pieces.append(self._piece)
        self._piece, self._pieces = pieces[0], chain(pieces[1:], self._pieces)


def _ascending_lanes(accounts: list[IndexAccount]) -> list[list[int]]:
    """Numbers of the files in runs that go up the log, whatever the order of their names."""
    lanes: list[list[int]] = []
    ends: list[int] = []
    filled = [
        number for number, account in enumerate(accounts) if account.geometry and account.header and account.entries
    ]
    for number in sorted(filled, key=lambda number: accounts[number].ends):
        first_physical, last_physical = accounts[number].ends
        lane = next((lane for lane, end in enumerate(ends) if first_physical >= end), None)
        if lane is None and len(lanes) >= MAX_LANES:
            lane = len(lanes) - 1
        if lane is None:
            lane = len(lanes)
            lanes.append([])
            ends.append(-1)
        lanes[lane].append(number)
        ends[lane] = last_physical
    return lanes


def _odd_rows(physical: Int64, log_end: int) -> NDArray[np.intp]:
    """Return the rows of entries that break the order of the log.

    Entries that point outside of the log while a later one points into it come from an overwritten page, however many
    there are. The entries at the end may point after the end of a log that was cut.
    """
    outside = (physical < 0) | (physical >= log_end)
    inside_rows = np.flatnonzero(~outside)
    outside[inside_rows[-1] + 1 if len(inside_rows) else 0 :] = False
    other_rows = np.flatnonzero(~outside)
    outside[other_rows[index_rules.out_of_order(physical[other_rows])]] = True
    return np.flatnonzero(outside)


class IndexCheck:
    """Receives blocks of units in the order of the log, and reads the entries of all files in parallel.

    With ``live`` a broker is writing the last file. ``log_end`` is the end of the log's files.
    """

    def __init__(
        self, readers: list[IndexReader], topics: TopicTable, live: bool = False, log_end: int = 1 << 62
    ) -> None:
        self._log_end = log_end
        looked = (_prove_if_readable(reader, live and reader is readers[-1]) for reader in readers)
        self.accounts = [account for account in looked if account is not None]
        self._topics = topics
        self.bad: list[BadEntry] = []
        self.bad_count = 0
        self._lanes = [_Lane(self._read(numbers)) for numbers in _ascending_lanes(self.accounts)]
        self._rising = all(account.rising for account in self.accounts)
        starts = [lane.first for lane in self._lanes if lane.first >= 0]
        self.first_physical = min(starts, default=-1)
        self.keys = 0
        """Number of keys that the index should hold, without tag entries, which are optional."""
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
        required = allowed[~keys.is_tag]
        self.keys += len(required)
        runs = [run for lane in self._lanes for run in lane.take(stop)]
        if self._is_as_written(runs, offsets, required) or self._is_as_written(runs, offsets, allowed):
            return
        matched_codes = [self._match_entries(piece, part, offsets, allowed) for piece, part in runs]
        present_codes = np.concatenate(matched_codes) if matched_codes else np.zeros(0, np.int64)
        missing = required[~np.isin(required, present_codes)]
        if len(missing):
            places = offsets[missing >> 32]
            places = places[places >= self.first_physical]
            if len(places):
                self.missing += len(places)
                self.first_missing = self.first_missing if self.first_missing >= 0 else int(places.min())
                self.last_missing = int(places.max())

    def skip(self, proof: Proof) -> bool:
        """Account for a proven range as if its blocks had been walked. Returns False and changes nothing if the
        entries that point there differ or do not form a single run.
        """
        if self.first_physical < 0:
            return True
        if len(self._lanes) > 1 or not self._rising:
            return False
        runs, digest = [], KeyDigest()
        for piece, part in self._lanes[0].take(proof.end_offset):
            runs.append((piece, part))
            digest.add(piece.physical[part], piece.key_hash[part])
            if digest.count > max(proof.keys.entries, proof.keys_and_tags.entries):
                break
        older = proof.end_offset <= self.first_physical and not runs
        if older or digest.sum in {proof.keys, proof.keys_and_tags}:
            self.keys += max(proof.keys.entries, 0)
            return True
        self._lanes[0].give_back(runs)
        return False

    @staticmethod
    def _is_as_written(runs: list[tuple[_Piece, slice]], offsets: Int64, codes: Int64) -> bool:
        """Return True if the entries are exactly the units' keys in their order, as in a healthy index."""
        if sum(part.stop - part.start for _, part in runs) != len(codes):
            return False
        start = 0
        for piece, part in runs:
            end = start + part.stop - part.start
            run_codes = codes[start:end]
            same = (run_codes & 0xFFFFFFFF == piece.key_hash[part]) & (offsets[run_codes >> 32] == piece.physical[part])
            if not same.all():
                return False
            start = end
        return True

    def _match_entries(self, piece: _Piece, part: slice, offsets: Int64, allowed: Int64) -> Int64:
        physical, key_hash = piece.physical[part], piece.key_hash[part]
        row = np.searchsorted(offsets, physical)
        inside = row < len(offsets)
        unit_exists = np.zeros(len(physical), bool)
        unit_exists[inside] = offsets[row[inside]] == physical[inside]
        codes = (row.astype(np.int64) << 32) | key_hash
        wrong = np.flatnonzero(~(unit_exists & np.isin(codes, allowed)))
        for index in wrong:
            number = piece.first + part.start + int(index)
            self._note(
                BadEntry(piece.file, number, int(physical[index]), int(key_hash[index]), bool(unit_exists[index]))
            )
        return codes[unit_exists]

    def drain(self) -> None:
        """End of the log: the remaining entries point behind it."""
        for piece, part in (run for lane in self._lanes for run in lane.take(1 << 62)):
            for row in range(part.start, part.stop):
                number = piece.first + row
                if self.bad_count > 100 * MAX_SUSPECTS:
                    self.bad_count += part.stop - row
                    break
                self._note(BadEntry(piece.file, number, int(piece.physical[row]), int(piece.key_hash[row]), False))

    def _note(self, bad: BadEntry) -> None:
        self.bad_count += 1
        if len(self.bad) < 16 * MAX_SUSPECTS:
            self.bad.append(bad)

    def _read(self, numbers: list[int]) -> Iterator[_Piece]:
        """Entries of some files in order; entries out of order are noted as bad at once."""
        for number in numbers:
            account = self.accounts[number]
            assert account.geometry is not None
            for first_number, rows in _chunks(account.reader, account.geometry, 1, account.entries + 1):
                physical = rows["phy_offset"].astype(np.int64)
                key_hash = rows["key_hash"].astype(np.int64)
                odd = _odd_rows(physical, self._log_end)
                for row in odd:
                    self._note(BadEntry(number, first_number + int(row), int(physical[row]), int(key_hash[row]), False))
                edges = [-1, *odd.tolist(), len(physical)]
                for start, end in pairwise(edges):
                    if end - start > 1:
                        part = slice(start + 1, end)
                        yield _Piece(number, first_number + start + 1, physical[part], key_hash[part])
