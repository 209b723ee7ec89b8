"""The DLedger log of an opened store: its folders, index files, checkpoint and vote (docs/formats/dledger.md)."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.codec.dledger import (
    FOLDER_PREFIX,
    HEADER_SIZE,
    INDEX_UNIT_SIZE,
    MAX_REMAINS_BYTES,
    DLedgerCheckpoint,
    EntryHeader,
    IndexRow,
    Vote,
    decode_checkpoint,
    decode_index_row,
    decode_vote,
    find_remains_by,
)
from engine.codec.message import Unit
from engine.errors import CannotRead
from engine.mapped.read_only import DescriptorCache, FileSequence
from engine.sentences import sentence

if TYPE_CHECKING:
    from engine.inspection.log_reader import LogReader
    from engine.inspection.snapshot import StoreSnapshot


@dataclass(frozen=True, slots=True)
class DLedgerFolders:
    """Folders of a DLedger log: ``member`` has the checkpoint and the vote, ``data`` the entries, ``index`` one row per
    entry. ``label`` is the data folder as seen from the store.
    """

    member: Path
    data: Path
    index: Path
    label: str


def find_folders(store: StoreSnapshot) -> DLedgerFolders | None:
    """The DLedger log with the store's messages; None without one, or if there are several and none is configured."""
    parts = [part for part in store.undecoded if part.format == "DLedger log" and part.holds_data]
    self_id = store.config.d_leger_self_id if store.config is not None else ""
    own_parts = [part for part in parts if part.folder == f"{FOLDER_PREFIX}{self_id}"] if self_id else []
    candidates = own_parts or parts
    if len(candidates) != 1:
        return None
    part = candidates[0]
    member = store.path / part.folder
    if not part.folder.startswith(FOLDER_PREFIX):  # the data files alone are elsewhere (storePathDLedgerCommitLog)
        with contextlib.suppress(CannotRead):
            members = [folder for folder in store.reading.folders(store.path) if folder.name.startswith(FOLDER_PREFIX)]
            own_folder = store.path / f"{FOLDER_PREFIX}{self_id}"
            member = own_folder if own_folder in members else members[0] if len(members) == 1 else member
    return DLedgerFolders(member, store.path / part.data_folder, member / "index", part.data_folder)


@dataclass(frozen=True, slots=True)
class TermStart:
    """The first entry of a leader's term: its number, and the offset of its unit."""

    term: int
    index: int
    start_offset: int


@dataclass(frozen=True, slots=True)
class DLedgerInfo:
    """The facts that ``info`` shows about a DLedger log: the member, the oldest and newest entry (None without one),
    the committed index of its checkpoint, the newest term that the member knows, and where the terms of its entries
    begin.
    """

    folder: str
    member: str
    first_header: EntryHeader | None
    last_header: EntryHeader | None
    committed_index: int | None
    term: int | None
    voted_for: str
    terms: tuple[TermStart, ...] = ()

    def record(self) -> dict[str, Any]:
        """The ``dledger`` of a ``store`` record."""
        return {
            "folder": self.folder,
            "member": self.member,
            "firstIndex": self.first_header.index if self.first_header is not None else None,
            "lastIndex": self.last_header.index if self.last_header is not None else None,
            "lastTerm": self.last_header.term if self.last_header is not None else None,
            "committedIndex": self.committed_index,
            "currentTerm": self.term,
            "votedFor": self.voted_for,
            "terms": [
                {"term": row.term, "firstIndex": row.index, "startOffset": row.start_offset} for row in self.terms
            ],
        }

    @property
    def term_words(self) -> str:
        """The newest terms with the offsets of their first units, for one line."""
        shown = [sentence("{n:,} from {offset:,}", n=row.term, offset=row.start_offset) for row in self.terms[-6:]]
        further = ["…"] if len(self.terms) > len(shown) else []
        return ", ".join([*further, *shown])


