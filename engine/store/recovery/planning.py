"""Plan of a recovery: what a broker would do to a store's files when it starts (docs/formats/recovery.md), worked
out by reading alone. It includes what is dropped: the bytes behind the new end of the log, and the units that can
still be read there.

``plan`` follows the release that it is asked for (:mod:`engine.releases`); :mod:`.apply` does exactly what the
plan says.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np

from engine.codec.columns import BLANK, UnitColumns, next_unit, scan_block
from engine.codec.dledger import HEADER_SIZE, INDEX_FILE_BYTES
from engine.codec.message import BORN_HOST_V6
from engine.codec.topic_table import TopicTable
from engine.codec.unit_flavours import READ_BY
from engine.mapped.read_only import ReadOnlyFile
from engine.mapped.sparse import last_byte
from engine.releases import NEWEST, Release, ReleaseRules, rules_of
from engine.rules.unit_check import NeedsMoreBytes, Request, Rules, check
from engine.sentences import msgid, plural, sentence
from engine.store.recovery import blockers as recovery_blockers
from engine.store.recovery import empty_log
from engine.store.recovery.dispatch import QueueTable, UnitReceiver
from engine.store.recovery.dledger import DLedgerSource, EntryFault, RecoveredEntries, recover_entries
from engine.store.recovery.load_source import CHECKPOINT_NOTE
from engine.store.recovery.plan import (
    Blocker,
    DispatchPass,
    DLedgerPlan,
    EmptyLog,
    ExtCut,
    FailedDispatch,
    GroupBeyondEnd,
    IndexPlan,
    QueuePlan,
    RecoveryPlan,
)
from engine.store.recovery.queues import EmptyLastFile, RecoveredQueue
from engine.store.recovery.rocksdb_queues import RocksdbTable
from engine.store.recovery.source import TIMER_METRICS, IndexHead, RecoverySource, Watch
from engine.store.recovery.walk import MAX_READ_BYTES, NO_SUCH_ARRAY, LogWalk, WalkResult, asked_for
from engine.times import time_text

_HEAD_BYTES = 100
_PHYSICAL_OFFSET = 28
"""Position of the field PHYSICALOFFSET in a unit."""
_MAX_GROUP_UNITS = 256
"""Units that the dispatch to a RocksDB puts together at most."""
_PIECE = 256 << 10
THIRD_LAST = 3
LARGE_HEAP_BYTES = 64 << 20
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
        return _plan_dledger(source, source.dledger, release, loaded, table)
    kept_index, deleted_index = _index(source.index, source)
    start = both_start.start if both_start is not None else _start(source, files, known_end, rules)
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
    blockers = loaded.blockers + _correct_minimums(table, files[0].start_offset, release)
    blockers += recovery_blockers.no_accelerated_start(source, release)
    heap_bytes = _heap_asked(files, first_number, walked, rules)
    if not source.heal:
        blockers += recovery_blockers.out_of_memory(files, walked.end_offset, heap_bytes)
        blockers += recovery_blockers.waits_for_ever(files, passes.blocked_at, end, release)
        if source.rocksdb is None:
            blockers += _failed_dispatch(files, passes.failed, table, release)
    dropped = DroppedBytes(files, end)
    ext_cuts = _ext_cuts(table)
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
        files_deleted=(*loaded.deleted, *deleted, *_deleted(table, ext_cuts)),
        queues=_queue_plans(table),
        groups_beyond=_groups_beyond(source, table),
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
            *_stopped_dispatch_notes(source, table),
            *_lost_tail_notes(known_end, dropped.data_end),
            *_askew(walked, end),
            *_heap_notes(heap_bytes, walked),
            *_confirm_notes(source, walked),
            *_notes(source),
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


def _plan_dledger(
    source: RecoverySource,
    dledger: DLedgerSource,
    release: Release,
    loaded: recovery_blockers.LoadResult,
    table: QueueTable,
) -> RecoveryPlan:
    """Plan a start on a DLedger log (docs/formats/dledger.md#start)."""
    files = list(dledger.files)
    kept_index, deleted_index = _index(source.index, source)
    blockers = list(loaded.blockers)
    recovered = recover_entries(dledger)
    if recovered.refusal is not None:
        message, log_line, path = recovered.refusal
        blockers.append(Blocker("CL07", message, log_line, path))
    for file in dledger.index.files:
        if file.size != INDEX_FILE_BYTES:
            blockers.append(_index_length_blocker(file))
    end, known_end = recovered.end_offset, table.max_physic
    rules = unit_rules(source, release)
    read = sum(queue.bytes_read for queue in table)
    start_number, limit, cut = recovered.start_number, None, end
    why: str = sentence("the third-last data file, or an older one whose first entry the index knows")
    first_pass = second_pass = None
    last_unit, units = -1, recovered.entries
    if source.abort and rules_of(release).walks_dledger_after_crash:
        kept_files = [file for file in files if file.start_offset <= end]
        start = _dledger_start(source, kept_files, rules_of(release))
        start_number, why, limit = start.number, start.why, start.limit_ms
        table.dispatch_after = -1
        walk = LogWalk(kept_files, walk_rules(rules, source), table, source.watch, has_entries=True)
        walked = walk.run(start.number)
        read, last_unit = read + walked.bytes_read, walked.last_unit
        cut = walk.end_without_headers
        if table.dispatched:
            first_pass = DispatchPass(table.first_dispatched, walked.end_offset, -1)
    reached = known_end
    if source.abort and rules_of(release).crash_start == "logics-physical-offset":
        reached = source.checkpoint.logics_physical_offset or 0
    is_cut = reached >= cut
    if is_cut:
        for queue in table:
            queue.truncate(cut)
        if first_pass is not None:
            first_pass = replace(first_pass, end=min(first_pass.end, cut))
    redispatch_start = max(recovered.committed_end, 0) or files[0].start_offset
    if rules_of(release).dispatches_after_recovery or source.config.recheck_reput_offset_from_cq:
        redispatch_start = max(files[0].start_offset, table.max_physic, 0)
    table.dispatch_after = -1
    committed_end = recovered.committed_end
    dispatch_end = committed_end if dledger.has_other_members and committed_end > 0 else end
    if redispatch_start < dispatch_end:
        dispatch_walk = LogWalk(files, dispatch_rules(rules), table, has_entries=True).run_dispatch(
            redispatch_start, dispatch_end
        )
        read += dispatch_walk.bytes_read
        last_unit = max(last_unit, dispatch_walk.last_unit)
    if redispatch_start < end:
        second_pass = DispatchPass(redispatch_start, end, -1)
    undecided_offset = committed_end + HEADER_SIZE if 0 < committed_end < end else None
    queues_undecided = first_pass is not None and undecided_offset is not None and first_pass.end > undecided_offset
    deleted = tuple(file.path for file in files if file.start_offset > end)
    blockers += _correct_minimums(table, source.log.min_offset, release)
    has_remains = dledger.remains_from == end
    dropped = DroppedBytes([] if has_remains else files, end)
    ext_cuts = _ext_cuts(table)
    return RecoveryPlan(
        release=release,
        will_start=not blockers,
        blockers=tuple(blockers),
        exit="abnormal" if source.abort else "normal",
        start_file=files[start_number].name,
        why=why,
        start_offset=files[start_number].start_offset,
        end_offset=end,
        end_reason=_entry_fault_words(None if has_remains else recovered.fault),
        units_kept=units,
        units_dropped=dropped.units,
        bytes_dropped=dropped.bytes,
        dispatch_from=table.first_dispatched if table.dispatched else end,
        units=table.dispatched,
        files_deleted=(*loaded.deleted, *deleted, *_deleted(table, ext_cuts)),
        queues=_queue_plans(table),
        groups_beyond=_groups_beyond(source, table),
        index_kept=kept_index,
        index_deleted=deleted_index,
        bytes_to_read=read,
        limit_timestamp=limit,
        log_files=len(files),
        max_physic_offset=known_end,
        log_min=source.log.min_offset,
        log_max=dropped.data_end,
        notes=(*_dledger_notes(recovered, dledger, queues_undecided=queues_undecided), *_notes(source)),
        ext_cuts=ext_cuts,
        confirm_offset=last_unit,
        log_files_deleted=deleted,
        clear_to=end,
        log_cut=end,
        first_pass=first_pass,
        second_pass=second_pass,
        dledger=DLedgerPlan(
            recovered.last_index,
            recovered.last_term,
            dledger.committed_index,
            recovered.index_rebuilt_from,
            cut if is_cut else None,
            undecided_offset,
            queues_undecided,
            dledger.has_other_members,
        ),
    )


def _entry_fault_words(fault: EntryFault | None) -> str:
    if fault is None:
        return sentence("the end of the last entry")
    return sentence("the entry at {n:,}: {reason}", n=fault.offset, reason=fault.reason)


def _index_length_blocker(file: ReadOnlyFile) -> Blocker:
    text = plural(
        "{path}: expected a file of {n:,} byte, found {found:,}",
        "{path}: expected a file of {n:,} bytes, found {found:,}",
        path=file.path,
        n=INDEX_FILE_BYTES,
        found=file.size,
    )
    log_line = f"{file.path}\t{file.size} length not matched message store config value"
    return Blocker("DL02", text, log_line, file.path)


def _dledger_notes(
    recovered: RecoveredEntries, dledger: DLedgerSource, *, queues_undecided: bool = False
) -> Iterator[str]:
    """Notes on entries that other members of the group decide about, and on the index."""
    committed = dledger.committed_index
    if committed is not None and committed < recovered.last_index:
        template = msgid(
            "The checkpoint calls entries up to {n:,} committed, the log goes on to {m:,}: in a group of several "
            "members the leader keeps the entries in between, or writes its own in their place"
        )
        if dledger.has_other_members:
            template = msgid(
                "The checkpoint calls entries up to {n:,} committed, the log goes on to {m:,}: the leader of the group "
                "keeps the entries in between, or writes its own in their place; until then they are in no queue of "
                "this plan unless the start itself dispatches them"
            )
        yield sentence(template, n=committed, m=recovered.last_index)
        if queues_undecided:
            yield sentence(
                "The start puts these entries into queues before a leader decides: if it replaces them, their queue "
                "entries stay and lead to other messages (DL06). Without the file abort it does not"
            )
    if recovered.index_rebuilt_from is not None:
        yield sentence(
            "The index does not fit from entry {n:,} on: the start writes it again from there",
            n=recovered.index_rebuilt_from,
        )


def _dledger_start(source: RecoverySource, files: list[ReadOnlyFile], release: ReleaseRules) -> Start:
    """Choose the data file at which a start after a crash begins to dispatch: by the store time of its first unit,
    since 5.5 by its offset where the checkpoint has one.
    """
    config, checkpoint = source.config, source.checkpoint
    safe = config.message_index_enable and config.message_index_safe
    limit = checkpoint.min_timestamp_index if safe else checkpoint.min_timestamp
    offset = 0
    if release.crash_start == "logics-physical-offset":
        offset = checkpoint.logics_physical_offset or 0
        limit = checkpoint.logics_msg_timestamp
    for number in range(len(files) - 1, -1, -1):
        head = files[number].read(HEADER_SIZE, _HEAD_BYTES)
        stored = _first_stored(head, READ_BY["4.9"])
        if release.crash_start == "logics-physical-offset" and safe and stored > checkpoint.index_msg_timestamp:
            continue
        if offset > 0 and stored and struct.unpack_from(">q", head, _PHYSICAL_OFFSET)[0] <= offset:
            why = sentence(
                "abnormal exit: the last data file whose first message lies at or before {at:,} (the checkpoint's "
                "logicsPhysicalOffset)",
                at=offset,
            )
            return Start(number, why)
        if offset <= 0 and stored and stored <= limit:
            why = sentence(
                "abnormal exit: the last data file whose first message was stored at or before {at}", at=_moment(limit)
            )
            return Start(number, why, limit)
    if offset > 0:
        why = sentence(
            "abnormal exit: no data file's first message lies at or before {at:,} (the checkpoint's "
            "logicsPhysicalOffset): the first file",
            at=offset,
        )
        return Start(0, why)
    why = sentence(
        "abnormal exit: no data file's first message was stored at or before {at}: the first file", at=_moment(limit)
    )
    return Start(0, why, limit)


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


def unit_rules(source: RecoverySource, release: Release) -> Rules:
    """Return the rules by which release ``release`` checks the units of this store."""
    config = source.config
    return Rules(
        release,
        config.check_crc_on_recover,
        config.force_verify_prop_crc and rules_of(release).property_crc,
        config.duplication_enable and rules_of(release).verifies_duplicates,
        config.delay_levels(),
    )


def _empty_log(
    source: RecoverySource, release: Release, loaded: recovery_blockers.LoadResult, table: QueueTable, known_end: int
) -> RecoveryPlan:
    for queue in table:
        queue.as_destroyed()
    ext_cuts = _ext_cuts(table)
    kept_index, deleted_index = _index(source.index, source)
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
        files_deleted=tuple(loaded.deleted + _deleted(table, ext_cuts)),
        queues=_queue_plans(table),
        groups_beyond=_groups_beyond(source, table),
        index_kept=kept_index,
        index_deleted=deleted_index,
        bytes_to_read=sum(queue.bytes_read for queue in table),
        limit_timestamp=None,
        max_physic_offset=known_end,
        log_min=0,
        log_max=0,
        notes=_notes(source),
        ext_cuts=ext_cuts,
    )


