"""The index's part of a check: every file by itself, and its entries against the keys of the units (spec 4).

The index's findings, judged when the broken places of the log are known: file by file, and of the index as a whole
(none at all, files without a byte in them, one of another store: IX06, IX10).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from itertools import chain, islice, pairwise
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.codec import index as codec
from engine.codec.columns import UnitColumns
from engine.codec.dtypes import INDEX_ENTRY
from engine.codec.index_builder import key_hashes
from engine.codec.message import ROLLBACK, TRANSACTION_MASK, Unit
from engine.codec.topic_table import TopicTable
from engine.errors import CannotRead
from engine.inspection import recovery
from engine.inspection.check.log import LogCheck
from engine.inspection.index_reader import IndexReader
from engine.inspection.snapshot import StoreSnapshot
from engine.layout import INDEX_ENTRIES, INDEX_SLOTS
from engine.mapped.sparse import last_byte
from engine.rules import catalogue, index_rules
from engine.rules import catalogue_tables as rules
from engine.rules.findings import HAPPENED, Finding, Severity
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
        """Keys of units that the index should hold."""
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
        row, hashes = key_hashes(columns, self._topics)
        use = good[row] & ((columns.sys_flag[:rows][row] & TRANSACTION_MASK) != ROLLBACK)
        wanted = (row[use].astype(np.int64) << 32) | hashes[use]
        self.keys += len(wanted)
        taken = [run for lane in self._lanes for run in lane.take(stop)]
        if self._as_written(taken, offsets, wanted):
            return
        met = [self._meet(piece, part, offsets, wanted) for piece, part in taken]
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
            if digest.count > proof.keys:
                break
        older = proof.behind <= self.first_physical and not taken
        if older or (digest.count == proof.keys and digest.text == proof.digest):
            self.keys += max(proof.keys, 0)
            return True
        self._lanes[0].give_back(taken)
        return False

    def _as_written(self, taken: list[tuple[_Piece, slice]], offsets: Int64, wanted: Int64) -> bool:
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

    def _meet(self, piece: _Piece, part: slice, offsets: Int64, wanted: Int64) -> Int64:
        physical, key_hash = piece.physical[part], piece.key_hash[part]
        row = np.searchsorted(offsets, physical)
        inside = row < len(offsets)
        there = np.zeros(len(physical), bool)
        there[inside] = offsets[row[inside]] == physical[inside]
        codes = (row.astype(np.int64) << 32) | key_hash
        wrong = np.flatnonzero(~(there & np.isin(codes, wanted)))
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


MOST = 20
MANY_KEYS = 0.25
"""Share of all keys that are in no index file from which on queries by key cannot be relied on."""


def findings(
    store: StoreSnapshot, log: LogCheck, index: IndexCheck, odd_units: AbstractSet[int], again_from: int | None = None
) -> Iterator[Finding]:
    """Everything about index files; ``odd_units`` are units whose own fields are wrong, so their keys are too. The next
    start indexes the units from ``again_from`` on again, None where it does not or that is not known.
    """
    doomed = _doomed(store, index)
    wrong, beyond = _sort_out(store, log, index, odd_units)
    yield from missing(store, index)
    blank = blank_files(store, index)
    yield from folded(blank)
    renamed = misnamed(store, index)
    yield from renamed
    foreign = of_another_store(index, wrong)
    if foreign is not None:
        yield foreign
        wrong, beyond = {}, {}
    size = usual_size(index)
    rewritten = False
    for number, account in enumerate(index.accounts):
        if number in blank:
            continue
        lighter: Severity | None = "note" if number in doomed else None
        twice = None if wrong.get(number) else overwritten(index, number)
        if twice is not None:
            rewritten = True
            yield twice
            continue
        yield from _of_file(account, wrong.get(number, []), lighter, size)
        if number in beyond:
            yield _beyond(log, account, beyond[number], "note" if store.abort else None)
    if index.missing > len(index.bad):
        span = f"{index.first_missing:,} to {index.last_missing:,}"
        text = f"{index.missing:,} keys are in no index file, of units from {span}"
        evidence: dict[str, Any] = {
            "keys": index.missing,
            "firstUnit": index.first_missing,
            "lastUnit": index.last_missing,
        }
        evidence[HAPPENED] = f"{index.missing:,} of {index.keys:,} keys are in no index file"
        file = store.log.sequence.find(index.first_missing)
        cut = any(account.trouble is not None for account in index.accounts)
        causes = {"IX06": foreign is not None, "IX10": bool(blank or renamed), "IX08": cut, "IX09": rewritten}
        healed = again_from is not None and index.first_missing >= again_from
        many = index.missing >= index.keys * MANY_KEYS
        text += " · the next start indexes them again" if healed else ""
        yield catalogue.IX05.found(
            text,
            file.path if file else None,
            index.first_missing,
            evidence,
            "chat" if healed or store.lock_state == "held" else "warn" if many else None,
            caused_by=next((rule for rule, holds in causes.items() if holds), None),
        )


def _doomed(store: StoreSnapshot, index: IndexCheck) -> set[int]:
    """Files that the next start deletes: after a crash only."""
    if not store.abort:
        return set()
    limit = recovery.mapped_checkpoint(store)[0].index_msg_timestamp
    return {n for n, a in enumerate(index.accounts) if a.header is not None and a.header.end_timestamp > limit}


def _sort_out(
    store: StoreSnapshot, log: LogCheck, index: IndexCheck, odd_units: AbstractSet[int]
) -> tuple[dict[int, list[BadEntry]], dict[int, list[BadEntry]]]:
    """By file: entries that are wrong themselves, and those behind the log's end; the rest are consequences."""
    wrong: dict[int, list[BadEntry]] = {}
    beyond: dict[int, list[BadEntry]] = {}
    least = max(store.log.min_offset, 0)
    for bad in index.bad:
        span = log.spans.find(bad.physical)
        if span is not None:
            span.keys += 1
        elif (0 <= bad.physical < least and bad.physical < index.first_physical + least) or bad.physical in odd_units:
            continue
        elif bad.physical >= log.end and _in_order(index, bad):
            beyond.setdefault(bad.file, []).append(bad)
        else:
            wrong.setdefault(bad.file, []).append(bad)
    return wrong, beyond


