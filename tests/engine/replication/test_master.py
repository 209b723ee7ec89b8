"""What a broker says of its log."""

from __future__ import annotations

import asyncio
from pathlib import Path

from brokers import asking, run

from engine.replication.master import Master, SlavePosition, ask_master, ask_slaves
from engine.replication.source import Slave


def test_a_broker_tells_its_log(tmp_path: Path) -> None:
    async def told() -> None:
        async with asking(tmp_path) as client:
            await client.send("Orders", b"x")
            host, _, port = client.server.address.rpartition(":")
            end = client.server.broker.store.positions().wrote
            assert await ask_master(host, int(port)) == Master(0, end, 1 << 30)

    run(told)


def test_a_broker_tells_who_follows_it_on_its_own_ruler(tmp_path: Path) -> None:
    async def told() -> None:
        async with asking(tmp_path) as client:
            await client.send("Orders", b"x")
            host, _, port = client.server.address.rpartition(":")
            end = client.server.broker.store.positions().wrote
            assert await ask_slaves(host, int(port)) == ()
            client.server.broker.followers = lambda: [Slave("127.0.0.1:5", sent=end, acknowledged=end - 7)]
            (slave,) = await ask_slaves(host, int(port)) or ()
            assert slave == SlavePosition("127.0.0.1:5", end, end, end - 7)
            assert slave.behind == 7

    run(told)


def test_nobody_there_and_somebody_else_say_nothing() -> None:
    async def told() -> None:
        async def hang_up(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.close()

        server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server:
            assert await ask_master("127.0.0.1", port) is None
        assert await ask_master("127.0.0.1", port) is None
        assert await ask_slaves("127.0.0.1", port) is None

    run(told)