# -- the log


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


def walk_rules(rules: Rules, source: RecoverySource) -> Rules:
    """The rules of recovery's own walk: 4.9 reads its delay levels after it, so a unit of the schedule topic that it
    dispatches gets the code of its tags and not the time of delivery. After a crash 5.5 may check a unit's own offset.
    """
    release = rules_of(rules.release)
    own_offset = source.abort and release.checks_unit_offset and source.config.check_commit_log_offset_on_recover
    levels = rules.delay_levels if release.knows_delays_in_recovery else ()
    return rules._replace(delay_levels=levels, own_offset=own_offset)


def dispatch_rules(rules: Rules) -> Rules:
    """The rules of the dispatch thread, which checks no CRC."""
    return rules._replace(crc=False, property_crc=False, dup_info=False)


class _Search(NamedTuple):
    """Sentences about a search for the file at which the walk begins: the file it chose, no file of the last ``files``
    before it was ended, no file at all.
    """

    chosen: str
    given_up: str
    none: str


_AFTER_A_STOP = _Search(
    msgid("normal exit: the last file whose first unit lies at or before {goal}"),
    msgid(
        "normal exit: no first unit of the last {files} lies at or before {goal}; commitLogRecoverMaxNum ends the "
        "search after {files}"
    ),
    msgid("normal exit: no later file's first unit lies at or before {goal}: the first file"),
)
_BY_OFFSET = _Search(
    msgid("abnormal exit: the last file whose first unit lies at or before {goal}"),
    msgid(
        "abnormal exit: no first unit of the last {files} lies at or before {goal}; commitLogRecoverMaxNum ends the "
        "search after {files}"
    ),
    msgid("abnormal exit: no later file's first unit lies at or before {goal}: the first file"),
)
_BY_TIME = _Search(
    msgid("abnormal exit: the last file whose first unit was stored at or before {goal}"),
    msgid(
        "abnormal exit: no first unit of the last {files} was stored at or before {goal}; commitLogRecoverMaxNum "
        "ends the search after {files}"
    ),
    msgid("abnormal exit: no later file's first unit was stored at or before {goal}: the first file"),
)


