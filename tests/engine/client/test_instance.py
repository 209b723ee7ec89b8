"""Connections, routes and heartbeats of a client, against servers that answer, refuse or are gone."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest
from brokers import run_scenario
from certificates import tls_properties
from served_broker import served, wait_until

from engine.broker.access import Access
from engine.client.consumer import Consumer
from engine.client.consuming import FROM_FIRST, ConsumerConfig
from engine.client.errors import BrokerRefused, ClientError, NoRoute, NotRunning, NotSent
from engine.client.instance import ClientInstance, ConsumeControl, fields_as_text
from engine.client.messages import Message
from engine.client.producer import Producer
from engine.remoting.connection import Server, bind, port_of
from engine.remoting.frame import Command, answer_to
from engine.remoting.tls import read_tls


def test_an_unreachable_name_server_is_skipped(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with (
            served(tmp_path / "store") as beside,
            Producer("senders", f"127.0.0.1:1;{beside.namesrv};127.0.0.1:2") as producer,
        ):
            assert (await producer.send(Message("T", b"x"))).is_ok

    run_scenario(scenario)


def test_routes_are_requested_once_and_unknown_topics_have_none(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with served(tmp_path / "store") as beside:
            client = ClientInstance(beside.namesrv)
            route, same_route = await asyncio.gather(client.route("TBW102"), client.route("TBW102"))
            assert route is same_route
            assert await client.route("Nobody") is None
            assert client.address("broker-a") == beside.server.address
            with pytest.raises(NoRoute):
                client.address("broker-z")
            await client.kill()
            with pytest.raises(NotRunning):
                await client.fresh_route("TBW102")

    run_scenario(scenario)


def test_a_closed_connection_is_opened_again() -> None:
    async def scenario() -> None:
        server = Server(lambda request, _: answer_to(request))
        bound = bind("127.0.0.1", 0)
        await server.listen(bound)
        address = f"127.0.0.1:{port_of(bound)}"
        client = ClientInstance(address)
        await client.ask(address, Command(34))
        for connection in tuple(server.connections):
            connection.close()
        await wait_until(lambda: not server.connections)
        assert (await client.call(address, 34, {"a": True})).code == 0
        await client.tell(address, 35, {})
        await client.kill()
        await server.close()

    run_scenario(scenario)


def test_a_refusal_is_raised_with_its_code(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with served(tmp_path / "store") as beside:
            client = ClientInstance(beside.namesrv)
            with pytest.raises(BrokerRefused) as raised:
                await client.call(beside.server.address, 38, {"consumerGroup": "nobody"})
            assert raised.value.code == 1
            with pytest.raises(ConnectionError):
                await client.ask("nowhere", Command(34))
            await client.kill()

    run_scenario(scenario)


def test_fields_are_spelled_as_java_spells_them() -> None:
    assert fields_as_text({"a": True, "b": 1, "c": None, "d": "x"}) == {"a": "true", "b": "1", "d": "x"}


def test_a_paused_pace_blocks_until_it_is_resumed() -> None:
    async def scenario() -> None:
        pace = ConsumeControl()
        await pace.wait()
        pace.pause()
        waiting = asyncio.ensure_future(pace.wait())
        await asyncio.sleep(0.01)
        assert pace.paused
        assert not waiting.done()
        pace.resume()
        await waiting

    run_scenario(scenario)


ACL = """\
accounts:
- accessKey: someuser
  secretKey: 12345678
  defaultTopicPerm: PUB|SUB
  defaultGroupPerm: PUB|SUB
"""


@pytest.mark.parametrize("secret", ["12345678", "wrong"])
def test_with_an_account_each_request_is_signed(tmp_path: Path, secret: str) -> None:
    (tmp_path / "plain_acl.yml").write_text(ACL)

    async def scenario() -> None:
        async with served(tmp_path / "store") as beside:
            beside.server.broker.access = Access(tmp_path / "plain_acl.yml", "5.3", "DefaultCluster")
            client = ClientInstance(beside.namesrv, account=("someuser", secret))
            bodies: list[bytes] = []
            consumer = Consumer(
                "readers",
                lambda got, _: bodies.extend(item.body for item in got),
                config=ConsumerConfig(start=FROM_FIRST),
                instance=client,
            )
            consumer.subscribe("T")
            async with Producer("senders", instance=client) as producer, consumer:
                if secret == "wrong":
                    with pytest.raises((BrokerRefused, NotSent)):
                        await producer.send(Message("T", b"x"))
                    return
                assert (await producer.send(Message("T", b"x"))).is_ok
                await producer.send_one_way(Message("T", b"y"))
                await wait_until(lambda: sorted(bodies) == [b"x", b"y"])

    run_scenario(scenario)


def test_requests_can_use_tls(tmp_path: Path) -> None:
    tls, _ = read_tls(tls_properties(tmp_path, "enforcing"))
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE

    async def scenario() -> None:
        server = Server(lambda request, _: answer_to(request, body=bytes(request.body)), None, tls)
        with bind("127.0.0.1", 0) as bound:
            await server.listen(bound)
            address = f"127.0.0.1:{port_of(bound)}"
            secret, plain = ClientInstance(address, tls=trusting), ClientInstance(address)
            assert bytes((await secret.call(address, 34, {}, b"told")).body) == b"told"
            with pytest.raises((OSError, TimeoutError)):
                await plain.call(address, 34, {}, timeout_s=1.0)
            for client in (secret, plain):
                await client.kill()
            await server.close()

    run_scenario(scenario)


def test_name_servers_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAMESRV_ADDR", "10.0.0.1:9876;10.0.0.2:9876")
    assert sorted(ClientInstance("").name_servers) == ["10.0.0.1:9876", "10.0.0.2:9876"]
    assert ClientInstance("10.0.0.3:9876").name_servers == ["10.0.0.3:9876"]
    monkeypatch.delenv("NAMESRV_ADDR")
    with pytest.raises(ClientError, match="or in NAMESRV_ADDR"):
        ClientInstance("")
