"""A listening broker: its start, its puts, its end, and the independence of its clients."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from brokers import BrokerClient, asking_broker, run_scenario

from engine.broker import server as module
from engine.broker.config import BrokerConfig
from engine.broker.server import LOOPBACK, ListeningBroker
from engine.broker.services import SERVICES, Service
from engine.config import MessageStoreConfig
from engine.message_store import MessageStore
from engine.remoting.connection import bind, port_of


@contextlib.asynccontextmanager
async def listening(
    store: MessageStore, config: BrokerConfig | None = None, **options: Any
) -> AsyncIterator[BrokerClient]:
    """Start a broker over ``store`` and yield a client of it."""
    with bind(LOOPBACK, 0) as position:
        async with ListeningBroker(store, config, listening_socket=position, **options) as server:
            client = BrokerClient(server)
            await client.open()
            try:
                yield client
            finally:
                client.close()


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch) -> list[Service]:
    """Return the list of services that the broker runs; the test fills it."""
    service_list: list[Service] = []
    monkeypatch.setattr(module, "services_of", lambda _broker: service_list)
    return service_list


def test_a_broker_reports_the_address_for_routes(tmp_path: Path) -> None:
    async def scenario() -> None:
        with MessageStore(tmp_path) as store, bind(LOOPBACK, 0) as position:
            server = ListeningBroker(store, BrokerConfig(broker_ip="10.1.2.3"), listening_socket=position)
            assert server.address == "", "it does not accept yet"
            async with server:
                assert server.address == f"10.1.2.3:{port_of(position)}"

    run_scenario(scenario)


def test_the_port_of_slaves_and_old_clients_answers_the_same(tmp_path: Path) -> None:
    async def scenario() -> None:
        with MessageStore(tmp_path) as store, bind(LOOPBACK, 0) as vip:
            async with listening(store, vip=vip) as client:
                await client.send("Orders", b"one")
                store.wait_dispatched()
                vip_client = BrokerClient(client.server)
                client.server.broker.address = f"{LOOPBACK}:{port_of(vip)}"
                await vip_client.open()
                assert (await vip_client.ask(30, topic="Orders", queueId=0)).fields["offset"] == "1"
                assert client.server.connections == 2
                vip_client.close()

    run_scenario(scenario)


def test_connections_are_cut_and_new_ones_accepted(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            assert client.server.connections == 1
            client.server.cut()
            while client.server.connections:
                await asyncio.sleep(0.005)
            with pytest.raises(ConnectionError):
                await client.ask(30, topic="Orders", queueId=0)
            second_asking = BrokerClient(client.server)
            await second_asking.open()
            assert (await second_asking.send("Orders", b"one")).code == 0
            second_asking.close()

    run_scenario(scenario)


def test_a_failed_round_is_logged_and_followed_by_the_next(
    tmp_path: Path, services: list[Service], caplog: pytest.LogCaptureFixture
) -> None:
    rounds: list[int] = []

    def fails(_broker: object) -> None:
        rounds.append(len(rounds))
        raise ValueError("the third of May")

    services.append(Service("a service of the test", lambda _broker: 0.001, fails))

    async def scenario() -> None:
        async with asking_broker(tmp_path):
            while len(rounds) < 3:
                await asyncio.sleep(0.001)

    with caplog.at_level(logging.ERROR, logger=module.__name__):
        run_scenario(scenario)
    assert "a round of the broker: a service of the test" in [record.getMessage() for record in caplog.records]


def test_a_table_that_cannot_be_saved_at_the_end_stops_nothing_else(
    tmp_path: Path, services: list[Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One table could not be written on a full disk. The broker then skipped the remaining tables, timers and
    transactions, and did not stop the put thread and the loading of compiled code.
    """
    done: list[str] = []

    def ends(name: str) -> Service:
        return Service(name, lambda _broker: 3_600.0, lambda _broker: None, lambda _broker: done.append(name))

    def fails(_broker: object) -> None:
        raise OSError(28, "No space left on device")

    services += [ends("first"), dataclasses.replace(ends("second"), end=fails), ends("third")]
    loading: list[bool] = []

    @contextlib.contextmanager
    def beside() -> Any:
        yield loading.append(True)
        loading.append(False)

    monkeypatch.setattr(module, "loading_beside", beside)
    with MessageStore(tmp_path, MessageStoreConfig(flush_disk_type="SYNC_FLUSH")) as store:
        servers: list[ListeningBroker] = []

        async def scenario() -> None:
            async with listening(store) as client:
                servers.append(client.server)
                assert (await client.send("Orders", b"one")).code == 0

        with pytest.raises(OSError, match="No space left"):
            run_scenario(scenario)
        assert done == ["first", "third"]
        assert loading == [True, False]
        putter = servers[0].broker.sends.putter
        assert putter is not None
        with pytest.raises(RuntimeError, match="after shutdown"):
            putter.submit(print)