class Start(NamedTuple):
    """The place at which the walk begins, and why."""

    number: int  # of the file
    why: str
    limit_ms: int | None = None  # the time by which an abnormal exit chose it
    position: int = 0  # in the file: enableAcceleratedRecovery begins within it
    file_limit: int | None = None  # commitLogRecoverMaxNum, where that ended the search


class StartOfBoth(NamedTuple):
    """The start of a broker that writes queues into files and into a RocksDB. After a clean stop units behind
    ``dispatched_end`` are dispatched again.
    """

    start: Start
    dispatched_end: int


def start_offset(source: RecoverySource, files: list[ReadOnlyFile], known_end: int, release: Release) -> int:
    """Return where the walk of a start begins in ``files`` of the log, of which the queues know up to ``known_end``."""
    start = _start(source, files, known_end, unit_rules(source, release))
    return files[start.number].start_offset + start.position


def _start(source: RecoverySource, files: list[ReadOnlyFile], known_end: int, rules: Rules) -> Start:
    """Choose the file in which the walk begins, as the release does."""
    release = rules_of(rules.release)
    if release.clean_start == "first-unit":
        return _start_by_first_units(source, files, known_end, rules)
    if not source.abort:
        if release.clean_start == "third-last-file":
            return Start(max(len(files) - THIRD_LAST, 0), sentence("normal exit: 4.9 begins at the third-last file"))
        for number in range(len(files) - 1, 0, -1):
            if files[number].start_offset <= known_end:
                why = sentence(
                    "normal exit: the last file that begins at or before {at:,}, the end of what the queues know",
                    at=known_end,
                )
                return Start(number, why)
        if known_end < 0:
            return Start(0, sentence("normal exit: no queue knows of the log: the first file"))
        return Start(
            0,
            sentence(
                "normal exit: the queues know the log up to {at:,}, no later file begins at or before that",
                at=known_end,
            ),
        )
    if source.rocksdb is not None:
        return _start_by_own_offset(files, known_end, rules.release)
    config = source.config
    safe = config.message_index_enable and config.message_index_safe
    limit = source.checkpoint.min_timestamp_index if safe else source.checkpoint.min_timestamp
    text = _time_in_words(source, limit, rules.release)
    for number in range(len(files) - 1, -1, -1):
        stored = _first_store_time(files[number], rules.release)
        if stored and stored <= limit:
            why = sentence("abnormal exit: the last file whose first unit was stored at or before {at}", at=text)
            return Start(number, why, limit)
    why = sentence("abnormal exit: no file's first unit was stored at or before {at}: the first file", at=text)
    return Start(0, why, limit)


