"""Topics: an administrator declares, deletes and counts them."""

from __future__ import annotations

import json
from pathlib import Path

from brokers import asking_broker, run_scenario

TOPIC = {"defaultTopic": "TBW102", "perm": 6, "topicFilterType": "SINGLE_TAG", "order": False}


def test_a_declared_topic_is_reported_unchanged(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            answer = await client.ask(
                17, **TOPIC, topic="Orders", readQueueNums=3, writeQueueNums=2, attributes="+message.type=NORMAL"
            )
            assert answer.code == 0
            topic = json.loads(bytes((await client.ask(351, topic="Orders")).body))
            assert (topic["readQueueNums"], topic["writeQueueNums"], topic["perm"]) == (3, 2, 6)
            assert topic["attributes"] == {"message.type": "NORMAL"}
            table = json.loads(bytes((await client.ask(21)).body))
            assert "Orders" in table["topicConfigTable"]
            assert (await client.ask(351, topic="Nowhere")).code == 17

    run_scenario(scenario)


def test_names_that_no_broker_accepts_are_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            for name in ("a topic", "TBW102", "SCHEDULE_TOPIC_XXXX", "x" * 128):
                answer = await client.ask(17, **TOPIC, topic=name, readQueueNums=1, writeQueueNums=1)
                assert answer.code == 29, name
            none = await client.ask(17, **TOPIC, topic="Orders", readQueueNums=-1, writeQueueNums=70_000)
            assert none.code == 1

    run_scenario(scenario)


def test_a_deleted_topic_has_no_queues_and_no_offsets(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await client.send("Orders", b"one")
            client.server.broker.store.tables.create_group("readers")
            await client.ask(15, consumerGroup="readers", topic="Orders", queueId=0, commitOffset=1)
            client.server.broker.store.wait_dispatched()
            assert (await client.ask(215, topic="Orders")).code == 0
            assert (await client.ask(351, topic="Orders")).code == 17
            assert (await client.ask(30, topic="Orders", queueId=0)).fields["offset"] == "0"
            assert b"Orders" not in bytes((await client.ask(43)).body)
            assert (await client.ask(215, topic="TBW102")).code == 29

    run_scenario(scenario)


def test_several_topics_are_deleted_or_none(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path, release="5.5") as client:
            for name in ("A", "B"):
                await client.send(name, b"one")
            refusals = [
                (b"", "The specified topic list is blank."),
                (b'{"topicList":[]}', "The specified topic list is blank."),
                (b'{"topicList":["A"," "]}', "The specified topic is blank."),
                (b'{"topicList":["A","TBW102"]}', "The topic[TBW102] is conflict with system topic."),
            ]
            for body, remark in refusals:
                answer = await client.ask(5002, body)
                assert (answer.code, answer.remark) == (29, remark)
            assert (await client.ask(351, topic="A")).code == 0
            assert (await client.ask(5002, b'{"topicList":["A","B","Nowhere"]}')).code == 0
            assert {(await client.ask(351, topic=name)).code for name in ("A", "B")} == {17}

    run_scenario(scenario)


def test_statistics_have_a_row_for_each_queue_that_is_written(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await client.send("Orders", b"one", queue_id=1)
            client.server.broker.store.wait_dispatched()
            text = bytes((await client.ask(202, topic="Orders")).body).decode()
            assert text.startswith('{"offsetTable":{{"brokerName":"broker-a","queueId":0,"topic":"Orders"}:')
            assert text.count('"maxOffset":0') == 3
            assert text.count('"maxOffset":1') == 1
            assert float(text.rpartition('"topicPutTps":')[2].removesuffix("}")) > 0
            assert (await client.ask(202, topic="Nowhere")).code == 17

    run_scenario(scenario)


def test_the_broker_names_its_own_topics(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            names = json.loads(bytes((await client.ask(305)).body))["topicList"]
            assert {"TBW102", "SCHEDULE_TOPIC_XXXX", "DefaultCluster", "broker-a"} <= set(names)

    run_scenario(scenario)


def test_several_topics_are_declared_at_once(tmp_path: Path) -> None:
    """Either all topics of the request are declared, or none."""

    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            rows = [
                {"topicName": "One", "readQueueNums": 2, "writeQueueNums": 3, "perm": 6},
                {"topicName": "Two", "attributes": {"+message.type": "FIFO"}},
            ]
            assert (await client.ask(18, json.dumps({"topicConfigList": rows}).encode())).code == 0
            item, two = (client.server.broker.topics.get(name) for name in ("One", "Two"))
            assert item is not None
            assert two is not None
            assert (item.read_queue_nums, item.write_queue_nums) == (2, 3)
            assert (two.read_queue_nums, two.attributes) == (16, {"message.type": "FIFO"})
            wrong = [{"topicName": "Three"}, {"topicName": "not a topic"}]
            assert (await client.ask(18, json.dumps({"topicConfigList": wrong}).encode())).code == 29
            assert client.server.broker.topics.get("Three") is None
            for body in (b"{}", b'{"topicConfigList":[{"topicName":"T","perm":"all"}]}'):
                assert (await client.ask(18, body)).code == 1

    run_scenario(scenario)
