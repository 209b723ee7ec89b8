"""The check of a store: all rules in one pass over the log (``check``; product: findings).

Memory does not grow with the store: the log goes by in blocks, queue entries and index entries are read along with it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple, Protocol

from engine.codec.columns import BLANK, UnitColumns
from engine.codec.message import DEFAULT_DELAY_LEVELS
from engine.codec.topic_table import TopicTable
from engine.codec.unit_scan import Damage, Stop
from engine.errors import CannotRead
from engine.inspection import check_conf, check_keys, check_state, check_tail, foreign
from engine.inspection.block_scan import scan_log
from engine.inspection.check_fold import QueueFold
from engine.inspection.check_index import IndexCheck
from engine.inspection.check_log import LogCheck
from engine.inspection.check_queues import QueueCheck
from engine.inspection.snapshot import StoreSnapshot
from engine.rules import catalogue
from engine.rules.findings import Finding, Summary, rank, summarise
from engine.rules.needs import Part, may_speak, part_of
from engine.rules.proofs import Proof, ProofLine

Progress = Callable[[int, int], None]


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
) -> Iterator[Finding | Summary]:
    """Every finding, gravest first, last a :class:`Summary`. Of what could not be read nothing is concluded, and the
    summary is not complete then (:attr:`StoreSnapshot.unread` names it).

    ``only`` names rules by id; ``progress`` gets bytes of the log done and in all; a check that ``cancel`` stops tells
    what the part it saw showed, and its summary is not complete. ``proofs`` are stretches of the log in which
    nothing is wrong, in order: they are passed over where that tells the same.
    """
    found: list[Finding] = []
    complete, units = True, 0
    for finding in _all(store, cancel, progress, proofs):
        if finding is None:
            complete = False
        elif isinstance(finding, int):
            units = finding
        elif only is None or finding.id in only:
            found.append(finding)
    told = sorted(_told(store, found), key=rank)
    yield from told
    yield summarise(told, complete and not store.unread, units)


def _told(store: StoreSnapshot, found: Iterable[Finding]) -> Iterator[Finding]:
    """Those that were not concluded from what could not be read; the files that could not be are named elsewhere."""
    files = {one.file for one in store.unread}
    folders = [str(folder) for folder in store.log_folders]
    parts = (part_of(file, str(store.path), folders) for file in files)
    unread: frozenset[Part] = frozenset().union(*parts)
    return (one for one in found if one.file not in files and may_speak(one.id, unread))


def _going_on(findings: Iterable[Finding]) -> Iterator[Finding]:
    """As far as they come: where the store cannot be read any further here, the check goes on with what follows."""
    with contextlib.suppress(CannotRead):
        yield from findings


def _all(
    store: StoreSnapshot, cancel: Cancel | None, progress: Progress | None, proofs: Iterable[Proof]
) -> Iterator[Finding | int | None]:
    """All findings in no order, and how many units there were; None where the walk was stopped before its end."""
    missed: list[Finding] = []
    with contextlib.suppress(CannotRead):
        missed += check_state.empty_log(store)
    yield from missed
    yield from _going_on(check_state.abort(store))
    yield from _going_on(check_state.config(store))
    yield from _going_on(check_state.start(store))
    if store.config is not None:
        yield from _going_on(check_conf.findings(store, store.config))
    for note in foreign.notes(store):
        yield catalogue.DK02.found(note, str(store.path), None, {"found": note})
    topics = TopicTable()
    log = LogCheck(store)
    queues = QueueCheck(store, topics)
    index = IndexCheck(store.index_files(), topics)
    stop = _walk(store, topics, _Checks(log, queues, index), cancel, progress, proofs)
    log.finish(stop)
    yield log.units
    if stop.kind == "cancelled":
        yield None
        yield from _going_on(log.findings())
        return
    queues.finish()
    with contextlib.suppress(CannotRead):
        index.drain()
    around: list[Finding] = []
    with contextlib.suppress(CannotRead):
        fold = QueueFold(store, log, queues)
        known = store.paths is not None and not foreign.rocksdb_queues(store)
        around += _going_on(fold.findings()) if known else []
        around += _going_on(check_keys.findings(store, log, index, fold.odd_units))
    around += _going_on(check_state.checkpoint(store, log.newest_time, log.end))
    yield from _going_on(log.findings())
    yield from _going_on(check_tail.fold(around, store, log, explained=bool(missed)))


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