def _start_by_own_offset(files: list[ReadOnlyFile], dispatched: int, release: Release) -> Start:
    """Choose the start file of 5.3 after a crash with queues in a RocksDB: the last one whose first unit has an offset
    field at or before the end of dispatch. Nothing else of the unit is checked.
    """
    goal = sentence("{at:,}, the end of dispatch in the RocksDB", at=dispatched)
    for number in range(len(files) - 1, -1, -1):
        head = files[number].read(0, _HEAD_BYTES)
        if len(head) < _HEAD_BYTES or struct.unpack_from(">I", head, 4)[0] not in READ_BY[release]:
            continue
        if struct.unpack_from(">q", head, _PHYSICAL_OFFSET)[0] <= dispatched:
            return Start(number, sentence(_BY_OFFSET.chosen, goal=goal))
    return Start(0, sentence(_BY_OFFSET.none, goal=goal))


@dataclass(frozen=True, slots=True)
class StartLimit:
    """What the first unit of the start file must not exceed in 5.4 and later: an offset, or a time (ms)."""

    kind: _Search
    goal: str
    offset: int | None
    limit_ms: int | None

    def fits(self, unit: Request) -> bool:
        """Return True if a walk may begin at ``unit``."""
        if self.offset is not None:
            return unit.physical_offset <= self.offset
        return unit.store_timestamp <= (self.limit_ms or 0)


