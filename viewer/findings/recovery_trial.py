"""A recovery plan tried out on a copy of the store: the copy is made, recovered by the engine, and closed. No Qt.

The store is only read. The copy grows under a hidden name beside its place: a stop at any moment leaves nothing behind.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import StoreError, UsageError
from engine.files.atomic_file import write_atomically
from engine.sentences import sentence

if TYPE_CHECKING:
    from engine.config import MessageStoreConfig
    from engine.lab.power_loss_report import Figure, StoreState
    from engine.releases import Release
    from engine.store.recovery.plan import RecoveryPlan, Start
    from viewer.runtime.control import Control

STAGING = ".storescope-trial"


@dataclass(frozen=True, slots=True)
class Trial:
    """A copy in ``folder`` that was recovered like ``release`` does.

    ``figures`` compare it with the expectation: the plan, or in a later round the copy before that round. ``round``
    counts from 1, ``took`` is in seconds.
    """

    folder: Path
    release: Release
    end_offset: int
    figures: tuple[Figure, ...]
    took: float
    round: int = 1

    @property
    def as_expected(self) -> bool:
        """True if every figure is as expected."""
        return all(figure.equal for figure in self.figures)


def plan_text(plan: RecoveryPlan, other_start: Start | None, written: tuple[Release, str] | None) -> str:
    """Return the plan as ``storescope recover --plan --json`` prints it, with the start of the other release and the
    release that seems to have ``written`` the store: one line.
    """
    from engine.store.recovery.plan import recovery_record

    record = recovery_record(plan, () if other_start is None else (other_start,), written)
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"


def save_plan(plan: RecoveryPlan, other_start: Start | None, written: tuple[Release, str] | None, target: Path) -> None:
    """Write the plan; the file appears when it is complete. Raises ``OSError``."""
    write_atomically(target, plan_text(plan, other_start, written))


def trial(control: Control, path: Path, config: MessageStoreConfig | None, plan: RecoveryPlan, target: Path) -> Trial:
    """Copy what recovery of the store at ``path`` needs to ``target`` and recover it there as ``plan.release``.

    ``target`` is absent or an empty directory outside of the store. Returns the result beside the plan. Raises
    StoreError, OSError, and what ``control.check`` raises; then the copy is removed.
    """
    from engine.files.temporary_folders import staged
    from engine.inspection.copy_out import copy_out, plan_copy

    plan_copy(path, target, recovery_set=True)
    config = config_of_copy(path, config)
    with staged(target, STAGING) as folder:
        copy = plan_copy(path, folder, recovery_set=True)
        if plan.start_file and str(Path("commitlog") / plan.start_file) not in copy.files:
            copy = plan_copy(path, folder)

        def progress(done: int) -> None:
            control.check()
            control.report(done, copy.bytes)

        control.check()
        copy_out(copy, progress)
        control.check()
        began = time.perf_counter()
        done, sizes = _recover(folder, config, plan.release)
        seconds = time.perf_counter() - began
        control.check()
        state_after, _next = _state(folder, sizes, plan.release)
        figures = tuple(_against_plan(plan, done, state_after, folder))
    return Trial(target, plan.release, state_after.end_offset, figures, seconds)


def again(control: Control, tried: Trial, config: MessageStoreConfig | None) -> Trial:
    """Recover the copy once more and compare: a second recovery changes nothing. Raises as :func:`trial`."""
    from engine.inspection.derived_config import derived_config
    from engine.inspection.snapshot import open_store

    control.check()
    folder, config = tried.folder, config.without_paths() if config is not None else None
    with open_store(folder, config) as store:
        sizes = derived_config(store)
    state_before, _plan = _state(folder, sizes, tried.release)
    began = time.perf_counter()
    done, sizes = _recover(folder, config, tried.release)
    seconds = time.perf_counter() - began
    state_after, _next = _state(folder, sizes, tried.release)
    figures = tuple(_against_before(state_before, done, state_after))
    return Trial(folder, tried.release, state_after.end_offset, figures, seconds, tried.round + 1)


def config_of_copy(path: Path, config: MessageStoreConfig | None) -> MessageStoreConfig | None:
    """Return the configuration without folders: everything of the copy is below the copy.

    Raises for a store whose log is read from elsewhere. Paths that were not followed do not count.
    """
    from engine.files.store_folders import LOG_FOLDER, settle_folders

    if config is None:
        return None
    if settle_folders(path, config, reading=True).log != (path / LOG_FOLDER,):
        raise UsageError(
            sentence("the configuration has the log outside of the store's directory: a copy would be without it")
        )
    return config.without_paths()


def _recover(
    folder: Path, config: MessageStoreConfig | None, release: Release
) -> tuple[RecoveryPlan, MessageStoreConfig]:
    """Do in the copy what ``recover --apply`` does, with the configuration that the store was opened with."""
    from engine.inspection.derived_config import derived_config
    from engine.inspection.recovery import plan as plan_of
    from engine.inspection.snapshot import open_store
    from engine.message_store import MessageStore

    with open_store(folder, config) as store:
        shown = plan_of(store, release, heal=True, losses=False)
        if not shown.will_start:
            raise StoreError(sentence("a broker would not start here: {message}", message=shown.blockers[0].message))
        sizes = derived_config(store)
    with MessageStore(folder, sizes, release=release, services=False, empty_log=True) as opened:
        return opened.recovery_plan, sizes


def _state(folder: Path, config: MessageStoreConfig, release: Release) -> tuple[StoreState, RecoveryPlan]:
    """Return the state of the closed copy, read from its files."""
    from engine.lab.store_state import of_files

    return of_files(folder, config, release)


def _against_plan(plan: RecoveryPlan, done: RecoveryPlan, state_after: StoreState, copy: Path) -> Iterator[Figure]:
    """Compare the store's plan with the copy."""
    from engine.lab.power_loss_report import Figure

    yield Figure("endOffset", max(plan.end_offset, 0), state_after.end_offset)
    yield Figure("unitsDropped", plan.units_dropped, done.units_dropped)
    yield Figure("unitsDispatched", plan.units, done.units)
    deleted_files = [copy / "commitlog" / Path(name).name for name in plan.log_files_deleted]
    yield Figure("logFilesDeleted", len(deleted_files), sum(not place.exists() for place in deleted_files))
    index = {place.name for place in (copy / "index").glob("*")}
    yield Figure(
        "indexDeleted", len(plan.index_deleted), sum(index_plan.name not in index for index_plan in plan.index_deleted)
    )
    yield Figure("indexKept", len(plan.index_kept), sum(index_plan.name in index for index_plan in plan.index_kept))
    for queue in plan.queues:
        yield Figure(
            f"{queue.topic}/{queue.queue_id}",
            queue.max_offset,
            state_after.queues.get((queue.topic, queue.queue_id), 0),
        )


def _against_before(state_before: StoreState, done: RecoveryPlan, state_after: StoreState) -> Iterator[Figure]:
    """Compare the copy before and after another round."""
    from engine.lab.power_loss_report import Figure

    yield Figure("endOffset", state_before.end_offset, state_after.end_offset)
    yield Figure("units", state_before.units, state_after.units)
    yield Figure("unitsDropped", 0, done.units_dropped)
    yield Figure("unitsDispatched", 0, done.units)
    yield Figure("logFiles", state_before.log_files, state_after.log_files)
    yield Figure("indexEntries", state_before.index_entries, state_after.index_entries)
    for queue in sorted({*state_before.queues, *state_after.queues}):
        yield Figure(f"{queue[0]}/{queue[1]}", state_before.queues.get(queue, 0), state_after.queues.get(queue, 0))