def test_an_interrupted_start_leaves_no_port_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl+C while a name server did not answer left the port open: clients continued to connect to a broker whose
    store was closed.
    """

    async def scenario() -> None:
        begun = asyncio.Event()

        async def silent(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            begun.set()
            with contextlib.suppress(ConnectionError):
                await _reader.read()
            writer.close()

        names = await asyncio.start_server(silent, LOOPBACK, 0)
        position = names.sockets[0].getsockname()[1]
        monkeypatch.setattr("engine.broker.registration.TIMEOUT_S", 30.0)
        with MessageStore(tmp_path) as store, bind(LOOPBACK, 0) as bound:
            port = port_of(bound)
            server = ListeningBroker(store, listening_socket=bound, name_servers=[f"{LOOPBACK}:{position}"])
            entering = asyncio.create_task(server.__aenter__())
            await begun.wait()
            monkeypatch.setattr("engine.broker.registration.TIMEOUT_S", 0.2)
            entering.cancel()
            with pytest.raises(asyncio.CancelledError):
                await entering
            with pytest.raises(ConnectionRefusedError), socket.create_connection((LOOPBACK, port)):
                pass
            assert server.connections == 0
        names.close()
        await names.wait_closed()

    run_scenario(scenario)


def test_a_message_reaches_a_held_pull_without_a_round_of_dispatch(tmp_path: Path) -> None:
    """This store has no dispatch thread: the broker's own thread dispatches, because a client waits."""

    async def scenario() -> None:
        with MessageStore(tmp_path, services=False) as store:
            async with listening(store) as client:
                await client.send("Orders", b"one")
                store.services.dispatch_now()
                waiting = asyncio.ensure_future(
                    client.pull("Orders", 1, sysFlag=6, suspendTimeoutMillis=20_000, subscription="*")
                )
                while not client.server.broker.has_waiting_requests:
                    await asyncio.sleep(0.005)
                await client.send("Orders", b"two")
                assert (await waiting).code == 0

    run_scenario(scenario)


def test_dispatch_is_not_reported_after_the_end(tmp_path: Path) -> None:
    async def scenario() -> None:
        with MessageStore(tmp_path) as store:
            async with listening(store) as client:
                await client.send("Orders", b"one")
                server = client.server
            assert server.connections == 0
            server._dispatched_elsewhere()
            assert not server._is_wake_scheduled, "nothing is asked of a loop that has ended"

    run_scenario(scenario)


def test_each_service_of_a_broker_runs_at_its_own_pace(tmp_path: Path, services: list[Service]) -> None:
    ran: list[str] = []
    services.append(Service("often", lambda _broker: 0.001, lambda _broker: ran.append("often")))
    services.append(Service("seldom", lambda _broker: 3_600.0, lambda _broker: ran.append("seldom")))

    async def scenario() -> None:
        async with asking_broker(tmp_path):
            while len(ran) < 5:
                await asyncio.sleep(0.001)

    run_scenario(scenario)
    assert set(ran) == {"often"}
    assert {service.name for service in SERVICES}.isdisjoint(ran)