def _in_order(index: IndexCheck, bad: BadEntry) -> bool:
    """The file itself says that it goes that far: not one entry that was changed."""
    header = index.accounts[bad.file].header
    return header is not None and bad.physical <= header.end_phy_offset


def _of_file(account: IndexAccount, wrong: list[BadEntry], lighter: Severity | None, size: int) -> Iterator[Finding]:
    path = account.reader.path
    if account.trouble is not None and account.reader.size < size:
        text = f"{account.reader.name} has {account.reader.size:,} of the others' {size:,} bytes: a copy that was cut"
        evidence: dict[str, Any] = {"expected": size, "found": account.reader.size}
        evidence[HAPPENED] = f"the index file {account.reader.name} was cut to {account.reader.size:,} bytes"
        yield catalogue.IX08.found(text, path, account.reader.size, evidence, lighter, kind="cut")
        return
    if account.trouble is not None:
        text = f"{account.reader.name}: {account.trouble}"
        yield catalogue.IX08.found(text, path, 0, {"found": account.trouble, "size": account.reader.size}, lighter)
        return
    geometry = account.geometry
    if geometry is None:
        return
    if account.header_faults:
        text = f"{account.reader.name}: " + "; ".join(account.header_faults)
        yield catalogue.IX01.found(text, path, _header_field(account), {"found": account.header_faults}, lighter)
    first = min(wrong, key=lambda bad: bad.number) if wrong else None
    link = min(account.links, key=lambda bad: bad.entry) if account.links else None
    if first is not None and (link is None or first.number <= link.entry):
        yield _bad_entry(account, geometry, first, len(wrong) - 1, lighter)
        return
    misplaced = index_rules.with_changed_hash([*account.links, *account.slots])
    if misplaced is not None:
        text = f"{account.reader.name}: entry {misplaced:,} has the hash of another chain than its own"
        evidence = {"entry": misplaced, "links": [index_rules.link_words(b) for b in account.links[:4]]}
        yield catalogue.IX06.found(text, path, geometry.entry_position(misplaced), evidence, lighter)
    elif link is not None or account.slots:
        bad = link if link is not None else account.slots[0]
        at = geometry.entry_position(bad.entry) + 16 if bad.entry else geometry.slot_position(bad.slot)
        evidence = {"expected": bad.expected, "found": bad.found, "slot": bad.slot, "entry": bad.entry}
        further = account.bad_links - 1
        text = f"{account.reader.name}: {index_rules.link_words(bad)}"
        if further:
            evidence["furtherLinks"] = further
            text += f"; {further:,} more links do not fit"
        yield catalogue.RULES[index_rules.RULE_OF[bad.kind]].found(text, path, at, evidence, lighter)


