"""Sends: what the broker stores, and what it refuses."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from brokers import BrokerClient, asking_broker, run_scenario, units

from engine import releases
from engine.broker import server as server_module
from engine.broker.config import BrokerConfig
from engine.broker.serving import serving_store
from engine.codec.encode import Message, encode_batch
from engine.codec.message import decode
from engine.config import MessageStoreConfig
from engine.message_store import MessageStore
from engine.releases import Release
from engine.remoting.codes import see
from engine.store.put_message import PutMessageResults

RETRIES = ("%RETRY%", "%DLQ%")
DECLARED = {
    "defaultTopic": "TBW102",
    "readQueueNums": 1,
    "writeQueueNums": 1,
    "perm": 6,
    "topicFilterType": "SINGLE_TAG",
    "topicSysFlag": 0,
    "order": "false",
}


def test_a_send_creates_its_topic_and_returns_the_messages_position(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            answer = await client.send("Orders", b"one", queue_id=2, properties="KEYS\x01K1\x02TAGS\x01paid\x02")
            assert (answer.code, answer.fields["queueId"], answer.fields["queueOffset"]) == (0, "2", "0")
            unit = client.server.broker.store.query_by_offset_id(answer.fields["msgId"])
            assert unit is not None
            assert unit.body == b"one"
            assert unit.properties["KEYS"] == "K1"
            assert unit.properties["UNIQ_KEY"] == answer.fields["transactionId"]

    run_scenario(scenario)


def test_a_topic_is_on_the_disk_before_its_first_send_is_answered(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            table = client.server.broker.store.parts.paths.config / "topics.json"
            batch = encode_batch([Message("Batches", b"one")])
            observed: dict[str, bool] = {}

            async def one(name: str) -> None:
                assert (await (client.batch(name, batch) if name == "Batches" else client.send(name, b"one"))).code == 0
                observed[name] = f'"{name}"' in table.read_text("utf-8")

            await asyncio.gather(*map(one, ("First", "Second", "Batches", "Third")))
            assert observed == dict.fromkeys(("First", "Second", "Batches", "Third"), True)

    run_scenario(scenario)


def test_sends_of_one_turn_keep_their_order(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            answers = await asyncio.gather(*(client.send("Orders", b"%d" % number) for number in range(100)))
            assert [int(answer.fields["queueOffset"]) for answer in answers] == list(range(100))

    run_scenario(scenario)


def test_invalid_sends_are_refused_with_rocketmqs_messages(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path, BrokerConfig(auto_create_topic=False)) as client:
            assert (await client.send("SCHEDULE_TOPIC_XXXX", b"one")).code == 16
            assert (await client.send("a topic", b"one")).code == 29
            missing = await client.send("Nowhere", b"one")
            assert (missing.code, missing.remark) == (
                17,
                "topic[Nowhere] not exist, apply first please!" + see(releases.NEWEST),
            )

    run_scenario(scenario)


def test_an_unknown_request_gets_code_3(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            answer = await client.ask(9999)
            assert (answer.code, answer.remark) == (3, " request type 9999 not supported")

    run_scenario(scenario)


def test_members_of_a_batch_have_the_brokers_properties_once(tmp_path: Path) -> None:
    """Batches were stored 62 bytes too large: MSG_REGION, TRACE_ON and CLUSTER were added twice."""

    async def scenario() -> None:
        async with asking_broker(tmp_path, release="5.3") as client:
            members = encode_batch([Message("Orders", b"%d" % number, properties={"K": "v"}) for number in range(3)])
            answer = await client.batch("Orders", members)
            assert (answer.code, answer.fields["msgId"].count(",")) == (0, 2)
            store = client.server.broker.store
            for msg_id in answer.fields["msgId"].split(","):
                unit = store.query_by_offset_id(msg_id)
                assert unit is not None
                assert [unit.properties_raw.count(name) for name in (b"MSG_REGION", b"TRACE_ON", b"CLUSTER")] == [
                    1,
                    1,
                    1,
                ]

    run_scenario(scenario)


def test_a_batch_in_a_topic_of_batch_queues_is_answered_with_its_own_id(tmp_path: Path) -> None:
    """The batch is one unit, so its members have no ids of their own."""

    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            client.server.broker.store.tables.create_topic("Batches", 1, attributes={"queue.type": "BatchCQ"})
            members = encode_batch([Message("Batches", b"one"), Message("Batches", b"two")])
            answer = await client.batch("Batches", members, "UNIQ_KEY\x01U1\x02")
            assert answer.code == 0
            (unit,) = units(client, "Batches")
            assert answer.fields["batchUniqId"] == answer.fields["transactionId"] == unit.unique_key == "U1"
            assert "batchUniqId" not in (await client.batch("Plain", members, "UNIQ_KEY\x01U2\x02")).fields
            await client.batch("Batches", members)
            assert [item.unique_key for item in units(client, "Batches")[1:]] == [None, None]

    run_scenario(scenario)


@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
def test_a_failed_put_is_reported_to_all_waiting_senders(tmp_path: Path, flush: str) -> None:
    """After an internal error of the engine, its senders waited until they timed out."""

    async def scenario() -> None:
        async with serving_store(tmp_path, None, MessageStoreConfig(flush_disk_type=flush), port=0) as server:
            client = BrokerClient(server)
            await client.open()
            store = server.broker.store
            plainly = store.put_messages

            def fails_once(messages: Sequence[Message]) -> PutMessageResults:
                store.put_messages = plainly  # type: ignore[method-assign]
                raise LookupError("not today")

            store.put_messages = fails_once  # type: ignore[method-assign]
            answer = await client.send("Orders", b"one")
            assert (answer.code, answer.remark) == (1, "LookupError: not today")
            assert (await client.send("Orders", b"two")).fields["queueOffset"] == "0"
            client.close()

    run_scenario(scenario)


def test_one_way_messages_are_put_while_the_broker_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages that arrived during a slow flush were lost when the broker stopped before the flush ended. A client that
    waits for an answer notices this; a client that sends one-way does not.
    """
    monkeypatch.setattr(server_module, "_LAST_ANSWERS_S", 0.01)
    flush_may_end = threading.Event()

    async def scenario() -> None:
        async with serving_store(tmp_path, None, MessageStoreConfig(flush_disk_type="SYNC_FLUSH"), port=0) as server:
            client = BrokerClient(server)
            await client.open()
            store = server.broker.store
            put_messages, began = store.put_messages, threading.Event()

            def put_slowly(messages: Sequence[Message]) -> PutMessageResults:
                began.set()
                flush_may_end.wait(60)
                return put_messages(messages)

            store.put_messages = put_slowly  # type: ignore[method-assign]
            client.send_oneway("Orders", b"first")
            await asyncio.to_thread(began.wait, 30)
            client.send_oneway("Orders", b"second")
            await client.ask(26)  # behind this answer it has come
            threading.Timer(0.3, flush_may_end.set).start()
        client.close()

    run_scenario(scenario)
    with MessageStore(tmp_path) as store:
        store.wait_dispatched()
        assert store.max_offset_in_queue("Orders", 0) == 2


