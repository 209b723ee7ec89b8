"""Plan the repairs of a store: every repair that fits, tried one after the other on the store as the ones before
would leave it (docs/formats/repair.md).

A repair is offered only if the next start loses no more with it than without it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine.callbacks import Cancel, Progress
from engine.config import MessageStoreConfig
from engine.errors import CannotRead, DamagedDatabase
from engine.inspection.findings import check
from engine.inspection.recovery import dledger_source, plan
from engine.inspection.snapshot import StoreSnapshot, open_store
from engine.patching.patches import Patch
from engine.releases import Release, compared_with, rules_of
from engine.repair import (
    batch_queues,
    compacted_queues,
    dledger_entries,
    empty_queues,
    ext_units,
    file_lengths,
    index_entries,
    index_links,
    index_rows,
    log_damage,
    missing_files,
    pop_rows,
    queue_begins,
    queue_ends,
    queue_entries,
    replica_tables,
    rocksdb_database,
    rocksdb_queues,
    salvaged_units,
    state_files,
    table_rows,
    timer_state,
)
from engine.repair.lost_keys import lost_key_patches
from engine.repair.repair import Repair
from engine.rules import mendable
from engine.rules.findings import Finding, at_least
from engine.sentences import Sentence, join, sentence
from engine.store.recovery.plan import Blocker, RecoveryPlan

NAMES = (
    rocksdb_database.NAME,
    state_files.FILES,
    replica_tables.NAME,
    state_files.TABLES_NAME,
    file_lengths.NAME,
    salvaged_units.NAME,
    dledger_entries.NAME,
    missing_files.NAME,
    log_damage.NAME,
    queue_entries.NAME,
    index_entries.NAME,
    index_links.NAME,
    index_rows.NAME,
    table_rows.TOPICS_NAME,
    table_rows.OFFSETS_NAME,
    table_rows.DELAY_NAME,
    timer_state.NAME,
    compacted_queues.NAME,
    pop_rows.NAME,
    state_files.CHECKPOINT,
    state_files.START,
)
"""Names of the repairs in the order in which they are tried."""
_OF_QUEUES = (
    queue_entries.repair_queues,
    batch_queues.repair_batch_queues,
    rocksdb_queues.repair_rows_beside,
)
_AGAIN = NAMES.index(index_links.NAME) + 1
_ORDER = (*NAMES[1:_AGAIN], log_damage.NAME, queue_entries.NAME, *NAMES[_AGAIN:])
"""Without the RocksDB, which comes before all: nothing is known of the store without it. Log and queues come twice: of
a message with two faults (wrong CRC, wrong queue) one is mended after the other."""


@dataclass(frozen=True, slots=True)
class State:
    """A store as it is or as patches would leave it: its grave findings, and what the next start does.

    ``starts`` are the plans of the release that is asked for and of the one that it is compared with.
    """

    findings: tuple[Finding, ...]
    starts: tuple[RecoveryPlan, ...]

    @property
    def start(self) -> RecoveryPlan:
        """The plan of the release that is asked for."""
        return self.starts[0]

    @property
    def kept_to(self) -> int:
        """The lowest place at which one of the starts cuts the log."""
        return min(start.end_offset for start in self.starts)

    def loses_less_than(self, current: State) -> bool:
        """Return True if one of the starts loses less than that of ``current``."""
        return any(lost_by(start) < lost_by(today) for start, today in zip(self.starts, current.starts, strict=True))

    def is_worse_than(self, current: State, new_units: int = 0) -> bool:
        """Return True if a start of this store fails where that of ``current`` does not, or loses more than it and
        ``new_units``, which no start has read before.
        """
        pairs = zip(self.starts, current.starts, strict=True)
        return any(_is_worse(start, today, new_units) for start, today in pairs)


def lost_by(start: RecoveryPlan) -> int:
    """Return the number of messages that a start loses or gives wrong queue offsets."""
    losses = (start.undispatched, start.dropped)
    return sum(loss.messages for loss in losses if loss is not None) + start.misnumbered


def _is_worse(start: RecoveryPlan, current: RecoveryPlan, new_units: int) -> bool:
    if start.will_start != current.will_start:
        return current.will_start
    return lost_by(start) > lost_by(current) + new_units


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """The repairs that fit, and the store before and after all of them."""

    repairs: tuple[Repair, ...]
    current: State
    mended: State

    @property
    def patches(self) -> tuple[Patch, ...]:
        """The patches of all repairs in their order."""
        return tuple(patch for repair in self.repairs for patch in repair.patches)

    @property
    def left(self) -> dict[str, Sentence]:
        """The rules of findings that no repair mends, each with the reason; findings that follow from them are left
        out.
        """
        causes = {finding.id for finding in self.mended.findings if finding.caused_by is None}
        in_group = mendable.IN_GROUP if _has_other_members(self.mended) else {}
        return {rule: in_group.get(rule, mendable.LEFT[rule]) for rule in sorted(causes)}

    def record(self) -> dict[str, Any]:
        """Return the summary as JSON has it."""
        return {
            "type": "repairPlan",
            "repairs": len(self.repairs),
            "patches": len(self.patches),
            "left": [{"finding": rule, "why": why} for rule, why in self.left.items()],
            "before": _state_record(self.current),
            "after": _state_record(self.mended),
        }


def _state_record(state: State) -> dict[str, Any]:
    return {
        "findings": [finding.id for finding in state.findings],
        "starts": [
            {
                "release": start.release,
                "willStart": start.will_start,
                "endOffset": start.end_offset,
                "lostByNextStart": lost_by(start),
            }
            for start in state.starts
        ],
    }


def plan_repairs(
    path: str | Path,
    config: MessageStoreConfig | None,
    release: Release,
    *,
    only: Collection[str] = (),
    sources: Sequence[str | Path] = (),
    cancel: Cancel | None = None,
    progress: Progress | None = None,
) -> RepairPlan:
    """Return what could be mended in the store at ``path``.

    ``only`` are names of repairs or ids of rules; all by default. ``sources`` are replicas, log files and images of
    disks that may hold lost messages. Raises :class:`engine.errors.CannotRead` if a part
    cannot be read: nothing is concluded from the rest.
    """
    repairs: list[Repair] = []
    patches: list[Patch] = []
    with open_store(path, config) as store:
        try:
            current = state = _state(store, release, cancel, progress)
        except CannotRead:
            damage = rocksdb_database.find_damage(store)
            if damage is None or (only and not {rocksdb_database.NAME, *mendable.DATABASES} & set(only)):
                raise
            rebuilt = rocksdb_database.rebuild_database(store, config, damage)
            repairs, patches = [rebuilt], [*rebuilt.patches]
            findings = _findings(store, cancel, progress)
            with open_store(path, config, patches) as mended_store:
                state = _state(mended_store, release, cancel, progress)
            current = _blocked(state, findings, damage)
            rocksdb_database.forget_unread(store)
    may_fill = bool(sources) and bool(current.findings)
    if not repairs and not may_fill and not any(finding.id in mendable.ALL for finding in current.findings):
        return RepairPlan((), current, current)
    makers: dict[str, Callable[[StoreSnapshot, State], Repair | None]] = {
        state_files.FILES: lambda store, state: state_files.repair_files(store, state.findings),
        replica_tables.NAME: lambda store, state: (
            replica_tables.repair_tables_from(store, sources, state.findings) if sources else None
        ),
        state_files.TABLES_NAME: lambda store, state: state_files.repair_tables(store, state.findings),
        file_lengths.NAME: lambda store, state: file_lengths.repair_lengths(store, state.findings),
        salvaged_units.NAME: lambda store, state: (
            salvaged_units.repair_from(store, sources, state.findings, progress or _no_progress) if sources else None
        ),
        dledger_entries.NAME: _entries_repair,
        missing_files.NAME: _missing_files_repair,
        log_damage.NAME: _log_repair,
        queue_entries.NAME: lambda store, state: (
            rocksdb_database.make_database(store, config, patches)
            if store.queues.begins_rocksdb
            else _queues_repair(store, state)
        ),
        index_entries.NAME: lambda store, state: index_entries.repair_index_entries(store, state.findings),
        index_links.NAME: lambda store, state: index_links.repair_index(store, state.findings),
        index_rows.NAME: lambda store, state: index_rows.repair_index_rows(store, state.findings),
        table_rows.TOPICS_NAME: lambda store, state: table_rows.repair_topics(store, state.findings),
        table_rows.OFFSETS_NAME: lambda store, state: table_rows.repair_offsets(store, state.findings),
        table_rows.DELAY_NAME: lambda store, state: table_rows.repair_delay_offsets(store, state.findings),
        timer_state.NAME: lambda store, state: timer_state.repair_timers(store, state.findings),
        compacted_queues.NAME: lambda store, state: compacted_queues.repair_compacted(store, state.findings),
        pop_rows.NAME: lambda store, state: pop_rows.repair_pops(store, state.findings),
        state_files.CHECKPOINT: lambda store, state: state_files.repair_checkpoint(store, state.findings, release),
        state_files.START: lambda store, state: state_files.repair_start_of_dispatch(store, state.findings, release),
    }
    for name in _ORDER:
        with open_store(path, config, patches) as store:
            repair = makers[name](store, state)
        if repair is None or (only and name not in only and not repair.rules & set(only)):
            continue
        if repair.moves_messages:  # the entries of its messages lead to their placeholders from now on
            with open_store(path, config, [*patches, *repair.patches]) as store:
                entries = [*queue_entries.queue_patches(store), *rocksdb_queues.row_patches(store)]
            repair = replace(repair, patches=(*repair.patches, *entries))
        if name in (missing_files.NAME, log_damage.NAME):
            with open_store(path, config, [*patches, *repair.patches]) as store:
                redirected = lost_key_patches(store, repair.patches, name)
            repair = replace(repair, patches=(*repair.patches, *redirected))
        with open_store(path, config, [*patches, *repair.patches]) as store:
            mended = _state(store, release, cancel, progress)
        if mended.is_worse_than(state, repair.new_units):
            continue
        if name == state_files.START and not mended.loses_less_than(state):
            continue
        repairs.append(repair)
        patches += repair.patches
        state = mended
    return RepairPlan(tuple(repairs), current, state)


def _no_progress(_done: int, _total: int) -> None:
    pass


def judge_patched(
    path: str | Path,
    config: MessageStoreConfig | None,
    release: Release,
    patches: Iterable[Patch],
    *,
    cancel: Cancel | None = None,
    progress: Progress | None = None,
) -> State:
    """Return what check and the next starts say of the store at ``path`` as ``patches`` would leave it.

    Raises :class:`engine.patching.patches.BadPatch` if a patch does not fit.
    """
    with open_store(path, config, patches) as store:
        return _state(store, release, cancel, progress)


def _missing_files_repair(store: StoreSnapshot, state: State) -> Repair | None:
    reported = {finding.id for finding in state.findings}
    has_to_cross = "CL07" in reported and reported & {"CQ10", "RP01"}  # queues are built from the log behind a gap
    if not (has_to_cross or reported & mendable.MISSING_FILES):
        return None
    return missing_files.repair_missing_files(store)


def _entries_repair(store: StoreSnapshot, state: State) -> Repair | None:
    source = dledger_source(store) if any(finding.id in mendable.ENTRIES for finding in state.findings) else None
    return dledger_entries.repair_entries(store, source) if source is not None else None


def _queues_repair(store: StoreSnapshot, state: State) -> Repair | None:
    if store.queues.rocksdb is not None:
        return rocksdb_queues.repair_rocksdb_queues(store, state.findings)
    repairs = [repair for make in _OF_QUEUES if (repair := make(store, state.findings)) is not None]
    patched_files = {patch.file for repair in repairs for patch in repair.patches}
    begins = queue_begins.repair_queue_begins(store, state.findings, patched_files)
    ends = queue_ends.repair_queue_ends(store, state.findings, state.kept_to, patched_files)
    empty = empty_queues.repair_empty_queues(store, state.findings, patched_files)
    repairs += [repair for repair in (begins, ends, empty) if repair is not None]
    if not repairs:  # of mended entries in the second turn
        return ext_units.repair_ext_units(store, state.findings)
    if len(repairs) < 2:
        return repairs[0]
    patches = tuple(patch for repair in repairs for patch in repair.patches)
    gains = join("; ", [repair.gains for repair in repairs])
    costs = join("; ", [repair.costs for repair in repairs if repair.costs])
    return replace(repairs[0], patches=patches, gains=gains, costs=costs)


def _log_repair(store: StoreSnapshot, state: State) -> Repair | None:
    rules = mendable.LOG if store.commit_log.dledger is None else mendable.LOG | mendable.ENTRIES
    if not any(finding.id in rules for finding in state.findings):
        return None
    odd_units = {
        finding.offset
        for finding in state.findings
        if finding.id == "CL09" and finding.offset is not None and finding.caused_by is None
    }
    if _has_other_members(state):
        return None
    repair = log_damage.repair_log(store, state.kept_to, odd_units)
    if repair is None or store.commit_log.dledger is None:
        return repair
    group = sentence("in a DLedger group of several members another one has the right entries: take its store instead")
    return replace(repair, costs=join("; ", [*([repair.costs] if repair.costs else []), group]))


def _has_other_members(state: State) -> bool:
    """Return True if the store belongs to a DLedger group that is known to have several members."""
    return bool(state.starts) and state.start.dledger is not None and state.start.dledger.has_other_members


def _blocked(mended: State, findings: Iterable[Finding], damage: DamagedDatabase) -> State:
    """Return the state of a store whose RocksDB cannot be read: no broker starts with it, and no plan is made."""
    message = sentence("a broker does not start with a RocksDB that cannot be read: {why}", why=damage.what)
    blocker = Blocker("DK02", message, "load rocksdb failed", damage.file)
    starts = tuple(replace(start, will_start=False, blockers=(blocker,)) for start in mended.starts)
    return State(tuple(findings), starts)


def _findings(store: StoreSnapshot, cancel: Cancel | None, progress: Progress | None) -> list[Finding]:
    return [
        item
        for item in check(store, cancel=cancel, progress=progress)
        if isinstance(item, Finding) and at_least(item.severity, "warn")
    ]


def _state(store: StoreSnapshot, release: Release, cancel: Cancel | None, progress: Progress | None) -> State:
    findings = _findings(store, cancel, progress)
    releases = dict.fromkeys((release, compared_with(release)))
    if store.queues.rocksdb is not None or store.queues.begins_rocksdb:
        releases = {name: None for name in releases if rules_of(name).recovers_rocksdb_queues}
    return State(tuple(findings), tuple(plan(store, name) for name in releases))
