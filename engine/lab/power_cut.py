"""Cut the power of a lab store, compare the recovery with its plan, and repeat the recovery on a copy.

The same disk content must give the same store.

The live directory becomes ``before/``. What the disk retained takes its place, and is copied to ``kept/`` before the
first recovery changes it. A further recovery works in ``again/``, which is deleted afterwards; the lab's store
keeps running meanwhile. Only a directory with the lab's marker is ever changed.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from engine.errors import UsageError
from engine.lab import store_state
from engine.lab.acknowledged import Acknowledged, lost_behind
from engine.lab.lab_store import LabStore, check_is_lab, read_marker, remove_part
from engine.lab.load import Load
from engine.lab.power_loss_report import Figure, Loss, PowerLossReport, RepeatedRecovery, StoreState
from engine.lab.shadow_disk import ShadowDisk, copy_data
from engine.mapped.power_loss import PageFates, choose_survival_chance, surviving_changes
from engine.message_store import MessageStore
from engine.sentences import sentence
from engine.store.recovery.plan import RecoveryPlan

_LOAD_STOP_TIMEOUT_S = 0.5


def cut_power(
    lab: LabStore, load: Load | None, acknowledged: Iterable[Acknowledged], seed: int, keep: float | None = None
) -> PowerLossReport:
    """End ``lab`` as a power loss would; its process must end after it. ``keep`` is the probability (0 to 1) that an
    unflushed page or name is on the disk nevertheless; random if not given.

    Raises :class:`NotALab` before anything is done, ``OSError``.
    """
    check_is_lab(lab.folder)
    rng = random.Random(seed)
    chance = choose_survival_chance(rng) if keep is None else keep
    store, config, release = lab.store, lab.marker.config, lab.marker.release
    _stop_puts(store)
    queues = store_state.queue_ends(store)
    lab.disk.cut_power()
    state_before = store_state.of_running(store, 0, queues)
    uncommitted = _uncommitted(store)
    if load is not None:
        load.stop(_LOAD_STOP_TIMEOUT_S)
    lab.store.abandon()
    fates = PageFates()
    lost_names = _find_kept(lab.disk, lab.root, _new_folder(lab.folder, "kept"), rng, chance, fates)
    _put_in_place(lab)
    state_before = replace(
        state_before, units=store_state.units_of(lab.folder / "before", config, release, uncommitted)
    )
    kept_state, plan = store_state.of_files(lab.root, config, release)
    lab.disk.close()
    return PowerLossReport(
        seed=seed,
        keep=chance,
        flush_mode=config.flush_disk_type,
        transient_pool=config.transient_store_pool_enable,
        state_before=state_before,
        state_on_disk=kept_state,
        plan=plan,
        dirty_pages=fates.dirty,
        kept_pages=fates.survived,
        torn_pages=fates.torn,
        lost_names=lost_names,
        loss=_loss(lab, list(acknowledged), plan, state_before),
    )


def finish_report(lab: LabStore, report: PowerLossReport, took_ms: float) -> PowerLossReport:
    """Complete the report with the state after recovery, compared with the plan. Raises ``OSError``."""
    store = lab.store
    store.wait_dispatched()
    state_after = store_state.of_running(store, 0)
    state_after = replace(state_after, units=store_state.units_of(lab.root, lab.marker.config, lab.marker.release))
    return replace(
        report, state_after=state_after, recovered_ms=took_ms, figures=tuple(_figures(report, state_after, store))
    )


def _stop_puts(store: MessageStore) -> None:
    """Wait for running puts, then refuse further ones and pause dispatch."""
    store.parts.commit_log.close()
    store.services.pause("reput")


def _uncommitted(store: MessageStore) -> list[tuple[int, int, bytes | None]]:
    """Return start, end and bytes of each range that is not in the files yet; a running commit may still write some of
    it.

    The bytes are None for a file that was created while the pool had no free buffer: it is written directly, although
    earlier files still wait for their commit.
    """
    ranges: list[tuple[int, int, bytes | None]] = []
    for file in store.parts.files.files:
        start, wrote = file.start_offset, file.wrote
        if file.has_buffer:
            committed = file.committed
            if wrote > committed:
                ranges.append((start + committed, start + wrote, file.appended(committed, wrote - committed)))
        elif ranges:
            ranges.append((start, start + wrote, None))
    return ranges


def _new_folder(folder: Path, part: str) -> Path:
    remove_part(folder, part)
    place = folder / part
    place.mkdir()
    return place


def _find_kept(disk: ShadowDisk, root: Path, target: Path, rng: random.Random, chance: float, fates: PageFates) -> int:
    """Copy what the disk retained of ``root`` to ``target``. Return the number of lost name changes."""
    with disk.guard:
        names = dict(disk.durable_names)
        changes = surviving_changes(disk.pending, rng, chance)
        for change in changes:
            change.apply(names)
        for path in sorted(names):
            names[path].found_after(target / Path(path).relative_to(root), rng, chance, fates)
        (target / "commitlog").mkdir(exist_ok=True)  # without a file it is still a store
        return len(disk.pending) - len(changes)


def _put_in_place(lab: LabStore) -> None:
    remove_part(lab.folder, "before")
    lab.root.rename(lab.folder / "before")
    (lab.folder / "kept").rename(lab.root)
    remove_part(lab.folder, "durable")


def _loss(lab: LabStore, acknowledged: list[Acknowledged], plan: RecoveryPlan, state_before: StoreState) -> Loss:
    """Return the acknowledged messages that lie after the planned end of the log."""
    end = max(plan.end_offset, 0)
    lost, beyond = lost_behind(acknowledged, end), lost_behind(acknowledged, state_before.flushed)
    messages = lost.messages
    if lost.cut >= 0:
        messages -= store_state.units_behind(lab.root, lab.marker.config, lab.marker.release, lost.cut, end)
    below = max(messages - beyond.messages, 0) if end < state_before.flushed else 0
    waits = lab.marker.config.flush_disk_type == "SYNC_FLUSH"
    return Loss(messages, below, allowed=not below and not (waits and messages), exact=lost.exact)


def _figures(report: PowerLossReport, state_after: StoreState, store: MessageStore) -> Iterable[Figure]:
    plan, kept_state = report.plan, report.state_on_disk
    yield Figure("endOffset", max(plan.end_offset, 0), state_after.end_offset)
    yield Figure("dispatchedTo", max(plan.end_offset, 0), state_after.dispatched)
    yield Figure("logFiles", kept_state.log_files - len(plan.log_files_deleted), state_after.log_files)
    yield Figure("unitsDispatched", plan.units, store.recovery_plan.units)
    yield Figure("unitsDropped", plan.units_dropped, store.recovery_plan.units_dropped)
    deleted = [path for path in plan.log_files_deleted if not Path(path).exists()]
    yield Figure("logFilesDeleted", len(plan.log_files_deleted), len(deleted))
    names = {file.name for file in store.parts.index.files} if store.parts.index is not None else set()
    yield Figure("indexKept", len(plan.index_kept), sum(index_plan.name in names for index_plan in plan.index_kept))
    index_gone = sum(index_plan.name not in names for index_plan in plan.index_deleted)
    yield Figure("indexDeleted", len(plan.index_deleted), index_gone)
    for queue in plan.queues:
        done = state_after.queues.get((queue.topic, queue.queue_id), 0)
        yield Figure(f"{queue.topic}/{queue.queue_id}", queue.max_offset, done)


def timed_open(folder: Path) -> tuple[LabStore, float]:
    """Open and recover the lab store at ``folder``. Return it with the ms that this took. Raises like
    :meth:`LabStore.open`.
    """
    began = time.perf_counter()
    lab = LabStore.open(folder)
    return lab, (time.perf_counter() - began) * 1000.0


def keep_disk(folder: Path) -> None:
    """Copy what the disk retained, so that it can be recovered again. Raises ``NotALab``, ``OSError``."""
    check_is_lab(folder)
    remove_part(folder, "kept")
    _copy_tree(folder / "store", folder / "kept")


def recover_again(folder: Path, report: PowerLossReport) -> RepeatedRecovery:
    """Recover what the disk retained once more and compare it with the first recovery.

    Raises :class:`UsageError` if nothing was recovered yet, ``NotALab``, ``StoreError``, ``OSError``.
    """
    check_is_lab(folder)
    first_state = report.state_after
    if first_state is None or not (folder / "kept").is_dir():
        raise UsageError(sentence("there is no recovery yet that could be repeated"))
    marker, place = read_marker(folder), folder / "again"
    remove_part(folder, "again")
    try:
        _copy_tree(folder / "kept", place)
        began = time.perf_counter()
        with MessageStore(place, marker.config, release=marker.release, services=False, empty_log=True) as store:
            took_ms = (time.perf_counter() - began) * 1000.0
            dropped = store.recovery_plan.units_dropped
        state, _next = store_state.of_files(place, marker.config, marker.release)
    finally:
        remove_part(folder, "again")
    number = report.repeated_recovery.round + 1 if report.repeated_recovery is not None else 2
    return RepeatedRecovery(number, took_ms, tuple(_figures_of(report, first_state, state, dropped)))


def _figures_of(report: PowerLossReport, first_state: StoreState, state: StoreState, dropped: int) -> Iterator[Figure]:
    """Compare the first recovery with this one."""
    yield Figure("endOffset", first_state.end_offset, state.end_offset)
    yield Figure("units", first_state.units, state.units)
    yield Figure("unitsDropped", report.plan.units_dropped, dropped)
    yield Figure("logFiles", first_state.log_files, state.log_files)
    yield Figure("indexEntries", first_state.index_entries, state.index_entries)
    for queue in sorted({*first_state.queues, *state.queues}):
        yield Figure(f"{queue[0]}/{queue[1]}", first_state.queues.get(queue, 0), state.queues.get(queue, 0))


def _copy_tree(source: Path, target: Path) -> None:
    """Copy every file of a store. Holes stay holes."""
    for folder, _folders, names in os.walk(source):
        place = target / Path(folder).relative_to(source)
        place.mkdir(parents=True, exist_ok=True)
        for name in names:
            copy_data(Path(folder) / name, place / name)
