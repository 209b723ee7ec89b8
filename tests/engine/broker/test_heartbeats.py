"""Who is connected, and who is told of it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from brokers import Asking, asking, run


def beat(client_id: str, *topics: str, group: str = "readers") -> bytes:
    subscriptions = [{"topic": topic, "subString": "*", "subVersion": 1, "expressionType": "TAG"} for topic in topics]
    consumer = {
        "groupName": group, "consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING",
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET", "subscriptionDataSet": subscriptions,
    }  # fmt: skip
    return json.dumps({"clientID": client_id, "consumerDataSet": [consumer], "producerDataSet": []}).encode()


def test_members_are_listed_and_told_of_each_other(tmp_path: Path) -> None:
    async def told() -> None:
        async with asking(tmp_path) as one:
            other = Asking(one.server)
            await other.open()
            assert (await one.ask(38, consumerGroup="readers")).code == 1
            assert (await one.ask(34, beat("one", "Orders"))).code == 0
            assert (await other.ask(34, beat("two", "Orders"))).code == 0
            listed = json.loads(bytes((await one.ask(38, consumerGroup="readers")).body))
            assert listed == {"consumerIdList": ["one", "two"]}
            told_before = len(one.told)
            assert {command.code for command in one.told} == {40}
            other.close()
            while len(one.told) == told_before:
                await asyncio.sleep(0.005)
            listed = json.loads(bytes((await one.ask(38, consumerGroup="readers")).body))
            assert listed == {"consumerIdList": ["one"]}
            assert (await one.ask(35, clientID="one", consumerGroup="readers")).code == 0
            assert (await one.ask(38, consumerGroup="readers")).code == 1

    run(told)


def test_a_group_gets_its_retry_topic(tmp_path: Path) -> None:
    async def told() -> None:
        async with asking(tmp_path) as client:
            await client.ask(34, beat("one", "Orders"))
            assert (await client.ask(351, topic="%RETRY%readers")).code == 0

    run(told)
