"""Queue assignments by the broker, for groups that pop or pull."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from brokers import BrokerClient, asking_broker, run_scenario

from engine.broker.assignments import allocated_queues, pop_queues_of
from engine.broker.queue_locks import QueueName
from engine.broker.serving import serving
from engine.remoting.connection import connect
from engine.remoting.frame import Command

QUEUES = [QueueName("broker-a", "Orders", number) for number in range(5)]
CLIENTS = ["c1", "c2", "c3", "c4"]
GROUP = "shared"


def queue_ids(queues: list[QueueName]) -> list[int]:
    return [queue.queue_id for queue in queues]


def test_each_queue_has_one_client() -> None:
    assert [queue_ids(allocated_queues(client, QUEUES, CLIENTS)) for client in CLIENTS] == [[0, 1], [2], [3], [4]]
    assert [queue_ids(allocated_queues(item, QUEUES, CLIENTS, by_circle=True)) for item in CLIENTS] == [
        [0, 4],
        [1],
        [2],
        [3],
    ]
    assert allocated_queues("c9", QUEUES, CLIENTS) == []
    assert queue_ids(allocated_queues("c6", QUEUES, [f"c{number}" for number in range(7)])) == []


def test_clients_that_pop_share_queues() -> None:
    assert queue_ids(pop_queues_of("c1", QUEUES, CLIENTS, 0)) == [-1] * 5
    assert queue_ids(pop_queues_of("c1", QUEUES, CLIENTS, 3)) == [-1] * 5
    assert queue_ids(pop_queues_of("c4", QUEUES, CLIENTS, 1)) == [4, 0, 1]
    assert pop_queues_of("c9", QUEUES, CLIENTS, 1) == []
    assert queue_ids(pop_queues_of("c4", QUEUES[:2], CLIENTS, 1)) == [1]


async def consuming(client: BrokerClient, client_id: str = "me") -> None:
    group = {
        "consumeType": "CONSUME_PASSIVELY",
        "groupName": GROUP,
        "messageModel": "CLUSTERING",
        "subscriptionDataSet": [{"topic": "Orders", "subString": "*"}],
    }
    reported = {"clientID": client_id, "consumerDataSet": [group], "producerDataSet": []}
    assert (await client.ask(34, json.dumps(reported).encode())).code == 0


async def assigned(client: BrokerClient, **options: object) -> dict[str, object]:
    reported = {
        "clientId": "me",
        "consumerGroup": GROUP,
        "messageModel": "CLUSTERING",
        "strategyName": "AVG",
        "topic": "Orders",
        **options,
    }
    answer = await client.ask(400, json.dumps(reported).encode())
    assert answer.code == 0
    record = json.loads(answer.body)
    assert isinstance(record, dict)
    return record


def test_a_consumer_gets_its_queues(tmp_path: Path) -> None:
    """An unknown client gets no queues. A retry topic is pulled in any case."""

    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            client.server.broker.store.tables.create_topic("Orders", 2)
            assert await assigned(client) == {}
            await consuming(client)
            row = {"brokerName": "broker-a", "queueId": 0, "topic": "Orders"}
            results = await assigned(client)
            pull_rows = [{"messageQueue": {**row, "queueId": queue_id}, "mode": "PULL"} for queue_id in (0, 1)]
            assert results == {"messageQueueAssignments": pull_rows}
            assert await assigned(client, topic="No") == {}
            assert await assigned(client, strategyName="OTHER") == {}
            assert await assigned(client, clientId="another") == {"messageQueueAssignments": []}
            assert await assigned(client, messageModel="BROADCASTING") == results
            mode = {"consumerGroup": GROUP, "mode": "POP", "popShareQueueNum": 0, "topic": "Orders"}
            assert (await client.ask(401, json.dumps(mode).encode())).code == 0
            popping = [{"messageQueue": {**row, "queueId": -1}, "mode": "POP"}]
            assert await assigned(client) == {"messageQueueAssignments": popping}
            retry = await assigned(client, topic=f"%RETRY%{GROUP}")
            assert [record["mode"] for record in retry["messageQueueAssignments"]] == ["PULL"]
            assert (await client.ask(400, b"{}")).code == 1

    run_scenario(scenario)


@pytest.mark.parametrize(
    ("changed_fields", "code"),
    [({"topic": f"%RETRY%{GROUP}"}, 16), ({"topic": "No"}, 17), ({"mode": 1}, 1), ({"consumerGroup": None}, 1)],
)
def test_invalid_request_modes_are_refused(changed_fields: dict[str, object], code: int, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            client.server.broker.store.tables.create_topic("Orders", 2)
            mode = {"consumerGroup": GROUP, "mode": "POP", "popShareQueueNum": 0, "topic": "Orders", **changed_fields}
            assert (await client.ask(401, json.dumps(mode).encode())).code == code
            assert not (tmp_path / "config" / "messageRequestMode.json").exists()

    run_scenario(scenario)


def test_request_modes_are_saved_like_a_brokers(tmp_path: Path) -> None:
    async def scenario() -> None:
        mode = {"topic": "Orders", "mode": "POP", "consumerGroup": GROUP, "popShareQueueNum": 0}
        async with asking_broker(tmp_path) as client:
            client.server.broker.store.tables.create_topic("Orders", 1)
            assert (await client.ask(401, json.dumps(mode).encode())).code == 0
        text = (tmp_path / "config" / "messageRequestMode.json").read_text()
        assert text.startswith(
            '{\n\t"messageRequestModeMap":{\n\t\t"Orders":{\n\t\t\t"shared":{\n\t\t\t\t"consumerGroup"'
        )
        async with asking_broker(tmp_path) as client:
            await consuming(client)
            assert "POP" in str(await assigned(client))

    run_scenario(scenario)


def test_queues_of_all_brokers_are_shared_out(tmp_path: Path) -> None:
    """The broker takes the queues from the route of the name server."""

    async def scenario() -> None:
        async with serving(tmp_path / "one") as addresses:
            host, _, port = addresses.broker.rpartition(":")
            connection = await connect(host, int(port))
            declared = {
                "topic": "Orders",
                "defaultTopic": "TBW102",
                "readQueueNums": "3",
                "writeQueueNums": "3",
                "perm": "6",
                "topicFilterType": "SINGLE_TAG",
            }
            assert (await connection.ask(Command(17, declared))).code == 0
            names_host, _, names_port = addresses.namesrv.rpartition(":")
            names = await connect(names_host, int(names_port))
            while (await names.ask(Command(105, {"topic": "Orders"}))).code != 0:
                pass
            reported = {"clientId": "me", "consumerGroup": GROUP, "messageModel": "BROADCASTING", "topic": "Orders"}
            answer = await connection.ask(Command(400, body=json.dumps(reported).encode()))
            assert len(json.loads(answer.body)["messageQueueAssignments"]) == 3
            connection.close()
            names.close()

    run_scenario(scenario)
