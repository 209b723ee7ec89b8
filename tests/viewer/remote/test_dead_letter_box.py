"""The box that sends dead letters again shows its plan first, sends it once, and names the journal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engine.client.routes import MessageQueue
from engine.resend.journal import Identity
from engine.resend.resend_plan import Decision, PlannedMessage, ResendPlan
from viewer.log.resend_work import ResendResult
from viewer.remote.dead_letter_box import PLAN, SEND, DeadLetterBox
from viewer.remote.dead_letter_work import LetterRequest

LETTER = PlannedMessage(Identity("AB", 0, None, 1, "Orders"), "%DLQ%billing", "deadLetter", "Orders", Decision.SEND)


def test_the_plan_is_shown_and_sent_once(qtbot: Any, themed_app: Any, tmp_path: Path) -> None:
    asked: list[tuple[str, tuple[Any, ...]]] = []
    operations: list[tuple[Any, ...]] = []

    def ask(target: str, arguments: tuple[Any, ...], finished: Any) -> None:
        asked.append((target, arguments))
        finished(ResendPlan([LETTER]) if target == PLAN else ResendResult(1, 0, 0, 0, ""), None)

    journal = tmp_path / "journal.jsonl"
    request = LetterRequest(("127.0.0.1:9876",), MessageQueue("%DLQ%billing", "broker-a", 0), (3,), journal)
    box = DeadLetterBox(request, ask)
    qtbot.addWidget(box)
    box.operationDone.connect(lambda *words: operations.append(words))
    assert "1 message would be sent" in box.summary.text()
    assert "to Orders: 1 message" in box.summary.text()
    box.unknown.setChecked(True)
    assert asked[-1][1][0].resend_unknown
    box.send()
    assert asked[-1][0] == SEND
    assert asked[-1][1][1] == (LETTER,)
    assert box.summary.text() == "1 message was sent"
    assert not box.send_button.isEnabled()
    ((command, _, parameters, _),) = operations
    assert (command, parameters["sent"], parameters["journal"]) == ("cluster.letters", 1, str(journal))
