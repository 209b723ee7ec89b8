"""The recovery plan in the window."""

from __future__ import annotations

import pytest
from panes import on_store, wait_until_idle

from viewer.findings.pane import FindingsPane
from viewer.pane.plan_words import headline
from viewer.runtime import places
from viewer.runtime.recovery_plan import recovery_of


@pytest.mark.golden
def test_recovery_reports_losses_in_numbers(qapp, golden) -> None:
    async def drive(pane, session) -> None:
        plan = recovery_of(session).plan
        lines = {row.subject: row for row in pane.recovery.plan.source.rows}
        assert lines["Units dropped"].amount == f"{plan.units_dropped:,}"
        assert lines["End of log"].place == places.log(plan.end_offset)
        assert f"{plan.units_dropped:,} units would be lost" in [words for _, words in headline(plan, harmed=True)]
        names = [row.name for row in pane.recovery.files.source.rows if row.mark == "error"]
        assert len(names) == len(plan.files_deleted) + len(plan.index_deleted)
        pane.recovery._choose("4.9")
        await wait_until_idle(session.jobs)
        assert recovery_of(session).plan.release == "4.9"
        assert "4.9.8" in pane.recovery.head.note.text()

    on_store(qapp, FindingsPane, golden("crash-flip-5.3.3"), drive)


@pytest.mark.golden
def test_a_healthy_store_has_no_losses(qapp, golden) -> None:
    async def drive(pane, session) -> None:
        assert not [finding for finding in session.findings if finding.severity in {"warn", "error"}]
        assert session.findings_complete
        if not session.findings:
            assert "No problems found" in pane.table.note.state.text
        plan = recovery_of(session).plan
        assert headline(plan, harmed=session.harmed) == [("ok", "nothing would be lost")]

    on_store(qapp, FindingsPane, golden("clean-5.3.3"), drive)
