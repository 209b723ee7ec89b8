"""Two brokers with a static topic, before and after a logical queue moves from one to the other."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

from brokers import BrokerClient

from engine.broker.config import BrokerConfig
from engine.broker.serving import serving_store
from engine.codec.queue_mappings import MappedRange, TopicMapping
from engine.namesrv.server import ListeningNameServer
from engine.remoting.frame import Command

FIRST = MappedRange(0, 0, "a", 0)
MOVED = (replace(FIRST, end_offset=3), MappedRange(1, 0, "b", 10_000))
PLAIN = {"consumerGroup": "readers", "topic": "T", "queueId": 0}


async def declare(client: BrokerClient, queues, *, epoch: int = 1, count: int = 1, **options: object) -> Command:
    """Send 513 with the broker's part of topic T, which has two logical queues."""
    mapping = TopicMapping("T", client.server.broker.config.broker_name, 2, epoch, queues)
    fields = {
        "topic": "T",
        "defaultTopic": "TBW102",
        "readQueueNums": count,
        "writeQueueNums": count,
        "perm": 6,
        "topicFilterType": "SINGLE_TAG",
        "order": False,
    }
    return await client.ask(513, json.dumps(mapping.record()).encode(), **{**fields, **options})


async def pulled(client: BrokerClient, offset: int, **options: object) -> tuple[int, int, int, int]:
    """Return code, next, least and last offset of a pull from logical queue 0."""
    answer = await client.pull("T", offset, **options)
    return answer.code, *(int(answer.fields[name]) for name in ("nextBeginOffset", "minOffset", "maxOffset"))


async def offset(client: BrokerClient, code: int, **fields: object) -> int:
    answer = await client.ask(code, **{**PLAIN, **fields})
    return int(answer.fields.get("offset", -answer.code))


@contextlib.asynccontextmanager
async def two_brokers(path: Path) -> AsyncIterator[tuple[BrokerClient, BrokerClient, str]]:
    """Brokers a and b behind one name server, with one client each."""
    async with contextlib.AsyncExitStack() as stack:
        names = await stack.enter_async_context(ListeningNameServer(port=0))
        clients = []
        for name in ("a", "b"):
            config = BrokerConfig(broker_name=name)
            serving = serving_store(path / name, config, name_servers=[names.address], port=0)
            client = BrokerClient(await stack.enter_async_context(serving))
            await client.open()
            stack.callback(client.close)
            clients.append(client)
        yield clients[0], clients[1], names.address


@contextlib.asynccontextmanager
async def moved_queue(path: Path) -> AsyncIterator[tuple[BrokerClient, BrokerClient, str]]:
    """Logical queue 0 has three messages in broker a and two in broker b, which leads it now."""
    async with two_brokers(path) as (first, second, names):
        await declare(first, {0: (FIRST,)})
        await declare(second, {}, count=0)
        for _ in range(3):
            await first.send("T", b"x")
        assert (await declare(second, {0: MOVED}, epoch=2)).code == 0
        assert (await declare(first, {0: MOVED}, epoch=2)).code == 0
        for _ in range(2):
            answer = await second.send("T", b"y")
        assert (answer.fields["queueId"], answer.fields["queueOffset"]) == ("0", "10001")
        for client in (first, second):
            client.server.broker.store.wait_dispatched()
        yield first, second, names
