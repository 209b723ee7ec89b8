"""Who is connected, and who reads what."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from brokers import Asking, asking, run

from engine.remoting.subscriptions import Subscription

HELLO = {
    "clientID": "one",
    "producerDataSet": [{"groupName": "senders"}],
    "consumerDataSet": [
        {
            "groupName": "readers",
            "consumeType": "CONSUME_PASSIVELY",
            "messageModel": "CLUSTERING",
            "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET",
            "subscriptionDataSet": [Subscription.of("Orders", "a || b", 7).record()],
        }
    ],
}


async def body(client: Asking, code: int, **fields: object) -> dict[str, Any]:
    answer = await client.ask(code, **fields)
    assert answer.code == 0
    read: dict[str, Any] = json.loads(bytes(answer.body))
    return read


def test_connections_of_groups(tmp_path: Path) -> None:
    async def told() -> None:
        async with asking(tmp_path) as client:
            nobody = await client.ask(203, consumerGroup="readers")
            assert (nobody.code, nobody.remark) == (206, "the consumer group[readers] not online")
            nobody = await client.ask(204, producerGroup="senders")
            assert (nobody.code, nobody.remark) == (1, "the producer group[senders] not exist")
            await client.ask(34, json.dumps(HELLO).encode())
            found = await body(client, 203, consumerGroup="readers")
            assert [(one["clientId"], one["language"]) for one in found["connectionSet"]] == [("one", "JAVA")]
            assert (found["consumeType"], found["messageModel"]) == ("CONSUME_PASSIVELY", "CLUSTERING")
            assert found["subscriptionTable"]["Orders"]["tagsSet"] == ["a", "b"]
            assert len((await body(client, 204, producerGroup="senders"))["connectionSet"]) == 1
            (sender,) = (await body(client, 328))["data"]["senders"]
            assert (sender["clientId"], sender["language"]) == ("one", "JAVA")

    run(told)


def test_who_reads_what(tmp_path: Path) -> None:
    async def told() -> None:
        async with asking(tmp_path) as client:
            await client.send("Orders", b"one")
            client.server.broker.store.tables.create_group("gone")
            await client.ask(15, consumerGroup="gone", topic="Orders", queueId=0, commitOffset=1)
            await client.ask(34, json.dumps(HELLO).encode())
            assert (await body(client, 300, topic="Orders"))["groupList"] == ["readers", "gone"]
            assert (await body(client, 343, group="gone"))["topicList"] == ["Orders"]

    run(told)
