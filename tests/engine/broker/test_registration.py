"""What a broker tells its name servers, what it learns from them, and what it makes of one that does not answer."""

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
from brokers import run

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
    """A name server that notes what it is told, and answers as a test wants."""

    def __init__(self) -> None:
        self.told: list[Command] = []
        self.code, self.remark = 0, ""
        self.fields: dict[str, str] = {}
        self.body = b""
        self.mute = False
        self.brokers: dict[str, dict[str, dict[int, str]]] = {}
        """What it says of its brokers (106)."""
        self.asked, self.info_code = 0, 0
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
        return [item.code for item in self.told]

    def _answer(self, request: Command, _connection: Connection) -> Command | None:
        if self.mute:
            return None
        if request.code == RequestCode.GET_BROKER_CLUSTER_INFO:
            self.asked += 1
            return answer_to(request, self.info_code, body=write({"brokerAddrTable": self.brokers}))
        self.told.append(Command(request.code, dict(request.fields), bytes(request.body)))
        return answer_to(request, self.code, fields=dict(self.fields), body=self.body, remark=self.remark)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with MessageStore(tmp_path, services=False) as store:
        yield standing(store)


def standing(store: MessageStore, **options: object) -> Broker:
    """A broker that has an address."""
    new_broker = Broker(store, BrokerConfig(broker_name="north", cluster="C", **options))  # type: ignore[arg-type]
    new_broker.address = ADDRESS
    return new_broker


@contextlib.asynccontextmanager
async def registering(broker: Broker, *names: Names) -> AsyncIterator[Registration]:
    """A registration that is ended behind the block."""
    registration = Registration(broker, [name.address for name in names])
    try:
        yield registration
    finally:
        await registration.end()


def test_every_name_server_is_told_of_broker_and_topics_with_a_sum_over_them(broker: Broker) -> None:
    broker.topics.declare(plain_topic("Orders", 3))

    async def scenario() -> None:
        async with Names() as record, Names() as other, registering(broker, record, other) as sample:
            await sample.step()
            await sample.step()
            assert sample.refused == {}
            for names in (record, other):
                assert names.codes() == [RequestCode.REGISTER_BROKER] * 2
                first, second = names.told
                assert first.fields["brokerName"] == "north"
                assert (first.fields["brokerAddr"], first.fields["clusterName"]) == (ADDRESS, "C")
                assert first.fields["haServerAddr"] == "127.0.0.1:10912", "its own port and one, as Java's"
                assert first.fields["bodyCrc32"] == str(zlib.crc32(first.body) & 0x7FFFFFFF)
                wrappers = [json.loads(bytes(item.body))["topicConfigSerializeWrapper"] for item in (first, second)]
                assert wrappers[0]["topicConfigTable"]["Orders"]["readQueueNums"] == 3
                counters = [row["dataVersion"]["counter"] for row in wrappers]
                assert counters[0] < counters[1], "a name server takes what is newer only"

    run(scenario)


def test_a_topic_is_offered_as_far_as_the_whole_broker_is(tmp_path: Path) -> None:
    """``brokerPermission=4``: nobody sends here, whatever its topics say."""
    with MessageStore(tmp_path, services=False) as store:
        broker = standing(store, permission=4)
        broker.topics.declare(plain_topic("Orders", 3))

        async def scenario() -> None:
            async with Names() as names, registering(broker, names) as sample:
                await sample.step()
                wrapper = json.loads(bytes(names.told[0].body))["topicConfigSerializeWrapper"]
                assert wrapper["topicConfigTable"]["Orders"]["perm"] == 4

        run(scenario)


def test_what_has_changed_is_due_until_it_is_told(broker: Broker) -> None:
    topic = plain_topic("Orders", 3)
    broker.topics.declare(topic)

    async def scenario() -> None:
        alone = Registration(broker, [])
        alone.ask([topic])
        assert (alone.names_servers, alone.is_due) == (False, False), "nobody is to be told"
        async with Names() as names, registering(broker, names) as sample:
            assert not sample.is_due
            sample.ask([topic])
            assert sample.is_due
            await sample.step()
            assert not sample.is_due

    run(scenario)


def tables(names: Names) -> list[list[str]]:
    """The topics of each registration, without the broker's own."""
    wrappers = [json.loads(bytes(item.body))["topicConfigSerializeWrapper"] for item in names.told]
    return [sorted(record["topicConfigTable"]) for record in wrappers]