GROUP = "readers"


async def offset_of(client: BrokerClient, body: bytes, **options: object) -> int:
    answer = await client.send("Orders", body, properties="KEYS\x01K\x02", **options)
    return int(str(answer.fields["msgId"])[-16:], 16)


def test_a_returned_message_waits_in_a_delay_level_and_goes_to_the_retry_topic(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            offset = await offset_of(client, b"one")
            answer = await client.ask(36, offset=offset, group=GROUP, delayLevel=0, originTopic="Orders")
            assert (answer.code, answer.fields) == (0, {})
            (waiting,) = units(client, "SCHEDULE_TOPIC_XXXX", 2)
            assert (waiting.body, waiting.reconsume_times) == (b"one", 1)
            properties = waiting.properties
            assert properties["REAL_TOPIC"] == f"%RETRY%{GROUP}"
            assert (properties["DELAY"], properties["RETRY_TOPIC"], properties["WAIT"], properties["KEYS"]) == (
                "3",
                "Orders",
                "false",
                "K",
            )
            origin = client.server.broker.store.look_message_by_offset(offset)
            assert origin is not None
            assert properties["ORIGIN_MESSAGE_ID"] == origin.offset_msg_id
            topic = client.server.broker.topics.get(f"%RETRY%{GROUP}")
            assert topic is not None
            assert (topic.read_queue_nums, topic.perm) == (1, 6)

    run_scenario(scenario)


def test_a_message_is_a_dead_letter_after_its_last_retry(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            for number, request in enumerate(({"delayLevel": -1}, {"delayLevel": 0, "maxReconsumeTimes": 0})):
                offset = await offset_of(client, b"%d" % number)
                assert (await client.ask(36, offset=offset, group=GROUP, **request)).code == 0
            actual_units = units(client, f"%DLQ%{GROUP}")
            assert [unit.body for unit in actual_units] == [b"0", b"1"]
            assert [unit.properties["DELAY"] for unit in actual_units] == ["0", "0"]

    run_scenario(scenario)


def test_returning_a_missing_message_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            offset = await offset_of(client, b"one")
            answer = await client.ask(36, offset=offset + 1, group=GROUP, delayLevel=0)
            assert (answer.code, answer.remark) == (1, f"look message by offset failed, {offset + 1}")

    run_scenario(scenario)


def test_a_retried_message_is_retried_again(tmp_path: Path) -> None:
    """The client names the original topic, not the retry topic that stores the message. A check of that name lost every
    second retry.
    """

    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            offset = await offset_of(client, b"one")
            for times in (1, 2):
                request_fields = {"offset": offset, "group": GROUP, "delayLevel": 1, "originTopic": "Orders"}
                assert (await client.ask(36, **request_fields)).code == 0
                (*_, waiting) = units(client, "SCHEDULE_TOPIC_XXXX")
                assert (waiting.reconsume_times, waiting.properties["RETRY_TOPIC"]) == (times, "Orders")
                offset = waiting.physical_offset

    run_scenario(scenario)


def test_dead_letters_of_a_group_with_a_long_name_have_a_topic_and_no_message(tmp_path: Path) -> None:
    """RocketMQ 5.3 creates the topic but stores no message, because the name is too long. Our broker failed with an
    internal error, and accepted sends to such a retry topic, which RocketMQ refuses.
    """
    long_group = "g-" + "0123456789" * 14

    async def scenario() -> None:
        async with asking_broker(tmp_path, release="5.3") as client:
            offset = await offset_of(client, b"one")
            answer = await client.ask(36, offset=offset, group=long_group, delayLevel=-1)
            assert (answer.code, answer.remark) == (1, "MESSAGE_ILLEGAL")
            assert client.server.broker.topics.get(f"%DLQ%{long_group}") is not None
            refused = await client.send(f"%RETRY%{long_group}", b"two", reconsumeTimes=1)
            assert (refused.code, refused.remark) == (29, "The specified topic is longer than topic max length.")

    run_scenario(scenario)


@pytest.mark.parametrize("release", ["5.3", "5.4", "5.5"])
def test_topics_of_groups_may_be_declared_with_255_letters_since_5_4(tmp_path: Path, release: Release) -> None:
    """The answers are those of real brokers of 5.3.3, 5.4.0 and 5.5.1. Our broker refused all such names, also for 5.4
    and later.
    """
    names = {kind: (f"{kind}{'x' * (255 - len(kind))}", f"{kind}{'x' * (256 - len(kind))}") for kind in RETRIES}

    async def scenario() -> None:
        async with asking_broker(tmp_path, release=release) as client:
            for kind, (longest, too_long) in names.items():
                declared = await client.ask(17, **DECLARED, topic=longest)
                sent = await client.send(longest, b"x")
                refused = await client.ask(17, **DECLARED, topic=too_long)
                if release == "5.3":
                    words = "The specified topic is longer than topic max length."
                    assert [(item.code, item.remark) for item in (declared, sent, refused)] == [(29, words)] * 3
                    continue
                assert (declared.code, refused.code) == (0, 29)
                assert str(refused.remark).endswith("and it's longer than topic max length: 255")
                assert longest in client.server.broker.store.tables.topics()
                # no client may use such a group name, and no message fits into such a dead-letter topic
                assert sent.code == (26 if kind == "%RETRY%" else 13)
            assert (await client.ask(17, **DECLARED, topic="x" * 128)).code == 29

    run_scenario(scenario)


@pytest.mark.parametrize("release", ["5.4", "5.5"])
def test_redelivery_works_with_the_longest_group_and_topic_names(tmp_path: Path, release: Release) -> None:
    """The pop retry topic of this group has 255 letters."""
    group, topic = "g" * 120, "t" * 127
    pop = {
        "consumerGroup": group,
        "topic": topic,
        "queueId": -1,
        "maxMsgNums": 8,
        "invisibleTime": 500,
        "pollTime": 0,
        "bornTime": 0,
        "initMode": 0,
        "order": "false",
    }

    async def scenario() -> None:
        config = BrokerConfig(revive_queues=1, revive_interval_ms=50)
        async with asking_broker(tmp_path, config, release=release) as client:
            broker = client.server.broker
            body = {"groupName": group, "consumeEnable": True, "retryQueueNums": 1, "retryMaxTimes": 16}
            assert (await client.ask(200, json.dumps(body).encode())).code == 0
            assert (await client.send(topic, b"again")).code == 0
            broker.store.wait_dispatched()
            assert (await client.ask(200050, **pop)).code == 0
            answer = await client.ask(200050, **pop)
            async with asyncio.timeout(60):
                while answer.code != 0:
                    await asyncio.sleep(0.1)
                    broker.store.wait_dispatched()
                    answer = await client.ask(200050, **pop)
            retry = f"%RETRY%{group}_{topic}"
            assert len(retry) == 255
            assert broker.store.max_offset_in_queue(retry, 0) == 1
            unit = decode(bytes(answer.body))
            assert (unit.topic, unit.body, unit.reconsume_times) == (topic, b"again", 1)

    run_scenario(scenario)


@pytest.mark.parametrize(("release", "queues"), [("5.3", [1] * 5), ("5.4", [0, 3, 3, 1, 1])])
def test_the_priority_of_a_message_decides_its_queue_since_5_4(
    tmp_path: Path, release: Release, queues: list[int]
) -> None:
    """In topics of every type. A priority that does not count is taken out. Ours took the queue of the request."""

    async def scenario() -> None:
        async with asking_broker(tmp_path, release=release) as client:
            sent = []
            for number, text in enumerate(("0", "3", "9", "-1", "x")):
                answer = await client.send("Orders", b"%d" % number, 1, f"_SYS_MSG_PRIORITY_\x01{text}\x02")
                sent.append(int(answer.fields["queueId"]))
            assert sent == queues
            await client.send("Orders", b"in order", 1, "_SYS_MSG_PRIORITY_\x013\x02__SHARDINGKEY\x01a\x02")
            kept = {unit.body: "_SYS_MSG_PRIORITY_" in unit.properties for unit in units(client, "Orders", 1)}
            assert kept[b"in order"] == (release == "5.3")
            assert all(kept[body] for body in (b"3", b"4"))

    run_scenario(scenario)
