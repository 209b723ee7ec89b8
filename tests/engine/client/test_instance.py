"""Connections, routes and heartbeats of a client, against servers that answer, refuse or are gone."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from brokers import run
from clients_beside import served, until

from engine.client.errors import BrokerRefused, NoRoute, NotRunning
from engine.client.instance import ClientInstance, Pace, spelled
from engine.client.messages import Message
from engine.client.producer import Producer
from engine.remoting.connection import Server, bind, port_of
from engine.remoting.frame import Command, answer_to


def test_a_name_server_that_is_gone_is_passed_over(tmp_path: Path) -> None:
    async def what() -> None:
        async with (
            served(tmp_path / "store") as beside,
            Producer("senders", f"127.0.0.1:1;{beside.namesrv};127.0.0.1:2") as producer,
        ):
            assert (await producer.send(Message("T", b"x"))).is_ok

    run(what)


def test_routes_are_asked_for_once_and_unknown_topics_have_none(tmp_path: Path) -> None:
    async def what() -> None:
        async with served(tmp_path / "store") as beside:
            client = ClientInstance(beside.namesrv)
            first, second = await asyncio.gather(client.route("TBW102"), client.route("TBW102"))
            assert first is second
            assert await client.route("Nobody") is None
            assert client.address("broker-a") == beside.server.address
            with pytest.raises(NoRoute):
                client.address("broker-z")
            await client.kill()
            with pytest.raises(NotRunning):
                await client.fresh_route("TBW102")

    run(what)


def test_a_connection_that_ended_is_made_anew() -> None:
    async def what() -> None:
        server = Server(lambda request, _: answer_to(request))
        bound = bind("127.0.0.1", 0)
        await server.listen(bound)
        address = f"127.0.0.1:{port_of(bound)}"
        client = ClientInstance(address)
        await client.ask(address, Command(34))
        for connection in tuple(server.connections):
            connection.close()
        await until(lambda: not server.connections)
        assert (await client.call(address, 34, {"a": True})).code == 0
        await client.tell(address, 35, {})
        await client.kill()
        await server.close()

    run(what)


def test_a_refusal_is_raised_with_its_code(tmp_path: Path) -> None:
    async def what() -> None:
        async with served(tmp_path / "store") as beside:
            client = ClientInstance(beside.namesrv)
            with pytest.raises(BrokerRefused) as raised:
                await client.call(beside.server.address, 38, {"consumerGroup": "nobody"})
            assert raised.value.code == 1
            with pytest.raises(ConnectionError):
                await client.ask("nowhere", Command(34))
            await client.kill()

    run(what)


def test_fields_are_spelled_as_java_spells_them() -> None:
    assert spelled({"a": True, "b": 1, "c": None, "d": "x"}) == {"a": "true", "b": "1", "d": "x"}


def test_a_pace_holds_back_until_it_may_go_on() -> None:
    async def what() -> None:
        pace = Pace()
        await pace.wait()
        pace.pause()
        waiting = asyncio.ensure_future(pace.wait())
        await asyncio.sleep(0.01)
        assert pace.paused
        assert not waiting.done()
        pace.resume()
        await waiting

    run(what)
