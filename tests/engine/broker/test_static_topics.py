"""Static topics over two brokers and a name server: logical queues and offsets, before and after a queue moves."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from brokers import BrokerClient, asking_broker, run_scenario
from pops import pop
from static_topic_brokers import FIRST, MOVED, PLAIN, declare, moved_queue, offset, pulled

from engine.broker.config import BrokerConfig
from engine.codec.json_dialect import parse
from engine.codec.message import COMMIT
from engine.codec.queue_mappings import MappedRange
from engine.remoting.codes import RequestCode, ResponseCode
from engine.remoting.connection import connect
from engine.remoting.frame import Command


def test_a_logical_queue_is_another_queue_of_its_broker(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path, BrokerConfig(broker_name="a")) as client:
            queues = {0: (MappedRange(0, 1, "a", 0),), 1: (MappedRange(0, 0, "b", 0),)}
            assert (await declare(client, queues, count=2)).code == 0
            answer = await client.send("T", b"x")
            assert (answer.fields["queueId"], answer.fields["queueOffset"]) == ("0", "0")
            answer = await client.send("T", b"x", -1)
            assert (answer.fields["queueId"], answer.fields["queueOffset"]) == ("0", "1")
            client.server.broker.store.wait_dispatched()
            assert client.server.broker.store.max_offset_in_queue("T", 1) == 2
            assert await pulled(client, 0) == (0, 2, 0, 2)
            assert await pulled(client, 9) == (ResponseCode.PULL_NOT_FOUND, 2, 0, 2)
            assert [await offset(client, code) for code in (30, 31)] == [2, 0]
            assert await offset(client, 30, lo=False) == 0
            await client.ask(15, **PLAIN, commitOffset=1)
            assert await offset(client, 14) == 1
            assert client.server.broker.store.tables.consumer_offset("readers", "T", 1) == 1

    run_scenario(scenario)


def test_a_half_message_goes_to_the_leading_queue_and_pops_name_the_brokers_own_queues(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path, BrokerConfig(broker_name="a")) as client:
            await declare(client, {0: (MappedRange(0, 1, "a", 0),), 1: (MappedRange(0, 0, "a", 0),)}, count=2)
            marks = "UNIQ_KEY\x01U\x02TRAN_MSG\x01true\x02PGROUP\x01senders\x02"
            half = await client.send("T", b"half", 0, marks, sysFlag=4)
            assert (half.fields["queueId"], half.fields["queueOffset"]) == ("0", "0")
            place = int(half.fields["msgId"][-16:], 16)
            request = {"topic": "T", "producerGroup": "senders", "tranStateTableOffset": 0, "commitLogOffset": place}
            await client.ask(37, commitOrRollback=COMMIT, **request)
            client.server.broker.store.wait_dispatched()
            assert [client.server.broker.store.max_offset_in_queue("T", number) for number in (0, 1)] == [0, 1]
            assert (await pop(client, topic="T", queueId=0)).fields["msgOffsetInfo"] == ""
            assert (await pop(client, topic="T", queueId=1)).fields["msgOffsetInfo"] == "0 1 0"

    run_scenario(scenario)


def test_requests_for_a_queue_of_another_broker_are_refused_in_rocketmqs_words(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path, BrokerConfig(broker_name="b")) as client:
            await declare(client, {})
            refused = "T-0 does not exit in request process of current broker b"
            for code, fields in ((30, {}), (29, {"timestamp": 0}), (32, {}), (14, {}), (15, {"commitOffset": 1})):
                answer = await client.ask(code, **PLAIN, **fields)
                assert (answer.code, answer.remark) == (ResponseCode.NOT_LEADER_FOR_QUEUE, refused)
            answer = await client.send("T", b"x")
            assert (answer.code, answer.remark) == (501, refused)
            answer = await client.pull("T", 0)
            expected = "T-0 cannot find mapping item in request process of current broker b"
            assert (answer.code, answer.remark) == (501, expected)
            answer = await client.ask(31, **PLAIN)
            assert answer.remark == "T-0 is not leader in broker b, request code 31"

    run_scenario(scenario)


def test_messages_of_a_moved_queue_are_read_through_its_new_broker(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with moved_queue(tmp_path) as (first, second, _):
            assert await pulled(second, 0) == (0, 3, 0, 10_000)
            assert await pulled(second, 3) == (ResponseCode.PULL_RETRY_IMMEDIATELY, 10_000, 10_000, 10_000)
            assert await pulled(second, 10_000) == (0, 10_002, 10_000, 10_002)
            assert (await second.pull("T", 10_000)).fields["offsetDelta"] == "10000"
            assert await pulled(second, 10_002) == (ResponseCode.PULL_NOT_FOUND, 10_002, 10_000, 10_002)
            assert [await offset(second, code) for code in (30, 31)] == [10_002, 0]
            assert await offset(second, 29, timestamp=10**15) == 10_002
            assert await offset(first, 30) == -ResponseCode.NOT_LEADER_FOR_QUEUE

    run_scenario(scenario)


def test_a_groups_offset_is_kept_by_the_broker_that_has_the_message(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with moved_queue(tmp_path) as (first, second, _):
            await first.pull("T", 0, lo=False)  # declares the group
            assert await offset(second, 14) == -ResponseCode.QUERY_NOT_FOUND
            await second.ask(15, **PLAIN, commitOffset=2)
            assert await offset(second, 14) == 2
            assert first.server.broker.store.tables.consumer_offset("readers", "T", 0) == 2
            await second.pull("T", 10_001, sysFlag=5, commitOffset=10_001)
            assert await offset(second, 14) == 10_001
            assert second.server.broker.store.tables.consumer_offset("readers", "T", 0) == 1

    run_scenario(scenario)


def test_a_pull_waits_at_a_logical_queue_until_a_message_comes(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with moved_queue(tmp_path) as (_, second, _):
            other = BrokerClient(second.server)
            await other.open()
            waiting = asyncio.create_task(pulled(other, 10_002, sysFlag=6, suspendTimeoutMillis=30_000))
            while not len(second.server.broker.held):
                await asyncio.sleep(0.01)
            await second.send("T", b"z")
            assert await waiting == (0, 10_003, 10_000, 10_003)
            other.close()

    run_scenario(scenario)


def test_mappings_are_kept_over_a_restart_and_go_with_their_topic(tmp_path: Path) -> None:
    async def scenario() -> None:
        config, file = BrokerConfig(broker_name="a"), tmp_path / "config/topicQueueMapping.json"
        async with asking_broker(tmp_path, config) as client:
            await declare(client, {0: (MappedRange(0, 0, "a", 500),)})
        table = parse(file.read_bytes()).value
        assert table["dataVersion"]["counter"] == 1
        assert table["topicQueueMappingInfoMap"]["T"]["hostedQueues"][0][0]["logicOffset"] == 500
        async with asking_broker(tmp_path, config) as client:
            assert (await client.send("T", b"x")).fields["queueOffset"] == "500"
            detail = parse(bytes((await client.ask(351, topic="T", lo=True)).body)).value["mappingDetail"]
            assert detail["totalQueues"] == 2
            assert "mappingDetail" not in parse(bytes((await client.ask(351, topic="T")).body)).value
            assert "T" in json.loads(bytes((await client.ask(21)).body))["topicQueueMappingDetailMap"]
            await client.ask(215, topic="T")
            assert parse(file.read_bytes()).value["topicQueueMappingInfoMap"] == {}

    run_scenario(scenario)


def test_a_refused_mapping_changes_no_queue(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path, BrokerConfig(broker_name="a")) as client:
            await declare(client, {0: (FIRST,)}, epoch=2)
            answer = await declare(client, {0: MOVED}, epoch=1)
            assert (answer.code, answer.remark) == (1, "Can't accept data with small epoch 1 < 2")
            assert client.server.broker.static_topics.mappings["T"].queues == {0: (FIRST,)}
            assert (await client.ask(513, topic="T")).code == 1

    run_scenario(scenario)


def test_name_servers_know_which_broker_leads_each_logical_queue(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with moved_queue(tmp_path) as (_, second, names):
            host, _, port = names.rpartition(":")
            connection = await connect(host, int(port))
            answer = await connection.ask(Command(105, {"topic": "T", "acceptStandardJsonOnly": "true"}), 5)
            parts = json.loads(bytes(answer.body))["topicQueueMappingByBroker"]
            assert {name: part["currIdMap"] for name, part in parts.items()} == {"a": {}, "b": {"0": 0}}
            assert await second.server.registration.leaders_of("T") == {0: "b"}
            connection.close()

    run_scenario(scenario)


def test_an_answer_of_another_broker_without_an_offset_is_an_error(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path, BrokerConfig(broker_name="b")) as client:

            async def answer(_name: str, _request: Command) -> Command:
                return Command(0)

            await declare(client, {0: (MOVED[0], MappedRange(1, 0, "b", -1))})
            client.server.broker.ask_broker = answer
            reply = await client.ask(RequestCode.GET_MAX_OFFSET, **PLAIN)
            assert (reply.code, reply.remark) == (1, "a answers without an offset")

    run_scenario(scenario)


@pytest.mark.parametrize("code", [RequestCode.GET_MAX_OFFSET, RequestCode.PULL_MESSAGE])
def test_a_range_whose_broker_is_unknown_is_an_error_not_an_answer(tmp_path: Path, code: int) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path, BrokerConfig(broker_name="b")) as client:
            await declare(client, {0: (MOVED[0], MappedRange(1, 0, "b", -1))})
            answer = await (client.pull("T", 0) if code == RequestCode.PULL_MESSAGE else client.ask(code, **PLAIN))
            assert (answer.code, answer.remark) == (1, "cannot find addr for broker a")

    run_scenario(scenario)
