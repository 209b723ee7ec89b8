"""A talk between a client and a broker of ours, recorded by a tap on the broker."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

from brokers import BrokerClient, half

from engine.broker.serving import serving_store
from engine.config import MessageStoreConfig
from engine.remoting.exchanges import FrameEvent
from engine.remoting.frame import ONE_WAY, Command
from engine.remoting.tap import FrameTap, OnEvent

SMALL = MessageStoreConfig(mapped_file_size_commit_log=1 << 20)
HEARTBEAT = {
    "clientID": "10.0.0.1@7",
    "producerDataSet": [{"groupName": "senders"}],
    "consumerDataSet": [
        {
            "groupName": "readers",
            "consumeType": "CONSUME_ACTIVELY",
            "messageModel": "CLUSTERING",
            "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
            "unitMode": False,
            "subscriptionDataSet": [{"topic": "Orders", "subString": "*", "subVersion": 1}],
        }
    ],
}


@contextlib.asynccontextmanager
async def tapped(store: Path, *takes: OnEvent) -> AsyncIterator[BrokerClient]:
    """Run a broker over ``store`` whose frames ``takes`` get, and one client of it."""
    async with serving_store(store, None, SMALL, port=0, tap=FrameTap("broker", *takes)) as server:
        client = BrokerClient(server)
        await client.open()
        try:
            yield client
        finally:
            client.close()


async def talk(client: BrokerClient) -> None:
    """Send a heartbeat, messages, pulls (one of them held until a send), a refused, a one-way request, a
    transaction.
    """
    connection = client._connection
    assert connection is not None
    await client.ask(34, json.dumps(HEARTBEAT).encode())
    for number in range(3):
        assert (await client.send("Orders", b"cup %d" % number, properties=f"KEYS\x01K{number}\x02")).code == 0
    client.server.broker.store.wait_dispatched()
    assert (await client.pull("Orders", 0)).code == 0
    task = asyncio.create_task(client.pull("Orders", 3, sysFlag=6, suspendTimeoutMillis=15_000))
    while not len(client.server.broker.held):
        await asyncio.sleep(0.001)
    await client.send("Orders", b"cup 3", properties="KEYS\x01K3\x02")
    assert (await task).code == 0
    assert (await client.pull("NoSuchTopic", 0)).code == 17
    fields = {"consumerGroup": "readers", "topic": "Orders", "queueId": "0", "commitOffset": "3"}
    connection.send(Command(15, fields, flag=ONE_WAY, opaque=77))
    bring = await half(client)
    await client.ask(37, **bring, commitOrRollback=8, fromTransactionCheck=False)


def seen_in_a_talk(store: Path, *takes: OnEvent) -> list[FrameEvent]:
    """Return the events of a tap during :func:`talk`."""
    calls: list[FrameEvent] = []

    async def talked() -> None:
        async with asyncio.timeout(60), tapped(store, calls.append, *takes) as client:
            await talk(client)

    asyncio.run(talked())
    return calls
