"""Committed offsets, and resets that an administrator requests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from brokers import BrokerClient, asking_broker, run_scenario

from engine import releases
from engine.broker.consumer_offsets import Resets
from engine.broker.server import ListeningBroker
from engine.codec.json_dialect import parse
from engine.message_store import MessageStore
from engine.remoting.connection import bind


def test_a_reset_offset_is_returned_once() -> None:
    resets = Resets()
    resets.set("readers", "Orders", 1, 5)
    assert (resets.offset("readers", "Orders", 1), resets.offset("readers", "Orders", 0)) == (5, None)
    assert [resets.take("readers", "Orders", 1) for _ in range(2)] == [5, None]


QUEUE = {"consumerGroup": "readers", "topic": "Orders", "queueId": 0}


def test_a_group_without_a_commit_begins_at_0_if_the_first_message_exists(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            assert (await client.ask(14, **QUEUE)).code == 22
            await client.send("Orders", b"one")
            client.server.broker.store.wait_dispatched()
            answer = await client.ask(14, **QUEUE)
            assert (answer.code, answer.fields["offset"]) == (0, "0")
            assert (await client.ask(14, **QUEUE, setZeroIfNotFound=False)).code == 22

    run_scenario(scenario)


def test_a_committed_offset_survives_a_restart(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await client.send("Orders", b"one")
            refused = await client.ask(15, **QUEUE, commitOffset=1)
            assert (refused.code, refused.remark) == (26, "Group readers not exist!")
            client.server.broker.store.tables.create_group("readers")
            assert (await client.ask(15, **QUEUE, commitOffset=1)).fields == {}
            assert (await client.ask(14, **QUEUE)).fields["offset"] == "1"
            table = json.loads(bytes((await client.ask(43)).body).replace(b"{0:", b'{"0":'))
            assert table["offsetTable"]["Orders@readers"] == {"0": 1}

    run_scenario(scenario)
    with MessageStore(tmp_path) as store:
        assert store.tables.consumer_offset("readers", "Orders", 0) == 1


def test_a_commit_of_minus_one_is_ignored(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await client.send("Orders", b"one")
            client.server.broker.store.wait_dispatched()
            await client.ask(15, **QUEUE, commitOffset=-1)
            assert (await client.ask(14, **QUEUE)).fields["offset"] == "0"

    run_scenario(scenario)


def test_an_unknown_topic_takes_no_offset(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            client.server.broker.store.tables.create_group("readers")
            answer = await client.ask(15, consumerGroup="readers", topic="Nowhere", queueId=0, commitOffset=1)
            assert (answer.code, answer.remark) == (17, "Topic Nowhere not exist!")

    run_scenario(scenario)


def test_delay_offsets_are_returned_as_in_the_file(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            client.server.broker.store.tables.set_delay_offset(3, 17)
            text = bytes((await client.ask(45)).body).decode()
            assert "".join(text.split()).endswith('"offsetTable":{3:17}}')

    run_scenario(scenario)


def test_before_5_an_empty_queue_begins_at_0_and_every_client_may_commit(tmp_path: Path) -> None:
    """A queue without messages begins at 0, even if its topic is not declared."""

    async def scenario() -> None:
        with MessageStore(tmp_path, release="4.9") as store, bind("127.0.0.1", 0) as position:
            async with ListeningBroker(store, listening_socket=position) as server:
                client = BrokerClient(server)
                await client.open()
                assert (await client.ask(14, **QUEUE)).fields["offset"] == "0"
                for topic in ("Orders", "Nowhere"):
                    assert (await client.ask(15, **{**QUEUE, "topic": topic}, commitOffset=3)).code == 0
                assert (await client.ask(14, **QUEUE)).fields["offset"] == "3"
                client.close()

    run_scenario(scenario)


BEAT = (
    b'{"clientID":"one","producerDataSet":[],"consumerDataSet":[{"groupName":"readers","consumeType":'
    b'"CONSUME_PASSIVELY","messageModel":"CLUSTERING","consumeFromWhere":"CONSUME_FROM_LAST_OFFSET",'
    b'"subscriptionDataSet":[{"topic":"Orders","subString":"*","subVersion":1,"expressionType":"TAG"}]}]}'
)


async def filled(client: BrokerClient) -> None:
    """Send five messages to queue 0 and commit offset 5."""
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
    return {key.value["queueId"]: current for key, current in table.items()}


async def reset(client: BrokerClient, timestamp: int = 0, **options: object):
    return await client.ask(222, topic="Orders", group="readers", timestamp=timestamp, isForce=True, **options)


def test_a_reset_applies_to_the_next_pull_and_blocks_commits_until_then(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
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

    run_scenario(scenario)


def test_by_time_every_queue_is_set(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await filled(client)
            assert offsets((await reset(client)).body) == {0: 0, 1: 0, 2: 0, 3: 0}
            assert offsets((await reset(client, -1)).body) == {0: 5, 1: 0, 2: 0, 3: 0}

    run_scenario(scenario)


@pytest.mark.parametrize(
    ("changed_fields", "code", "words"),
    [
        ({"topic": "None"}, 17, "Topic None does not exist"),
        ({"group": "nobody"}, 26, "Group nobody does not exist"),
        ({"queueId": 0, "offset": 9}, 1, "Target offset 9 not in consume queue range [0-5]"),
    ],
)
def test_an_impossible_reset_is_refused(
    tmp_path: Path, changed_fields: dict[str, object], code: int, words: str
) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await filled(client)
            fields = {"topic": "Orders", "group": "readers", "timestamp": 0, "isForce": True, **changed_fields}
            answer = await client.ask(222, **fields)
            assert (answer.code, answer.remark) == (code, words)

    run_scenario(scenario)


def test_members_are_notified_of_a_reset_in_4_9(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await filled(client)
            client.server.broker.store.rules = releases.rules_of("4.9")
            for queue_id in range(1, 4):
                await client.ask(15, consumerGroup="readers", topic="Orders", queueId=queue_id, commitOffset=0)
            answer = await reset(client)
            assert (answer.code, offsets(answer.body)) == (0, {0: 0, 1: 0, 2: 0, 3: 0})
            requests = [command for command in client.requests if command.code == 220]
            assert [
                (request.fields["topic"], request.fields["group"], offsets(request.body)[0]) for request in requests
            ] == [("Orders", "readers", 0)]
            client.server.broker.clients.consumers.clear()
            answer_without_members = await reset(client)
            assert (answer_without_members.code, (answer_without_members.remark or "")[:43]) == (
                206,
                "Consumer not online, so can not reset offse",
            )

    run_scenario(scenario)
