"""The box that sends a message: nothing is sent before it was shown and confirmed; a result leads to the message."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from viewer.cluster.access import NO_FILES
from viewer.remote.send_box import PLAN, SEND, SendBox
from viewer.remote.send_work import NewMessage, SendPlan, SendReport


class Worker:
    """Answers at once, and keeps what was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, tuple[Any, ...]]] = []
        self.error: Exception | None = None
        self.state = "sent"

    def ask(self, target: str, arguments: tuple[Any, ...], finished: Any) -> None:
        self.asked.append((target, arguments))
        if self.error is not None:
            finished(None, self.error)
        elif target == PLAN:
            finished(SendPlan(arguments[0].message, "broker-a", "127.0.0.1:1", "5.3.3", 2, 4), None)
        else:
            report = SendReport(self.state, "SEND_OK", "AB", "broker-a", "Orders", 2, 41, None, "time is up")
            finished(report, None)


@pytest.fixture
def worker() -> Worker:
    return Worker()


@pytest.fixture
def box(qtbot: Any, themed_app: Any, worker: Worker) -> SendBox:
    send_box = SendBox(("127.0.0.1:9876",), NO_FILES, worker.ask)
    qtbot.addWidget(send_box)
    send_box.fill(NewMessage("Orders", b"tea", "hot", "K1", (("colour", "red"),)))
    return send_box


def test_nothing_is_sent_before_it_was_shown_and_confirmed(box: SendBox, worker: Worker) -> None:
    box.send()
    assert worker.asked == []
    box.show_plan()
    assert box.summary.text().splitlines() == [
        "to Orders, queue 2 of broker-a 5.3.3 at 127.0.0.1:1",
        "3 bytes: tea",
        "Tag: hot",
        "Keys: K1",
        "Properties: colour=red",
    ]
    box.send()
    assert [target for target, _ in worker.asked] == [PLAN]
    box.confirmed.setChecked(True)
    box.tags.setText("cold")
    box.tags.textEdited.emit("cold")
    assert not box.send_button.isEnabled(), "another message needs another plan"


def test_a_result_is_logged_and_leads_to_the_message(box: SendBox, worker: Worker) -> None:
    operations: list[tuple[Any, ...]] = []
    places: list[tuple[Any, ...]] = []
    box.operationDone.connect(lambda *words: operations.append(words))
    box.placeRequested.connect(lambda *place: places.append(place))
    box.show_plan()
    box.confirmed.setChecked(True)
    box.send()
    assert worker.asked[-1][0] == SEND
    assert box.summary.text() == "SEND_OK: AB is at offset 41 of Orders / 2 on broker-a"
    ((command, _, parameters, _),) = operations
    assert (command, parameters["msgId"], parameters["offset"]) == ("cluster.send", "AB", 41)
    assert box.link.text() == "Show it: Orders / 2 / 41"
    box.link.clicked.emit()
    assert places == [("Orders", "broker-a", 2, 41)]
    assert not box.send_button.isEnabled(), "it is not sent twice by a second click"


def test_a_send_without_an_answer_says_that_it_may_have_arrived(box: SendBox, worker: Worker) -> None:
    worker.state = "unknown"
    box.show_plan()
    box.confirmed.setChecked(True)
    box.send()
    assert box.summary.text().startswith("It is not known whether AB arrived: time is up.")
    assert box.link.isHidden()


def test_what_is_missing_or_wrong_is_named(box: SendBox, worker: Worker, tmp_path: Path) -> None:
    def fault() -> str:
        box.show_plan()
        return box.summary.text()

    box.body_kind.setCurrentIndex(1)
    assert fault() == "The body is no hex: two digits for each byte."
    box.body.setPlainText("00 ff")
    assert box.message().body == b"\x00\xff"
    box.body_kind.setCurrentIndex(2)
    box.file.setText(str(tmp_path / "body"))
    assert fault().endswith("No such file or directory")
    (tmp_path / "body").write_bytes(b"from a file")
    assert box.message().body == b"from a file"
    box.delay.setCurrentIndex(1)
    box.delay_value.setText("19")
    assert fault() == "The delay level is a number from 1 to 18."
    box.delay.setCurrentIndex(2)
    box.delay_value.setText("soon")
    assert fault().startswith("The delivery time is written like")
    box.delay.setCurrentIndex(0)
    box.properties.setPlainText("colour")
    assert fault() == "A property is written NAME=value: colour"
    box.properties.clear()
    box.queue.setText("broker-a/two")
    assert fault() == "The queue is written as 2 or broker-a/2."
    box.topic.clear()
    assert fault() == "A topic is missing."
    assert worker.asked == []


def test_a_copied_body_that_is_no_text_is_sent_as_it_is(qtbot: Any, themed_app: Any, worker: Worker) -> None:
    box = SendBox(("127.0.0.1:9876",), NO_FILES, worker.ask)
    qtbot.addWidget(box)
    box.fill(NewMessage("Orders", b"\xff\x00"))
    assert box.message().body == b"\xff\x00"
    assert box.copied_words.text().startswith("2 bytes: ")


def test_an_error_of_a_broker_is_said(box: SendBox, worker: Worker) -> None:
    worker.error = OSError("connection refused")
    box.show_plan()
    assert box.summary.text() == "connection refused"
