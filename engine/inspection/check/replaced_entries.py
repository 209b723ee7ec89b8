"""Queue and index entries of messages that a leader of a DLedger group replaced (DL05, DL06,
docs/formats/dledger.md#replaced-entries).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engine.codec.message import Unit
from engine.inspection.dledger import DLedgerLog, TermStart, end_headers, term_starts
from engine.inspection.queue_reader import QueueReader
from engine.inspection.recovery import dledger_source
from engine.inspection.snapshot import StoreSnapshot
from engine.rules import catalogue
from engine.rules.findings import HAPPENED, Finding
from engine.sentences import plural, sentence
from engine.store.recovery.dledger import recover_entries

WITNESSES = frozenset({"CQ04", "CQ13", "CL11", "IX06", "IX07"})
"""Findings without which no queue has such entries."""
MAX_ENTRIES = 1 << 16
"""Entries that are looked up in all queues, the newest of each first."""
MAX_NAMED = 3


@dataclass(frozen=True, slots=True)
class ReplacedEntry:
    """An entry of a queue that points to no message of it, behind the start of a later leader's term."""

    queue: str
    number: int
    offset: int


def explained(store: StoreSnapshot, findings: Sequence[Finding]) -> list[Finding]:
    """Return ``findings``, with DL06 if queue entries of replaced messages explain some. Raises
    :class:`engine.errors.CannotRead`.
    """
    if store.commit_log.dledger is None or not any(f.id in WITNESSES and f.caused_by is None for f in findings):
        return list(findings)
    terms = term_starts(store.commit_log.dledger, *end_headers(store))
    entries = _dead_entries(store, terms[1].start_offset) if len(terms) > 1 else []
    first_offset = min((entry.offset for entry in entries), default=-1)
    term = next((term for term in terms[1:] if term.start_offset == first_offset), None)
    if term is None:
        return list(findings)
    cause = _finding(store, entries, term)
    queues = {entry.queue for entry in entries}
    topics = {queue.rpartition("/")[0] for queue in queues} - _topics_with_messages(store, queues)
    is_beyond = max(entry.offset for entry in entries) >= store.log.max_offset
    return [cause, *_following(findings, queues, topics, first_offset, is_beyond=is_beyond)]


def _following(
    findings: Sequence[Finding], queues: set[str], topics: set[str], first_offset: int, *, is_beyond: bool
) -> Iterator[Finding]:
    for finding in findings:
        actual = finding.evidence.get("found")
        index_offset = actual.get("phyOffset", -1) if isinstance(actual, dict) else -1
        follows = (
            (finding.id in ("CQ04", "CQ09") and finding.evidence.get("queue") in queues)
            or (finding.id in ("CL11", "CQ13", "IX07") and is_beyond)
            or (finding.id == "IX06" and index_offset >= first_offset)
            or (finding.id == "CQ14" and finding.evidence.get("topic") in topics)
        )
        yield finding.follows(catalogue.DL06.id) if follows and finding.caused_by is None else finding


def _dead_entries(store: StoreSnapshot, start_offset: int) -> list[ReplacedEntry]:
    """Entries that point behind ``start_offset`` and to no message of their queue and number."""
    entries: list[ReplacedEntry] = []
    remaining = MAX_ENTRIES
    for topic, queues in store.queues.used_files().items():
        for queue_id, reader in queues.items():
            if reader.kind != "simple" or remaining <= 0:
                continue
            for number, offset, size in _newest_entries(reader, start_offset, remaining):
                remaining -= 1
                unit = store.log.unit_at(offset, crc=False)
                if not isinstance(unit, Unit) or (unit.size, unit.topic, unit.queue_id, unit.queue_offset) != (
                    size,
                    topic,
                    queue_id,
                    number,
                ):
                    entries.append(ReplacedEntry(f"{topic}/{queue_id}", number, offset))
    return entries


def _newest_entries(reader: QueueReader, start_offset: int, max_count: int) -> Iterator[tuple[int, int, int]]:
    """Number, place and size of the entries that point behind ``start_offset``, from the newest back."""
    number = reader.raw_end // reader.unit_size - 1
    while number >= reader.first_number and max_count > 0:
        data, _, _ = reader.stored_bytes(number)
        place = reader.entry_place(data)
        if place is None or place[0] < start_offset:
            return
        yield number, *place
        number, max_count = number - 1, max_count - 1


def _topics_with_messages(store: StoreSnapshot, queues: set[str]) -> set[str]:
    """Topics of ``queues`` whose oldest entry leads to a message of the topic."""
    topics = set()
    for topic, by_id in store.queues.used_files().items():
        for reader in by_id.values():
            place = reader.entry_place(reader.stored_bytes(reader.first_number)[0])
            unit = store.log.unit_at(place[0], crc=False) if place is not None else None
            if isinstance(unit, Unit) and unit.topic == topic:
                topics.add(topic)
    return topics & {queue.rpartition("/")[0] for queue in queues}


def _finding(store: StoreSnapshot, entries: Sequence[ReplacedEntry], term: TermStart) -> Finding:
    ranges: dict[str, tuple[int, int]] = {}
    for entry in entries:
        first_number, last_number = ranges.get(entry.queue, (entry.number, entry.number))
        ranges[entry.queue] = min(first_number, entry.number), max(last_number, entry.number)
    named = [
        sentence("{queue}: {n:,} to {m:,}", queue=queue, n=first_number, m=last_number)
        if first_number != last_number
        else sentence("{queue}: {n:,}", queue=queue, n=first_number)
        for queue, (first_number, last_number) in sorted(ranges.items())
    ]
    shown = ", ".join(named[:MAX_NAMED]) + (" …" if len(named) > MAX_NAMED else "")
    text = plural(
        "{n:,} queue entry is of a message that the leader of term {term:,} replaced, from {offset:,} on ({queues})",
        "{n:,} queue entries are of messages that the leader of term {term:,} replaced, from {offset:,} on ({queues})",
        n=len(entries),
        term=term.term,
        offset=term.start_offset,
        queues=shown,
    )
    evidence = {
        "found": {queue: list(numbers) for queue, numbers in sorted(ranges.items())},
        "term": term.term,
        "entries": len(entries),
        HAPPENED: sentence(
            "a leader of the DLedger group replaced messages from {offset:,} on that this member had in its queues",
            offset=term.start_offset,
        ),
    }
    folder = str(store.paths.consumequeue) if store.paths is not None else str(store.path)
    return catalogue.DL06.finding(text, folder, None, evidence)


def undecided(store: StoreSnapshot, log: DLedgerLog) -> Iterator[Finding]:
    """DL05: entries behind the committed index; none in a group of one member."""
    source = dledger_source(store)
    peers = store.config.d_leger_peers if store.config is not None else ""
    if source is None or not source.files or (peers and not source.has_other_members):
        return
    recovered = recover_entries(source)
    committed = source.committed_index
    if recovered.refusal is not None or committed is None or not 0 <= committed < recovered.last_index:
        return
    number = recovered.last_index - committed
    text = plural(
        "{n:,} entry from {first:,} on is not committed by the checkpoint: a leader keeps it or writes its own",
        "{n:,} entries from {first:,} on are not committed by the checkpoint: a leader keeps them or writes its own",
        n=number,
        first=committed + 1,
    )
    evidence = {"found": recovered.last_index, "expected": committed, "offset": recovered.committed_end}
    path = str(log.folders.member / "checkpoint")
    yield catalogue.DL05.finding(text, path, None, evidence, kind="" if source.has_other_members else "unknown")