def test_only_topics_that_have_changed_are_registered_and_many_at_once(broker: Broker) -> None:
    """With 3,000 topics one more took 200 ms: the table of all topics was written and read twice for each. Nobody
    else was answered meanwhile.
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
                json.loads(bytes(item.body))["topicConfigSerializeWrapper"]["dataVersion"] for item in names.told
            ]
            assert counters[0]["counter"] < counters[1]["counter"]
            sample.ask([plain_topic("Deleted", 1)])
            await sample.register_changed()
            assert tables(names)[2:] == [[]]

    run(scenario)


def test_a_name_server_that_may_not_know_the_rest_is_told_everything(broker: Broker) -> None:
    """A part is no registration of a broker that a name server does not know: it is new, or was started again."""
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

    run(scenario)


def test_it_registers_again_where_it_is_asked_to_and_by_itself(tmp_path: Path) -> None:
    with MessageStore(tmp_path, services=False) as store:

        async def count(broker: Broker, *, asks: bool) -> None:
            async with Names() as names, registering(broker, names) as sample:
                running = asyncio.create_task(sample.run())
                for number in (1, 2, 3):
                    while len(names.told) < number:
                        await asyncio.sleep(0.005)
                    if asks:
                        sample.ask()
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)

        run(lambda: count(standing(store, registration_ms=3_600_000), asks=True))
        run(lambda: count(standing(store, registration_ms=10), asks=False))


def test_who_does_not_answer_is_named_once_and_the_others_are_told(
    broker: Broker, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TIMEOUT_S", 0.05)

    async def scenario() -> None:
        nobody = Names()  # bound, and never listening
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
        run(scenario)
    messages = [record.getMessage() for record in caplog.records]
    assert sum("not here" in line for line in messages) == 1, "each reason once, not every half minute"


def test_an_address_that_is_none_is_a_reason_too(broker: Broker) -> None:
    async def scenario() -> None:
        registration = Registration(broker, ["localhost"])
        await registration.step()
        assert "localhost" in registration.refused
        await registration.end()

    run(scenario)


def test_two_that_ask_at_once_share_a_connection_and_the_end_leaves_none(broker: Broker) -> None:
    """A registration and a route that were asked for in the same turn connected twice; the first connection was
    forgotten and stood, at both sides, as long as the broker ran.
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
            assert names.told[-1].fields["brokerAddr"] == ADDRESS

    run(scenario)


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
            assert (names.told[-1].code, names.told[-1].fields) == (
                RequestCode.GET_ROUTEINFO_BY_TOPIC,
                {"topic": "Orders"},
            )
            names.code, names.body = int(ResponseCode.TOPIC_NOT_EXIST), b""
            assert await sample.route_of("Orders") is None

    run(scenario)


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
def test_the_next_name_server_is_asked_where_one_tells_no_route(broker: Broker, body: bytes) -> None:
    """What could not be read escaped: who had asked for his queues was never answered."""

    async def scenario() -> None:
        async with Names() as odd, Names() as well, registering(broker, odd, well) as sample:
            odd.body, well.body = body, json.dumps(ROUTE).encode()
            assert await sample.route_of("Orders") == {"north": 4, "south": 2}
            assert sample.refused.keys() == {odd.address}

    run(scenario)


def test_a_slave_learns_its_master_and_keeps_it_while_nobody_knows_better(tmp_path: Path) -> None:
    with MessageStore(tmp_path, MessageStoreConfig(broker_role="SLAVE"), services=False) as store:
        broker = standing(store, broker_id=1)

        async def scenario() -> None:
            async with Names() as names, registering(broker, names) as sample:
                names.fields = {"masterAddr": "10.0.0.1:10911", "haServerAddr": "10.0.0.1:10912"}
                await sample.step()
                names.fields = {}
                await sample.step()
                assert names.told[0].fields["brokerId"] == "1"
                assert (broker.master_address, broker.master_ha_address) == ("10.0.0.1:10911", "10.0.0.1:10912")

        run(scenario)


def test_a_master_takes_no_master_from_anybody(broker: Broker) -> None:
    async def scenario() -> None:
        async with Names() as names, registering(broker, names) as sample:
            names.fields = {"masterAddr": "10.0.0.1:10911"}
            await sample.step()
            assert broker.master_address == ""

    run(scenario)


def route_clusters(address: str, broker_id: int = 0) -> dict[str, dict[str, dict[int, str]]]:
    return {"north": {"brokerAddrs": {broker_id: address}}, "south": {"brokerAddrs": {0: "10.0.0.9:10911"}}}


def test_a_route_that_another_address_holds_is_neither_replaced_nor_removed(broker: Broker) -> None:
    """`serve COPY --config broker.conf` registered over production's broker: every client was sent to the copy. Its
    goodbye then took production's route out for half a minute.
    """

    async def scenario() -> None:
        async with Names() as names:
            names.brokers = route_clusters("10.0.0.1:10911")
            async with registering(broker, names) as sample:
                await sample.step()
                await sample.step()
                assert names.told == []
                why = sample.refused[names.address]
                assert "10.0.0.1:10911" in why
                assert ADDRESS in why
                assert sample.registered == set()
            assert names.told == []

    run(scenario)


def test_who_takes_the_route_later_keeps_it(broker: Broker) -> None:
    """The broker whose route it is comes back while ours is registered: it is neither replaced nor removed."""

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

    run(scenario)


def test_a_route_of_another_id_is_no_conflict_and_the_own_one_is_removed(broker: Broker) -> None:
    async def scenario() -> None:
        async with Names() as names:
            names.brokers = route_clusters("10.0.0.1:10911", broker_id=1)
            async with registering(broker, names) as sample:
                await sample.step()
                names.brokers = route_clusters(ADDRESS)
            assert names.codes() == [RequestCode.REGISTER_BROKER, RequestCode.UNREGISTER_BROKER]

    run(scenario)


def test_a_name_server_that_does_not_say_whose_the_route_is_is_not_told(broker: Broker) -> None:
    async def scenario() -> None:
        async with Names() as names, registering(broker, names) as sample:
            names.info_code = 1
            await sample.step()
            assert names.told == []
            assert sample.refused.keys() == {names.address}

    run(scenario)
