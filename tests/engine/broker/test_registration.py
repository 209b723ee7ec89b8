"""Registration at name servers: what a broker sends and learns, and how it treats a server that does not answer."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import zlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Self

import pytest
from brokers import run_scenario

from engine.broker import registration as module
from engine.broker.broker import Broker
from engine.broker.config import BrokerConfig
from engine.broker.json_bodies import write
from engine.broker.registration import Registration
from engine.broker.topics import plain_topic
from engine.config import MessageStoreConfig
from engine.message_store import MessageStore
from engine.remoting.codes import RequestCode, ResponseCode
from engine.remoting.connection import Connection, Server, bind, port_of
from engine.remoting.frame import Command, answer_to

ADDRESS = "127.0.0.1:10911"


class Names:
    """A name server that records requests and answers as the test sets."""

    def __init__(self) -> None:
        self.requests: list[Command] = []
        self.code, self.remark = 0, ""
        self.fields: dict[str, str] = {}
        self.body = b""
        self.mute = False
        self.brokers: dict[str, dict[str, dict[int, str]]] = {}
        """What it says of its brokers (106)."""
        self.request_count, self.info_code = 0, 0
        self._bound = bind("127.0.0.1", 0)
        self._server = Server(self._answer)
        self.address = f"127.0.0.1:{port_of(self._bound)}"

    async def __aenter__(self) -> Self:
        await self._server.listen(self._bound)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.close()
        self._bound.close()

    @property
    def connections(self) -> int:
        return len(self._server.connections)

    def cut(self) -> None:
        for connection in list(self._server.connections):
            connection.close()

    def codes(self) -> list[int]:
        return [item.code for item in self.requests]

    def _answer(self, request: Command, _connection: Connection) -> Command | None:
        if self.mute:
            return None
        if request.code == RequestCode.GET_BROKER_CLUSTER_INFO:
            self.request_count += 1
            return answer_to(request, self.info_code, body=write({"brokerAddrTable": self.brokers}))
        self.requests.append(Command(request.code, dict(request.fields), bytes(request.body)))
        return answer_to(request, self.code, fields=dict(self.fields), body=self.body, remark=self.remark)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with MessageStore(tmp_path, services=False) as store:
        yield broker_with_address(store)


def broker_with_address(store: MessageStore, **options: object) -> Broker:
    """Return a broker that has an address."""
    new_broker = Broker(store, BrokerConfig(broker_name="north", cluster="C", **options))  # type: ignore[arg-type]
    new_broker.address = ADDRESS
    return new_broker


@contextlib.asynccontextmanager
async def registering(broker: Broker, *names: Names) -> AsyncIterator[Registration]:
    """Yield a registration and end it after the block."""
    registration = Registration(broker, [name.address for name in names])
    try:
        yield registration
    finally:
        await registration.end()


def test_every_name_server_receives_broker_and_topics_with_a_checksum(broker: Broker) -> None:
    broker.topics.declare(plain_topic("Orders", 3))

    async def scenario() -> None:
        async with (
            Names() as first_server,
            Names() as second_server,
            registering(broker, first_server, second_server) as registrar,
        ):
            await registrar.step()
            await registrar.step()
            assert registrar.refused == {}
            for names in (first_server, second_server):
                assert names.codes() == [RequestCode.REGISTER_BROKER] * 2
                registration, repeated_registration = names.requests
                assert registration.fields["brokerName"] == "north"
                assert (registration.fields["brokerAddr"], registration.fields["clusterName"]) == (ADDRESS, "C")
                assert registration.fields["haServerAddr"] == "127.0.0.1:10912", "its own port and one, as Java's"
                assert registration.fields["bodyCrc32"] == str(zlib.crc32(registration.body) & 0x7FFFFFFF)
                wrappers = [
                    json.loads(bytes(request.body))["topicConfigSerializeWrapper"]
                    for request in (registration, repeated_registration)
                ]
                assert wrappers[0]["topicConfigTable"]["Orders"]["readQueueNums"] == 3
                counters = [row["dataVersion"]["counter"] for row in wrappers]
                assert counters[0] < counters[1], "a name server takes what is newer only"

    run_scenario(scenario)


def test_a_topics_permission_is_limited_by_the_brokers(tmp_path: Path) -> None:
    """With ``brokerPermission=4`` no client sends to this broker, whatever its topics allow."""
    with MessageStore(tmp_path, services=False) as store:
        broker = broker_with_address(store, permission=4)
        broker.topics.declare(plain_topic("Orders", 3))

        async def scenario() -> None:
            async with Names() as names, registering(broker, names) as sample:
                await sample.step()
                wrapper = json.loads(bytes(names.requests[0].body))["topicConfigSerializeWrapper"]
                assert wrapper["topicConfigTable"]["Orders"]["perm"] == 4

        run_scenario(scenario)


def test_changed_topics_are_pending_until_they_are_registered(broker: Broker) -> None:
    topic = plain_topic("Orders", 3)
    broker.topics.declare(topic)

    async def scenario() -> None:
        alone = Registration(broker, [])
        alone.ask([topic])
        assert (alone.names_servers, alone.is_due) == (False, False), "there is no name server to register with"
        async with Names() as names, registering(broker, names) as sample:
            assert not sample.is_due
            sample.ask([topic])
            assert sample.is_due
            await sample.step()
            assert not sample.is_due

    run_scenario(scenario)


def tables(names: Names) -> list[list[str]]:
    """Return the topics of each registration without the broker's own topics."""
    wrappers = [json.loads(bytes(item.body))["topicConfigSerializeWrapper"] for item in names.requests]
    return [sorted(record["topicConfigTable"]) for record in wrappers]


