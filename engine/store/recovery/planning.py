"""Plan of a recovery: what a broker would do to a store's files when it starts (docs/formats/recovery.md), worked
out by reading alone. It includes what is dropped: the bytes behind the new end of the log, and the units that can
still be read there.

``plan`` follows the release that it is asked for (:mod:`engine.releases`); :mod:`.apply` does exactly what the
plan says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from engine.mapped.read_only import ReadOnlyFile
from engine.releases import NEWEST, Release, rules_of
from engine.rules.unit_check import Rules
from engine.sentences import sentence
from engine.store.recovery import blockers as recovery_blockers
from engine.store.recovery import empty_log
from engine.store.recovery.dispatch import QueueTable, UnitReceiver
from engine.store.recovery.dledger_plan import plan_dledger
from engine.store.recovery.dropped_bytes import DroppedBytes
from engine.store.recovery.plan import (
    Blocker,
    DispatchPass,
    EmptyLog,
    FailedDispatch,
    IndexPlan,
    RecoveryPlan,
)
from engine.store.recovery.plan_notes import (
    confirm_notes,
    heap_bytes_asked,
    heap_notes,
    lost_tail_notes,
    odd_end_notes,
    stopped_dispatch_notes,
    store_notes,
)
from engine.store.recovery.plan_parts import (
    correct_minimums,
    deleted_files,
    ext_cuts_of,
    groups_beyond_end,
    index_plans,
    queue_plans,
)
from engine.store.recovery.queues import RecoveredQueue
from engine.store.recovery.rocksdb_queues import RocksdbTable
from engine.store.recovery.source import TIMER_METRICS, RecoverySource, Watch
from engine.store.recovery.start_file import Start, StartOfBoth, choose_start
from engine.store.recovery.store_rules import dispatch_rules, unit_rules, walk_rules
from engine.store.recovery.walk import LogWalk, WalkResult

_PIECE = 256 << 10
_TABLES_OF_5 = ("topicQueueMapping.json", "consumerOrderInfo.json", TIMER_METRICS)


class Execution(UnitReceiver, Protocol):
    """Carries a recovery out while it is being planned: one walk through the log serves both."""

    def begin(self, prepared: WalkPreparation) -> None:
        """Called before the log is walked; raises where the store is to be left alone."""

    def cut(self, queues: Iterable[RecoveredQueue]) -> None:
        """Called when the end of the log has cut the queues; units may still follow."""


@dataclass(frozen=True, slots=True)
class WalkPreparation:
    """Facts from before the walk over the log: the blockers, the deleted index files, the queues, and what knows of
    messages that the log does not hold.
    """

    blockers: tuple[Blocker, ...]
    index_deleted: tuple[IndexPlan, ...]
    queues: tuple[RecoveredQueue, ...]
    empty_log: EmptyLog | None


class _Passes(NamedTuple):
    """Result of the walk over the log, and the spans of it that were dispatched."""

    walked: WalkResult
    end: int  # where the next unit goes
    bytes_behind: int
    first: DispatchPass | None
    second: DispatchPass | None
    blocked_at: tuple[int, str] | None  # where the start waits for dispatch forever, and why
    failed: FailedDispatch | None = None  # the unit at which the dispatch of recovery fails


def plan(
    source: RecoverySource,
    release: Release = NEWEST,
    execution: Execution | None = None,
    both_start: StartOfBoth | None = None,
) -> RecoveryPlan:
    """Plan what starting a broker of ``release`` would do. Nothing is written, locked or created, but by
    ``execution``. ``both_start``: the start of a broker that writes queues into files and into a RocksDB.

    Raises :class:`engine.errors.CannotRead` where bytes could not be read: no plan is made over them.
    """
    source = _as_seen_by(source, release)
    loaded = recovery_blockers.load(source, release)
    files = _log_files(source, loaded)
    rules = unit_rules(source, release)
    table = _queues(source, rules)
    known_end = table.max_physic
    missed = _without_log(source, files, lambda: table)
    if not files:
        return replace(_empty_log(source, release, loaded, table, known_end), empty_log=missed)
    if source.dledger is not None and source.dledger.files:
        return plan_dledger(source, source.dledger, release, loaded, table)
    kept_index, deleted_index = index_plans(source.index, source)
    start = both_start.start if both_start is not None else choose_start(source, files, known_end, rules)
    first_number = start.number
    if execution is not None:
        _must_be_readable(files, min(files[first_number].start_offset, max(known_end, 0)), source.watch)
        execution.begin(WalkPreparation(tuple(loaded.blockers), deleted_index, tuple(table), missed))
        table.receiver = execution
    read = sum(queue.bytes_read for queue in table)
    dispatched_end = both_start.dispatched_end if both_start is not None else known_end
    passes = _recover_log(source, files, start, dispatched_end, release, rules, table, execution)
    walked, end = passes.walked, passes.end
    deleted = tuple(f.path for f in files if f.start_offset > walked.end_offset)
    blockers = loaded.blockers + correct_minimums(table, files[0].start_offset, release)
    blockers += recovery_blockers.no_accelerated_start(source, release)
    heap_bytes = heap_bytes_asked(files, first_number, walked, rules)
    if not source.heal:
        blockers += recovery_blockers.out_of_memory(files, walked.end_offset, heap_bytes)
        blockers += recovery_blockers.waits_for_ever(files, passes.blocked_at, end, release)
        if source.rocksdb is None:
            blockers += _failed_dispatch(files, passes.failed, table, release)
    dropped = DroppedBytes(files, end)
    ext_cuts = ext_cuts_of(table)
    return RecoveryPlan(
        release=release,
        will_start=not blockers,
        blockers=tuple(blockers),
        exit="abnormal" if source.abort else "normal",
        start_file=files[first_number].name,
        why=start.why,
        start_offset=files[first_number].start_offset + start.position,
        end_offset=end,
        end_reason=walked.reason,
        units_kept=walked.units,
        units_dropped=dropped.units,
        bytes_dropped=dropped.bytes,
        dispatch_from=table.first_dispatched if table.dispatched else end,
        units=table.dispatched,
        files_deleted=(*loaded.deleted, *deleted, *deleted_files(table, ext_cuts)),
        queues=queue_plans(table),
        groups_beyond=groups_beyond_end(source, table),
        index_kept=kept_index,
        index_deleted=deleted_index,
        bytes_to_read=walked.bytes_read + passes.bytes_behind + read,
        limit_timestamp=start.limit_ms,
        log_files=len(files),
        file_limit=start.file_limit,
        max_physic_offset=known_end,
        log_min=files[0].start_offset,
        log_max=dropped.data_end,
        notes=(
            *stopped_dispatch_notes(source, table),
            *lost_tail_notes(known_end, dropped.data_end),
            *odd_end_notes(walked, end),
            *heap_notes(heap_bytes, walked),
            *confirm_notes(source, walked),
            *store_notes(source),
        ),
        ext_cuts=ext_cuts,
        confirm_offset=walked.last_unit,
        log_files_deleted=deleted,
        clear_to=min(dropped.data_end, max(f.end_offset for f in files if f.start_offset <= walked.end_offset)),
        log_cut=walked.end_offset,
        first_pass=passes.first,
        second_pass=passes.second,
        empty_log=missed,
        dispatch_stops_at=None if source.heal else table.failed,
        loses_new_messages=bool(source.log.doubles),
    )


def loading(source: RecoverySource, release: Release = NEWEST) -> tuple[Blocker, ...]:
    """Return the blockers that stop a broker before it looks at a single unit."""
    return tuple(recovery_blockers.load(_as_seen_by(source, release), release).blockers)


def without_log(source: RecoverySource, release: Release = NEWEST) -> EmptyLog | None:
    """Return what knows of messages that the log does not hold, without a walk; None if nothing is missed."""
    source = _as_seen_by(source, release)
    files = _log_files(source, recovery_blockers.load(source, release))
    return _without_log(source, files, lambda: _queues(source, unit_rules(source, release)))


def _without_log(source: RecoverySource, files: list[ReadOnlyFile], table: Callable[[], QueueTable]) -> EmptyLog | None:
    """Beside a DLedger log, the folder of older files may be empty."""
    if source.dledger is not None and source.dledger.files:
        return None
    return empty_log.find(source, files, table)


def _log_files(source: RecoverySource, loaded: recovery_blockers.LoadResult) -> list[ReadOnlyFile]:
    return [file for file in source.log.files if file.path not in loaded.deleted]


def _as_seen_by(source: RecoverySource, release: Release) -> RecoverySource:
    if not rules_of(release).batch_queues:
        source = _as_seen_by_4_9(source)
    if source.config.given and not source.config.enable_consume_queue_ext:
        source = replace(source, queues=tuple(q if q.ext is None else replace(q, ext=None) for q in source.queues))
    return source


def _queues(source: RecoverySource, rules: Rules) -> QueueTable:
    """Return every queue, recovered by its own files, or as the RocksDB has it."""
    if source.rocksdb is not None:
        log_min = max(source.log.min_offset, 0)
        return RocksdbTable(source.rocksdb, log_min, rules, light=source.light)
    batch = source.batch_topics
    if batch is None:
        batch = frozenset(q.topic for q in source.queues if q.kind == "batch")
    sizes = (source.queue_file_size, source.batch_queue_file_size)
    table = QueueTable(source.queues, *sizes, batch, rules, light=source.light)
    for queue in table:
        queue.recover(look_behind=source.abort, heal=source.heal)
    return table


def _as_seen_by_4_9(source: RecoverySource) -> RecoverySource:
    """4.9 knows neither batch queues nor the tables that came with 5.0."""
    return replace(
        source,
        queues=tuple(queue for queue in source.queues if queue.kind == "simple"),
        batch_topics=frozenset(),
        tables=tuple(table for table in source.tables if not table.path.endswith(_TABLES_OF_5)),
    )


def queues_end(source: RecoverySource, rules: Rules) -> int:
    """Return the end of what the queues of ``source`` know of the log (bytes)."""
    return _queues(_as_seen_by(source, rules.release), rules).max_physic


def _empty_log(
    source: RecoverySource, release: Release, loaded: recovery_blockers.LoadResult, table: QueueTable, known_end: int
) -> RecoveryPlan:
    for queue in table:
        queue.as_destroyed()
    ext_cuts = ext_cuts_of(table)
    kept_index, deleted_index = index_plans(source.index, source)
    return RecoveryPlan(
        release=release,
        will_start=not loaded.blockers,
        blockers=tuple(loaded.blockers),
        exit="abnormal" if source.abort else "normal",
        start_file=None,
        why=sentence("the commit log has no files: a broker deletes every consume queue and begins at 0"),
        start_offset=0,
        end_offset=0,
        end_reason=sentence("the commit log has no files"),
        units_kept=0,
        units_dropped=0,
        bytes_dropped=0,
        dispatch_from=0,
        units=0,
        files_deleted=tuple(loaded.deleted + deleted_files(table, ext_cuts)),
        queues=queue_plans(table),
        groups_beyond=groups_beyond_end(source, table),
        index_kept=kept_index,
        index_deleted=deleted_index,
        bytes_to_read=sum(queue.bytes_read for queue in table),
        limit_timestamp=None,
        max_physic_offset=known_end,
        log_min=0,
        log_max=0,
        notes=store_notes(source),
        ext_cuts=ext_cuts,
    )


def _must_be_readable(files: Sequence[ReadOnlyFile], start: int, watch: Watch | None) -> None:
    """Read the log's data from ``start`` on, before a walk that writes as it goes: nothing is written where a byte
    behind cannot be read. Raises :class:`engine.errors.CannotRead`.
    """
    view = memoryview(bytearray(_PIECE))
    for file in files:
        for begin, stop in file.extents(max(start - file.start_offset, 0)) if file.end_offset > start else ():
            for position in range(begin, stop, _PIECE):
                file.read_into(view[: stop - position], position)
                if watch is not None:
                    watch(start, file.start_offset + position, files[-1].end_offset)


def _recover_log(
    source: RecoverySource,
    files: list[ReadOnlyFile],
    walk_start: Start,
    known_end: int,
    release: Release,
    rules: Rules,
    table: QueueTable,
    execution: Execution | None,
) -> _Passes:
    """Walk, dispatch, cut the queues; returns the walk, and the bytes that a later dispatch read besides.

    After a clean stop units behind ``known_end`` are dispatched again.
    """
    table.dispatch_after = (
        -1 if source.abort else known_end if rules_of(release).dispatches_on_clean_start else (1 << 63) - 1
    )
    log_walk = LogWalk(files, walk_rules(rules, source), table, source.watch if execution is None else None)
    walked = log_walk.run(walk_start.number, walk_start.position)
    recovery_pass = (
        DispatchPass(table.first_dispatched, walked.end_offset, table.dispatch_after) if table.dispatched else None
    )
    failed = table.failed
    reached = table.max_physic if rules_of(release).cuts_by_end_after_dispatch else known_end
    if table.is_cut(reached, walked.end_offset):
        for queue in table:
            queue.truncate(walked.end_offset)
        if execution is not None:
            execution.cut(table)
    end = _append_offset(files, walked.end_offset)
    if not rules_of(release).dispatches_after_recovery and not source.config.recheck_reput_offset_from_cq:
        return _Passes(walked, end, 0, recovery_pass, None, None, failed)
    start = max(files[0].start_offset, 0 if source.rocksdb is not None else table.max_physic, 0)
    if not rules_of(release).minimum_by_halving:
        for queue in table:
            queue.correct_min(files[0].start_offset, release)
    table.dispatch_after = -1
    if start >= end:
        return _Passes(walked, end, 0, recovery_pass, None, None, failed)
    dispatch_walk = LogWalk(files, dispatch_rules(rules), table).run_dispatch(start, end, cross=source.heal)
    blocked_at = (dispatch_walk.end_offset, dispatch_walk.reason) if dispatch_walk.reason else None
    return _Passes(
        walked,
        end,
        dispatch_walk.bytes_read,
        recovery_pass,
        DispatchPass(start, dispatch_walk.end_offset, -1),
        blocked_at,
        failed,
    )


def _failed_dispatch(
    files: list[ReadOnlyFile], failed: FailedDispatch | None, table: QueueTable, release: Release
) -> list[Blocker]:
    """The unit at which dispatch fails: in recovery (``failed``) the start ends there, after it the start waits."""
    is_in_recovery = failed is not None
    return recovery_blockers.fails_to_dispatch(
        files, failed or table.failed, in_recovery=is_in_recovery, release=release
    )


def _append_offset(files: list[ReadOnlyFile], end: int) -> int:
    """Return where a log that is cut at ``end`` goes on. A broker takes ``end`` modulo the file size as the position
    in the last file; that is another place where this file's name is no multiple of its size.
    """
    last_file = next((file for file in reversed(files) if file.start_offset <= end), None)
    if last_file is None or end >= last_file.end_offset:
        return end
    return last_file.start_offset + end % last_file.size
