"""The entries of a DLedger log, its index, checkpoint and vote (DL01–DL04, docs/formats/dledger.md)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from engine.codec.dledger import HEADER_SIZE, INDEX_UNIT_SIZE, EntryHeader
from engine.inspection.check.replaced_entries import undecided
from engine.inspection.dledger import DLedgerLog
from engine.inspection.recovery import dledger_source
from engine.inspection.snapshot import StoreSnapshot
from engine.mapped.read_only import ReadOnlyFile
from engine.rules import catalogue
from engine.rules.findings import HAPPENED, Finding
from engine.sentences import plural, sentence
from engine.store.recovery.dledger import (
    DLedgerSource,
    EntryFault,
    IndexRows,
    entry_fault,
    headers,
    recover_entries,
    row_of,
)

MAX_FINDINGS = 20
"""Most findings of one rule."""


@dataclass(slots=True)
class _Entries:
    """The results of a walk over all entries."""

    last_header: EntryHeader | None = None
    faults: list[EntryFault] = field(default_factory=list)
    wrong_rows: int = 0
    first_wrong: EntryHeader | None = None
    last_wrong: int = -1


def findings(store: StoreSnapshot) -> Iterator[Finding]:
    """All findings about the store's DLedger log; none without one."""
    log, source = store.commit_log.dledger, dledger_source(store)
    if log is None or source is None or not source.files:
        return
    recovered = recover_entries(source)
    remains_from = store.log.remains_from
    entries = _walk(store, source, recovered.end_offset)
    begins = source.files[recovered.start_number].start_offset
    faults = [fault for fault in entries.faults if remains_from is None or fault.offset < remains_from]
    for fault in faults[:MAX_FINDINGS]:
        ends_here = recovered.fault is not None and fault.offset == recovered.fault.offset
        text = sentence(
            "The next start ends the log at the entry at {n:,}: {reason}"
            if ends_here
            else "The entry at {n:,} is wrong: {reason}",
            n=fault.offset,
            reason=fault.reason,
        )
        evidence: dict[str, object] = {"found": fault.reason}
        if ends_here:
            evidence[HAPPENED] = sentence("the entry at {n:,} of the DLedger log is damaged", n=fault.offset)
        kind = "" if fault.offset >= begins else "older"
        yield catalogue.DL01.finding(text, _path(store, fault.offset), fault.offset, evidence, kind=kind)
    yield from _of_index(log, entries)
    if recovered.refusal is None:
        yield from _of_checkpoint(log, recovered.last_index, recovered.end_offset)
    yield from _of_vote(log, entries.last_header)
    yield from undecided(store, log)


def _walk(store: StoreSnapshot, source: DLedgerSource, log_end: int) -> _Entries:
    """Walk over every entry, over wrong ones to the next that has a header and a unit."""
    entries = _Entries()
    rows = IndexRows(source.index)
    for file in source.files:
        position: int | None = 0
        while position is not None:
            position = _walk_file(store, file, position, entries, rows, log_end)
    return entries


def _walk_file(
    store: StoreSnapshot, file: ReadOnlyFile, start: int, entries: _Entries, rows: IndexRows, log_end: int
) -> int | None:
    """Walk from position ``start`` of ``file`` to the first wrong entry; returns where to go on, None at the end."""
    for position, header in headers(file, start):
        if header is None or isinstance(header, int):
            return None
        offset = file.start_offset + position
        reason = entry_fault(header, offset, file, entries.last_header)
        if reason is None:
            if rows.row(header.index) != row_of(header):
                entries.wrong_rows += 1
                entries.first_wrong = entries.first_wrong or header
                entries.last_wrong = header.index
            entries.last_header = header
            continue
        was_written = (header.magic, header.size) != (0, 0)
        next_offset = _next_entry(store, file, offset)
        if was_written or next_offset is not None or offset < log_end:
            entries.faults.append(EntryFault(offset, reason))
        if next_offset is None:
            return None
        entries.last_header = None if next_offset != offset else header
        return next_offset - file.start_offset + (header.size if next_offset == offset else 0)
    return None


def _next_entry(store: StoreSnapshot, file: ReadOnlyFile, offset: int) -> int | None:
    """Offset of the entry at or behind ``offset`` whose header fits its place and whose body is a unit; None without
    one.
    """
    unit_offset = store.log.unit_between(file, offset - file.start_offset, file.size)
    while unit_offset >= 0:
        if store.log.entry_header(unit_offset) is not None:
            return unit_offset - HEADER_SIZE
        unit_offset = store.log.unit_between(file, unit_offset + 1 - file.start_offset, file.size)
    return None


def _path(store: StoreSnapshot, offset: int) -> str:
    file = store.log.sequence.find(offset)
    return file.path if file is not None else str(store.path)


def _of_index(log: DLedgerLog, entries: _Entries) -> Iterator[Finding]:
    wrong_header = entries.first_wrong
    if wrong_header is None:
        return
    row = log.index_row(wrong_header.index)
    is_missing = row is None or not any((row.magic, row.size, row.position))
    fault = sentence("is missing") if is_missing else sentence("differs")
    text = plural(
        "{n:,} entry between {entry:,} and {last:,} has no fitting row in the index: the row of entry {entry:,} {what}",
        "{n:,} entries between {entry:,} and {last:,} have no fitting row in the index: the row of entry {entry:,} "
        "{what}",
        n=entries.wrong_rows,
        entry=wrong_header.index,
        last=entries.last_wrong,
        what=fault,
    )
    file = log.index.find(wrong_header.index * INDEX_UNIT_SIZE)
    path = file.path if file is not None else str(log.folders.index)
    offset = wrong_header.index * INDEX_UNIT_SIZE - (file.start_offset if file is not None else 0)
    evidence = {"entry": wrong_header.index, "entries": entries.wrong_rows, "expected": row_of(wrong_header).hex()}
    yield catalogue.DL02.finding(text, path, offset, evidence)


def _of_checkpoint(log: DLedgerLog, last_index: int, end: int) -> Iterator[Finding]:
    checkpoint = log.checkpoint()
    committed = checkpoint.committed_index if checkpoint is not None else None
    if committed is None or committed <= last_index:
        return
    text = sentence(
        "The checkpoint calls entries up to {n:,} committed, the next start keeps them up to {m:,}, which ends at "
        "{end:,}",
        n=committed,
        m=last_index,
        end=end,
    )
    evidence = {"expected": committed, "found": last_index}
    yield catalogue.DL03.finding(text, str(log.folders.member / "checkpoint"), None, evidence)


def _of_vote(log: DLedgerLog, last_header: EntryHeader | None) -> Iterator[Finding]:
    vote = log.vote()
    term = vote.term if vote is not None else None
    if last_header is None or last_header.term < 1 or (term is not None and term >= last_header.term):
        return
    text = (
        sentence("There is no currterm, and the newest entry is of term {n:,}", n=last_header.term)
        if term is None
        else sentence("currterm says {m:,}, and the newest entry is of term {n:,}", m=term, n=last_header.term)
    )
    path = Path(log.folders.member / "currterm")
    yield catalogue.DL04.finding(text, str(path), None, {"expected": last_header.term, "found": term})
