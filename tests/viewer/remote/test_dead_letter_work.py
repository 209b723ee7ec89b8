"""Dead letters at a broker go to their original topics again, each once, with a journal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from controls import FakeControl

from engine.broker.serving import Addresses, serving_beside
from engine.client.blocking import BlockingTopicReader
from engine.client.instance import ClientInstance
from engine.client.routes import MessageQueue
from engine.codec.encode import Message
from engine.errors import CannotRead
from engine.message_store import MessageStore
from engine.resend.resend_plan import Decision
from viewer.remote import dead_letter_work
from viewer.remote.dead_letter_work import LetterRequest, journal_of

QUEUE = MessageQueue("%DLQ%billing", "broker-a", 0)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Addresses]:
    """A broker with 5 dead letters of billing: 4 of Orders, the last one of a topic that is gone."""
    with MessageStore(tmp_path / "store") as store:
        store.tables.create_topic("Orders", 1)
        store.tables.create_topic("%DLQ%billing", 1)
        for number in range(5):
            origin = "Orders" if number < 4 else "Gone"
            properties = {"RETRY_TOPIC": origin, "UNIQ_KEY": f"{number:032X}", "TAGS": "hot"}
            store.put_message(Message("%DLQ%billing", b"%d" % number, queue_id=0, properties=properties))
    with serving_beside(tmp_path / "store") as addresses:
        yield addresses


def request(cluster: Addresses, tmp_path: Path, *offsets: int, **fields: Any) -> LetterRequest:
    return LetterRequest((cluster.namesrv,), QUEUE, offsets, tmp_path / "journal.jsonl", **fields)


def orders(cluster: Addresses) -> list[tuple[bytes, str | None]]:
    with BlockingTopicReader(ClientInstance(cluster.namesrv)) as reader:
        queue = reader.queues("Orders")[0].queue
        return [(item.unit.body, item.unit.tags) for item in reader.read(queue, 0, 32).units]


def test_chosen_dead_letters_are_sent_once_and_the_journal_says_so(cluster: Addresses, tmp_path: Path) -> None:
    letters = request(cluster, tmp_path, 1, 2, 4)
    plan = dead_letter_work.plan(FakeControl(), letters)
    assert [message.topic for message in plan.to_send] == ["Orders", "Orders"]
    assert any("has no topic Gone" in reason for reason in plan.reasons())
    assert not letters.journal.exists(), "planning writes nothing"
    result = dead_letter_work.send(FakeControl(), letters, tuple(plan.to_send))
    assert (result.sent, result.refused, result.unknown, result.remaining) == (2, 0, 0, 0)
    assert orders(cluster) == [(b"1", "hot"), (b"2", "hot")]
    again = dead_letter_work.plan(FakeControl(), request(cluster, tmp_path, 0, 1, 2))
    assert (again.count(Decision.ALREADY_SENT), len(again.to_send)) == (2, 1)
    late = dead_letter_work.send(FakeControl(), letters, tuple(plan.to_send))
    assert late.sent == 0, "an old plan sends nothing twice"
    assert len(orders(cluster)) == 2


def test_a_letter_that_is_gone_is_not_left_out_in_silence(cluster: Addresses, tmp_path: Path) -> None:
    with pytest.raises(CannotRead, match="does not have 1 of the chosen messages any more"):
        dead_letter_work.plan(FakeControl(), request(cluster, tmp_path, 3, 9))


def test_without_a_cluster_nothing_is_sent(tmp_path: Path) -> None:
    letters = LetterRequest(("127.0.0.1:1",), QUEUE, (0,), tmp_path / "journal.jsonl")
    with pytest.raises(CannotRead):
        dead_letter_work.plan(FakeControl(), letters)


def test_the_journal_belongs_to_the_name_servers_in_any_order(tmp_path: Path) -> None:
    assert journal_of(tmp_path, ("b:1", "a:1")) == journal_of(tmp_path, ("a:1", "b:1"))
    assert journal_of(tmp_path, ("[::1]:9876",)).parent == tmp_path
