"""The same pop requests to RocketMQ's own broker and to ours; answers are compared field by field.

Parts that must differ are replaced: times, addresses, the cluster's name, and revive queues (they take turns).
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import real_cluster
from brokers import BrokerClient, asking_broker
from pops import GROUP, pop, popped

from engine.broker.config import BrokerConfig
from engine.remoting.frame import Command

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]
TOPIC = {
    "topic": "Orders",
    "defaultTopic": "TBW102",
    "readQueueNums": 1,
    "writeQueueNums": 1,
    "perm": 6,
    "topicFilterType": "SINGLE_TAG",
}
WHERE = {"consumerGroup": GROUP, "topic": "Orders", "queueId": 0}
_TIME = re.compile(r"\b1[78]\d{11}\b")
_TURN = re.compile(r"^(\d+ T \d+) [0-7]\b")
_ADDRESS = re.compile(r"/?127\.0\.0\.1:\d+")


class BrokerRecord:
    """Requests to one broker, with its answers."""

    def __init__(self, client: BrokerClient) -> None:
        self.client = client
        self.lines: list[tuple[Any, ...]] = []

    async def ask(self, code: int, body: bytes = b"", **fields: object) -> Command:
        answer = await self.client.ask(code, body, **fields)
        request = {name: _TIME.sub("T", str(value)) for name, value in fields.items()}
        request["extraInfo"] = _TURN.sub(r"\1 N", request.get("extraInfo", ""))
        self.lines.append((code, request, *comparable_answer(answer)))
        return answer

    async def pop(self, **options: object) -> Command:
        answer = await pop(self.client, **{"queueId": 0, "initMode": 0, **options})
        self.lines.append((200050, options, *comparable_answer(answer)))
        return answer


def comparable_answer(answer: Command) -> tuple[Any, ...]:
    fields = {
        name: "N" if name == "reviveQid" and 0 <= int(value) < 8 else _TIME.sub("T", value)
        for name, value in answer.fields.items()
    }
    remark = _ADDRESS.sub("A", _TIME.sub("T", answer.remark or ""))
    body: object = b""
    if answer.body[:1] in (b"{", b"["):
        body = json.loads(answer.body)
    elif answer.body:
        body = [
            (unit.topic, unit.body, unit.queue_id, unit.queue_offset, unit.reconsume_times) for unit in popped(answer)
        ]
    return answer.code, remark, sorted(fields.items()), body


async def refusals(record: BrokerRecord) -> None:
    await record.pop(bornTime=1)
    await record.pop(maxMsgNums=33)
    await record.pop(topic="None")
    await record.pop(queueId=9)
    await record.pop(exp="amount >", expType="SQL92")
    for code in (200052, 200054, 200055):
        extra = {"maxMsgNums": 4} if code == 200052 else {"pollTime": 0, "bornTime": 0} if code == 200054 else {}
        await record.ask(code, **{**WHERE, "topic": "None"}, **extra)
        await record.ask(code, **{**WHERE, "queueId": 9}, **extra)
        await record.ask(code, **WHERE, **extra)
    handle = "0 1 60000 0 0 broker-a 0 0"
    for code, extra in ((200051, {}), (200053, {"invisibleTime": 1000})):
        await record.ask(code, **{**WHERE, "topic": "None"}, offset=0, extraInfo=handle, **extra)
        await record.ask(code, **{**WHERE, "queueId": 9}, offset=0, extraInfo=handle, **extra)
        await record.ask(code, **WHERE, offset=99, extraInfo=handle, **extra)
    for body in (b"", b'{"acks":[]}', b'{"brokerName":"broker-a"}'):
        await record.ask(200151, body)
    mode = {"consumerGroup": GROUP, "mode": "POP", "popShareQueueNum": 0, "topic": "Orders"}
    for extra in ({"topic": f"%RETRY%{GROUP}"}, {"topic": "None"}, {}):
        await record.ask(401, json.dumps({**mode, **extra}).encode())


async def plain_pops(record: BrokerRecord) -> None:
    for number in range(6):
        await record.client.send("Orders", b"%d" % number, 0, f"TAGS\x01{'even' if number % 2 == 0 else 'odd'}\x02")
    await asyncio.sleep(1)
    await record.ask(200052, **WHERE, maxMsgNums=2)
    await record.ask(200054, **WHERE, pollTime=0, bornTime=0)
    answer = await record.pop(maxMsgNums=2)
    handle = f"0 {answer.fields['popTime']} 60000 {answer.fields['reviveQid']} 0 broker-a 0"
    await record.ask(200051, **WHERE, offset=0, extraInfo=f"{handle} 0")
    await record.ask(200051, **WHERE, offset=0, extraInfo=f"{handle} 0 12345")
    await record.ask(200053, **WHERE, offset=1, extraInfo=f"{handle} 1", invisibleTime=30000)
    await record.pop(exp="even", expType="TAG")
    await record.ask(200054, **WHERE, pollTime=300, bornTime=0)
    await record.pop(pollTime=300)
    await record.ask(200055, **WHERE)
    entry = {
        "b": base64.b64encode(b"\xff").decode(),
        "c": GROUP,
        "it": 60000,
        "pt": int(answer.fields["popTime"]),
        "q": 0,
        "r": "0",
        "rq": 2,
        "so": 0,
        "t": "Orders",
    }
    await record.ask(200151, json.dumps({"acks": [entry], "brokerName": "broker-a"}).encode())
    await record.pop(consumerGroup="late", initMode=1)
    await asyncio.sleep(0.2)  # offsets are committed in turn
    await record.ask(14, **WHERE)


async def orderly_pops(record: BrokerRecord) -> None:
    group = {"consumerGroup": "ordered"}
    first_answer = await record.pop(**group, order=True, attemptId="att-1", maxMsgNums=3)
    await record.pop(**group, order=True, attemptId="att-2")
    repeated = await record.pop(**group, order=True, attemptId="att-1", maxMsgNums=3)
    where = {**WHERE, **group}
    old = f"0 {first_answer.fields['popTime']} 60000 999 0 broker-a 0"
    handle = f"0 {repeated.fields['popTime']} 60000 999 0 broker-a 0"
    if old != handle:
        await record.ask(200051, **where, offset=0, extraInfo=f"{old} 0")
    await record.ask(200051, **where, offset=5, extraInfo=f"{handle} 5")
    await record.ask(200051, **where, offset=0, extraInfo=f"{handle} 0")
    await record.ask(200054, **where, pollTime=0, bornTime=0, order=True, attemptId="att-2")
    changed = await record.client.ask(200053, **where, offset=1, extraInfo=f"{handle} 1", invisibleTime=700)
    assert 700 <= int(changed.fields["invisibleTime"]) < 5000
    await record.ask(200051, **where, offset=2, extraInfo=f"{handle} 2")
    await record.ask(200051, **where, offset=0, extraInfo=f"{handle} 0")
    await record.pop(**group, order=True, attemptId="att-3", maxMsgNums=3, pollTime=2500)
    await record.ask(14, **where)


async def assignments(record: BrokerRecord) -> None:
    consumer = {
        "consumeType": "CONSUME_PASSIVELY",
        "groupName": GROUP,
        "messageModel": "CLUSTERING",
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
        "unitMode": False,
        "subscriptionDataSet": [{"topic": "Orders", "subString": "*", "subVersion": 1}],
    }
    beat = {"clientID": "me", "consumerDataSet": [consumer], "producerDataSet": []}
    request_fields = {
        "clientId": "me",
        "consumerGroup": GROUP,
        "messageModel": "CLUSTERING",
        "strategyName": "AVG",
        "topic": "Orders",
    }
    await record.ask(400, json.dumps({**request_fields, "consumerGroup": "nobody"}).encode())
    await record.client.ask(34, json.dumps(beat).encode())
    for extra in (
        {},
        {"strategyName": "OTHER"},
        {"clientId": "another"},
        {"topic": f"%RETRY%{GROUP}"},
        {"topic": "None"},
        {"messageModel": "BROADCASTING"},
    ):
        await record.ask(400, json.dumps({**request_fields, **extra}).encode())


async def everything(client: BrokerClient) -> list[tuple[Any, ...]]:
    record = BrokerRecord(client)
    assert (await client.ask(17, **TOPIC)).code == 0
    await asyncio.sleep(1.5)  # until the name server knows the topic
    for part in (refusals, plain_pops, orderly_pops, assignments):
        await part(record)
    return record.lines


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[tuple[Any, ...]]]:
    async def answers_of(addresses: dict[str, str]) -> list[tuple[Any, ...]]:
        client = BrokerClient(SimpleNamespace(address=addresses["broker"]))  # type: ignore[arg-type]
        await client.open()
        try:
            return await everything(client)
        finally:
            client.close()

    options = ("--namesrv-port", real_cluster.free_port(), "--port", real_cluster.free_port())
    with real_cluster.real(tmp_path_factory.mktemp("real"), *options) as output:
        yield asyncio.run(answers_of(output))


def test_both_brokers_say_the_same(theirs: list[tuple[Any, ...]], tmp_path: Path) -> None:
    async def scenario() -> list[tuple[Any, ...]]:
        async with asking_broker(tmp_path, BrokerConfig(cluster="PeerCluster"), release="5.3") as client:
            return await everything(client)

    for their, our in zip(theirs, asyncio.run(scenario()), strict=True):
        assert our == their
