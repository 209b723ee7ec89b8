"""The plan of a start on the screen: what is cut is told whole, and what is missing of the log has its place.

A recovery plan is saved, tried on a copy, and says how long it would take.

What recovery did in a copy, figure by figure: what differs stands first and is counted.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from panes import on_store, settled

from engine.lab.plug import Figure
from viewer.findings.pane import FindingsPane
from viewer.findings.recovery_panel import tried_chip, tried_note, tried_rows
from viewer.findings.recovery_trial import Trial
from viewer.pane.plan_words import time_row
from viewer.runtime.recovery_plan import recovery_of
from viewer.widgets.line_strip import LineStrip


@pytest.mark.golden
def test_a_line_of_the_plan_is_told_whole_when_it_is_chosen(qapp, golden) -> None:
    """At 1280 × 720 reasons and fates ended in "…", and nothing showed them whole."""

    async def drive(pane, session) -> None:
        panel = pane.recovery
        assert panel._says.isHidden()
        start = next(n for n, row in enumerate(panel.plan.source.rows) if row.what == "Start file")
        panel.plan.go_to_row(start)
        row = panel.plan.source.rows[start]
        assert panel._says.text() == f"Start file {row.value}: {row.why}"
        panel.files.go_to_row(1)
        gone = panel.files.source.rows[1]
        assert panel._says.text() == f"{gone.name} {gone.fate}: {gone.why}"
        assert gone.name == "commitlog/00000000000002097152"
        assert panel.files.table.texts(1)[0] == "commitlog/…2097152"

    on_store(qapp, FindingsPane, golden("crash-flip-5.3.3"), drive)


@pytest.mark.golden
def test_the_plans_line_reaches_to_the_end_of_a_missing_last_file(qapp, golden, tmp_path) -> None:
    shutil.copytree(golden("broker-orders"), tmp_path / "store")
    (tmp_path / "store" / "commitlog" / f"{2 << 20:020d}").unlink()

    async def drive(pane, session) -> None:
        line = pane.recovery.line
        missing = next(part for part in line._parts if part.kind == "gone")
        assert (missing.words, missing.end) == ("missing", 3 << 20)
        assert line._ticks[-1] == (1.0, f"{3 << 20:,}")
        assert missing.share > 0.3

    on_store(qapp, FindingsPane, tmp_path / "store", drive)


@pytest.mark.golden
def test_a_log_that_is_gone_has_words_in_the_place_of_its_lines(qapp, golden, tmp_path) -> None:
    shutil.copytree(golden("broker-orders"), tmp_path / "store")
    for file in (tmp_path / "store" / "commitlog").iterdir():
        file.unlink()

    async def drive(pane, session) -> None:
        assert pane.recovery.line.isHidden()
        assert pane.recovery._log_words.text() == "The log has no files."
        strip = pane.findChild(LineStrip)
        assert strip.accessibleDescription() == "The log has no files."
        strip.grab()

    on_store(qapp, FindingsPane, tmp_path / "store", drive)


@pytest.mark.golden
def test_the_plan_is_saved_and_tried_on_a_copy(qapp, golden, tmp_path) -> None:
    async def drive(pane, session) -> None:
        told, tried = [], []
        pane.statusMessage.connect(told.append)
        tools, plan = pane.recovery.tools, recovery_of(session).plan
        tools.tried.connect(tried.append)
        assert tools.attempt.isVisible()
        assert tools.attempt.isEnabled()
        listed = [row.what for row in pane.recovery.plan.source.rows]
        assert "Time to read" not in listed, "a rate is told only where it rests on some MiB"
        assert listed[:2] == ["RocketMQ 5.3.3", "RocketMQ 4.9.8"]
        tools.save_to(tmp_path / "plan.json")
        await settled(session.jobs)
        saved = json.loads((tmp_path / "plan.json").read_text(encoding="utf-8"))
        assert (saved["type"], saved["endOffset"]) == ("recoveryPlan", plan.end_offset)
        tools.save_to(session.path / "plan.json")
        tools.try_in(session.path / "copy")
        await settled(session.jobs)
        assert not tried
        assert {entry.name for entry in session.path.iterdir()}.isdisjoint({"plan.json", "copy"})
        tools.try_in(tmp_path / "copy")
        assert not tools.attempt.isEnabled()
        await settled(session.jobs)
        assert [one.folder for one in tried] == [tmp_path / "copy"]
        assert f"{plan.end_offset:,}" in told[-1]
        assert tools.attempt.isEnabled()
        rows = pane.recovery.outcome.table.source.rows
        assert {row.verdict for row in rows} == {"equal"}
        assert "recovery.again" in pane.commands()
        tools.again()
        assert "recovery.again" not in pane.commands()
        await settled(session.jobs)
        assert tried[-1].round == 2
        assert "changed nothing" in pane.recovery.outcome._head.note.text()

    on_store(qapp, FindingsPane, golden("crash-flip-5.3.3"), drive)


@pytest.mark.golden
def test_one_field_chooses_the_release_whose_start_is_planned(qapp, golden) -> None:
    """Four buttons for the releases pushed the chips over each other in a window of 1,440 px."""

    async def drive(pane, session) -> None:
        panel, choice = pane.recovery, pane.recovery.release
        titles = [choice.itemText(number) for number in range(choice.count())]
        assert titles == ["RocketMQ 5.5.1", "RocketMQ 5.4.0", "RocketMQ 5.3.3", "RocketMQ 4.9.8"]
        assert choice.currentText() == "RocketMQ 5.3.3"
        choice.setCurrentIndex(3)
        choice.activated.emit(3)
        assert not choice.isEnabled()
        await settled(session.jobs)
        assert recovery_of(session).plan.like == "4.9"
        assert (choice.currentText(), choice.isEnabled()) == ("RocketMQ 4.9.8", True)
        assert "RocketMQ 4.9.8" in panel.head.note.text()

    on_store(qapp, FindingsPane, golden("crash-flip-5.3.3"), drive)


@pytest.mark.golden
def test_a_copy_that_is_stopped_leaves_nothing(qapp, golden, tmp_path) -> None:
    async def drive(pane, session) -> None:
        told = []
        pane.statusMessage.connect(told.append)
        pane.recovery.tools.try_in(tmp_path / "copy")
        session.jobs.changed.connect(lambda: [job.cancel() for job in session.jobs.list])
        await settled(session.jobs)
        assert told[-1] == "Stopped: nothing is left of the copy."
        assert not list(tmp_path.iterdir())
        plan = replace(recovery_of(session).plan, bytes_to_read=10 << 20)
        row = time_row(plan, 5.0)
        assert row.value == "about 5 s"
        assert row.why == "estimate: 10.0 MiB to read at 2.00 MiB/s, as this look took"
        assert time_row(plan, 0.0) is None
        assert time_row(replace(plan, bytes_to_read=442 << 10), 6.0) is None, "too little to tell a rate"
        assert time_row(plan, 0.5).value == "less than 1 s"

    on_store(qapp, FindingsPane, golden("crash-flip-5.3.3"), drive)


def trial(*figures: Figure, round_: int = 1) -> Trial:
    return Trial(Path("/copies/one"), "5.3", 100, figures, 0.25, round_)


def test_a_difference_stands_first_and_is_counted() -> None:
    made = trial(Figure("endOffset", 100, 100), Figure("Orders/1", 7, 6))
    assert [(row.what, row.verdict, row.mark) for row in tried_rows(made)] == [
        ("Orders / 1", "differs", "error"),
        ("end of log", "equal", "ok"),
    ]
    assert tried_chip(made) == ("error", "1 of 2 figures differ")
    assert tried_note(made) == "1 of 2 figures differ · 250 ms · /copies/one"


def test_a_further_round_says_that_nothing_changed() -> None:
    made = trial(Figure("units", 3, 3), round_=2)
    assert tried_note(made).startswith("a further recovery changed nothing: equal in all 1 figure ·")
    assert (tried_chip(made), tried_chip(trial())) == (("ok", "nothing changed"), ("ok", "as planned"))
    assert tried_note(trial(Figure("units", 3, 3))).startswith("equal in all 1 figure ·")


@pytest.mark.golden
def test_queues_that_are_not_decoded_are_one_sentence_without_dead_buttons(qapp, golden) -> None:
    """ "Work out the recovery plan" and "Try again" stood there, and could only fail."""

    async def drive(pane, session) -> None:
        panel, job = pane.recovery, recovery_of(session)
        state = panel._state(job)
        assert (state.kind, state.steps) == ("unread", ())
        assert "the queues are in a RocksDB (consumequeue/), which is not decoded" in state.text
        for part in (panel.release, panel._again, panel.tools.attempt, panel.tools.save):
            assert part.isHidden()
        job.ask()
        assert not job.running
        told = []
        panel.tools.told.connect(told.append)
        panel.commands()["recovery.try"]()
        assert told == [job.impossible]

    on_store(qapp, FindingsPane, golden("rocks-5.5.1"), drive)


@pytest.mark.golden
def test_a_plan_over_file_queues_beside_a_rocksdb_cannot_be_tried_and_says_why(qapp, golden) -> None:
    async def drive(pane, session) -> None:
        panel = pane.recovery
        if recovery_of(session).plan is None:
            assert panel._state(recovery_of(session)).kind == "unread"
            return
        assert panel.tools.attempt.isHidden()
        assert "nothing is written into this store" in panel._state(recovery_of(session)).text

    on_store(qapp, FindingsPane, golden("rocks-separate-5.5.1"), drive)
