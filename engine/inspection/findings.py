"""Check a store: all rules in one pass over the log.

Memory does not grow with the store: the log is walked in blocks, and queue and index entries are read in parallel.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from engine.callbacks import Cancel, Progress
from engine.codec.columns import BLANK, UnitColumns
from engine.codec.message import DEFAULT_DELAY_LEVELS
from engine.codec.topic_table import TopicTable
from engine.codec.unit_scan import Damage, Stop
from engine.errors import CannotRead
from engine.inspection import stalled_dispatch, stalled_services, undecoded
from engine.inspection.block_scan import scan_log
from engine.inspection.check import (
    build_steps,
    config,
    consequences,
    dledger,
    epochs,
    ext,
    incident,
    index_findings,
    next_start,
    replaced_entries,
    wrong_copies,
)
from engine.inspection.check import clock as check_clock
from engine.inspection.check import compaction as check_compaction
from engine.inspection.check import groups as check_groups
from engine.inspection.check import lite_topics as check_lite_topics
from engine.inspection.check import queue_sides as check_sides
from engine.inspection.check import rocksdb_index_rows as check_index_rows
from engine.inspection.check import rocksdb_rows as check_rows
from engine.inspection.check import state as check_state
from engine.inspection.check import static_topics as check_static_topics
from engine.inspection.check import tables as check_tables
from engine.inspection.check import tiered as check_tiered
from engine.inspection.check import timer as check_timer
from engine.inspection.check import transactions as check_transactions
from engine.inspection.check import unfitting_queues as check_unfitting
from engine.inspection.check.consequences import QueueConsequences
from engine.inspection.check.index import IndexCheck
from engine.inspection.check.log import LogCheck
from engine.inspection.check.log_files import OtherFile
from engine.inspection.check.next_start import StartEffects, agree
from engine.inspection.check.priorities import PriorityPlaces
from engine.inspection.check.queues import QueueCheck
from engine.inspection.check.timer_deliveries import TimerDeliveries
from engine.inspection.older_front import older_front
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.written_release import release_of
from engine.rules import catalogue
from engine.rules.findings import EMPTY_LOG, Finding, Part, Severity, Summary, in_order, part_of, summarise
from engine.rules.proofs import Proof, ProofLine
from engine.sentences import sentence

OF_THE_LOG = frozenset({"CQ03", "CQ04", "CQ13", "CK02", "CK03", "CK04", "IX06", "IX07"})
"""Rules that report faults in the units of the log."""
MAX_TRIES = 3
"""Maximum number of reads of a store whose files disappear meanwhile."""


def check(
    store: StoreSnapshot,
    only: Collection[str] | None = None,
    cancel: Cancel | None = None,
    progress: Progress | None = None,
    proofs: Iterable[Proof] = (),
    now: int | None = None,
) -> Iterator[Finding | Summary]:
    """Yield every finding, most serious first and a cause before its consequences, then a :class:`Summary`.

    Nothing is concluded from what could not be read, and then the summary is not complete (:attr:`StoreSnapshot.unread`
    names it). It is also not complete if an undecoded part matters.

    Args:
        store: the opened store.
        only: ids of the rules to report; all by default.
        cancel: stops the check; it then reports on the part it walked, and its summary is not complete.
        progress: called with bytes of the log done and in all.
        proofs: ranges of the log without a fault, in order; they are skipped if the result stays the same.
        now: time in ms; this machine's time by default.
    """
    for tries_left in reversed(range(MAX_TRIES)):
        starts = StartEffects(store)
        clock = check_clock.Clock(check_clock.latest_credible(store, now))
        items = list(_all_findings(store, cancel, progress, proofs, starts, clock))
        if not (tries_left and store.refresh_if_vanished()):
            foreign_files = _foreign_files(store, items, starts)
            if foreign_files:
                starts = StartEffects(store)
                clock = check_clock.Clock(check_clock.latest_credible(store, now))
                items = list(_all_findings(store, cancel, progress, (), starts, clock, foreign_files))
            break
        proofs = ()
    findings = [item for item in items if isinstance(item, Finding)]
    units = sum(item for item in items if isinstance(item, int))
    complete = None not in items
    if complete:
        with contextlib.suppress(CannotRead):
            findings += next_start.loss_findings(store, starts, findings)
            findings = list(next_start.follow(findings))
        findings = list(_without_the_log(agree(starts, findings)))
        findings = list(wrong_copies.follow(findings, starts.log.other_ranges if starts.log is not None else ()))
        if starts.log is not None and starts.queues is not None:
            with contextlib.suppress(CannotRead):
                findings = wrong_copies.explained(store, findings)
                findings = replaced_entries.explained(store, findings)
                findings = check_unfitting.explained(store, findings, starts.log, starts.queues)
                findings = check_tables.explained(
                    store, findings, {topic for topic, _ in starts.queues.queues_without_folder}
                )
    findings = findings if only is None else list(_only_requested(findings, only))
    release = release_of(store)
    reported = [
        item.of_store(str(store.path), store.config_words).of_release(release)
        for item in in_order(_with_fitting_steps(store, _without_unread(store, findings)))
    ]
    yield from reported
    summary = summarise(reported, complete and not store.unread, units)
    if summary.complete and only is None and starts.log is not None:
        with contextlib.suppress(CannotRead):
            summary = replace(summary, incident=incident.of(store, starts, reported, starts.log))
    if not undecoded.is_check_complete(store):
        summary = replace(summary, complete=False)
    yield summary if not store.unread else replace(summary, complete=False, incident=None)


def _with_fitting_steps(store: StoreSnapshot, findings: Iterable[Finding]) -> Iterator[Finding]:
    return build_steps.for_dledger(store, build_steps.for_rocksdb(store, findings))


def _foreign_files(store: StoreSnapshot, items: list[Finding | int | None], starts: StartEffects) -> list[OtherFile]:
    """Return files that belong to another log. If there are any, the check is repeated with them."""
    if starts.log is None or None in items:
        return []
    with contextlib.suppress(CannotRead):
        return wrong_copies.find(store, [item for item in items if isinstance(item, Finding)], starts.log)
    return []


def _only_requested(findings: Iterable[Finding], only: Collection[str]) -> Iterator[Finding]:
    """Yield findings of the rules ``only``. A consequence whose cause is not among them keeps its own severity."""
    for finding in findings:
        if finding.id in only:
            yield finding.alone if finding.alone is not None and finding.caused_by not in only else finding


def _without_the_log(findings: list[Finding]) -> Iterator[Finding]:
    """Yield ``findings``. Gaps and findings at gaps are consequences of an empty log folder."""
    is_missing = any(finding.id == EMPTY_LOG for finding in findings)
    for finding in findings:
        gap = finding.id in ("RP02", "CK02") or (
            finding.id == "CL07" and finding.next_step.lower().endswith((catalogue.CL07.next_step, catalogue.NO_FOLDER))
        )
        yield finding.follows(EMPTY_LOG) if is_missing and gap and finding.caused_by is None else finding


def _without_unread(store: StoreSnapshot, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield findings that do not depend on unread or undecoded parts. Unread files are reported separately."""
    unread_files = {finding.file for finding in store.unread}
    folders = [str(folder) for folder in store.commit_log.folders]
    parts = (part_of(file, str(store.path), folders) for file in unread_files)
    unread: frozenset[Part] = frozenset().union(*parts)
    not_decoded = undecoded.parts_undecoded(store)
    begins = store.log.end_offset if undecoded.has_units_beside_dledger(store) else 0  # the DLedger log
    for finding in findings:
        is_before = finding.id == catalogue.CL07.id and finding.offset is not None and finding.offset < begins
        missing = unread if is_before else unread | not_decoded
        if finding.file not in unread_files and catalogue.may_speak(finding.id, missing):
            yield finding


