"""An administrator says what a group reads next: at its next pull (5.x), or by word to its members (4.9)."""

from __future__ import annotations

from pathlib import Path

import pytest
from brokers import Asking, asking, run

from engine import releases
from engine.codec.json_dialect import parse

BEAT = (
    b'{"clientID":"one","producerDataSet":[],"consumerDataSet":[{"groupName":"readers","consumeType":'
    b'"CONSUME_PASSIVELY","messageModel":"CLUSTERING","consumeFromWhere":"CONSUME_FROM_LAST_OFFSET",'
    b'"subscriptionDataSet":[{"topic":"Orders","subString":"*","subVersion":1,"expressionType":"TAG"}]}]}'
)


async def filled(client: Asking) -> None:
    """Five messages in queue 0, read up to 5."""
    for number in range(5):
        await client.send("Orders", b"%d" % number)
    client.server.broker.store.wait_dispatched()
    await client.ask(34, BEAT)
    await client.ask(
        200, b'{"groupName":"readers","retryQueueNums":1,"retryMaxTimes":16,"consumeEnable":true,"brokerId":0}'
    )
    answer = await client.ask(15, consumerGroup="readers", topic="Orders", queueId=0, commitOffset=5)
    assert answer.code == 0


def offsets(body: bytes | memoryview) -> dict[int, int]:
    table = parse(bytes(body)).value["offsetTable"]
    return {key.value["queueId"]: at for key, at in table.items()}


async def reset(client: Asking, timestamp: int = 0, **more: object):
    return await client.ask(222, topic="Orders", group="readers", timestamp=timestamp, isForce=True, **more)


def test_the_next_pull_is_told_and_until_then_nothing_is_committed(tmp_path: Path) -> None:
    async def told() -> None:
        async with asking(tmp_path) as client:
            await filled(client)
            answer = await reset(client, queueId=0, offset=2)
            assert (answer.code, offsets(answer.body)) == (0, {0: 2})
            place = {"consumerGroup": "readers", "topic": "Orders", "queueId": 0}
            late = await client.ask(15, **place, commitOffset=4)
            assert (late.code, late.remark) == (0, "Offset has been previously reset")
            assert (await client.ask(14, **place)).fields["offset"] == "2"
            pulled = await client.pull("Orders", 5)
            assert (pulled.code, pulled.fields["nextBeginOffset"], pulled.remark) == (21, "2", "OFFSET_RESET")
            assert (await client.pull("Orders", 2)).code == 0
            assert (await client.ask(14, **place)).fields["offset"] == "2"
            assert (await client.ask(15, **place, commitOffset=4)).remark in (None, "")
            assert (await client.ask(14, **place)).fields["offset"] == "4"

    run(told)


def test_by_time_every_queue_is_set(tmp_path: Path) -> None:
    async def told() -> None:
        async with asking(tmp_path) as client:
            await filled(client)
            assert offsets((await reset(client)).body) == {0: 0, 1: 0, 2: 0, 3: 0}
            assert offsets((await reset(client, -1)).body) == {0: 5, 1: 0, 2: 0, 3: 0}

    run(told)


@pytest.mark.parametrize(
    ("asked", "code", "words"),
    [
        ({"topic": "None"}, 17, "Topic None does not exist"),
        ({"group": "nobody"}, 26, "Group nobody does not exist"),
        ({"queueId": 0, "offset": 9}, 1, "Target offset 9 not in consume queue range [0-5]"),
    ],
)
def test_what_cannot_be_reset_is_told(tmp_path: Path, asked: dict[str, object], code: int, words: str) -> None:
    async def told() -> None:
        async with asking(tmp_path) as client:
            await filled(client)
            fields = {"topic": "Orders", "group": "readers", "timestamp": 0, "isForce": True, **asked}
            answer = await client.ask(222, **fields)
            assert (answer.code, answer.remark) == (code, words)

    run(told)


def test_members_are_told_where_the_release_is_4_9(tmp_path: Path) -> None:
    async def told() -> None:
        async with asking(tmp_path) as client:
            await filled(client)
            client.server.broker.store.rules = releases.of("4.9")
            for queue_id in range(1, 4):
                await client.ask(15, consumerGroup="readers", topic="Orders", queueId=queue_id, commitOffset=0)
            answer = await reset(client)
            assert (answer.code, offsets(answer.body)) == (0, {0: 0, 1: 0, 2: 0, 3: 0})
            asked = [one for one in client.told if one.code == 220]
            assert [(one.fields["topic"], one.fields["group"], offsets(one.body)[0]) for one in asked] == [
                ("Orders", "readers", 0)
            ]
            client.server.broker.clients.consumers.clear()
            nobody = await reset(client)
            assert (nobody.code, (nobody.remark or "")[:43]) == (206, "Consumer not online, so can not reset offse")

    run(told)
