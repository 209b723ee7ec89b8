"""Topics and lag from Python, at real brokers and name servers."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import real_cluster

from engine.client.admin import Admin
from engine.client.consumer import Consumer
from engine.client.consuming import FROM_FIRST, ConsumerConfig
from engine.client.errors import NoRoute
from engine.client.messages import Message
from engine.client.producer import Producer

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]


async def administrate(namesrv: str, release: str) -> None:
    async with Admin(namesrv) as admin:
        assert await admin.topics() == []
        await admin.create_topic("Orders", 2, message_type="" if release.startswith("4") else "NORMAL")
        assert await admin.topics() == ["Orders"]
        queues = await admin.queues("Orders")
        assert len(queues) == 2
        bodies: list[bytes] = []
        consumer = Consumer(
            "readers", lambda messages, _: bodies.append(messages[0].body), namesrv, ConsumerConfig(start=FROM_FIRST)
        )
        consumer.subscribe("Orders")
        async with Producer("senders", namesrv) as producer:
            async with consumer:
                for number in range(10):
                    await producer.send(Message("Orders", b"%d" % number), queue=queues[number % 2])
                async with asyncio.timeout(60):
                    while len(bodies) < 10:
                        await asyncio.sleep(0.1)
                await consumer.commit()
            for _ in range(3):
                await producer.send(Message("Orders", b"more"), queue=queues[0])
        rows = {row.queue: row for row in await admin.lag("readers", "Orders")}
        assert {queue: (row.committed, row.end) for queue, row in rows.items()} == {
            queues[0]: (5, 8),
            queues[1]: (5, 5),
        }
        assert sum(row.lag for row in await admin.lag("readers")) == 3
        assert rows[queues[0]].consumed_at > 1_700_000_000_000
        assert await admin.lag("nobody") == []
        await admin.create_topic("Orders", 4)
        assert len(await admin.queues("Orders")) == 4
        await admin.delete_topic("Orders")
        await admin.delete_topic("Orders")
        assert (await admin.topics(), await admin.queues("Orders")) == ([], ())
        with pytest.raises(NoRoute):
            await admin.create_topic("Orders", brokers=["broker-z"])


@pytest.mark.parametrize(
    "release", ["5.3.3", *(pytest.param(text, marks=pytest.mark.clients_full) for text in ("4.9.7", "5.4.0", "5.5.1"))]
)
def test_topics_and_lag_at_a_real_broker(tmp_path: Path, release: str) -> None:
    ports = ("--namesrv-port", real_cluster.free_port(), "--port", real_cluster.free_port())
    settings = ("--set", "autoCreateTopicEnable=false")
    with real_cluster.real(tmp_path, *ports, *settings, "--small", release=release) as output:
        asyncio.run(administrate(output["namesrv"], release))
