"""Long looks at a whole store in the worker process: the recovery plan and the check. No Qt.

Compiled walks live there (``jobs.in_worker(title, "viewer.bridge.store_work:plan", …)``), so that the window's loop
never waits for numba or for the disk.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from viewer.bridge.control import Control

if TYPE_CHECKING:
    from engine.config import MessageStoreConfig
    from engine.rules.unit_check import Release
    from engine.store.recovery_plan import RecoveryPlan


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check found, gravest first; not ``complete`` where it was stopped."""

    findings: tuple[Any, ...]
    complete: bool


def plan(control: Control, path: Path, config: MessageStoreConfig | None, like: Release) -> RecoveryPlan:
    """What a start of a broker of release ``like`` would do with the store at ``path``."""
    from engine.inspection import open_store
    from engine.inspection.recovery import plan as plan_of

    control.report(0, None)
    with open_store(path, config) as store:
        return plan_of(store, like)


def check(control: Control, path: Path, config: MessageStoreConfig | None) -> Checked:
    """Check the store at ``path`` with every rule; a check that is stopped tells what it saw."""
    from engine.inspection import open_store
    from engine.inspection.findings import check as findings_of
    from engine.rules.findings import Finding

    found: list[Finding] = []
    complete = False
    with open_store(path, config) as store:
        for one in findings_of(store, cancel=_Cancel(control), progress=control.report):
            if isinstance(one, Finding):
                found.append(one)
            else:
                complete = one.complete
    return Checked(tuple(found), complete)


class _Cancel:
    """The control as the check asks it."""

    def __init__(self, control: Control) -> None:
        self._control = control

    def is_set(self) -> bool:
        return self._control.cancelled
