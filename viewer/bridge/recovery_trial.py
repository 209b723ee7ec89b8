"""A recovery plan tried out on a copy of the store: the copy is made, recovered by the engine, and closed. No Qt.

The store is only read. The copy grows under a hidden name beside its place: a stop at any moment leaves nothing behind.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from engine.errors import StoreError, UsageError

if TYPE_CHECKING:
    from engine.config import MessageStoreConfig
    from engine.store.recovery_plan import RecoveryPlan
    from engine.store.unit_check import Release

STAGING = ".storescope-trial"


class Control(Protocol):
    """What the work asks of its job: see :class:`viewer.bridge.jobs.Control`."""

    def check(self) -> None: ...

    def report(self, done: float, total: float | None = None, note: str = "") -> None: ...


def plan_text(plan: RecoveryPlan) -> str:
    """The plan as ``storescope recover --plan --json`` prints it: one line."""
    return json.dumps(plan.record(), ensure_ascii=False, separators=(",", ":")) + "\n"


def save_plan(plan: RecoveryPlan, target: Path) -> None:
    """Write the plan; the file appears when it is complete. Raises ``OSError``."""
    partial = target.with_name(f".{target.name}.part")
    try:
        partial.write_text(plan_text(plan), encoding="utf-8")
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def trial(
    control: Control, path: Path, config: MessageStoreConfig | None, plan: RecoveryPlan, target: Path
) -> RecoveryPlan:
    """Copy what recovery of the store at ``path`` needs to ``target`` (absent or an empty directory outside of it) and
    recover it there as ``plan.like``; gives what was done. Raises StoreError, OSError, and what ``control.check``
    raises; then nothing is left.
    """
    from engine.cli.staging import staged
    from engine.inspection.copy_out import copy_out, plan_copy

    plan_copy(path, target, recovery_set=True)
    config = _at_home(path, config)
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
        done = _recover(folder, config, plan.like)
        control.check()
    return done


def _at_home(path: Path, config: MessageStoreConfig | None) -> MessageStoreConfig | None:
    """The configuration without folders: everything of the copy lies below the copy. A log elsewhere is refused."""
    if config is None:
        return None
    home = (path / "commitlog").resolve()
    logs = f"{config.store_path_commit_log},{config.read_only_commit_log_store_paths}".split(",")
    if config.store_path_dledger_commit_log or any(one.strip() and Path(one.strip()).resolve() != home for one in logs):
        raise UsageError("the configuration has the log outside of the store's directory: a copy would be without it")
    return replace(
        config, store_path_root_dir="", store_path_commit_log="", read_only_commit_log_store_paths="",
        store_path_epoch_file="", store_path_broker_identity="",
    )  # fmt: skip


def _recover(folder: Path, config: MessageStoreConfig | None, like: Release) -> RecoveryPlan:
    """What ``recover --apply`` does, in the copy."""
    from engine.inspection.derived_config import derived_config
    from engine.inspection.recovery import plan as plan_of
    from engine.inspection.snapshot import open_store
    from engine.message_store import MessageStore

    with open_store(folder, config) as store:
        shown = plan_of(store, like, heal=True)
        if not shown.will_start:
            raise StoreError(f"a broker would not start here: {shown.blockers[0].message}")
        sizes = derived_config(store)
    with MessageStore(folder, sizes, like=like, services=False) as opened:
        return opened.recovery_plan
