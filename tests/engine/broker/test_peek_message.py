"""Peeks, notifications and the number of waiting pops."""

from __future__ import annotations

import asyncio
from pathlib import Path

from brokers import asking_broker, run_scenario
from pops import GROUP, pop, popped, sent

WHERE = {"consumerGroup": GROUP, "topic": "Orders", "queueId": -1}


def test_a_peek_changes_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await sent(client, b"one", b"two")
            for _ in range(2):
                response = await client.ask(200052, **WHERE, maxMsgNums=1)
                assert (response.code, response.remark, response.fields["restNum"]) == (0, "FOUND", "2")
                assert [unit.body for unit in popped(response)] == [b"one"]
            await pop(client)
            nothing = await client.ask(200052, **WHERE, maxMsgNums=1)
            assert (nothing.code, nothing.remark) == (19, "NO_MESSAGE_IN_QUEUE")
            assert nothing.fields == {"popTime": "0", "invisibleTime": "0", "reviveQid": "0", "restNum": "0"}
            assert (await client.ask(200052, **{**WHERE, "topic": "No"}, maxMsgNums=1)).code == 17

    run_scenario(scenario)


def test_a_notification_arrives_when_a_message_arrives(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await sent(client, b"one")
            response = await client.ask(200054, **WHERE, pollTime=0, bornTime=0)
            assert (response.code, response.fields) == (0, {"hasMsg": "true", "pollingFull": "false"})
            await pop(client)
            late = await client.ask(200054, **WHERE, pollTime=100, bornTime=0)
            assert late.fields["hasMsg"] == "false"
            waiting = asyncio.create_task(client.ask(200054, **WHERE, pollTime=20_000, bornTime=0))
            while not len(client.server.broker.notices):
                await asyncio.sleep(0.001)
            await sent(client, b"two")
            assert (await waiting).fields["hasMsg"] == "true"

    run_scenario(scenario)


def test_a_blocked_queue_has_nothing_for_an_orderly_reader(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await sent(client, b"one", b"two")
            await pop(client, order=True, attemptId="a", maxMsgNums=1)
            request_fields = {**WHERE, "pollTime": 0, "bornTime": 0, "order": True}
            assert (await client.ask(200054, **request_fields, attemptId="b")).fields["hasMsg"] == "false"
            assert (await client.ask(200054, **request_fields, attemptId="a")).fields["hasMsg"] == "true"

    run_scenario(scenario)


def test_waiting_pops_are_counted_by_topic_group_and_queue(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await sent(client, b"one")
            await pop(client)
            waiting = [asyncio.create_task(pop(client, pollTime=20_000, queueId=queue_id)) for queue_id in (-1, -1, 0)]
            while len(client.server.broker.pops) < 3:
                await asyncio.sleep(0.001)
            counts = [await client.ask(200055, **{**WHERE, "queueId": queue_id}) for queue_id in (-1, 0, 1)]
            assert [count.fields["pollingNum"] for count in counts] == ["2", "1", "0"]
            client.server.broker.pops.end()
            assert {(await waiting_pop).code for waiting_pop in waiting} == {210}

    run_scenario(scenario)
