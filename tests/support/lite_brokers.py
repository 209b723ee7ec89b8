"""A broker with lite topics, and the requests that its tests send."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

from brokers import BrokerClient, asking_broker

from engine.codec.message import decode
from engine.config import MessageStoreConfig
from engine.remoting.frame import Command

LIGHT = MessageStoreConfig(enable_lmq=True, enable_multi_dispatch=True)
TOPIC = {"defaultTopic": "TBW102", "perm": 6, "topicFilterType": "SINGLE_TAG", "readQueueNums": 2, "writeQueueNums": 2}


@contextlib.asynccontextmanager
async def lite_broker(path: Path) -> AsyncIterator[BrokerClient]:
    """A broker with the LITE topic ``Parent``, another one, and two groups of it."""
    async with asking_broker(path, store_config=LIGHT, release="5.5") as client:
        attributes = "+message.type=LITE,+lite.topic.expiration=60"
        assert (await client.ask(17, **TOPIC, topic="Parent", attributes=attributes)).code == 0
        assert (await client.ask(17, **TOPIC, topic="Plain")).code == 0
        for name, model in (("shared", "Shared"), ("exclusive", "Exclusive")):
            row = {"groupName": name, "attributes": {"+lite.bind.topic": "Parent", "+lite.sub.model": model}}
            assert (await client.ask(200, json.dumps(row).encode())).code == 0
        yield client


async def send(client: BrokerClient, body: bytes, lite_topic: str) -> None:
    await client.send("Parent", body, 0, f"__LITE_TOPIC\x01{lite_topic}\x02")
    client.server.broker.store.wait_dispatched()


async def subscribe(
    client: BrokerClient, action: str, client_id: str, *names: str, group: str = "shared", **more: object
) -> Command:
    row = {"action": action, "clientId": client_id, "group": group, "topic": "Parent", "liteTopicSet": names, **more}
    return await client.ask(200071, json.dumps({"subscriptionSet": [row]}).encode())


async def pop(client: BrokerClient, client_id: str, group: str = "shared", **options: object) -> Command:
    fields = {
        "clientId": client_id,
        "consumerGroup": group,
        "topic": "Parent",
        "maxMsgNum": 32,
        "invisibleTime": 60_000,
        "pollTime": 0,
        "bornTime": 0,
    }
    return await client.ask(200070, **{**fields, **options})


def bodies(answer: Command) -> list[bytes]:
    popped_bodies: list[bytes] = []
    position = 0
    while position < len(answer.body):
        unit = decode(answer.body, position, 0)
        popped_bodies.append(unit.body)
        position += unit.size
    return popped_bodies


def of_message(answer: Command, offset: int) -> dict[str, object]:
    handle = f"0 {answer.fields['popTime']} 60000 999 0 broker-a 0 {offset}"
    return {"consumerGroup": "shared", "topic": "Parent", "queueId": 0, "offset": offset, "extraInfo": handle}