def start_limit(source: RecoverySource, known_end: int, rules: Rules) -> StartLimit:
    """Return the limit by which the queues of ``source``, which know the log up to ``known_end``, choose the file."""
    release, checkpoint = rules_of(rules.release), source.checkpoint
    offset = checkpoint.logics_physical_offset or 0
    if not source.abort or source.rocksdb is not None:
        goal = sentence("{at:,}, the end of what the queues know", at=known_end)
        if source.rocksdb is not None:
            goal = sentence("{at:,}, the end of dispatch in the RocksDB", at=known_end)
        return StartLimit(_BY_OFFSET if source.abort else _AFTER_A_STOP, goal, known_end, None)
    if release.crash_start == "logics-physical-offset" and offset > 0:
        goal = sentence("{at:,} (the checkpoint's logicsPhysicalOffset)", at=offset)
        return StartLimit(_BY_OFFSET, goal, offset, None)
    limit = checkpoint.min_timestamp
    if release.crash_start == "logics-physical-offset":
        limit = checkpoint.logics_msg_timestamp
    return StartLimit(_BY_TIME, _time_in_words(source, limit, rules.release), None, limit)


def _start_by_first_units(source: RecoverySource, files: list[ReadOnlyFile], known_end: int, rules: Rules) -> Start:
    """Choose the start file as 5.4 and later do: from the last file back, the first whose first unit passes the check,
    has a store time, and lies at or before a limit; after ``commitLogRecoverMaxNum`` files the search ends.
    """
    limit = start_limit(source, known_end, rules)
    return find_start(source, files, limit, known_end, rules, limit.fits)