def dledger_info(store: StoreSnapshot, log: DLedgerLog) -> DLedgerInfo:
    """Gather it. Raises :class:`CannotRead`."""
    checkpoint, vote = log.checkpoint(), log.vote()
    first_header, last_header = end_headers(store)
    return DLedgerInfo(
        log.folders.label,
        log.folders.member.name.removeprefix(FOLDER_PREFIX),
        first_header,
        last_header,
        checkpoint.committed_index if checkpoint is not None else None,
        vote.term if vote is not None else None,
        vote.voted_for if vote is not None else "",
        term_starts(log, first_header, last_header),
    )


def end_headers(store: StoreSnapshot) -> tuple[EntryHeader | None, EntryHeader | None]:
    """The headers of the oldest and of the newest entry. Raises :class:`CannotRead`."""
    first_file = next((file for file in store.log.files if store.log.has_entries(file)), None)
    first_header = store.log.entry_header(first_file.start_offset + HEADER_SIZE) if first_file is not None else None
    newest = next(iter(store.log.items_before(store.log.max_offset, 1, crc=False)), None)
    return first_header, store.log.entry_header(newest.offset) if isinstance(newest, Unit) else None


def term_starts(log: DLedgerLog, first: EntryHeader | None, last: EntryHeader | None) -> tuple[TermStart, ...]:
    """Return the first entry of each term, by bisection of the index. It ends before a term whose rows are not
    in the index. Raises :class:`CannotRead`.
    """
    if first is None or last is None:
        return ()
    starts = [TermStart(first.term, first.index, first.position + HEADER_SIZE)]
    lower = first.index
    while starts[-1].term < last.term:
        upper, position, term = last.index, last.position, last.term
        while upper - lower > 1:
            middle = (lower + upper) // 2
            row = log.index_row(middle)
            if row is None or row.index != middle:
                return tuple(starts)
            if row.term > starts[-1].term:
                upper, position, term = middle, row.position, row.term
            else:
                lower = middle
        starts.append(TermStart(term, upper, position + HEADER_SIZE))
        lower = upper
    return tuple(starts)


def find_remains(reader: LogReader, log: DLedgerLog) -> int | None:
    """The end of the entries, if bytes of entries that a leader replaced follow it. Raises :class:`CannotRead`."""

    def next_header(position: int) -> EntryHeader | None:
        file = reader.sequence.find(position)
        if file is None:
            return None
        start = position - file.start_offset
        stop = min(start + MAX_REMAINS_BYTES, file.size)
        while (unit_offset := reader.unit_between(file, start, stop)) >= 0:
            header = reader.entry_header(unit_offset)
            if header is not None:
                return header
            start = unit_offset + 1 - file.start_offset
        return None

    return find_remains_by(
        log.checkpoint(),
        log.vote(),
        log.index_row,
        lambda position: reader.entry_header(position + HEADER_SIZE),
        next_header,
    )


class DLedgerLog:
    """The files of a DLedger log beside its entries, for reading only."""

    def __init__(self, store: StoreSnapshot, folders: DLedgerFolders) -> None:
        self.folders = folders
        self._store = store
        self.index = FileSequence((folders.index,), DescriptorCache(reading=store.reading))
        """The index files; their names count bytes."""

    def checkpoint(self) -> DLedgerCheckpoint | None:
        """The checkpoint; None if there is none. Raises :class:`CannotRead`."""
        data = self._store.small_file(self.folders.member / "checkpoint")
        return decode_checkpoint(data) if data is not None else None

    def vote(self) -> Vote | None:
        """The newest term that the member knows, and its vote; None if there is no such file. Raises
        :class:`CannotRead`.
        """
        data = self._store.small_file(self.folders.member / "currterm")
        return decode_vote(data) if data is not None else None

    def index_row(self, number: int) -> IndexRow | None:
        """The index row of entry ``number``; None if no file holds it. Raises :class:`CannotRead`."""
        data = self.index.read(number * INDEX_UNIT_SIZE, INDEX_UNIT_SIZE)
        return decode_index_row(data) if len(data) == INDEX_UNIT_SIZE else None
