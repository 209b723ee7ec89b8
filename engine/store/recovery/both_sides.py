"""Starts of a broker that writes queues into files and into a RocksDB, and whose consumers get those of the RocksDB
(``combineCQPreferCQType=defaultRocksDB``; docs/formats/consume-queue.md#both).

One walk through the log dispatches to both. It begins where the side allows it that numbers new messages, and further
back for the other side. Behind it the start compares the ends of the queues.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from engine.codec.consume_queue import CQ_UNIT_SIZE
from engine.config import MessageStoreConfig
from engine.mapped.read_only import ReadOnlyFile
from engine.releases import NEWEST, Release, rules_of
from engine.rules.queue_sides import numbering_side, refusal
from engine.rules.unit_check import Request
from engine.sentences import plural, sentence
from engine.store.recovery import planning
from engine.store.recovery.plan import Blocker, QueuePlan, QueueState, RecoveryPlan
from engine.store.recovery.source import RecoverySource
from engine.store.recovery.start_file import Start, StartOfBoth, find_start, start_limit
from engine.store.recovery.store_rules import unit_rules
from engine.system_names import LMQ_PREFIX

_NOT_READABLE = "CombineConsumeQueueStore currentReadStore not satisfied readable conditions"


class _Refused(Exception):
    """The start ends while it looks for its first file."""


class _Sides(NamedTuple):
    """The source of a start as each side sees it, and the end of what each knows (bytes of the log)."""

    files: RecoverySource
    rocksdb: RecoverySource
    files_end: int
    rocksdb_end: int


def plan(source: RecoverySource, release: Release = NEWEST) -> RecoveryPlan:
    """Return :func:`engine.store.recovery.planning.plan`, also for a broker that writes both kinds of queues.

    Raises :class:`engine.errors.CannotRead`.
    """
    if not source.writes_both or source.rocksdb is None:
        return planning.plan(source, release)
    files = replace(source, rocksdb=None, writes_both=False)
    if not rules_of(release).chooses_queue_side:
        return planning.plan(files, release)
    rocksdb = replace(source, queues=(), writes_both=False)
    if not source.log.files or source.dledger is not None:
        return planning.plan(rocksdb, release)
    rules = unit_rules(source, release)
    sides = _Sides(files, rocksdb, planning.queues_end(files, rules), source.rocksdb.dispatched)
    dispatched_end = min(sides.files_end, sides.rocksdb_end)
    try:
        both_start = StartOfBoth(_find_start(source, sides, release), dispatched_end)
    except _Refused:
        return _refused(planning.plan(rocksdb, release), _no_file(source.config))
    start_plan = planning.plan(rocksdb, release, both_start=both_start)
    refused = refusal(source.config, release)
    if refused:
        return _refused(start_plan, Blocker("CF05", refused, "java.lang.IllegalArgumentException", source.config.file))
    files_plan = planning.plan(files, release, both_start=both_start)
    start_plan = _with_files(start_plan, files_plan)
    if numbering_side(source.config, release) == "rocksdb":
        return start_plan
    return _compare_ends(start_plan, files_plan, source.config)


def _find_start(source: RecoverySource, sides: _Sides, release: Release) -> Start:
    """Choose the file at which the walk begins (Java: ``CombineConsumeQueueStore.isMappedFileMatchedRecover``)."""
    rules = unit_rules(source, release)
    files_limit = start_limit(sides.files, sides.files_end, rules)
    rocksdb_limit = start_limit(sides.rocksdb, sides.rocksdb_end, rules)
    is_numbered_by_files = numbering_side(source.config, release) == "files"
    limit, other = (files_limit, rocksdb_limit) if is_numbered_by_files else (rocksdb_limit, files_limit)
    known_end, other_end = sides.files_end, sides.rocksdb_end
    if not is_numbered_by_files:
        known_end, other_end = other_end, known_end
    skips_unused = rules_of(release).light_queues_in_rocksdb
    is_unlimited = skips_unused and is_numbered_by_files and source.config.combine_cq_use_rocksdb_for_lmq
    extra_files = source.config.combine_cq_max_extra_search_commit_log_files

    def is_accepted(unit: Request) -> bool:
        nonlocal extra_files
        if not limit.fits(unit):
            return False
        if other.fits(unit) or (skips_unused and other_end <= 0):
            return True
        if is_unlimited:
            return False
        extra_files -= 1
        if extra_files >= 0:
            return False
        if is_numbered_by_files:
            raise _Refused
        return True

    files: list[ReadOnlyFile] = list(source.log.files)
    return find_start(sides.files, files, limit, known_end, rules, is_accepted)


def _no_file(config: MessageStoreConfig) -> Blocker:
    count = config.combine_cq_max_extra_search_commit_log_files
    message = plural(
        "The RocksDB lacks more of the log than the file queues, and the start looks only {n:,} file further back for "
        "it (combineCQMaxExtraSearchCommitLogFiles)",
        "The RocksDB lacks more of the log than the file queues, and the start looks only {n:,} files further back for "
        "it (combineCQMaxExtraSearchCommitLogFiles)",
        n=count,
    )
    return Blocker("CQ19", message, f"load exception java.lang.IllegalArgumentException: {_NOT_READABLE}")


def _refused(start_plan: RecoveryPlan, blocker: Blocker) -> RecoveryPlan:
    return replace(start_plan, will_start=False, blockers=(*start_plan.blockers, blocker))


def _with_files(rocksdb: RecoveryPlan, files: RecoveryPlan) -> RecoveryPlan:
    """Add the files that the start deletes among the file queues, and what keeps it from loading them."""
    deleted = tuple(path for path in files.files_deleted if path not in rocksdb.files_deleted)
    blockers = tuple(blocker for blocker in files.blockers if blocker not in rocksdb.blockers)
    return replace(
        rocksdb,
        will_start=rocksdb.will_start and not blockers,
        blockers=rocksdb.blockers + blockers,
        files_deleted=rocksdb.files_deleted + deleted,
    )


def _compare_ends(rocksdb: RecoveryPlan, files: RecoveryPlan, config: MessageStoreConfig) -> RecoveryPlan:
    """Compare the ends of the queues as the start does: it ends where they differ, but a queue of which the RocksDB has
    nothing begins there at the end of the file queue.
    """
    in_rocksdb = {(queue.topic, queue.queue_id): queue for queue in rocksdb.queues}
    differing: list[QueuePlan] = []
    for queue in files.queues:
        key = queue.topic, queue.queue_id
        end = in_rocksdb[key].max_offset if key in in_rocksdb else 0
        if queue.kind != "simple" or end == queue.max_offset or _is_light_in_rocksdb(queue, config):
            continue
        if end > 0:
            differing.append(queue)
        else:
            in_rocksdb[key] = _begun_at_end(queue)
    start_plan = replace(rocksdb, queues=tuple(queue for _, queue in sorted(in_rocksdb.items())))
    if differing:
        first = differing[0]
        message = plural(
            "The ends of {n:,} queue in files and in the RocksDB differ after dispatch: {queue}",
            "The ends of {n:,} queues in files and in the RocksDB differ after dispatch: {queue} is one",
            n=len(differing),
            queue=f"{first.topic}/{first.queue_id}",
        )
        start_plan = _refused(start_plan, Blocker("CQ19", message, _NOT_READABLE))
    if rocksdb.exit == "normal" and any(queue.entries_added for queue in rocksdb.queues):
        note = sentence(
            "The start may compare the ends of the queues before their new rows are written: then it ends with "
            "{words}, and these queues of the RocksDB begin anew at the end of the file queues",
            words=_NOT_READABLE,
        )
        start_plan = replace(start_plan, notes=(*start_plan.notes, note))
    return start_plan


def _is_light_in_rocksdb(queue: QueuePlan, config: MessageStoreConfig) -> bool:
    return config.combine_cq_use_rocksdb_for_lmq and queue.topic.startswith(LMQ_PREFIX)


def _begun_at_end(queue: QueuePlan) -> QueuePlan:
    """The queue of the RocksDB that begins where the file queue ``queue`` ends (``initializeWithOffset``)."""
    end = queue.max_offset
    state = QueueState(None, end * CQ_UNIT_SIZE, -1, end * CQ_UNIT_SIZE)
    return QueuePlan(queue.topic, queue.queue_id, "simple", end, end, 0, 0, None, (), True, 0, state)