def find_start(
    source: RecoverySource,
    files: list[ReadOnlyFile],
    limit: StartLimit,
    known_end: int,
    rules: Rules,
    is_accepted: Callable[[Request], bool],
) -> Start:
    """Search the start file from the last one back; ``is_accepted`` is asked about the first unit of each."""
    release, checkpoint, config = rules_of(rules.release), source.checkpoint, source.config
    kind, goal = limit.kind, limit.goal
    safe = config.message_index_enable and config.message_index_safe
    if safe:
        goal = sentence(
            "{goal}, and no later than the index, {at}", goal=goal, at=_moment(checkpoint.index_msg_timestamp)
        )
    max_files = config.commit_log_recover_max_num
    files_left = max_files = max_files if max_files > 0 else release.recovery_file_limit or len(files)
    for number in range(len(files) - 1, -1 if source.abort else 0, -1):
        files_left -= 1
        unit = _first_unit(files[number], rules)
        if unit is not None and unit.store_timestamp != 0:
            is_indexed = not safe or unit.store_timestamp <= checkpoint.index_msg_timestamp
            if is_indexed and is_accepted(unit):
                why = sentence(kind.chosen, goal=goal)
                position = 0
                if source.abort and config.enable_accelerated_recovery and release.accelerated_recovery:
                    offset = checkpoint.logics_physical_offset or 0 if limit.offset is None else limit.offset
                    position = max(offset - files[number].start_offset, 0)
                    why += "; " + sentence("with enableAcceleratedRecovery the walk begins there")
                return Start(number, why, limit.limit_ms, position)
        if files_left <= 0 and number > 0:
            template = kind.given_up
            if not source.abort and known_end < 0:
                template = msgid(
                    "normal exit: no queue knows of the log; commitLogRecoverMaxNum ends the search after {files}"
                )
            why = sentence(template, files=plural("{n} file", "{n} files", n=max_files), goal=goal)
            return Start(number, why, limit.limit_ms, 0, max_files)
    if not source.abort and known_end < 0:
        return Start(0, sentence("normal exit: no queue knows of the log: the first file"))
    return Start(0, sentence(kind.none, goal=goal), limit.limit_ms)


def _time_in_words(source: RecoverySource, time_ms: int, release: Release) -> str:
    note = source.checkpoint_note
    if note == CHECKPOINT_NOTE and rules_of(release).crash_start == "logics-physical-offset":
        note = sentence("the checkpoint's logicsMsgTimestamp")
    return sentence("{at} ({note})", at=_moment(time_ms), note=sentence(note))


def _moment(time_ms: int) -> str:
    return time_text(time_ms) if time_ms > 0 else str(time_ms)


def _first_unit(file: ReadOnlyFile, rules: Rules) -> Request | None:
    """The unit with which a file begins, where a broker's check takes it."""
    length = _HEAD_BYTES
    while True:
        head = file.read(0, min(length, file.size))
        answer = check(head, 0, file.size, rules)
        if not isinstance(answer, NeedsMoreBytes):
            return answer if isinstance(answer, Request) else None
        if len(head) < length or answer.size > MAX_READ_BYTES:
            return None
        length = max(answer.size, length + 1)


def _first_store_time(file: ReadOnlyFile, release: Release) -> int:
    """Store time (ms) of the first unit of a file by its bytes alone, 0 if there is no unit."""
    return _first_stored(file.read(0, _HEAD_BYTES), READ_BY[release])


def _first_stored(head: bytes, magics: Container[int]) -> int:
    if len(head) < _HEAD_BYTES:
        return 0
    magic = struct.unpack_from(">I", head, 4)[0]
    if magic not in magics:
        return 0
    (sys_flag,) = struct.unpack_from(">i", head, 36)
    stored: int = struct.unpack_from(">q", head, 48 + (20 if sys_flag & BORN_HOST_V6 else 8))[0]
    return stored


# -- what is around it


def _correct_minimums(table: QueueTable, log_min: int, release: Release) -> list[Blocker]:
    blockers = []
    for queue in table:
        try:
            queue.correct_min(log_min, release)
        except EmptyLastFile:
            last_file = queue.data.files[-1]
            path = last_file.disk.path if last_file.disk else last_file.name
            blockers.append(
                Blocker(
                    "CQ06",
                    sentence(
                        "The last file of {queue} is empty and does not begin at 0: the correction of the minimum "
                        "offset fails",
                        queue=f"{queue.topic}/{queue.queue_id}",
                    ),
                    "load exception java.lang.IllegalArgumentException: newPosition < 0: (-20 < 0)",
                    path,
                )
            )
    return blockers