def _header_field(account: IndexAccount) -> int:
    """Position of the first header field that is wrong."""
    words = account.header_faults[0]
    fields = (("entries", 36), ("used slots", 32), ("beginPhyOffset", 16), ("endPhyOffset", 24))
    return next((position for name, position in fields if name in words), 0)


def _bad_entry(
    account: IndexAccount, geometry: codec.Geometry, bad: BadEntry, further: int, lighter: Severity | None
) -> Finding:
    there = "the unit there has no key of this hash" if bad.unit_there else "no unit begins there"
    text = f"{account.reader.name}: entry {bad.number:,} (hash {bad.key_hash}) leads to {bad.physical:,}; {there}"
    evidence: dict[str, Any] = {
        "entry": bad.number,
        "found": {"keyHash": bad.key_hash, "phyOffset": bad.physical},
        "expected": "a unit with a key of this hash",
    }
    if further:
        evidence["furtherEntries"] = further
        text += f"; {further:,} more entries lead nowhere"
    return catalogue.IX06.found(text, account.reader.path, geometry.entry_position(bad.number), evidence, lighter)


def _beyond(log: LogCheck, account: IndexAccount, bad: list[BadEntry], lighter: Severity | None) -> Finding:
    first = bad[0]
    text = f"{account.reader.name}: {len(bad):,} entries point behind the end of the log ({log.end:,})"
    last = max(entry.physical for entry in bad)
    evidence = {"expected": f"below {log.end:,}", "found": first.physical, "entry": first.number, "last": last}
    assert account.geometry is not None
    return catalogue.IX07.found(
        text, account.reader.path, account.geometry.entry_position(first.number), evidence, lighter
    )


MOST_UNITS = 64
MOST_NAMED = 20
FOREIGN_FILES = 2
FOREIGN_SHARE = 0.5
"""Share of an index's entries that lead nowhere where it is another store's."""
LEAST_WRONG = 0.25
"""Share of these that lead into the log: of a log that lost its tail all lead behind its end."""


def missing(store: StoreSnapshot, index: IndexCheck) -> list[Finding]:
    """IX10: a log of messages with keys, and no index file. Raises :class:`CannotRead`."""
    if store.paths is None or index.accounts or store.lock_state == "held":
        return []
    store.whole_index()
    if store.index_files() or (store.config is not None and not store.config.message_index_enable):
        return []
    keys = sum(bool(item.keys) for item in islice(store.units(crc=False), MOST_UNITS) if isinstance(item, Unit))
    if not keys:
        return []
    text = "There are no index files, and the log has units with keys: a query by key or id finds nothing"
    evidence = {"expected": "index files", "found": "none", "unitsWithKeys": keys, "looked": MOST_UNITS}
    evidence[HAPPENED] = "the index files are gone, or were never made"
    cause = None if store.topics() else "CQ10"
    return [rules.IX10.found(text, str(store.paths.index), None, evidence, caused_by=cause)]


def blank_files(store: StoreSnapshot, index: IndexCheck) -> dict[int, Finding]:
    """IX10 by the number of the file: files of 0 bytes, or of zeros."""
    found: dict[int, Finding] = {}
    last = len(index.accounts) - 1
    for number, account in enumerate(index.accounts):
        reader = account.reader
        if reader.size and last_byte(reader.file):
            continue
        begun = number == last and bool(reader.size) and (store.abort or store.lock_state == "held")
        if begun:  # a broker makes a file before it puts the first entry in
            continue
        how = "is all zero" if reader.size else "is empty (0 bytes)"
        text = f"{reader.name} {how}: the keys that were in it are not found"
        evidence: dict[str, Any] = {"expected": "a header and entries", "found": how.removeprefix("is ")}
        evidence |= {"size": reader.size, HAPPENED: f"the index file {reader.name} {how.partition(' (')[0]}"}
        found[number] = rules.IX10.found(text, reader.path, 0, evidence, kind="blank")
    return found


