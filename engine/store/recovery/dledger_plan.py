"""Plan of a start on a DLedger log (docs/formats/dledger.md#start)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from engine.codec.dledger import HEADER_SIZE, INDEX_FILE_BYTES
from engine.codec.unit_flavours import READ_BY
from engine.mapped.read_only import ReadOnlyFile
from engine.releases import Release, ReleaseRules, rules_of
from engine.rules.unit_check import Rules
from engine.sentences import msgid, plural, sentence
from engine.store.recovery import blockers as recovery_blockers
from engine.store.recovery.dispatch import QueueTable
from engine.store.recovery.dledger import DLedgerSource, EntryFault, RecoveredEntries, recover_entries
from engine.store.recovery.dropped_bytes import DroppedBytes
from engine.store.recovery.plan import Blocker, DispatchPass, DLedgerPlan, RecoveryPlan
from engine.store.recovery.plan_notes import store_notes
from engine.store.recovery.plan_parts import (
    correct_minimums,
    deleted_files,
    ext_cuts_of,
    groups_beyond_end,
    index_plans,
    queue_plans,
)
from engine.store.recovery.source import RecoverySource
from engine.store.recovery.start_file import HEAD_BYTES, PHYSICAL_OFFSET, Start, first_stored, moment
from engine.store.recovery.store_rules import dispatch_rules, unit_rules, walk_rules
from engine.store.recovery.walk import LogWalk, WalkResult


class _WalkAfterCrash(NamedTuple):
    """What a start after a crash has done before the entries behind the queues are dispatched."""

    start: Start
    first_pass: DispatchPass | None
    cut: int
    """Where the queues are cut: the end without the header of the last entry."""
    bytes_read: int
    last_unit: int


def plan_dledger(
    source: RecoverySource,
    dledger: DLedgerSource,
    release: Release,
    loaded: recovery_blockers.LoadResult,
    table: QueueTable,
) -> RecoveryPlan:
    """Plan a start on a DLedger log."""
    files = list(dledger.files)
    kept_index, deleted_index = index_plans(source.index, source)
    recovered = recover_entries(dledger)
    blockers = loaded.blockers + _entry_blockers(dledger, recovered)
    end, known_end = recovered.end_offset, table.max_physic
    rules = unit_rules(source, release)
    read = sum(queue.bytes_read for queue in table)
    start = Start(
        recovered.start_number,
        sentence("the third-last data file, or an older one whose first entry the index knows"),
    )
    cut, first_pass, last_unit = end, None, -1
    if source.abort and rules_of(release).walks_dledger_after_crash:
        walked = _walk_after_crash(source, [file for file in files if file.start_offset <= end], rules, table)
        start, first_pass, cut, last_unit = walked.start, walked.first_pass, walked.cut, walked.last_unit
        read += walked.bytes_read
    reached = known_end
    if source.abort and rules_of(release).crash_start == "logics-physical-offset":
        reached = source.checkpoint.logics_physical_offset or 0
    is_cut = reached >= cut
    if is_cut:
        for queue in table:
            queue.truncate(cut)
        if first_pass is not None:
            first_pass = replace(first_pass, end=min(first_pass.end, cut))
    redispatch_start = _redispatch_start(source, recovered, files, table, rules_of(release))
    dispatched = _dispatch_again(dledger, recovered, files, redispatch_start, rules, table)
    if dispatched is not None:
        read += dispatched.bytes_read
        last_unit = max(last_unit, dispatched.last_unit)
    second_pass = DispatchPass(redispatch_start, end, -1) if redispatch_start < end else None
    committed_end = recovered.committed_end
    undecided_offset = committed_end + HEADER_SIZE if 0 < committed_end < end else None
    queues_undecided = first_pass is not None and undecided_offset is not None and first_pass.end > undecided_offset
    deleted = tuple(file.path for file in files if file.start_offset > end)
    blockers += correct_minimums(table, source.log.min_offset, release)
    has_remains = dledger.remains_from == end
    dropped = DroppedBytes([] if has_remains else files, end)
    ext_cuts = ext_cuts_of(table)
    return RecoveryPlan(
        release=release,
        will_start=not blockers,
        blockers=tuple(blockers),
        exit="abnormal" if source.abort else "normal",
        start_file=files[start.number].name,
        why=start.why,
        start_offset=files[start.number].start_offset,
        end_offset=end,
        end_reason=_entry_fault_words(None if has_remains else recovered.fault),
        units_kept=recovered.entries,
        units_dropped=dropped.units,
        bytes_dropped=dropped.bytes,
        dispatch_from=table.first_dispatched if table.dispatched else end,
        units=table.dispatched,
        files_deleted=(*loaded.deleted, *deleted, *deleted_files(table, ext_cuts)),
        queues=queue_plans(table),
        groups_beyond=groups_beyond_end(source, table),
        index_kept=kept_index,
        index_deleted=deleted_index,
        bytes_to_read=read,
        limit_timestamp=start.limit_ms,
        log_files=len(files),
        max_physic_offset=known_end,
        log_min=source.log.min_offset,
        log_max=dropped.data_end,
        notes=(*_dledger_notes(recovered, dledger, queues_undecided=queues_undecided), *store_notes(source)),
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


def _walk_after_crash(
    source: RecoverySource, files: list[ReadOnlyFile], rules: Rules, table: QueueTable
) -> _WalkAfterCrash:
    """Walk and dispatch as a start after a crash does, from the file that it chooses."""
    start = _dledger_start(source, files, rules_of(rules.release))
    table.dispatch_after = -1
    walk = LogWalk(files, walk_rules(rules, source), table, source.watch, has_entries=True)
    walked = walk.run(start.number)
    first_pass = DispatchPass(table.first_dispatched, walked.end_offset, -1) if table.dispatched else None
    return _WalkAfterCrash(start, first_pass, walk.end_without_headers, walked.bytes_read, walked.last_unit)


def _redispatch_start(
    source: RecoverySource,
    recovered: RecoveredEntries,
    files: list[ReadOnlyFile],
    table: QueueTable,
    release: ReleaseRules,
) -> int:
    """Return the offset from which the dispatch thread goes on."""
    if release.dispatches_after_recovery or source.config.recheck_reput_offset_from_cq:
        return max(files[0].start_offset, table.max_physic, 0)
    return max(recovered.committed_end, 0) or files[0].start_offset


def _dispatch_again(
    dledger: DLedgerSource,
    recovered: RecoveredEntries,
    files: list[ReadOnlyFile],
    start: int,
    rules: Rules,
    table: QueueTable,
) -> WalkResult | None:
    """Dispatch from ``start`` on, in a group of several members up to what is committed; None if nothing is there."""
    table.dispatch_after = -1
    is_limited = dledger.has_other_members and recovered.committed_end > 0
    end = recovered.committed_end if is_limited else recovered.end_offset
    if start >= end:
        return None
    return LogWalk(files, dispatch_rules(rules), table, has_entries=True).run_dispatch(start, end)


def _entry_blockers(dledger: DLedgerSource, recovered: RecoveredEntries) -> list[Blocker]:
    """Return what the entries and their index stop a broker with."""
    blockers = []
    if recovered.refusal is not None:
        message, log_line, path = recovered.refusal
        blockers.append(Blocker("CL07", message, log_line, path))
    blockers += [_index_length_blocker(file) for file in dledger.index.files if file.size != INDEX_FILE_BYTES]
    return blockers


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
        head = files[number].read(HEADER_SIZE, HEAD_BYTES)
        stored = first_stored(head, READ_BY["4.9"])
        if release.crash_start == "logics-physical-offset" and safe and stored > checkpoint.index_msg_timestamp:
            continue
        if offset > 0 and stored and struct.unpack_from(">q", head, PHYSICAL_OFFSET)[0] <= offset:
            why = sentence(
                "abnormal exit: the last data file whose first message lies at or before {at:,} (the checkpoint's "
                "logicsPhysicalOffset)",
                at=offset,
            )
            return Start(number, why)
        if offset <= 0 and stored and stored <= limit:
            why = sentence(
                "abnormal exit: the last data file whose first message was stored at or before {at}", at=moment(limit)
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
        "abnormal exit: no data file's first message was stored at or before {at}: the first file", at=moment(limit)
    )
    return Start(0, why, limit)