def _queue_plans(table: QueueTable) -> tuple[QueuePlan, ...]:
    return tuple(_queue_plan(queue) for _, queue in sorted(table.queues.items()))


def _queue_plan(queue: RecoveredQueue) -> QueuePlan:
    return QueuePlan(
        queue.topic,
        queue.queue_id,
        queue.kind,
        queue.min_offset,
        queue.max_offset,
        queue.dropped,
        queue.added,
        queue.cut_to,
        tuple(queue.deleted),
        not queue.existed,
        queue.shifted,
        queue.state,
        queue.recovered_state,
        queue.cut,
        queue.clear_to,
    )


def _ext_cuts(table: QueueTable) -> tuple[ExtCut, ...]:
    cuts = (queue.ext.cut(queue.topic, queue.queue_id) for _, queue in sorted(table.queues.items()) if queue.ext)
    return tuple(cut for cut in cuts if cut is not None)


def _deleted(table: QueueTable, ext_cuts: Iterable[ExtCut]) -> list[str]:
    """Files of the queues and of their ext queues that go."""
    files = [path for queue in table for path in queue.deleted]
    return files + [path for cut in ext_cuts for path in cut.files_deleted]


def _groups_beyond(source: RecoverySource, table: QueueTable) -> tuple[GroupBeyondEnd, ...]:
    groups_beyond = []
    for group in source.group_offsets:
        queue = table.queues.get((group.topic, group.queue_id))
        if queue is not None and group.offset > queue.max_offset:
            groups_beyond.append(
                GroupBeyondEnd(group.group, group.topic, group.queue_id, group.offset, queue.max_offset)
            )
    return tuple(groups_beyond)


def _index(heads: Iterable[IndexHead], source: RecoverySource) -> tuple[tuple[IndexPlan, ...], tuple[IndexPlan, ...]]:
    kept_index: list[IndexPlan] = []
    deleted_index: list[IndexPlan] = []
    for head in heads:
        header = head.header
        index_plan = IndexPlan(
            head.name,
            head.path,
            header.entries,
            header.begin_timestamp,
            header.end_timestamp,
            header.begin_phy_offset,
            header.end_phy_offset,
        )
        is_deleted = source.abort and header.end_timestamp > source.checkpoint.index_msg_timestamp
        (deleted_index if is_deleted else kept_index).append(index_plan)
    return tuple(kept_index), tuple(deleted_index)


def _stopped_dispatch_notes(source: RecoverySource, table: QueueTable) -> tuple[str, ...]:
    """Note on the unit at which the dispatch to queues in a RocksDB stops. Dispatch repeats the group of units that it
    takes together (``RocksGroupCommitService``), which may begin before it.
    """
    if source.rocksdb is None or source.heal or table.failed is None:
        return ()
    note = sentence(
        "The broker starts, and dispatch stops at the message {place} at {at:,}, because it names {name}, which is no "
        "light queue, before a light queue: no message behind it gets an entry, nor do up to {n} before it. With "
        "enableLmq=false it does not stop",
        place=table.failed.place,
        at=table.failed.offset,
        name=table.failed.queue_name or '""',
        n=_MAX_GROUP_UNITS - 1,
    )
    return (note,)


def _lost_tail_notes(known_end: int, data_end: int) -> tuple[str, ...]:
    """Note on the lost tail of the log. A crash loses the tail that was not flushed; where files are gone more is
    missing.
    """
    if known_end <= data_end:
        return ()
    note = sentence(
        "The queues know the log up to {known:,}, but its bytes end at {end:,}: the part in between is lost. A crash "
        "loses what was not flushed; if more is missing, look for a missing file or disk",
        known=known_end,
        end=data_end,
    )
    return (note,)


def _heap_asked(files: list[ReadOnlyFile], first_number: int, walked: WalkResult, rules: Rules) -> int:
    """Bytes of heap that the check asks for where the walk ended, 0 for none."""
    for file in files[first_number:]:
        if file.start_offset <= walked.end_offset < file.end_offset:
            return asked_for(file, walked.end_offset - file.start_offset, rules)
    return 0


