"""Who is connected, and who is told of it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from brokers import Asking, asking, run

from engine.broker.config import BrokerConfig


def beat(client_id: str, *topics: str, group: str = "readers") -> bytes:
    subscriptions = [{"topic": topic, "subString": "*", "subVersion": 1, "expressionType": "TAG"} for topic in topics]
    consumer = {
        "groupName": group,
        "consumeType": "CONSUME_PASSIVELY",
        "messageModel": "CLUSTERING",
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
        "subscriptionDataSet": subscriptions,
    }
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


def test_subscriptions_by_sql_are_looked_at_before_they_hold(tmp_path: Path) -> None:
    def asked(kind: str, text: str) -> bytes:
        told = {"topic": "Orders", "subString": text, "expressionType": kind, "subVersion": 1}
        return json.dumps({"clientId": "one", "group": "readers", "subscriptionData": told}).encode()

    async def off() -> None:
        async with asking(tmp_path / "off") as client:
            assert (await client.ask(46, asked("TAG", "a"))).code == 0
            answer = await client.ask(46, asked("SQL92", "a > 1"))
            assert (answer.code, answer.remark) == (
                1,
                "The broker does not support consumer to filter message by SQL92",
            )

    async def on() -> None:
        async with asking(tmp_path / "on", BrokerConfig(property_filter=True)) as client:
            assert (await client.ask(46, asked("SQL92", "a > 1"))).code == 0
            assert (await client.ask(46, asked("SQL92", "a >"))).code == 23

    run(off)
    run(on)
