"""Pops of a broker in the same process."""

from __future__ import annotations

from brokers import BrokerClient

from engine.codec.message import Unit, decode
from engine.remoting.frame import Command

GROUP = "popping"


async def pop(client: BrokerClient, **options: object) -> Command:
    """Send one pop of :data:`GROUP` that takes everything of ``Orders`` and does not wait."""
    fields: dict[str, object] = {
        "consumerGroup": GROUP,
        "topic": "Orders",
        "queueId": -1,
        "maxMsgNums": 32,
        "invisibleTime": 60_000,
        "pollTime": 0,
        "bornTime": 0,
        "initMode": 0,
        "order": False,
    }
    return await client.ask(200050, **{**fields, **options})


def popped(answer: Command) -> list[Unit]:
    """Return the messages of a pop's answer."""
    results: list[Unit] = []
    position = 0
    while position < len(answer.body):
        results.append(decode(answer.body, position, 0))
        position += results[-1].size
    return results


async def sent(client: BrokerClient, *bodies: bytes, queue_id: int = 0, properties: str = "") -> None:
    """Send messages of ``Orders`` and dispatch them."""
    for body in bodies:
        assert (await client.send("Orders", body, queue_id, properties)).code == 0
    client.server.broker.store.wait_dispatched()


async def queues_popped(client: BrokerClient, group: str, count: int = 8) -> list[int]:
    """Return the queues of ``count`` messages, popped one by one."""
    answers = [await pop(client, consumerGroup=group, maxMsgNums=1) for _ in range(count)]
    return [int(answer.fields["msgOffsetInfo"].split()[1]) for answer in answers]


async def send_priorities(client: BrokerClient) -> None:
    """Send two messages of each priority from 0 to 3 into the PRIORITY topic ``Orders``."""
    topic = {"topic": "Orders", "defaultTopic": "TBW102", "perm": 6, "topicFilterType": "SINGLE_TAG"}
    attributes = "+message.type=PRIORITY"
    assert (await client.ask(17, **topic, readQueueNums=4, writeQueueNums=4, attributes=attributes)).code == 0
    for priority in (0, 3, 1, 2, 0, 3, 1, 2):
        await client.send("Orders", b"x", 0, f"_SYS_MSG_PRIORITY_\x01{priority}\x02")
    client.server.broker.store.wait_dispatched()
