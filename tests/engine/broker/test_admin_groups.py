"""Consumer groups: an administrator declares, deletes and lists them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from brokers import BrokerClient, asking_broker, run_scenario

from engine.broker.config import BrokerConfig
from engine.broker.server import ListeningBroker
from engine.broker.serving import serving_open
from engine.message_store import MessageStore
from engine.releases import Release
from engine.remoting.connection import bind


def test_a_group_is_declared_with_all_fields_of_its_row(tmp_path: Path) -> None:
    row = {"groupName": "readers", "retryQueueNums": 2, "retryMaxTimes": 3, "ofALaterRelease": 7}

    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            assert (await client.ask(200, json.dumps(row).encode())).code == 0
            record = json.loads(bytes((await client.ask(352, group="readers")).body))
            assert {name: record[name] for name in row} == row
            assert record["consumeEnable"] is True
            every = json.loads(bytes((await client.ask(201)).body))
            assert "readers" in every["subscriptionGroupTable"]
            assert (await client.ask(352, group="made now")).code == 26
            assert json.loads(bytes((await client.ask(352, group="made-now")).body))["groupName"] == "made-now"

    run_scenario(scenario)
    with MessageStore(tmp_path) as store:
        assert store.tables.groups()["readers"].retry_max_times == 3


def test_an_invalid_row_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            for wrong in (b"", b"[1]", b'{"groupName":"a","retryQueueNums":"x"}'):
                assert (await client.ask(200, wrong)).code == 1, wrong
            for nameless in (b"{}", b'{"groupName":""}'):
                answer = await client.ask(200, nameless)
                assert (answer.code, answer.remark) == (29, "The specified group is blank.")

    run_scenario(scenario)


@pytest.mark.parametrize(("release", "longest"), [("5.3", 255), ("5.4", 120), ("5.5", 120)])
def test_a_group_name_is_limited_as_in_the_release(tmp_path: Path, release: Release, longest: int) -> None:
    """RocketMQ 5.4 and later refuse a group name of more than 120 letters. Our broker accepted it."""

    def opened(shown: str) -> MessageStore:
        return MessageStore(tmp_path, release=release, store_host=shown)

    async def scenario() -> None:
        async with serving_open(opened, BrokerConfig(), port=0) as server:
            client = BrokerClient(server)
            await client.open()
            groups = server.broker.topics.group
            assert groups("g" * longest) is not None
            assert groups("h" * (longest + 1)) is None
            response = await client.ask(200, json.dumps({"groupName": "i" * 121}).encode())
            rows = {"groupConfigList": [{"groupName": "fine"}, {"groupName": "j" * 121}]}
            many = await client.ask(225, json.dumps(rows).encode())
            client.close()
            if longest == 120:
                assert response.remark == f"The specified group: {'i' * 121}, is longer than group max length: 120"
                assert (response.code, many.code, server.broker.topics.is_group("fine")) == (29, 29, False)
            else:
                assert (response.code, many.code) == (0, 0)

    run_scenario(scenario)


@pytest.mark.parametrize(("release", "code"), [("4.9", 0), ("5.3", 0), ("5.5", 29)])
def test_a_group_without_a_name_is_accepted_as_in_the_release(tmp_path: Path, release: Release, code: int) -> None:
    """The codes are those that brokers of 4.9.7, 5.3.3 and 5.5.0 returned. A C++ client uses such a group."""

    async def scenario() -> None:
        with bind("127.0.0.1", 0) as position, MessageStore(tmp_path, release=release) as store:
            async with ListeningBroker(store, BrokerConfig(), listening_socket=position) as server:
                client, tables = BrokerClient(server), store.tables
                await client.open()
                await client.send("Orders", b"one")
                await client.pull("Orders", 0, group="")
                assert ("" in tables.groups()) is (code == 0)
                for body in (b'{"groupName":""}', b'{"groupName":[]}'):
                    assert (await client.ask(200, body)).code == code
                assert ("[]" in tables.groups()) is (code == 0)
                client.close()

    run_scenario(scenario)


def test_a_deleted_group_keeps_its_offsets_unless_their_deletion_is_requested(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await client.send("Orders", b"one")
            offset = {"consumerGroup": "readers", "topic": "Orders", "queueId": 0}
            for clean, code in ((False, 0), (True, 22)):
                client.server.broker.store.tables.create_group("readers")
                await client.ask(15, **offset, commitOffset=1)
                assert (await client.ask(207, groupName="readers", cleanOffset=clean)).code == 0
                assert (await client.ask(14, **offset, setZeroIfNotFound=False)).code == code

    run_scenario(scenario)


def test_progress_reports_the_offset_up_to_which_messages_were_pulled(tmp_path: Path) -> None:
    """A group that had pulled to 50 and committed 7 was reported with a pullOffset of 7, so nothing seemed to be in
    flight.
    RocketMQ 5.3.3 and 5.5.0 remember where each pull ended.
    """

    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            for number in range(60):
                await client.send("Orders", b"%d" % number)
            client.server.broker.store.wait_dispatched()

            async def offsets() -> tuple[int, int]:
                text = bytes((await client.ask(208, consumerGroup="readers", topic="Orders")).body).decode()
                row = json.loads(re.findall(r"\{[^{}]*brokerOffset[^{}]*\}", text)[0])
                return row["consumerOffset"], row["pullOffset"]

            async def commit(offset: int) -> None:
                await client.ask(15, consumerGroup="readers", topic="Orders", queueId=0, commitOffset=offset)

            assert await offsets() == (0, 0)
            await client.pull("Orders", 40, maxMsgNums=10)
            assert await offsets() == (0, 50)
            await commit(7)
            assert await offsets() == (7, 50)
            await commit(57)
            assert await offsets() == (57, 57)
            await client.pull("Orders", 500)
            assert await offsets() == (57, 60)
            await client.ask(222, topic="Orders", group="readers", timestamp=-2, isForce=True, offset=30, queueId=0)
            assert await offsets() == (30, 60)
            moved = await client.pull("Orders", 40)
            assert (moved.fields["nextBeginOffset"], moved.fields["groupSysFlag"]) == ("30", "0")
            assert await offsets() == (30, 30)

    run_scenario(scenario)


def test_progress_is_reported_for_each_queue_that_is_read(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            for body in (b"one", b"two"):
                await client.send("Orders", body)
            client.server.broker.store.tables.create_group("readers")
            await client.ask(15, consumerGroup="readers", topic="Orders", queueId=0, commitOffset=1)
            client.server.broker.store.wait_dispatched()
            text = bytes((await client.ask(208, consumerGroup="readers")).body).decode()
            assert '"topic":"Orders"}:{"brokerOffset":2,"consumerOffset":1,' in text
            assert text.count("brokerOffset") == 4

    run_scenario(scenario)


def test_several_groups_are_declared_at_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            rows = [{"groupName": "one"}, {"groupName": "two", "retryMaxTimes": 3}]
            assert (await client.ask(225, json.dumps({"groupConfigList": rows}).encode())).code == 0
            groups = client.server.broker.store.tables.groups()
            assert (groups["one"].retry_max_times, groups["two"].retry_max_times) == (16, 3)
            assert (await client.ask(225, b"{}")).code == 1

    run_scenario(scenario)


def test_several_groups_are_deleted(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path, release="5.5") as client:
            tables = client.server.broker.store.tables
            for name in ("a", "b", "c"):
                tables.create_group(name)
                tables.commit_consumer_offset(name, "Orders", 0, 1)
            for body, remark in (
                (b"", "The specified group name list is blank."),
                (b'{"groupNameList":["a",""]}', "The specified group name is blank."),
            ):
                answer = await client.ask(5003, body)
                assert (answer.code, answer.remark) == (29, remark)
            assert (await client.ask(5003, b'{"groupNameList":["a","nobody"]}')).code == 0
            assert (await client.ask(5003, b'{"groupNameList":["b"],"cleanOffset":true}')).code == 0
            assert tables.groups().keys() & {"a", "b", "c"} == {"c"}
            assert [tables.consumer_offset(name, "Orders", 0) for name in ("a", "b", "c")] == [1, -1, 1]

    run_scenario(scenario)
