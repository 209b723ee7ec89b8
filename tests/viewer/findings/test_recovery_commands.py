"""A recovery plan can be saved and tried on a copy, and its duration is estimated."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from panes import on_store, wait_until_idle

from viewer.findings.pane import FindingsPane
from viewer.pane.plan_words import time_row
from viewer.runtime.recovery_plan import recovery_of


@pytest.mark.golden
def test_the_plan_is_saved_and_tried_on_a_copy(qapp, golden, tmp_path) -> None:
    async def drive(pane, session) -> None:
        emitted, tried = [], []
        pane.statusMessage.connect(emitted.append)
        tools, plan = pane.recovery.tools, recovery_of(session).plan
        tools.trialDone.connect(tried.append)
        assert tools.attempt.isVisible()
        assert tools.attempt.isEnabled()
        listed = [row.subject for row in pane.recovery.plan.source.rows]
        assert "Time to read" not in listed, "a rate is told only where it rests on some MiB"
        assert listed[:2] == ["RocketMQ 5.3.3", "RocketMQ 4.9.8"]
        tools.save_to(tmp_path / "plan.json")
        await wait_until_idle(session.jobs)
        saved = json.loads((tmp_path / "plan.json").read_text(encoding="utf-8"))
        assert (saved["type"], saved["endOffset"]) == ("recoveryPlan", plan.end_offset)
        tools.save_to(session.path / "plan.json")
        tools.try_in(session.path / "copy")
        await wait_until_idle(session.jobs)
        assert not tried
        assert {entry.name for entry in session.path.iterdir()}.isdisjoint({"plan.json", "copy"})
        tools.try_in(tmp_path / "copy")
        assert not tools.attempt.isEnabled()
        await wait_until_idle(session.jobs)
        assert [item.folder for item in tried] == [tmp_path / "copy"]
        assert f"{plan.end_offset:,}" in emitted[-1]
        assert tools.attempt.isEnabled()
        rows = pane.recovery.outcome.table.source.rows
        assert {row.verdict for row in rows} == {"equal"}
        assert "recovery.again" in pane.commands()
        tools.again()
        assert "recovery.again" not in pane.commands()
        await wait_until_idle(session.jobs)
        assert tried[-1].round == 2
        assert "changed nothing" in pane.recovery.outcome._head.note.text()

    on_store(qapp, FindingsPane, golden("crash-flip-5.3.3"), drive)


@pytest.mark.golden
def test_a_stopped_copy_leaves_no_files(qapp, golden, tmp_path) -> None:
    async def drive(pane, session) -> None:
        emitted = []
        pane.statusMessage.connect(emitted.append)
        pane.recovery.tools.try_in(tmp_path / "copy")
        session.jobs.changed.connect(lambda: [job.cancel() for job in session.jobs.list])
        await wait_until_idle(session.jobs)
        assert emitted[-1] == "Stopped: nothing is left of the copy."
        assert not list(tmp_path.iterdir())
        plan = replace(recovery_of(session).plan, bytes_to_read=10 << 20)
        row = time_row(plan, 5.0)
        assert row.amount == "about 5 s"
        assert row.reason == "estimate: 10.0 MiB to read at 2.00 MiB/s, as measured just now"
        assert time_row(plan, 0.0) is None
        assert time_row(replace(plan, bytes_to_read=442 << 10), 6.0) is None, "too little to tell a rate"
        assert time_row(plan, 0.5).amount == "less than 1 s"

    on_store(qapp, FindingsPane, golden("crash-flip-5.3.3"), drive)


@pytest.mark.golden
def test_a_plan_for_file_queues_beside_a_rocksdb_cannot_be_tried(qapp, golden) -> None:
    async def drive(pane, session) -> None:
        panel = pane.recovery
        if recovery_of(session).plan is None:
            assert panel._state(recovery_of(session)).kind == "unread"
            return
        assert panel.tools.attempt.isHidden()
        assert "nothing is written into this store" in panel._state(recovery_of(session)).text

    on_store(qapp, FindingsPane, golden("rocks-separate-5.5.1"), drive)