def _until_unreadable(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield findings until the store cannot be read further here; the check continues with the next part."""
    with contextlib.suppress(CannotRead):
        yield from findings


def _all_findings(
    store: StoreSnapshot,
    cancel: Cancel | None,
    progress: Progress | None,
    proofs: Iterable[Proof],
    starts: StartEffects,
    clock: check_clock.Clock,
    foreign_files: Sequence[OtherFile] = (),
) -> Iterator[Finding | int | None]:
    """Yield all findings, unordered, and the number of units; None if the walk was stopped before its end."""
    empty_log_findings: list[Finding] = []
    with contextlib.suppress(CannotRead):
        empty_log_findings += check_state.empty_log(store)
    yield from empty_log_findings
    yield from _until_unreadable(check_state.abort(store))
    yield from _until_unreadable(check_state.interrupted_change(store))
    yield from _until_unreadable(check_state.config(store))
    yield from _until_unreadable(check_tables.findings(store))
    if store.config is not None:
        yield from _until_unreadable(config.findings(store, store.config))
    for note in undecoded.judged_notes(store):
        severity: Severity | None = "note" if note.is_grave and note.kind != "unreadable" else None
        evidence = {"found": note.text}
        yield catalogue.DK02.finding(note.text, str(store.path), None, evidence, severity, kind=note.kind)
    topics = TopicTable()
    older = older_front(store)
    log = LogCheck(store, clock, foreign_files, older)
    queues = QueueCheck(store, topics)
    has_index_rows = store.undecoded_part("index") is not None and store.why_unknown("index") is None
    index_files = store.index.files(note_undecoded=not has_index_rows)
    index = IndexCheck(index_files, topics, live=store.lock_state == "held", log_end=store.log.end_offset)
    start_offset = older.start if older is not None else max(store.log.min_offset, 0)
    deliveries = TimerDeliveries(store, topics)
    priorities = PriorityPlaces(store)
    checks = _Checks(log, queues, index, deliveries, priorities)
    stop = _walk(store, topics, checks, start_offset, cancel, progress, proofs)
    log.finish(stop)
    starts.log, starts.queues = log, queues
    yield log.units
    if stop.kind == "cancelled":
        yield None
        yield from _until_unreadable(log.findings())
        return
    queues.finish()
    with contextlib.suppress(CannotRead):
        index.drain()
    store_findings: list[Finding] = []
    queue_consequences: QueueConsequences | None = None
    with contextlib.suppress(CannotRead):
        queue_consequences = QueueConsequences(store, log, queues, starts)
        is_decoded = store.paths is not None and not undecoded.unknown_queues(store)
        store_findings += _until_unreadable(queue_consequences.findings()) if is_decoded else []
        lost = list(_until_unreadable(ext.findings(store))) if is_decoded else []
        store_findings = [*ext.follow(store_findings, lost), *lost]
        store_findings += _until_unreadable(next_start.findings(store)) if is_decoded else []
        store_findings += _until_unreadable(check_timer.findings(store, log.newest_time, deliveries))
        store_findings += _until_unreadable(check_index_rows.findings(store))
        store_findings += _until_unreadable(check_rows.findings(store, log.newest_time, deliveries))
        store_findings += _until_unreadable(stalled_services.findings(store, clock.newest)) if is_decoded else []
        store_findings += _until_unreadable(check_transactions.findings(store)) if is_decoded else []
        short_queues = queue_consequences.undispatched.short
        store_findings += (
            _until_unreadable(check_groups.findings(store, queues.queues_without_folder, clock.newest, short_queues))
            if is_decoded
            else []
        )
        store_findings += _until_unreadable(check_static_topics.findings(store)) if is_decoded else []
        store_findings += _until_unreadable(check_lite_topics.findings(store)) if is_decoded else []
        store_findings += _until_unreadable(check_sides.findings(store, store_findings)) if is_decoded else []
        store_findings += priorities.findings()
        store_findings += _until_unreadable(check_groups.offset_findings(store, short_queues, log.spans.spans))
        store_findings += _until_unreadable(
            index_findings.findings(
                store, log, index, queue_consequences.odd_units | log.stand_ins, starts.indexed_from
            )
        )
        stalls = list(_until_unreadable(stalled_dispatch.findings(store))) if is_decoded else []
        store_findings = [*stalled_dispatch.follow(store_findings, stalls), *stalls]
    store_findings += _until_unreadable(check_compaction.findings(store))
    store_findings += _until_unreadable(check_tiered.findings(store))
    store_findings += _until_unreadable(check_state.checkpoint(store, log.newest_time, log.end, clock.newest, starts))
    in_dledger = starts.dledger and not log.units  # its messages are inside DLedger entries, in commitlog/ too
    if in_dledger:
        store_findings = [finding for finding in store_findings if finding.id not in OF_THE_LOG]
    store_findings = list(consequences.of_torn_units(store_findings, log.torn))
    explained = bool(empty_log_findings) or starts.dledger
    grouped = list(
        _until_unreadable(consequences.fold(store_findings, store, log, queue_consequences, explained=explained))
    )
    with contextlib.suppress(CannotRead):
        grouped = grouped if empty_log_findings else check_groups.of_new_log(store, log.units, grouped)
    yield from _until_unreadable(check_clock.producers(store))
    yield from _until_unreadable(dledger.findings(store))
    yield from _until_unreadable(epochs.findings(store))
    yield from _until_unreadable(log.findings()) if not in_dledger else ()
    yield from grouped


class _Checks(NamedTuple):
    """The checks that run along with the walk over the log."""

    log: LogCheck
    queues: QueueCheck
    keys: IndexCheck
    deliveries: TimerDeliveries
    priorities: PriorityPlaces

    def skip(self, proof: Proof) -> bool:
        """Skip a proven range. Return False if it must be walked."""
        if self.deliveries.is_active or self.priorities.is_active:
            return False
        if not (self.log.accepts(proof) and self.queues.accepts(proof) and self.keys.skip(proof)):
            return False
        self.log.skip(proof)
        self.queues.skip(proof)
        return True

    def block(self, columns: UnitColumns) -> None:
        """Check a block of units."""
        good = self.log.block(columns)
        if len(good):
            self.queues.block(columns, good)
            self.deliveries.block(columns, good)
            self.priorities.block(columns, good)
            with contextlib.suppress(CannotRead):  # recorded by ``reading``: rules about the complete index stay silent
                self.keys.block(columns, good)


def _walk(
    store: StoreSnapshot,
    topics: TopicTable,
    checks: _Checks,
    start: int,
    cancel: Cancel | None,
    progress: Progress | None,
    proofs: Iterable[Proof],
) -> Stop:
    offset = end = start
    total_bytes = max(store.log.end_offset - start, 1)
    if not store.log.files:
        return Stop(start, "end", sentence("the log has no files"))
    levels = store.config.delay_levels() if store.config is not None else DEFAULT_DELAY_LEVELS
    line = ProofLine(proofs)
    stop = Stop(start, "limit", "")
    while stop.kind == "limit":
        while (proof := line.at(offset)) is not None and checks.skip(proof):
            offset = end = proof.end_offset
        # Walk one more proven range, so that one walk sees the damage and what follows it.
        proof = line.behind(offset)
        walked = False
        for item in scan_log(store.log, offset, proof.end_offset if proof else None, topics=topics, levels=levels):
            if isinstance(item, UnitColumns):
                checks.block(item)
                walked = True
                offset = _next_offset(store, item) if item.count else offset
                if progress is not None and item.count:
                    progress(int(item.offset[item.count - 1]) - start, total_bytes)
            elif isinstance(item, Damage):
                checks.log.damage(item)
                checks.deliveries.damage()
                offset = item.offset + item.size
            else:
                end = item.offset if walked else end
                stop = Stop(end, item.kind, item.reason)
            if cancel is not None and cancel.is_set():
                return Stop(checks.log.end, "cancelled", sentence("stopped by the caller"))
    if progress is not None:
        progress(total_bytes, total_bytes)
    return stop


def _next_offset(store: StoreSnapshot, columns: UnitColumns) -> int:
    """Return the offset at which the log continues after a block."""
    row = columns.count - 1
    offset = int(columns.offset[row])
    file = store.log.sequence.find(offset) if columns.kind[row] == BLANK else None
    return store.log.sequence.end_of(file) if file is not None else offset + int(columns.size[row])
