"""The check of a store: all rules in one pass over the log (``check``; product: findings).

Memory does not grow with the store: the log goes by in blocks, queue entries and index entries are read along with it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

from engine.codec.columns import BLANK, UnitColumns
from engine.codec.message import DEFAULT_DELAY_LEVELS
from engine.codec.topic_table import TopicTable
from engine.codec.unit_scan import Damage, Stop
from engine.errors import CannotRead
from engine.inspection import foreign
from engine.inspection.block_scan import scan_log
from engine.inspection.check import clock as check_clock
from engine.inspection.check import config, ext, incident, index_findings, losses, other_logs, standing, tail
from engine.inspection.check import groups as check_groups
from engine.inspection.check import start as check_release
from engine.inspection.check import state as check_state
from engine.inspection.check import tables as check_tables
from engine.inspection.check import timer as check_timer
from engine.inspection.check.fold import QueueFold
from engine.inspection.check.index import IndexCheck
from engine.inspection.check.log import LogCheck, OtherFile
from engine.inspection.check.queues import QueueCheck
from engine.inspection.check.start import Starts, agree
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.tables import release_of
from engine.rules import catalogue
from engine.rules.findings import EMPTY_LOG, Finding, Part, Summary, in_order, part_of, summarise
from engine.rules.proofs import Proof, ProofLine

Progress = Callable[[int, int], None]
OF_THE_LOG = frozenset({"CQ03", "CQ04", "CQ13", "CK02", "CK03", "CK04", "IX06", "IX07"})
"""Rules that hold something against the units of the log."""
TRIES = 3
"""How often a store is looked at whose files go while it is read."""


class Cancel(Protocol):
    """What can be asked whether to stop; ``threading.Event`` is one."""

    def is_set(self) -> bool:
        """Whether to stop."""


def check(
    store: StoreSnapshot,
    only: Collection[str] | None = None,
    cancel: Cancel | None = None,
    progress: Progress | None = None,
    proofs: Iterable[Proof] = (),
    now: int | None = None,
) -> Iterator[Finding | Summary]:
    """Every finding, gravest first and a cause before what follows from it, last a :class:`Summary`. Of what could not
    be read nothing is concluded, and the summary is not complete then (:attr:`StoreSnapshot.unread` names it). Nor is
    it complete where a part that counts is not decoded.

    ``only`` names rules by id; ``progress`` gets bytes of the log done and in all; a check that ``cancel`` stops tells
    what the part it saw showed, and its summary is not complete. ``proofs`` are stretches of the log in which
    nothing is wrong, in order: they are passed over where that tells the same. ``now`` (ms) is this machine's time
    where None.
    """
    for left in reversed(range(TRIES)):
        starts = Starts(store)
        clock = check_clock.Clock(check_clock.latest_credible(store, now))
        items = list(_all(store, cancel, progress, proofs, starts, clock))
        if not (left and store.look_again()):
            others = _of_other_logs(store, items, starts)
            if others:
                starts = Starts(store)
                clock = check_clock.Clock(check_clock.latest_credible(store, now))
                items = list(_all(store, cancel, progress, (), starts, clock, others))
            break
        proofs = ()
    found = [one for one in items if isinstance(one, Finding)]
    units = sum(one for one in items if isinstance(one, int))
    complete = None not in items
    if complete:
        with contextlib.suppress(CannotRead):
            found += losses.findings(store, starts, found)
            found = list(losses.follow(found))
        found = list(_without_the_log(agree(starts, found)))
        found = list(other_logs.follow(found, starts.log.others if starts.log is not None else ()))
    found = found if only is None else list(_asked(found, only))
    release = release_of(store)
    told = [
        one.of_store(str(store.path), store.config_words).of_release(release) for one in in_order(_told(store, found))
    ]
    yield from told
    summary = summarise(told, complete and not store.unread, units)
    if summary.complete and only is None and starts.log is not None:
        with contextlib.suppress(CannotRead):
            summary = replace(summary, incident=incident.of(store, starts, told, starts.log))
    if foreign.parts_undecoded(store):
        summary = replace(summary, complete=False)
    yield summary if not store.unread else replace(summary, complete=False, incident=None)


def _of_other_logs(store: StoreSnapshot, items: list[Finding | int | None], starts: Starts) -> list[OtherFile]:
    """Files of the log that are of another: with them the check begins again."""
    if starts.log is None or None in items:
        return []
    with contextlib.suppress(CannotRead):
        return other_logs.find(store, [one for one in items if isinstance(one, Finding)], starts.log)
    return []


def _asked(found: Iterable[Finding], only: Collection[str]) -> Iterator[Finding]:
    """Findings of the rules ``only``; what follows from one that nobody asked for is as grave as it is by itself."""
    for one in found:
        if one.id in only:
            yield one.alone if one.alone is not None and one.caused_by not in only else one


def _without_the_log(found: list[Finding]) -> Iterator[Finding]:
    """``found``, in which gaps and what stands at them follow from a folder of the log that holds nothing."""
    gone = any(one.id == EMPTY_LOG for one in found)
    for one in found:
        gap = one.id in ("RP02", "CK02") or (one.id == "CL07" and one.next_step.endswith(catalogue.CL07.next_step))
        yield one.follows(EMPTY_LOG) if gone and gap and one.caused_by is None else one


def _told(store: StoreSnapshot, found: Iterable[Finding]) -> Iterator[Finding]:
    """Those that were not concluded from what could not be read or is not decoded; the files that could not be read are
    named elsewhere.
    """
    files = {one.file for one in store.unread}
    folders = [str(folder) for folder in store.log_folders]
    parts = (part_of(file, str(store.path), folders) for file in files)
    unread: frozenset[Part] = frozenset().union(*parts, foreign.parts_undecoded(store))
    return (one for one in found if one.file not in files and catalogue.may_speak(one.id, unread))


def _going_on(findings: Iterable[Finding]) -> Iterator[Finding]:
    """As far as they come: where the store cannot be read any further here, the check goes on with what follows."""
    with contextlib.suppress(CannotRead):
        yield from findings


def _all(
    store: StoreSnapshot,
    cancel: Cancel | None,
    progress: Progress | None,
    proofs: Iterable[Proof],
    starts: Starts,
    clock: check_clock.Clock,
    others: Sequence[OtherFile] = (),
) -> Iterator[Finding | int | None]:
    """All findings in no order, and how many units there were; None where the walk was stopped before its end."""
    missed: list[Finding] = []
    with contextlib.suppress(CannotRead):
        missed += check_state.empty_log(store)
    yield from missed
    yield from _going_on(check_state.abort(store))
    yield from _going_on(check_state.config(store))
    yield from _going_on(check_tables.findings(store))
    if store.config is not None:
        yield from _going_on(config.findings(store, store.config))
    for note, grave in foreign.judged_notes(store):
        yield catalogue.DK02.found(note, str(store.path), None, {"found": note}, "note" if grave else None)
    topics = TopicTable()
    log = LogCheck(store, clock, others)
    queues = QueueCheck(store, topics)
    index = IndexCheck(store.index_files(), topics, live=store.lock_state == "held")
    stop = _walk(store, topics, _Checks(log, queues, index), cancel, progress, proofs)
    log.finish(stop)
    starts.log, starts.queues = log, queues
    yield log.units
    if stop.kind == "cancelled":
        yield None
        yield from _going_on(log.findings())
        return
    queues.finish()
    with contextlib.suppress(CannotRead):
        index.drain()
    around: list[Finding] = []
    fold: QueueFold | None = None
    with contextlib.suppress(CannotRead):
        fold = QueueFold(store, log, queues, starts)
        known = store.paths is not None and not foreign.rocksdb_queues(store)
        around += _going_on(fold.findings()) if known else []
        lost = list(_going_on(ext.findings(store))) if known else []
        around = [*ext.follow(around, lost), *lost]
        around += _going_on(check_release.findings(store)) if known else []
        around += _going_on(check_timer.findings(store))
        around += _going_on(standing.findings(store, clock.newest)) if known else []
        short = fold.undispatched.short
        around += _going_on(check_groups.findings(store, queues.homeless, clock.newest, short)) if known else []
        around += _going_on(check_groups.offset_findings(store, short, log.spans.spans))
        around += _going_on(index_findings.findings(store, log, index, fold.odd_units, starts.indexed_from))
    around += _going_on(check_state.checkpoint(store, log.newest_time, log.end, clock.newest))
    in_dledger = starts.dledger and not log.units  # its messages are in entries of that library, in commitlog/ too
    if in_dledger:
        around = [one for one in around if one.id not in OF_THE_LOG]
    around = list(tail.of_torn_units(around, log.torn))
    explained = bool(missed) or starts.dledger
    behind = list(_going_on(tail.fold(around, store, log, fold, explained=explained)))
    with contextlib.suppress(CannotRead):
        behind = behind if missed else check_groups.of_new_log(store, log.units, behind)
    yield from _going_on(check_clock.producers(store))
    yield from _going_on(log.findings()) if not in_dledger else ()
    yield from behind


class _Checks(NamedTuple):
    """What goes along with the walk over the log."""

    log: LogCheck
    queues: QueueCheck
    keys: IndexCheck

    def pass_over(self, proof: Proof) -> bool:
        """Go on behind a proven stretch; False where it has to be walked."""
        if not (self.log.accepts(proof) and self.queues.accepts(proof) and self.keys.pass_over(proof)):
            return False
        self.log.pass_over(proof)
        self.queues.pass_over(proof)
        return True

    def block(self, columns: UnitColumns) -> None:
        """Look at a block of units."""
        good = self.log.block(columns)
        if len(good):
            self.queues.block(columns, good)
            with contextlib.suppress(CannotRead):  # the door has noted it: no rule about the index's whole speaks
                self.keys.block(columns, good)


def _walk(
    store: StoreSnapshot,
    topics: TopicTable,
    checks: _Checks,
    cancel: Cancel | None,
    progress: Progress | None,
    proofs: Iterable[Proof],
) -> Stop:
    start = offset = end = max(store.log.min_offset, 0)
    whole = max(store.log.end_offset - start, 1)
    if not store.log.files:
        return Stop(start, "end", "the log has no files")
    levels = store.config.delay_levels() if store.config is not None else DEFAULT_DELAY_LEVELS
    line = ProofLine(proofs)
    last = Stop(start, "limit", "")
    while last.kind == "limit":
        while (proof := line.at(offset)) is not None and checks.pass_over(proof):
            offset = end = proof.behind
        # One proven stretch more is walked, so that damage and what comes behind it are seen by one walk.
        proof = line.behind(offset)
        walked = False
        for item in scan_log(store.log, offset, proof.behind if proof else None, topics=topics, levels=levels):
            if isinstance(item, UnitColumns):
                checks.block(item)
                walked = True
                offset = _behind(store, item) if item.count else offset
                if progress is not None and item.count:
                    progress(int(item.offset[item.count - 1]) - start, whole)
            elif isinstance(item, Damage):
                checks.log.damage(item)
                offset = item.offset + item.size
            else:
                end = item.offset if walked else end
                last = Stop(end, item.kind, item.reason)
            if cancel is not None and cancel.is_set():
                return Stop(checks.log.end, "cancelled", "stopped by the caller")
    if progress is not None:
        progress(whole, whole)
    return last


def _behind(store: StoreSnapshot, columns: UnitColumns) -> int:
    """Where the log goes on behind a block."""
    row = columns.count - 1
    offset = int(columns.offset[row])
    file = store.log.sequence.find(offset) if columns.kind[row] == BLANK else None
    return store.log.sequence.behind(file) if file is not None else offset + int(columns.size[row])