def test_only_changed_topics_are_registered_many_at_once(broker: Broker) -> None:
    """With 3,000 topics, one further topic took 200 ms: the table of all topics was written and read twice for each.
    The broker answered no other client meanwhile.
    """
    topics = [plain_topic(name, 3) for name in ("A", "B", "C", "D")]
    broker.topics.declare(*topics[:2])

    async def scenario() -> None:
        async with Names() as names, registering(broker, names) as sample:
            await sample.step()
            broker.topics.declare(*topics[2:])
            sample.ask([topics[2]])
            sample.ask([topics[3]])
            await asyncio.gather(*(sample.register_changed() for _ in range(5)))
            assert tables(names) == [["A", "B"], ["C", "D"]]
            counters = [
                json.loads(bytes(item.body))["topicConfigSerializeWrapper"]["dataVersion"] for item in names.requests
            ]
            assert counters[0]["counter"] < counters[1]["counter"]
            sample.ask([plain_topic("Deleted", 1)])
            await sample.register_changed()
            assert tables(names)[2:] == [[]]

    run_scenario(scenario)


def test_a_name_server_that_may_lack_topics_gets_all_of_them(broker: Broker) -> None:
    """A new or restarted name server does not know the broker, so a partial registration is not enough."""
    topic = plain_topic("A", 3)
    broker.topics.declare(topic, plain_topic("B", 3))

    async def scenario() -> None:
        async with Names() as names, registering(broker, names) as sample:
            sample.ask([topic])
            await sample.register_changed()
            sample.ask([topic])
            await sample.register_changed()
            assert tables(names) == [["A", "B"], ["A"]]
            names.cut()
            while names.connections:
                await asyncio.sleep(0.005)
            sample.ask([topic])
            await sample.register_changed()
            names.code, names.remark = 1, "register broker failed"
            sample.ask([topic])
            await sample.register_changed()
            assert tables(names)[2:] == [["A", "B"], ["A"], ["A", "B"]]

    run_scenario(scenario)


def test_a_broker_registers_again_on_request_and_regularly(tmp_path: Path) -> None:
    with MessageStore(tmp_path, services=False) as store:

        async def count(broker: Broker, *, asks: bool) -> None:
            async with Names() as names, registering(broker, names) as sample:
                running = asyncio.create_task(sample.run())
                for number in (1, 2, 3):
                    while len(names.requests) < number:
                        await asyncio.sleep(0.005)
                    if asks:
                        sample.ask()
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)

        run_scenario(lambda: count(broker_with_address(store, registration_ms=3_600_000), asks=True))
        run_scenario(lambda: count(broker_with_address(store, registration_ms=10), asks=False))


