"""One new message is sent to a running cluster as it was shown; nothing is created, and the place is the broker's."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.broker.serving import Addresses, serving_beside
from engine.client.blocking import BlockingTopicReader
from engine.client.instance import ClientInstance
from engine.codec.encode import Message, encode_unit
from engine.codec.message import decode
from engine.errors import CannotRead, UsageError
from engine.message_store import MessageStore
from viewer.remote import send_work
from viewer.remote.send_work import NewMessage, SendReport, SendRequest, message_of, with_queue

CONTROL: Any = None


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Addresses]:
    path: Path = tmp_path_factory.mktemp("send") / "store"
    with MessageStore(path) as store:
        store.tables.create_topic("Orders", 2)
    with serving_beside(path) as addresses:
        yield addresses


def send(cluster: Addresses, message: NewMessage) -> SendReport:
    request = SendRequest((cluster.namesrv,), message)
    return send_work.send(CONTROL, request, send_work.plan(CONTROL, request))


def stored_at(cluster: Addresses, report: SendReport) -> Any:
    """Return the unit at the place in a report."""
    assert report.queue_offset is not None
    with BlockingTopicReader(ClientInstance(cluster.namesrv)) as reader:
        queue = next(ends.queue for ends in reader.queues(report.topic) if ends.queue.queue_id == report.queue_id)
        return reader.read(queue, report.queue_offset, 1).units[0].unit


def test_a_message_is_stored_as_it_was_shown_at_the_place_in_the_report(cluster: Addresses) -> None:
    message = NewMessage("Orders", b"\x00tea", "hot", "K1 K2", (("colour", "red"),), broker="broker-a", queue_id=1)
    report = send(cluster, message)
    assert (report.state, report.status, report.topic, report.queue_id) == ("sent", "SEND_OK", "Orders", 1)
    unit = stored_at(cluster, report)
    assert (unit.body, unit.tags, unit.keys, unit.unique_key) == (b"\x00tea", "hot", ["K1", "K2"], report.msg_id)
    assert unit.properties["colour"] == "red"
    assert unit.offset_msg_id == report.offset_msg_id


@pytest.mark.parametrize(
    ("delay", "topic"),
    [({"delay_level": 3}, "SCHEDULE_TOPIC_XXXX"), ({"deliver_at": 1}, "rmq_sys_wheel_timer")],
    ids=["level", "time"],
)
def test_a_delayed_message_is_reported_where_it_waits(cluster: Addresses, delay: dict[str, int], topic: str) -> None:
    if "deliver_at" in delay:
        delay = {"deliver_at": int(time.time() * 1000) + 600_000}
    report = send(cluster, NewMessage("Orders", b"later", **delay))
    assert (report.state, report.topic) == ("sent", topic)
    unit = stored_at(cluster, report)
    assert (unit.body, unit.properties["REAL_TOPIC"]) == (b"later", "Orders")


def test_a_topic_or_queue_that_does_not_exist_is_an_error_and_is_not_created(cluster: Addresses) -> None:
    for message, error, words in (
        (NewMessage("Nowhere", b"x"), CannotRead, "has no topic Nowhere that may be written to: create it there"),
        (NewMessage("Orders", b"x", queue_id=7), UsageError, "no such queue that may be written to: 7"),
        (NewMessage("Orders", b""), UsageError, "body length is zero"),
        (NewMessage("SCHEDULE_TOPIC_XXXX", b"x"), UsageError, "RocketMQ's own records"),
        (NewMessage("Orders", b"x", deliver_at=1), UsageError, "in the past"),
    ):
        with pytest.raises(error, match=words):
            send_work.plan(CONTROL, SendRequest((cluster.namesrv,), message))
    with BlockingTopicReader(ClientInstance(cluster.namesrv)) as reader, pytest.raises(Exception, match="Nowhere"):
        reader.queues("Nowhere")


def test_without_a_cluster_nothing_is_sent() -> None:
    with pytest.raises(CannotRead, match="cannot be reached"):
        send_work.plan(CONTROL, SendRequest(("127.0.0.1:1",), NewMessage("Orders", b"x")))


def test_a_copy_of_a_dead_letter_is_a_new_message_to_its_original_topic() -> None:
    properties = {"TAGS": "hot", "KEYS": "K1 K2", "UNIQ_KEY": "0" * 32, "RETRY_TOPIC": "Orders", "DELAY": "3", "a": "b"}
    data = encode_unit(
        Message("%DLQ%billing", b"tea", properties=properties), queue_offset=0, physical_offset=0, store_timestamp=1
    )
    assert message_of(decode(data)) == NewMessage("Orders", b"tea", "hot", "K1 K2", (("a", "b"),))


def test_the_queue_is_written_as_a_number_or_with_its_broker() -> None:
    message = NewMessage("Orders", b"x")
    for text, place in (
        ("", ("", None)),
        ("2", ("", 2)),
        ("broker-a/2", ("broker-a", 2)),
        ("broker-a", ("broker-a", None)),
    ):
        placed = with_queue(message, text)
        assert placed is not None
        assert (placed.broker, placed.queue_id) == place
    assert with_queue(message, "broker-a/x") is None
