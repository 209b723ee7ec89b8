"""The box that sends units of the log again: it shows first what would be sent, and sends only that."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from engine_units import units_of
from handmade_stores import HandmadeStore

from engine.errors import CannotRead
from engine.resend.journal import Journal
from engine.resend.resend_plan import ResendPlan, plan_resend
from viewer.log.columns import unit_kind
from viewer.log.log_model import LogModel
from viewer.log.resend import PLAN, SEND, LogResend, ResendBox, result_text, summary_lines
from viewer.log.resend_work import ResendResult
from viewer.log.rows import LogSource, UnitRow
from viewer.runtime import places
from viewer.widgets.record_view import RecordView


def a_plan(tmp_path: Path) -> ResendPlan:
    store = HandmadeStore()
    for key in "ABA":
        store.put("%DLQ%billing", unique=key, more={"RETRY_TOPIC": "Orders"})
    store.put("SCHEDULE_TOPIC_XXXX", unique="C", more={"REAL_TOPIC": "Orders"})
    store.put("RMQ_SYS_TRANS_HALF_TOPIC", unique="D", more={"REAL_TOPIC": "Payments"})
    store.put("%RETRY%billing", unique="E", more={"RETRY_TOPIC": "Orders"})
    store.put("%DLQ%billing", unique="F")
    with Journal(tmp_path / "sent.jsonl") as journal:
        return plan_resend(units_of(store.write(tmp_path / "made")), journal)


class WorkerJobs:
    """Jobs whose worker answers with what a test gives."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = answers
        self.requests: list[tuple[str, tuple[Any, ...]]] = []

    def start(self, work: Any) -> None:
        asyncio.run(work)

    async def in_worker(self, _title: str, target: str, *args: Any, as_it_is: bool) -> Any:
        assert as_it_is
        self.requests.append((target, args))
        answer = self.answers[target]
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def resends(qtbot: Any, themed_app: object, tmp_path: Path) -> LogResend:
    """Two rows, of which the second is chosen."""
    table = RecordView("units.table", unit_kind(places.queue))
    qtbot.addWidget(table)
    table.set_rows([UnitRow(n, 100, "Orders", 0, 0, 0, None, [], "ok", "", False, 0, b"") for n in (100, 200)])
    table.go_to(1)
    model = LogModel()
    model.log = LogSource(cast("Any", SimpleNamespace(min_offset=0, end_offset=900, known_end=900)))
    resend = LogResend(model, table, table)
    answers = {PLAN: a_plan(tmp_path), SEND: ResendResult(5, 0, 0, 0, "")}
    resend.session = cast("Any", SimpleNamespace(path=tmp_path / "store", config=None, jobs=WorkerJobs(answers)))
    return resend


def opened(resends: LogResend, address: str = "127.0.0.1:10911") -> ResendBox:
    box = resends.ask()
    assert box is not None
    box.address.setText(address)
    box.address.textEdited.emit(address)
    return box


def test_nothing_is_sent_before_it_was_shown(resends: LogResend) -> None:
    box = opened(resends)
    jobs = cast("Any", resends.session).jobs
    assert not box.send.isEnabled()
    box.show_button.click()
    assert "5 messages would be sent" in box.summary.text()
    assert not box.send.isEnabled(), "nobody said that the cluster at the address is theirs"
    box.mine.setChecked(True)
    assert box.send.isEnabled()
    box.address.textEdited.emit("127.0.0.1:10911")
    assert not box.mine.isChecked(), "it was said of another address"
    box.mine.setChecked(True)
    box.account_file.setText("/home/me/tools.yml")
    box.tls_file.setText("/home/me/tls.properties")
    box.topic.setText("Again")
    box.topic.textEdited.emit("Again")
    assert (box.send.isEnabled(), box.summary.text()) == (False, "")
    box.show_button.click()
    texts: list[str] = []
    resends.statusText.connect(texts.append)
    done: list[tuple[Any, ...]] = []
    resends.operationDone.connect(lambda *words: done.append(words))
    box.send.click()
    assert [target for target, _ in jobs.requests] == [PLAN, PLAN, SEND]
    choice, messages = jobs.requests[-1][1][2:]
    assert (choice.to, choice.topic, choice.offsets, choice.rate) == ("127.0.0.1:10911", "Again", (200,), None)
    assert (choice.account_file, choice.tls_file) == ("/home/me/tools.yml", "/home/me/tls.properties")
    assert choice.journal.name == "store.resent.jsonl"
    assert len(messages) == 5
    assert texts == ["5 messages were sent"]
    assert (done[0][0], done[0][2]["sent"]) == ("log.resend", 5)
    assert resends.box is None


@pytest.mark.parametrize(
    ("address", "rate", "able"),
    [
        ("127.0.0.1:10911", "", True),
        ("127.0.0.1", "", False),
        ("a:b", "", False),
        ("h:1", "0", False),
        ("h:1", "x", False),
    ],
)
def test_only_a_complete_choice_can_be_shown(resends: LogResend, address: str, rate: str, able: bool) -> None:
    box = opened(resends)
    box.rate.setText(rate)
    box.address.setText(address)
    box.address.textEdited.emit(address)
    assert box.show_button.isEnabled() == able
    box.reject()


def test_an_error_is_shown_in_the_box_or_the_status_bar(resends: LogResend) -> None:
    answers = cast("Any", resends.session).jobs.answers
    plan = answers[PLAN]
    answers[PLAN] = CannotRead("the broker at 127.0.0.1:10911 cannot be reached: Connection refused")
    box = opened(resends)
    box.show_button.click()
    assert "cannot be reached" in box.summary.text()
    assert not box.send.isEnabled()
    answers[PLAN], answers[SEND] = plan, CannotRead("the disk is full")
    texts: list[str] = []
    resends.statusText.connect(texts.append)
    box.show_button.click()
    box.mine.setChecked(True)
    box.send.click()
    assert texts == ["the disk is full"]


def test_the_summary_has_kinds_topics_and_what_is_left_out(tmp_path: Path, themed_app: object) -> None:
    text = "\n".join(summary_lines(a_plan(tmp_path)))
    for words in (
        "to Orders: 4 messages, stored from",
        "to Payments: 1 message, stored from",
        "2 dead letters",
        "1 message of a retry topic",
        "1 delayed message, without its delay",
        "1 half message, as an ordinary one",
        "left out for a later copy of the same message: 1",
        "cannot be sent: 1 (its original topic is not known)",
    ):
        assert words in text


def test_the_result_is_one_line(themed_app: object) -> None:
    text = result_text(ResendResult(3, 1, 2, 4, "NO_PERMISSION (code 16)"))
    expected = "3 messages were sent · refused: 1 · not known whether they arrived: 2 · not sent yet: 4"
    assert text == f"{expected} · NO_PERMISSION (code 16)"