def _heap_notes(heap_bytes: int, walked: WalkResult) -> tuple[str, ...]:
    if not LARGE_HEAP_BYTES <= heap_bytes < NO_SUCH_ARRAY:
        return ()
    note = sentence(
        "RocketMQ 4.9 asks for {n:,} bytes of heap at {at:,}: with less than that (-Xmx) its start dies of an "
        "OutOfMemoryError",
        n=heap_bytes,
        at=walked.end_offset,
    )
    return (note,)


def _askew(walked: WalkResult, end: int) -> tuple[str, ...]:
    if end == walked.end_offset:
        return ()
    note = sentence(
        "The name of the last log file is no multiple of its length: a broker goes on at {at:,}, {n:,} bytes before "
        "the end of the last unit, and writes over it",
        at=end,
        n=walked.end_offset - end,
    )
    return (note,)


def _checkpoint_notes(source: RecoverySource) -> tuple[str, ...]:
    impossible = source.checkpoint.impossible
    if not impossible:
        return ()
    numbers = ", ".join(f"{name} {number:,}" for name, number in impossible.items())
    return (sentence("The checkpoint holds numbers that no broker writes: {numbers}", numbers=numbers),)


def _confirm_notes(source: RecoverySource, walked: WalkResult) -> tuple[str, ...]:
    confirm = source.checkpoint.confirm_phy_offset or 0
    if confirm <= walked.end_offset or source.config.duplication_enable or source.checkpoint.impossible:
        return ()
    note = sentence(
        "The checkpoint's confirm offset {confirm:,} is after the end of the log: a start sets it to {last:,} and "
        "dispatches as usual, because it does not use the confirm offset",
        confirm=confirm,
        last=max(walked.last_unit, 0),
    )
    return (note,)


def _notes(source: RecoverySource) -> tuple[str, ...]:
    notes = list(source.notes)
    for read_file, other_file in source.log.doubles:
        notes.append(
            sentence(
                "{read} and {other} begin at the same offset: a broker would write to one of the two and "
                "read from the other, and every message that it acknowledges would be lost. Move one of them "
                "away first.",
                read=read_file.path,
                other=other_file.path,
            )
        )
    notes += _checkpoint_notes(source)
    if source.config.duplication_enable:
        notes.append(sentence("duplicationEnable is on: a confirm offset in memory may hold dispatch back"))
    return tuple(notes)


CHUNK = 8 << 20
ROWS = 1 << 14
OVERLAP = 64


class DroppedBytes:
    """Counts over all ``files`` from ``end`` (offset of the log) on; ``data_end`` is where the last byte stands."""

    def __init__(self, files: list[ReadOnlyFile], end: int) -> None:
        self.bytes = 0
        self.units = 0
        self.data_end = end
        self._columns: UnitColumns | None = None
        for file in files:
            if file.end_offset > end:
                position = max(end - file.start_offset, 0)
                data_stop = last_byte(file, position)
                if data_stop > position:
                    self.bytes += data_stop - position
                    self.data_end = file.start_offset + data_stop
                    self._count(file, position, data_stop)

    def _count(self, file: ReadOnlyFile, position: int, data_stop: int) -> None:
        """Count the units of one file from ``position`` on, over damage to the next that is real."""
        columns = self._columns = self._columns or UnitColumns(ROWS)
        topics, read_size = TopicTable(), CHUNK
        while position < data_stop:
            data = file.read(position, read_size)
            base, n = file.start_offset + position, len(data)
            buffer = np.frombuffer(data, np.uint8)
            unit_position = max(next_unit(buffer, n, base, 0, file.end_offset), -1)
            while unit_position >= 0:
                scan = scan_block(buffer, n, base, unit_position, columns, topics, False, False)
                rows = columns.count
                if rows and columns.kind[rows - 1] == BLANK:
                    self.units += rows - 1
                    return
                self.units += rows
                unit_position = scan.next_position
                if scan.stopped in ("cut", "end") and (n == read_size or unit_position >= n):
                    break
                if scan.stopped != "full":
                    unit_position = next_unit(buffer, n, base, unit_position + 1, file.end_offset)
            if n < read_size:
                return
            if unit_position == 0:
                read_size = max(CHUNK, int.from_bytes(data[:4], "big", signed=True)) if read_size == CHUNK else CHUNK
                position += 0 if read_size > CHUNK else OVERLAP
                continue
            position += unit_position if unit_position > 0 else n - OVERLAP
            read_size = CHUNK
