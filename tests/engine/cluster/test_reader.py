"""Reading a cluster of our servers: with clients, with a broker that stops, and with refused requests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import ClassVar

from brokers import BrokerClient, run_scenario

from engine.broker.serving import serving_store
from engine.cluster.reader import AnsweredRequest, ClusterReader
from engine.cluster.state import Queue
from engine.namesrv.server import ListeningNameServer
from engine.remoting.connection import Connection
from engine.remoting.frame import Command, answer_to

BEAT = {
    "clientID": "c@1",
    "producerDataSet": [{"groupName": "senders"}],
    "consumerDataSet": [
        {
            "groupName": "readers",
            "consumeType": "CONSUME_PASSIVELY",
            "messageModel": "CLUSTERING",
            "subscriptionDataSet": [{"topic": "Orders", "subString": "*"}],
        }
    ],
}
OWNS = b'{"mqTable":{{"brokerName":"broker-a","queueId":0,"topic":"Orders"}:{"droped":false}}}'
QUEUE_0 = Queue("Orders", "broker-a", 0)


class Consumer(BrokerClient):
    """A client that answers request 307 and no other."""

    bodies: ClassVar = {307: OWNS}

    def _hear(self, request: Command, _connection: Connection) -> Command | None:
        body = self.bodies.get(request.code)
        return answer_to(request, 3) if body is None else answer_to(request, body=body)


@asynccontextmanager
async def cluster(path: Path) -> AsyncIterator[tuple[str, BrokerClient]]:
    """Start a name server and a broker; yield the name server's address and a client of the broker that is no
    consumer.
    """
    async with (
        ListeningNameServer(None, port=0) as names,
        serving_store(path, name_servers=[names.address], port=0) as server,
    ):
        client = BrokerClient(server)
        await client.open()
        try:
            yield names.address, client
        finally:
            client.close()


def test_brokers_queues_groups_and_clients(tmp_path: Path) -> None:
    async def scenario() -> None:
        calls: list[AnsweredRequest] = []
        async with cluster(tmp_path) as (names, client), ClusterReader([names], calls.append) as reader:
            for number in range(3):
                assert (await client.send("Orders", b"%d" % number)).code == 0
            consumer = Consumer(client.server)
            await consumer.open()
            assert (await consumer.ask(34, json.dumps(BEAT).encode())).code == 0
            await client.ask(15, consumerGroup="readers", topic="Orders", queueId=0, commitOffset=1)
            client.server.broker.store.wait_dispatched()
            state = await reader.read()
            assert state.refusals == ()
            assert dict(state.name_servers) == {names: ""}
            (broker,) = state.brokers
            assert (broker.name, broker.release, broker.words) == ("broker-a", "V5_5_1", "")
            assert broker.held_pulls == {}, "our broker reports that no pull waits"
            assert state.queues[QUEUE_0].max_offset == 3
            group = state.groups["readers"]
            assert [(member.client_id, member.language) for member in group.clients] == [("c@1", "JAVA")]
            assert group.owners(QUEUE_0) == ("c@1",)
            assert group.has_all_answers
            assert state.behind("readers")[QUEUE_0] == 2
            assert [sender.client_id for sender in state.producers["senders"]] == ["c@1"]
            assert {request.name for request in calls} >= {"GET_BROKER_CLUSTER_INFO", "GET_CONSUMER_RUNNING_INFO"}
            await client.send("Orders", b"more")
            client.server.broker.store.wait_dispatched()
            assert (await reader.read()).rates(state)[QUEUE_0] > 0
            consumer.close()

    run_scenario(scenario)


def test_a_client_that_does_not_answer_is_a_refusal_and_its_queues_stay_unknown(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with cluster(tmp_path) as (names, client), ClusterReader([names]) as reader:
            consumer = Consumer(client.server)
            consumer.bodies = {}
            await consumer.open()
            await consumer.ask(34, json.dumps(BEAT).encode())
            state = await reader.read()
            assert not state.groups["readers"].has_all_answers
            (refusal,) = state.refusals
            assert (refusal.request, refusal.about, refusal.code) == ("GET_CONSUMER_RUNNING_INFO", "readers c@1", 3)
            consumer.close()

    run_scenario(scenario)


def test_a_stopped_broker_keeps_its_last_state(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ListeningNameServer(None, port=0) as names, ClusterReader([names.address]) as reader:
            async with serving_store(tmp_path, name_servers=[names.address], port=0) as server:
                client = BrokerClient(server)
                await client.open()
                await client.send("Orders", b"1")
                server.broker.store.wait_dispatched()
                state_before = await reader.read()
                client.close()
            state_after = await reader.read()
            assert state_after.brokers[0].words == "no longer registered"
            assert state_after.brokers[0].time_ms == state_before.brokers[0].time_ms
            assert state_after.queues == state_before.queues

    run_scenario(scenario)


def test_no_name_server_answers(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with cluster(tmp_path) as (names, _), ClusterReader(["nonsense", "127.0.0.1:1", names]) as reader:
            state = await reader.read()
            assert [bool(words) for words in state.name_servers.values()] == [True, True, False]
            assert len(state.brokers) == 1
        async with ClusterReader(["127.0.0.1:1"]) as reader:
            state = await asyncio.wait_for(reader.read(), 60)
            assert state.brokers == ()
            assert [refusal.code for refusal in state.refusals] == [-1]

    run_scenario(scenario)
