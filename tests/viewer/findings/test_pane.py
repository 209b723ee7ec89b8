"""Findings and recovery on healthy and damaged stores."""

from __future__ import annotations

import pytest
from panes import on_store, wait_until_idle

from viewer.findings.pane import FindingsPane
from viewer.pane.plan_words import fates, plan_rows
from viewer.runtime import places
from viewer.runtime.places import Place


@pytest.mark.golden
def test_a_wrong_crc_leads_to_its_bytes(qapp, golden) -> None:
    async def drive(pane, session) -> None:
        row = pane.table.current_row()
        assert row.finding.id == "CL03"
        assert "Wrong body CRC" in pane.detail.head.title.text()
        assert pane.detail.hex.cursor_offset == row.finding.offset
        assert session.selection == row.finding.offset
        emitted = []
        pane.placeRequested.connect(emitted.append)
        pane.detail._go()
        assert pane.table.follow()
        assert emitted == [places.log(row.finding.offset)] * 2
        assert pane.detail._steps.count() == 2
        assert "complete" in pane.status()

    on_store(qapp, FindingsPane, golden("crash-flip-5.3.3"), drive)


@pytest.mark.golden
def test_severities_can_be_hidden_and_shown(qapp, golden) -> None:
    async def drive(pane, session) -> None:
        all_rows = pane.table.total_rows()
        assert all_rows == len(session.findings) > 3
        pane._chips["note"].click()
        assert pane.table.total_rows() == all_rows - session.counts()["note"]
        pane._chips["note"].click()
        assert pane.table.total_rows() == all_rows
        pane.show_place(Place("findings", name="CQ13"))
        assert pane.table.current_row().finding.id == "CQ13"
        row_before = pane.table.current_row()
        pane.commands()["list.next"]()
        assert pane.table.current_row() != row_before

    on_store(qapp, FindingsPane, golden("crash-power-5.3.3"), drive)


@pytest.mark.golden
def test_a_stopped_check_is_marked_and_can_be_run_again(qapp, golden) -> None:
    async def drive(pane, session) -> None:
        session.set_findings((), complete=False)
        assert "has not been checked" in pane.table.note.state.text
        pane.commands()["check.run"]()
        await wait_until_idle(session.jobs)
        assert session.findings_complete

    on_store(qapp, FindingsPane, golden("clean-5.3.3"), drive)


@pytest.mark.golden
@pytest.mark.parametrize("release", ["5.3", "4.9"])
@pytest.mark.parametrize(
    "name", ["clean-5.3.3", "crash-nocheckpoint-5.3.3", "queues-gone-5.3.3", "first-files-deleted-5.3.3"]
)
def test_every_plan_has_a_text(golden, name, release) -> None:
    from engine.inspection import open_store
    from engine.inspection.recovery import plan as plan_of

    with open_store(golden(name)) as store:
        plan = plan_of(store, release)
        rows = plan_rows(plan, harmed=True)
        assert [row.subject for row in rows if row.mark == "error"] == (
            ["Units dropped"] if plan.units_dropped else []
        ) + (["Entries shifted"] if any(q.shifted for q in plan.queues) else [])
        assert ("Index files deleted" in [row.subject for row in rows]) == bool(plan.index_deleted)
        assert fates(plan, len(store.log.files))[0].name == "commitlog"


@pytest.mark.golden
def test_a_log_alone_has_no_recovery_and_a_reason(qapp, golden) -> None:
    async def drive(pane, session) -> None:
        assert "complete store" in pane.recovery.plan.note.state.text
        assert pane.recovery._again.isHidden()
        assert session.findings_complete
        if not session.findings:
            assert "in this log" in pane.table.note.state.text

    on_store(qapp, FindingsPane, next(golden("clean-5.3.3").rglob("commitlog")), drive)


@pytest.mark.golden
def test_the_bytes_of_a_finding_fill_the_free_space_in_whole_rows(qapp, golden) -> None:
    async def drive(pane, _session) -> None:
        hex_view = pane.detail.hex
        pane.resize(1400, 700)
        await wait_until_idle(pane.session.jobs)
        small_height = hex_view.height()
        pane.resize(1400, 1300)
        await wait_until_idle(pane.session.jobs)
        assert hex_view.height() > small_height
        for height in (small_height, hex_view.height()):
            rows = hex_view.rows_in(height)
            assert rows >= 5
            assert hex_view.height_of(rows) == height

    on_store(qapp, FindingsPane, golden("crash-flip-5.3.3"), drive)
