"""What becomes of each chosen message: sent, sent already, a copy, unknown, or impossible to send."""

from __future__ import annotations

from pathlib import Path

from engine_units import units_of
from handmade_stores import HandmadeStore

from engine.resend.journal import REFUSED, SENDING, SENT, Identity, Journal
from engine.resend.resend_plan import Decision, plan_resend


def plan_of(tmp_path: Path, store: HandmadeStore, topic: str | None = None, **options: bool):
    units = units_of(tmp_path / "store" if (tmp_path / "store").exists() else store.write(tmp_path / "store"))
    with Journal(tmp_path / "sent.jsonl") as journal:
        return plan_resend(units, journal, topic, **options)


def dead_letters() -> HandmadeStore:
    store = HandmadeStore()
    store.put("Orders", unique="A")
    for key in "AB":
        store.put("%RETRY%billing", unique=key, more={"RETRY_TOPIC": "Orders"})
    for key in "ABC":
        store.put("%DLQ%billing", unique=key, more={"RETRY_TOPIC": "Payments" if key == "C" else "Orders"})
    store.put("%DLQ%billing", unique="D")
    store.put("RMQ_SYS_TRANS_OP_HALF_TOPIC")
    return store


def test_of_copies_of_one_message_the_newest_is_sent(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, dead_letters())
    decisions = [message.decision.value for message in plan.messages]
    assert decisions == ["copy"] * 3 + ["send"] * 3 + ["cannotBeSent"] * 2
    shares = [(share.topic, share.messages, share.last_timestamp - share.first_timestamp) for share in plan.topics()]
    assert shares == [("Orders", 2, 10), ("Payments", 1, 0)]
    assert plan.kinds() == {"deadLetter": 3}
    assert sorted(plan.reasons().values()) == [1, 1]
    assert plan.known_keys == 0


def test_one_topic_takes_all_that_can_be_sent(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, dead_letters(), "Again")
    assert [(share.topic, share.messages) for share in plan.topics()] == [("Again", 4)]
    assert plan.count(Decision.CANNOT) == 1
    assert plan.without_topics({"Again": "no such topic"}).reasons()["no such topic"] == 4


def test_the_journal_decides_what_is_sent_again(tmp_path: Path) -> None:
    store = HandmadeStore()
    units = [store.put("%DLQ%billing", unique=key, more={"RETRY_TOPIC": "Orders"}) for key in "ABCDA"]
    with Journal(tmp_path / "sent.jsonl") as journal:
        journal.create("/store")
        states = ((SENT, "A"), (REFUSED, "B"), (SENDING, "C"))
        for unit, (state, key) in zip(units, states, strict=False):
            journal.write(state, Identity(key, unit.offset, None, unit.store_timestamp, "Orders"), "Orders")
    plan = plan_of(tmp_path, store)
    expected = ["alreadySent", "send", "notKnown", "send", "alreadySent"]
    assert [message.decision.value for message in plan.messages] == expected
    assert plan.known_keys == 4
    plan = plan_of(tmp_path, store, resend_unknown=True)
    assert [message.decision.value for message in plan.messages][2] == "send"
    plan = plan_of(tmp_path, store, "Again")
    assert [message.decision.value for message in plan.messages] == expected
