"""Queries of queue bounds, times and single messages."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from brokers import asking_broker, run_scenario

from engine.codec.message import decode
from engine.config import MessageStoreConfig
from engine.inspection.derived_config import derived_config
from engine.inspection.snapshot import open_store
from engine.releases import Release

QUEUE = {"topic": "Orders", "queueId": 0}


def test_a_sender_that_has_its_answer_sees_its_message_counted(tmp_path: Path) -> None:
    """The dispatch runs beside: a client that asked at once got an older end of the queue."""

    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            client.server.broker.store.services.pause("reput")
            for number in range(1, 4):
                await client.send("Orders", b"body")
                assert (await client.ask(30, **QUEUE)).fields["offset"] == str(number)
            await client.send("Orders", b"body")
            assert (await client.ask(202, topic="Orders")).code == 0
            assert client.server.broker.store.max_offset_in_queue("Orders", 0) == 4
            client.server.broker.store.services.resume("reput")

    run_scenario(scenario)


def test_bounds_and_times_of_a_queue(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            assert (await client.ask(30, **QUEUE)).fields["offset"] == "0"
            assert (await client.ask(32, **QUEUE)).fields["timestamp"] == "-1"
            for body in (b"one", b"two", b"three"):
                await client.send("Orders", body)
            client.server.broker.store.wait_dispatched()
            assert (await client.ask(30, **QUEUE)).fields["offset"] == "3"
            assert (await client.ask(31, **QUEUE)).fields["offset"] == "0"
            first_timestamp = int((await client.ask(32, **QUEUE)).fields["timestamp"])
            assert first_timestamp > 1_700_000_000_000
            assert (await client.ask(29, **QUEUE, timestamp=0)).fields["offset"] == "0"
            answer_for_late_time = await client.ask(29, **QUEUE, timestamp=first_timestamp + 3_600_000)
            assert answer_for_late_time.fields["offset"] in {"2", "3"}

    run_scenario(scenario)


def test_a_message_by_its_offset_and_by_its_key(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            sent = await client.send("Orders", b"one", properties="KEYS\x01K1\x02")
            client.server.broker.store.wait_dispatched()
            offset = int(sent.fields["msgId"][-16:], 16)
            viewed = bytes((await client.ask(33, offset=offset)).body)
            assert decode(viewed, 0, offset).body == b"one"
            request_fields = {"topic": "Orders", "maxNum": 32, "beginTimestamp": 0, "endTimestamp": 1 << 60}
            response = await client.ask(12, key="K1", **request_fields)
            assert (response.code, bytes(response.body)) == (0, viewed)
            unique = sent.fields["transactionId"]
            assert bytes((await client.ask(12, key=unique, **request_fields, _UNIQUE_KEY_QUERY=True)).body) == viewed
            missing = await client.ask(12, key="nobody", **request_fields)
            assert missing.code == 22
            assert missing.remark == "can not find message, maybe time range not correct"

    run_scenario(scenario)


def test_a_message_is_found_by_its_key_as_soon_as_its_sender_has_the_answer(tmp_path: Path) -> None:
    """RocketMQ's QueryMsgByKeyIT sends and asks at once: the index did not have the message yet."""

    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            for number in range(30):
                await client.send("Orders", b"x", properties=f"KEYS\x01K{number}\x02")
                fields = {"topic": "Orders", "maxNum": 32, "beginTimestamp": 0, "endTimestamp": 1 << 60}
                assert (await client.ask(12, key=f"K{number}", **fields)).code == 0

    run_scenario(scenario)


def test_a_query_by_tag_uses_the_tag_entries_of_the_index(golden: Callable[[str], Path], tmp_path: Path) -> None:
    """Clients of 5.4 send ``indexType``. We ignored it and found no entry in an index that has them."""
    store = tmp_path / "store"
    shutil.copytree(golden("broker-tags-5.5.1"), store, ignore=shutil.ignore_patterns("timerwheel", "rocksdbstore"))
    with open_store(store) as opened:
        sizes = derived_config(opened)

    async def scenario() -> None:
        async with asking_broker(store, store_config=sizes) as client:
            request_fields = {
                "topic": "TagTopic",
                "key": "open",
                "maxNum": 5,
                "beginTimestamp": 0,
                "endTimestamp": 1 << 60,
            }
            response = await client.ask(12, **request_fields, indexType="T")
            units, position = [], 0
            while position < len(response.body):
                units.append(decode(response.body, position, 0, crc=False))
                position += units[-1].size
            assert [unit.tags for unit in units] == ["open"] * 5
            for index_type in ("K", "U", "X"):
                assert (await client.ask(12, **request_fields, indexType=index_type)).code == 22

    run_scenario(scenario)


@pytest.mark.parametrize(("release", "code"), [("5.4", 0), ("5.5", 16)])
def test_a_message_of_another_topic_is_not_shown_since_5_5_1(tmp_path: Path, release: Release, code: int) -> None:
    """A client that may read one topic could read every message by its id."""

    async def scenario() -> None:
        async with asking_broker(tmp_path, store_config=MessageStoreConfig(enable_lmq=True), release=release) as client:
            light = "INNER_MULTI_DISPATCH\x01%LMQ%a,%LMQ%b\x02"
            offsets = [
                (await client.send(*message)).fields["msgId"][16:]
                for message in (("Orders", b"one", 0, light), ("Orders", b"later", 0, "DELAY\x013\x02"))
            ]
            for offset in (int(text, 16) for text in offsets):
                assert {(await client.ask(33, offset=offset, topic=topic)).code for topic in ("Orders", "", " ")} == {0}
                assert (await client.ask(33, offset=offset)).code == 0
                assert (await client.ask(33, offset=offset, topic="Payments")).code == code
                assert (await client.ask(33, offset=offset, topic="SCHEDULE_TOPIC_XXXX")).code == code
            of_light_queues = [
                (await client.ask(33, offset=int(offsets[0], 16), topic=f"%LMQ%{name}")).code for name in "abc"
            ]
            assert of_light_queues == [0, 0, code]

    run_scenario(scenario)


def test_viewing_an_offset_where_no_message_begins_fails(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await client.send("Orders", b"one")
            for offset in (1 << 40, -5):
                answer = await client.ask(33, offset=offset)
                assert (answer.code, answer.remark) == (1, f"can not find message by the offset, {offset}")

    run_scenario(scenario)


def test_entries_of_a_queue_as_they_are_stored(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            for number in range(3):
                await client.send("Orders", b"%d" % number)
            client.server.broker.store.wait_dispatched()
            answer = await client.ask(321, topic="Orders", queueId=0, index=1, count=10)
            record = json.loads(bytes(answer.body))
            assert (record["minQueueIndex"], record["maxQueueIndex"]) == (0, 3)
            assert [row["physicSize"] > 0 for row in record["queueData"]] == [True, True]
            for index in (3, -1):
                missing = await client.ask(321, topic="Orders", queueId=0, index=index, count=1)
                assert (missing.code, missing.remark) == (0, f"Index {index} of 0@Orders is not exist!")
            missing = await client.ask(321, topic="Orders", queueId=9, index=0, count=1)
            assert (missing.code, missing.remark) == (1, "9@Orders is not exist!")
            response = await client.ask(321, topic="Orders", queueId=0, index=1, count=1, consumerGroup="nobody")
            assert json.loads(bytes(response.body))["filterData"] == "nobody@Orders is not online!"

    run_scenario(scenario)
