"""RocketMQ's own brokers give the window their messages and keep nothing of the reading. They store what it sends where
it says, and get each dead letter once.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
import real_cluster
from controls import FakeControl

from engine.client.admin import Admin
from engine.client.blocking import BlockingTopicReader
from engine.client.instance import ClientInstance
from engine.client.messages import Message
from engine.client.producer import Producer
from engine.client.routes import MessageQueue
from engine.errors import CannotRead, UsageError
from viewer.remote import dead_letter_work, send_work
from viewer.remote.dead_letter_work import LetterRequest
from viewer.remote.send_work import NewMessage, SendReport, SendRequest

pytestmark = [pytest.mark.peer, pytest.mark.clients_full, pytest.mark.timeout(600)]
CONTROL: Any = FakeControl()
LETTERS = MessageQueue("%DLQ%billing", "broker-a", 0)


async def prepare(namesrv: str) -> None:
    async with Admin(namesrv) as admin:
        await admin.create_topic("Orders", 2)
        await admin.create_topic("%DLQ%billing", 1)
    async with Producer("senders", namesrv) as producer:
        for number in range(100):
            await producer.send(Message("Orders", b"%d" % number), queue=MessageQueue("Orders", "broker-a", 0))
        for number in range(3):
            letter = Message("%DLQ%billing", b"letter %d" % number, properties={"RETRY_TOPIC": "Orders"})
            await producer.send(letter, queue=LETTERS)


@pytest.mark.parametrize("release", ["5.5.1", "5.3.3", "4.9.7"])
def test_messages_at_real_brokers(tmp_path: Path, release: str) -> None:
    ports = ("--namesrv-port", real_cluster.free_port(), "--port", real_cluster.free_port())
    with real_cluster.real(tmp_path / "cluster", *ports, "--small", release=release) as status:
        namesrv: str = status["namesrv"]
        asyncio.run(prepare(namesrv))
        with BlockingTopicReader(ClientInstance(namesrv)) as reader:
            read_all(reader)
            reports = send_each_kind(namesrv, release)
            for report in reports:
                assert_stored(reader, report)
            resend_letters(namesrv, tmp_path / "journal.jsonl", reader)
        config = Path(status["store"]) / "config"
    tables = {name: config / f"{name}.json" for name in ("topics", "subscriptionGroup", "consumerOffset")}
    texts = {name: file.read_text() if file.exists() else "" for name, file in tables.items()}
    assert '"Orders"' in texts["topics"]
    assert "Nowhere" not in texts["topics"], "sending creates nothing"
    assert "storescope" not in "".join(texts.values())
    assert "Orders@" not in texts["consumerOffset"], "no offset was committed"


def read_all(reader: BlockingTopicReader) -> None:
    full, empty = reader.queues("Orders")
    assert (full.max_offset, empty.max_offset) == (100, 0)
    page = reader.read(full.queue, 3, 97)
    assert [item.unit.body for item in page.units] == [b"%d" % number for number in range(3, 100)]
    assert reader.offset_at(full.queue, page.units[40].unit.store_timestamp) <= 43
    assert reader.read(full.queue, 1000, 4).units == ()


def send_each_kind(namesrv: str, release: str) -> list[SendReport]:
    def send(**fields: Any) -> SendReport:
        request = SendRequest((namesrv,), NewMessage("Orders", b"\xfftea", "hot", "K1", (("a", "b"),), **fields))
        plan = send_work.plan(CONTROL, request)
        assert plan.release == release
        return send_work.send(CONTROL, request, plan)

    with pytest.raises(CannotRead, match="has no topic Nowhere"):
        send_work.plan(CONTROL, SendRequest((namesrv,), NewMessage("Nowhere", b"x")))
    reports = [send(queue_id=1), send(delay_level=4)]
    later = int(time.time() * 1000) + 600_000
    if release.startswith("4."):
        with pytest.raises(UsageError, match=r"take a delivery time from 5\.0 on"):
            send(deliver_at=later)
    else:
        reports.append(send(deliver_at=later))
    topics = ["Orders", "SCHEDULE_TOPIC_XXXX", "rmq_sys_wheel_timer"]
    assert [report.topic for report in reports] == topics[: len(reports)]
    return reports


def assert_stored(reader: BlockingTopicReader, report: SendReport) -> None:
    assert (report.state, report.status) == ("sent", "SEND_OK")
    assert report.queue_offset is not None
    queue = next(ends.queue for ends in reader.queues(report.topic) if ends.queue.queue_id == report.queue_id)
    (item,) = reader.read(queue, report.queue_offset, 1).units
    unit = item.unit
    assert (unit.body, unit.tags, unit.keys, unit.unique_key) == (b"\xfftea", "hot", ["K1"], report.msg_id)
    assert (unit.properties["a"], unit.offset_msg_id) == ("b", report.offset_msg_id)


def resend_letters(namesrv: str, journal: Path, reader: BlockingTopicReader) -> None:
    request = LetterRequest((namesrv,), LETTERS, (0, 2), journal)
    plan = dead_letter_work.plan(CONTROL, request)
    assert [letter.topic for letter in plan.to_send] == ["Orders", "Orders"]
    assert dead_letter_work.send(CONTROL, request, tuple(plan.to_send)).sent == 2
    assert dead_letter_work.send(CONTROL, request, tuple(plan.to_send)).sent == 0
    assert dead_letter_work.plan(CONTROL, request).to_send == []
    bodies = [
        item.unit.body
        for ends in reader.queues("Orders")
        for item in reader.read(ends.queue, ends.min_offset, 200).units
    ]
    assert sorted(body for body in bodies if body.startswith(b"letter")) == [b"letter 0", b"letter 2"]
