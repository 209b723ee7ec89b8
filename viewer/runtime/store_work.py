"""Long looks at a whole store in the worker process: the recovery plan and the check. No Qt.

Compiled walks live there (``jobs.in_worker(title, "viewer.runtime.store_work:plan", …)``), so that the window's loop
never waits for numba or for the disk.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import StoreError
from engine.releases import compared_with
from viewer.runtime.control import Control

if TYPE_CHECKING:
    from engine.config import MessageStoreConfig
    from engine.releases import Release
    from engine.store.recovery.plan import Blocker, RecoveryPlan


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Findings of a check, most serious first; not ``complete`` if it was stopped."""

    findings: tuple[Any, ...]
    complete: bool
    incident: dict[str, Any] | None = None
    """The four answers of the summary; None where nothing is wrong, or they cannot be told."""


@dataclass(frozen=True, slots=True)
class OtherReleaseStart:
    """Says if a broker of the other release would start, and what keeps it from that."""

    release: Release
    will_start: bool
    blockers: tuple[Blocker, ...]


@dataclass(frozen=True, slots=True)
class PlanResult:
    """The plan of one release and the ``seconds`` it took; how the other release would start (None: unknown);
    the release that seems to have written the store, and the evidence.
    """

    plan: RecoveryPlan
    seconds: float
    other_start: OtherReleaseStart | None = None
    written: tuple[Release, str] | None = None


def plan(control: Control, path: Path, config: MessageStoreConfig | None, release: Release | None) -> PlanResult:
    """Plan the start of a broker of ``release`` on the store at ``path``; None: of the release that seems to have
    written it.
    """
    from engine.inspection import open_store, start_losses
    from engine.inspection.recovery import NO_PLAN
    from engine.inspection.recovery import plan as plan_of
    from engine.inspection.written_release import guess, require_release

    control.report(0, None)
    with open_store(path, config) as store:
        began = time.monotonic()
        release = release or require_release(store)
        plan = plan_of(store, release, losses=False)
        seconds = time.monotonic() - began
        plan = start_losses.of_plan(store, plan, start_losses.WalkOptions(control.report, _Cancel(control)))
        store.refuse_unread(NO_PLAN)
        try:
            other_plan = plan_of(store, compared_with(release), losses=False)
            other_start = OtherReleaseStart(other_plan.release, other_plan.will_start, other_plan.blockers)
        except StoreError:
            other_start = None
        return PlanResult(plan, seconds, other_start, guess(store))


def check(control: Control, path: Path, config: MessageStoreConfig | None) -> CheckResult:
    """Check the store at ``path`` with every rule; returns what was found so far if stopped."""
    from engine.inspection import open_store
    from engine.inspection.findings import check as findings_of
    from engine.rules.findings import Finding

    findings: list[Finding] = []
    complete, incident = False, None
    with open_store(path, config) as store:
        for item in findings_of(store, cancel=_Cancel(control), progress=control.report):
            if isinstance(item, Finding):
                findings.append(item)
            else:
                complete, incident = item.complete, item.incident
    return CheckResult(tuple(findings), complete, incident)


class _Cancel:
    """The control as the check asks it."""

    def __init__(self, control: Control) -> None:
        self._control = control

    def is_set(self) -> bool:
        return self._control.cancelled
