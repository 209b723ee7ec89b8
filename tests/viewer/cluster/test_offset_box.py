"""The box that moves a group's offsets: nothing is set before it was shown and confirmed, and undo sets them back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.client.offset_moves import OffsetMove
from engine.client.routes import MessageQueue
from viewer.cluster.access import NO_FILES
from viewer.cluster.offset_box import APPLY, PLAN, OffsetBox
from viewer.cluster.offset_work import OffsetPlan, OffsetRequest, OffsetResult

MOVES = (
    OffsetMove(MessageQueue("Orders", "broker-a", 0), 6, 10, 0, 10),
    OffsetMove(MessageQueue("Orders", "broker-a", 1), 2, 2, 0, 10),
)


class Worker:
    """Answers at once, and keeps what was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, tuple[Any, ...]]] = []
        self.error: Exception | None = None

    def ask(self, target: str, arguments: tuple[Any, ...], finished: Any) -> None:
        self.asked.append((target, arguments))
        if self.error is not None:
            finished(None, self.error)
        elif target == PLAN:
            finished(OffsetPlan("billing", MOVES, ("client-1",)), None)
        else:
            finished(OffsetResult(MOVES, {}, arguments[2]), None)


@pytest.fixture
def worker() -> Worker:
    return Worker()


@pytest.fixture
def box(qtbot, worker: Worker, tmp_path: Path) -> OffsetBox:
    offset_box = OffsetBox(("127.0.0.1:9876",), NO_FILES, worker.ask, tmp_path / "offsets")
    qtbot.addWidget(offset_box)
    offset_box.fill("billing", "Orders")
    offset_box.kind.setCurrentIndex(offset_box.kind.findData("end"))
    return offset_box


def test_nothing_is_set_before_it_was_shown_and_confirmed(box: OffsetBox, worker: Worker) -> None:
    assert not box.apply_button.isEnabled()
    box.show_plan()
    assert box.summary.text().startswith("0 messages come again · 4 messages never come · 1 consumer is connected")
    assert [row.never for row in box.table.source.rows] == [range(6, 10), range(0)]
    assert not box.apply_button.isEnabled()
    box.apply()
    assert [target for target, _ in worker.asked] == [PLAN]
    box.confirmed.setChecked(True)
    assert box.apply_button.isEnabled()


def test_another_question_forgets_the_plan(box: OffsetBox) -> None:
    box.show_plan()
    box.confirmed.setChecked(True)
    box.topic.setText("Invoices")
    box.topic.textEdited.emit("Invoices")
    assert not box.confirmed.isChecked()
    assert not box.apply_button.isEnabled()
    assert box.summary.text() == ""


def test_setting_notes_the_operation_and_offers_the_old_offsets(box: OffsetBox, worker: Worker, tmp_path: Path) -> None:
    done: list[tuple[Any, ...]] = []
    box.operationDone.connect(lambda *words: done.append(words))
    box.show_plan()
    box.confirmed.setChecked(True)
    box.apply()
    target, (request, plan, undo_file) = worker.asked[-1]
    assert (target, request.kind, plan.moves) == (APPLY, "end", MOVES)
    assert undo_file.parent == tmp_path / "offsets"
    assert box.summary.text().startswith("1 offset was set · the old offsets are in ")
    ((name, _, parameters, line),) = done
    assert (name, parameters["never"]) == ("cluster.offsets", 4)
    assert line == "storescope skipAccumulatedMessage -n 127.0.0.1:9876 -g billing -t Orders"
    box.show_undo()
    assert worker.asked[-1][1][0] == OffsetRequest(
        ("127.0.0.1:9876",), "undo", "billing", "Orders", undo_file=undo_file
    )
    assert not box.apply_button.isEnabled()


def test_what_is_missing_keeps_the_question_from_being_asked(box: OffsetBox) -> None:
    box.kind.setCurrentIndex(box.kind.findData("time"))
    assert not box.show_button.isEnabled()
    box.value.setText("2026-11-20 09:41:07")
    request = box.request()
    assert request is not None
    assert request.options()[:2] == ["storescope", "resetOffsetByTime"]
    box.kind.setCurrentIndex(box.kind.findData("group"))
    box.value.setText("audit")
    request = box.request()
    assert request is not None
    assert (request.kind, request.source_group) == ("group", "audit")
    box.group.setText(" ")
    assert box.request() is None


def test_an_error_of_a_broker_is_said(box: OffsetBox, worker: Worker) -> None:
    worker.error = OSError("connection refused")
    box.show_plan()
    assert box.summary.text() == "connection refused"
    assert not box.apply_button.isEnabled()
    assert box.show_button.isEnabled()