def test_a_silent_name_server_is_logged_once_and_the_others_are_registered(
    broker: Broker, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TIMEOUT_S", 0.05)

    async def scenario() -> None:
        nobody = Names()  # bound, but not listening
        async with Names() as well, Names() as refuses, Names() as mute:
            refuses.code, refuses.remark, mute.mute = 1, "not here", True
            async with registering(broker, nobody, refuses, mute, well) as sample:
                await sample.step()
                await sample.step()
                assert sample.refused.keys() == {nobody.address, refuses.address, mute.address}
                assert sample.refused[refuses.address] == "not here"
                assert sample.refused[mute.address] == "TimeoutError"
                assert well.codes() == [RequestCode.REGISTER_BROKER] * 2
                refuses.code = 0
                await sample.step()
                assert refuses.address not in sample.refused, "it knows the broker now"
        nobody._bound.close()

    with caplog.at_level(logging.WARNING, logger=module.__name__):
        run_scenario(scenario)
    messages = [record.getMessage() for record in caplog.records]
    assert sum("not here" in line for line in messages) == 1, "each reason once, not every half minute"


def test_an_invalid_address_is_reported_as_the_reason(broker: Broker) -> None:
    async def scenario() -> None:
        registration = Registration(broker, ["localhost"])
        await registration.step()
        assert "localhost" in registration.refused
        await registration.end()

    run_scenario(scenario)


def test_simultaneous_requests_share_a_connection_and_the_end_closes_it(broker: Broker) -> None:
    """A registration and a route request in the same event-loop turn connected twice. The first connection was
    forgotten and stayed open as long as the broker ran.
    """

    async def scenario() -> None:
        async with Names() as names:
            async with registering(broker, names) as sample:
                await asyncio.gather(sample.step(), sample.route_of("Orders"), sample.step())
                assert names.connections == 1
                names.cut()
                while names.connections:
                    await asyncio.sleep(0.005)
                await asyncio.gather(sample.step(), sample.step())
                assert names.connections == 1
                assert sample.refused == {}
            while names.connections:
                await asyncio.sleep(0.005)
            assert names.codes()[-1] == RequestCode.UNREGISTER_BROKER
            assert names.requests[-1].fields["brokerAddr"] == ADDRESS

    run_scenario(scenario)


ROUTE = {
    "brokerDatas": [],
    "queueDatas": [
        {"brokerName": "north", "readQueueNums": 4, "perm": 6},
        {"brokerName": "south", "readQueueNums": 2, "perm": 4},
        {"brokerName": "shut", "readQueueNums": 8, "perm": 2},
    ],
}


def test_a_route_names_the_brokers_that_may_be_read(broker: Broker) -> None:
    async def scenario() -> None:
        async with Names() as names, registering(broker, names) as sample:
            names.body = json.dumps(ROUTE).encode()
            assert await sample.route_of("Orders") == {"north": 4, "south": 2}
            assert (names.requests[-1].code, names.requests[-1].fields) == (
                RequestCode.GET_ROUTEINFO_BY_TOPIC,
                {"topic": "Orders"},
            )
            names.code, names.body = int(ResponseCode.TOPIC_NOT_EXIST), b""
            assert await sample.route_of("Orders") is None

    run_scenario(scenario)


@pytest.mark.parametrize(
    "body",
    [
        b"no JSON",
        b"[]",
        b'{"queueDatas":7}',
        b'{"queueDatas":[{"brokerName":"n","readQueueNums":"many","perm":6}]}',
        b'{"queueDatas":[{"readQueueNums":8,"perm":6}]}',
        b'{"queueDatas":["no row"]}',
    ],
)
def test_the_next_name_server_is_asked_after_a_malformed_route(broker: Broker, body: bytes) -> None:
    """A malformed route raised an unhandled error, and the client that had asked for its queues got no answer."""

    async def scenario() -> None:
        async with (
            Names() as bad_server,
            Names() as good_server,
            registering(broker, bad_server, good_server) as registrar,
        ):
            bad_server.body, good_server.body = body, json.dumps(ROUTE).encode()
            assert await registrar.route_of("Orders") == {"north": 4, "south": 2}
            assert registrar.refused.keys() == {bad_server.address}

    run_scenario(scenario)


def test_a_slave_keeps_its_master_until_a_name_server_reports_another(tmp_path: Path) -> None:
    with MessageStore(tmp_path, MessageStoreConfig(broker_role="SLAVE"), services=False) as store:
        broker = broker_with_address(store, broker_id=1)

        async def scenario() -> None:
            async with Names() as names, registering(broker, names) as sample:
                names.fields = {"masterAddr": "10.0.0.1:10911", "haServerAddr": "10.0.0.1:10912"}
                await sample.step()
                names.fields = {}
                await sample.step()
                assert names.requests[0].fields["brokerId"] == "1"
                assert (broker.master_address, broker.master_ha_address) == ("10.0.0.1:10911", "10.0.0.1:10912")

        run_scenario(scenario)


def test_a_master_ignores_master_addresses_from_name_servers(broker: Broker) -> None:
    async def scenario() -> None:
        async with Names() as names, registering(broker, names) as sample:
            names.fields = {"masterAddr": "10.0.0.1:10911"}
            await sample.step()
            assert broker.master_address == ""

    run_scenario(scenario)


def route_clusters(address: str, broker_id: int = 0) -> dict[str, dict[str, dict[int, str]]]:
    return {"north": {"brokerAddrs": {broker_id: address}}, "south": {"brokerAddrs": {0: "10.0.0.9:10911"}}}


def test_a_route_that_another_address_holds_is_neither_replaced_nor_removed(broker: Broker) -> None:
    """`serve COPY --config broker.conf` registered in place of production's broker: all clients were sent to the copy.
    Its unregistration then removed production's route for half a minute.
    """

    async def scenario() -> None:
        async with Names() as names:
            names.brokers = route_clusters("10.0.0.1:10911")
            async with registering(broker, names) as sample:
                await sample.step()
                await sample.step()
                assert names.requests == []
                why = sample.refused[names.address]
                assert "10.0.0.1:10911" in why
                assert ADDRESS in why
                assert sample.registered == set()
            assert names.requests == []

    run_scenario(scenario)


def test_a_broker_that_takes_the_route_later_keeps_it(broker: Broker) -> None:
    """The owner of the route returns while our broker is registered. Its route is neither replaced nor removed."""

    async def scenario() -> None:
        async with Names() as names:
            changes: list[tuple[str, str | None]] = []
            async with registering(broker, names) as sample:
                sample.on_change = lambda address, why: changes.append((address, why))
                await sample.step()
                assert (sample.registered, names.codes()) == ({names.address}, [RequestCode.REGISTER_BROKER])
                names.brokers = route_clusters("10.0.0.1:10911")
                await sample.step()
                assert (sample.registered, names.codes()) == (set(), [RequestCode.REGISTER_BROKER])
                names.brokers = route_clusters(ADDRESS)
                await sample.step()
                assert names.codes() == [RequestCode.REGISTER_BROKER] * 2
                names.brokers = route_clusters("10.0.0.1:10911")
            assert RequestCode.UNREGISTER_BROKER not in names.codes(), "it is not ours any more"
            assert [why is None for _, why in changes] == [True, False, True]

    run_scenario(scenario)


def test_a_route_of_another_broker_id_is_no_conflict_and_our_own_is_removed(broker: Broker) -> None:
    async def scenario() -> None:
        async with Names() as names:
            names.brokers = route_clusters("10.0.0.1:10911", broker_id=1)
            async with registering(broker, names) as sample:
                await sample.step()
                names.brokers = route_clusters(ADDRESS)
            assert names.codes() == [RequestCode.REGISTER_BROKER, RequestCode.UNREGISTER_BROKER]

    run_scenario(scenario)


def test_nothing_is_registered_where_the_owner_of_a_route_is_unknown(broker: Broker) -> None:
    async def scenario() -> None:
        async with Names() as names, registering(broker, names) as sample:
            names.info_code = 1
            await sample.step()
            assert names.requests == []
            assert sample.refused.keys() == {names.address}

    run_scenario(scenario)
