"""The plan of a start on the screen: cut texts are available in full, and missing parts of the log have their place."""

from __future__ import annotations

import shutil

import pytest
from panes import on_store, wait_until_idle

from viewer.findings.pane import FindingsPane
from viewer.runtime import recovery_plan
from viewer.runtime.recovery_plan import recovery_of
from viewer.widgets.line_strip import LineStrip


@pytest.mark.golden
def test_a_chosen_line_of_the_plan_is_shown_in_full(qapp, golden) -> None:
    """At 1280 × 720, reasons and results ended in "…" and were shown nowhere in full."""

    async def drive(pane, session) -> None:
        panel = pane.recovery
        assert panel._row_text.isHidden()
        start = next(n for n, row in enumerate(panel.plan.source.rows) if row.subject == "Start file")
        panel.plan.go_to_row(start)
        row = panel.plan.source.rows[start]
        assert panel._row_text.text() == f"Start file {row.amount}: {row.reason}"
        panel.files.go_to_row(1)
        removed_row = panel.files.source.rows[1]
        assert panel._row_text.text() == f"{removed_row.name} {removed_row.fate}: {removed_row.reason}"
        assert removed_row.name == "commitlog/00000000000002097152"
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
def test_a_missing_log_has_a_message_instead_of_its_lines(qapp, golden, tmp_path) -> None:
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
def test_one_field_chooses_the_release_whose_start_is_planned(qapp, golden) -> None:
    """Four buttons for the releases overlapped the chips in a window of 1,440 px."""

    async def drive(pane, session) -> None:
        panel, choice = pane.recovery, pane.recovery.release
        titles = [choice.itemText(number) for number in range(choice.count())]
        assert titles == ["RocketMQ 5.5.1", "RocketMQ 5.4.0", "RocketMQ 5.3.3", "RocketMQ 4.9.8"]
        assert choice.currentText() == "RocketMQ 5.3.3"
        choice.setCurrentIndex(3)
        choice.activated.emit(3)
        assert not choice.isEnabled()
        await wait_until_idle(session.jobs)
        assert recovery_of(session).plan.release == "4.9"
        assert (choice.currentText(), choice.isEnabled()) == ("RocketMQ 4.9.8", True)
        assert "RocketMQ 4.9.8" in panel.head.note.text()

    on_store(qapp, FindingsPane, golden("crash-flip-5.3.3"), drive)


@pytest.mark.golden
def test_without_a_plan_there_is_no_empty_choice_of_a_release(qapp, golden) -> None:
    """A store with an unreadable file has no plan, but an empty field was beside the retry button."""

    async def drive(pane, session) -> None:
        panel, job = pane.recovery, recovery_of(session)
        assert not panel.release.isHidden()
        job.plan = job.release = None
        panel._show()
        assert panel.release.isHidden()

    on_store(qapp, FindingsPane, golden("crash-flip-5.3.3"), drive)


@pytest.mark.golden
def test_queues_that_are_not_decoded_are_one_sentence_without_dead_buttons(qapp, golden, monkeypatch) -> None:
    """ "Work out the recovery plan" and "Try again" were shown, and could only fail."""

    async def drive(pane, session) -> None:
        panel, job = pane.recovery, recovery_of(session)
        state = panel._state(job)
        assert (state.kind, state.steps) == ("unread", ())
        assert "the queues are in a RocksDB (consumequeue/), which is not decoded" in state.text
        for part in (panel.release, panel._again, panel.tools.attempt, panel.tools.save):
            assert part.isHidden()
        job.start()
        assert not job.running
        emitted = []
        panel.tools.statusText.connect(emitted.append)
        panel.commands()["recovery.try"]()
        assert emitted == [job.why_impossible]

    monkeypatch.setattr(recovery_plan, "is_available", lambda: False)
    on_store(qapp, FindingsPane, golden("rocks-5.5.1"), drive)


@pytest.mark.golden
def test_queues_in_a_rocksdb_have_a_plan_that_is_not_tried_on_a_copy(qapp, golden) -> None:
    pytest.importorskip("rocksdict")

    async def drive(pane, session) -> None:
        panel, job = pane.recovery, recovery_of(session)
        await wait_until_idle(session.jobs)
        assert job.plan.will_start
        assert len(job.plan.queues) == 11
        assert panel.tools.attempt.isHidden()

    on_store(qapp, FindingsPane, golden("rocks-5.5.1"), drive)