def misnamed(store: StoreSnapshot, index: IndexCheck) -> list[Finding]:
    """IX10: index files whose name is no number, as somebody renamed them: a broker passes them over."""
    paths = store.misnamed_index_files(usual_size(index))
    if not paths:
        return []
    name = PurePath(paths[0]).name
    more = f", as are {len(paths) - 1:,} more" if len(paths) > 1 else ""
    text = f"The file {name} has the length of an index file, and its name is no time{more}: a broker passes it over"
    evidence: dict[str, Any] = {"expected": "a name of 17 digits, as 20260131080000000", "found": name}
    evidence |= {"files": [PurePath(path).name for path in paths[:MOST_NAMED]]}
    evidence[HAPPENED] = f"the index file {name} was renamed"
    return [rules.IX10.found(text, paths[0], None, evidence, kind="name")]


def folded(blank: Mapping[int, Finding]) -> list[Finding]:
    """One finding for all files with nothing in them."""
    found = [blank[number] for number in sorted(blank)]
    if len(found) < 2:
        return found
    names = [PurePath(one.file or "").name for one in found]
    text = f"{len(found):,} index files are empty or all zero, {names[0]} to {names[-1]}: their keys are not found"
    evidence = {**found[0].evidence, "files": names[:MOST_NAMED]}
    evidence[HAPPENED] = f"{len(found):,} index files are empty or all zero, the first is {names[0]}"
    return [replace(found[0], message=text, evidence=evidence)]


def of_another_store(index: IndexCheck, wrong: Mapping[int, Sequence[BadEntry]]) -> Finding | None:
    """IX06, once: most entries of several files lead to no unit with their key."""
    entries = sum(account.entries for account in index.accounts)
    kept = sum(map(len, wrong.values()))
    if len(wrong) < FOREIGN_FILES or index.bad_count < entries * FOREIGN_SHARE or kept < len(index.bad) * LEAST_WRONG:
        return None
    names = [index.accounts[number].reader.name for number in sorted(wrong)]
    text = (
        f"{index.bad_count:,} of {entries:,} entries in {len(index.accounts):,} index files lead to no unit with their "
        f"key: it is the index of another store"
    )
    first = wrong[min(wrong)][0]
    evidence = {
        "expected": "units with these keys",
        "found": {"keyHash": first.key_hash, "phyOffset": first.physical},
        "entries": entries,
        "wrong": index.bad_count,
        "files": names[:MOST_NAMED],
    }
    folder = str(index.accounts[0].reader.path).rsplit("/", 1)[0]
    return catalogue.IX06.found(text, folder, None, evidence, kind="foreign")


def overwritten(index: IndexCheck, number: int) -> Finding | None:
    """IX09, a note: a file that has the slots of a former life, and the keys between it and the one in front are gone.
    An index file's name is the millisecond in which it was made, and RocketMQ takes a file of that name as it is: the
    first link of a chain then leads to what the slot held before, whose hash is another, and no entry is missed.
    """
    account, before = index.accounts[number], index.accounts[number - 1] if number else None
    links = [*account.links, *account.slots]
    if not links or before is None or before.header is None or account.header is None or not index.missing:
        return None
    stale = len(links) == account.bad_links and not any(link.expected for link in links)
    slots_only = all("used slots" in fault for fault in account.header_faults)
    gone = before.header.end_phy_offset <= index.first_missing <= index.last_missing <= account.header.begin_phy_offset
    if not (stale and slots_only and gone):
        return None
    text = (
        f"{account.reader.name}: two index files were made within one millisecond, and the second overwrote the first: "
        f"{index.missing:,} keys are gone, and {len(links):,} links of the former life stay, which miss nothing"
    )
    happened = f"two index files were made within one millisecond, and {account.reader.name} overwrote the first"
    evidence: dict[str, Any] = {"keys": index.missing, "links": len(links), HAPPENED: happened}
    return catalogue.IX09.found(text, account.reader.path, 0, evidence, kind="overwritten")


def usual_size(index: IndexCheck) -> int:
    """The length (bytes) that most files have whose table is known; 0 where none is."""
    sizes = Counter(account.reader.size for account in index.accounts if account.geometry is not None)
    return max(sizes, key=lambda size: (sizes[size], size), default=0)
