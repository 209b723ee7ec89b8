"""Real brokers on stores of another storage mode: what ``compat`` says that they do not read, they do not answer."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import real_cluster

from engine.client.admin import Admin
from engine.client.messages import Message
from engine.client.producer import Producer
from engine.inspection.compatibility import Compatibility, CompatOptions, compare
from engine.inspection.snapshot import open_store
from engine.remoting.frame import Command
from engine.rules.compatibility import MODES

pytestmark = [pytest.mark.peer, pytest.mark.clients_full, pytest.mark.timeout(300)]
MESSAGES, QUEUES, COMMITTED = 20, 2, 5
SETTINGS = {
    "files": [],
    "files-v2": ["configManagerVersion=v2"],
    "rocksdb": ["storeType=defaultRocksDB"],
    "rocksdb-v2": ["storeType=defaultRocksDB", "configManagerVersion=v2"],
}
CHANGES = [
    ("5.5.1", "rocksdb", "5.5.1", "files"),
    ("5.5.1", "files-v2", "5.5.1", "files"),
    ("5.5.1", "files", "5.5.1", "files-v2"),
    ("5.5.1", "files", "5.5.1", "rocksdb"),
    ("5.5.1", "rocksdb", "5.5.1", "rocksdb-v2"),
    ("5.4.0", "rocksdb", "5.3.3", "files"),
    ("5.5.1", "files", "5.3.3", "files"),
    ("5.5.1", "rocksdb", "4.9.7", "files"),
]


class Seen(NamedTuple):
    """What a broker answers: whether it knows topic, group and offsets, and the ends of the queues."""

    topic: bool
    group: bool
    offsets: bool
    queue_ends: int


def options(mode: str) -> list[object]:
    ports = ["--namesrv-port", real_cluster.free_port(), "--port", real_cluster.free_port(), "--small"]
    ports += ["--set", "waitTimeMillsInSendQueue=10000"]  # a busy machine refuses messages otherwise
    return [*ports, *(word for line in SETTINGS[mode] for word in ("--set", line))]


async def fill(addresses: dict[str, Any]) -> None:
    """A topic with messages, a declared group, and its offsets."""
    async with Admin(addresses["namesrv"]) as admin, Producer("shop", addresses["namesrv"]) as producer:
        await admin.create_topic("Orders", QUEUES)
        group = {"groupName": "billing", "consumeEnable": True, "retryQueueNums": 1, "retryMaxTimes": 16}
        await admin.instance.call(addresses["broker"], 200, {}, json.dumps(group).encode())
        queues = await admin.queues("Orders")
        for number in range(MESSAGES):
            await producer.send(Message("Orders", b"%d" % number, tags="TagA"), queue=queues[number % QUEUES])
        for queue_id in range(QUEUES):
            place = {"topic": "Orders", "queueId": queue_id, "consumerGroup": "billing"}
            await admin.instance.call(addresses["broker"], 15, {**place, "commitOffset": COMMITTED})


async def look(addresses: dict[str, Any]) -> Seen:
    async with Admin(addresses["namesrv"]) as admin:

        async def answer(code: int, **fields: object) -> Command:
            request = Command(code, {key: str(value) for key, value in fields.items()}, b"")
            return await admin.instance.ask(addresses["broker"], request, 30)

        topics = json.loads((await answer(21)).body)["topicConfigTable"]
        groups = json.loads((await answer(201)).body)["subscriptionGroupTable"]
        offsets = [
            (await answer(14, consumerGroup="billing", topic="Orders", queueId=queue_id)).fields.get("offset")
            for queue_id in range(QUEUES)
        ]
        ends = [
            int((await answer(30, topic="Orders", queueId=queue_id)).fields["offset"]) for queue_id in range(QUEUES)
        ]
        return Seen("Orders" in topics, "billing" in groups, offsets == [str(COMMITTED)] * QUEUES, sum(ends))


def answer_for(store: Path, release: str, mode: str) -> Compatibility:
    (answer,) = compare(lambda: open_store(store), CompatOptions(((release[:3], MODES[mode]),)))
    return answer


@pytest.mark.parametrize(("writer", "written_in", "release", "mode"), CHANGES)
def test_a_broker_does_not_read_what_compat_calls_not_read(tmp_path, writer, written_in, release, mode):
    folder = tmp_path / "cluster"
    with real_cluster.real(folder, *options(written_in), release=writer, clean_end=True) as addresses:
        asyncio.run(fill(addresses))
    answer = answer_for(folder / "store", release, mode)
    hidden = {item.kind for item in answer.hidden}
    assert answer.starts

    with real_cluster.real(folder, *options(mode), release=release) as addresses:
        seen = asyncio.run(look(addresses))
    assert seen.topic == ("topics" not in hidden)
    assert seen.group == ("groups" not in hidden)
    assert seen.offsets == ("offsets" not in hidden)
    assert seen.queue_ends == sum(queue.max_offset for queue in answer.plan.queues if queue.topic == "Orders")
