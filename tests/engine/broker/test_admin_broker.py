"""What a broker tells of itself, and takes while it runs."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from brokers import asking, run


def test_a_broker_tells_of_itself(tmp_path: Path) -> None:
    async def told() -> None:
        async with asking(tmp_path) as client:
            lines = bytes((await client.ask(26)).body).decode().splitlines()
            assert "brokerName=broker-a" in lines
            table = json.loads(bytes((await client.ask(28)).body))["table"]
            assert table["brokerVersionDesc"] == "V5_3_3"
            assert all(isinstance(value, str) for value in table.values())

    run(told)


def test_figures_follow_the_store(tmp_path: Path) -> None:
    async def told() -> None:
        async with asking(tmp_path) as client:
            await client.send("Orders", b"one")
            await client.send("Orders", b"late", properties="DELAY\x0118\x02")
            store = client.server.broker.store
            store.wait_dispatched()
            table = json.loads(bytes((await client.ask(28)).body))["table"]
            assert table["commitLogMaxOffset"] == str(store.positions().wrote)
            assert (table["putMessageTimesTotal"], table["dispatchBehindBytes"]) == ("2", "0")
            assert table["scheduleMessageOffset_18"] == "0,1"

    run(told)


def test_held_pulls_are_told_to_those_that_ask(tmp_path: Path) -> None:
    async def told() -> None:
        async with asking(tmp_path) as client:
            await client.send("Orders", b"one")
            assert await asyncio.to_thread(client.server.broker.store.wait_dispatched)
            pull = {
                "consumerGroup": "readers",
                "topic": "Orders",
                "queueId": 0,
                "queueOffset": 1,
                "maxMsgNums": 32,
                "sysFlag": 6,
                "commitOffset": 0,
                "suspendTimeoutMillis": 15_000,
                "subscription": "*",
                "subVersion": 0,
            }
            waiting = asyncio.ensure_future(client.ask(11, **pull))
            broker = client.server.broker
            while not len(broker.held):
                await asyncio.sleep(0.01)
            table = json.loads(bytes((await client.ask(28, heldPulls="true")).body))["table"]
            assert json.loads(table["heldPulls"]) == [["Orders", 0, "readers", 1]]
            assert "heldPulls" not in json.loads(bytes((await client.ask(28)).body))["table"], "as RocketMQ's answers"
            await client.send("Orders", b"two")
            assert (await waiting).code == 0

    run(told)


def test_what_may_change_is_changed_and_the_rest_refused(tmp_path: Path) -> None:
    async def told() -> None:
        async with asking(tmp_path) as client:
            broker = client.server.broker
            assert (await client.ask(25, b"autoCreateTopicEnable=false\nflushDiskType=ASYNC_FLUSH\n")).code == 0
            assert not broker.config.auto_create_topic
            assert (await client.send("New", b"one")).code == 17
            for line in (b"brokerName=other", b"flushDiskType=SYNC_FLUSH"):
                answer = await client.ask(25, line)
                assert answer.code == 1
                assert answer.remark == f"cannot be changed while the broker runs: {line.decode().partition('=')[0]}"
            assert (await client.ask(25, b"autoCreateTopicEnable=maybe")).code == 1
            assert "autoCreateTopicEnable=false" in bytes((await client.ask(26)).body).decode().splitlines()

    run(told)
