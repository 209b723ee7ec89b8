"""The memory limit of all connections together: which ones wait or are closed, while others continue."""

from __future__ import annotations

import asyncio
import contextlib
import socket

import pytest

from engine.remoting import connection_memory as module
from engine.remoting.connection import Limits, Server, bind, connect, port_of
from engine.remoting.frame import ONE_WAY, Command, answer_to, encode

ANSWER = bytes(1 << 20)
MIB = 1 << 20


def large(request, _connection):
    """Answer request 1 with a megabyte, others with an empty body."""
    return answer_to(request, body=ANSWER if request.code == 1 else b"")


@contextlib.asynccontextmanager
async def serving(handler=large, **limits):
    server, bound = Server(handler, Limits(**limits)), bind("127.0.0.1", 0)
    await server.listen(bound)
    try:
        yield server, port_of(bound)
    finally:
        await server.close()


def open_without_reading(port: int, data: bytes) -> socket.socket:
    """Open a connection that sends ``data`` and reads no answer."""
    item = socket.socket()
    item.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    item.connect(("127.0.0.1", port))
    item.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        item.send(data)
    return item


def frames(count: int) -> bytes:
    return b"".join(b"".join(map(bytes, encode(Command(1, opaque=number)))) for number in range(count))


async def settled(condition) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


def run(talk) -> None:
    asyncio.run(asyncio.wait_for(talk(), 120))


def test_answers_stop_for_a_client_that_does_not_read():
    """A client sent 400 requests in one write and read none of the answers. All answers were built before the unread
    amount was checked: 90 MiB per such client.
    """
    answered = []

    def handler(request, connection):
        answered.append(request.opaque)
        return large(request, connection)

    async def talk() -> None:
        async with serving(handler) as (server, port):
            item = open_without_reading(port, frames(100))
            await settled(lambda: server.memory.total > 0)
            await asyncio.sleep(0.2)
            assert len(answered) < 20  # as many answers as the system's buffers take, and one
            assert server.memory.total < 4 * MIB
            received = 0
            item.setblocking(True)
            item.settimeout(30)
            while received < 100 * MIB:  # now the client reads: all answers arrive, in order
                received += len(await asyncio.to_thread(item.recv, 1 << 20))
            assert answered == list(range(100))
            await settled(lambda: server.memory.total == 0)
            item.close()

    run(talk)


def test_complete_one_way_requests_are_handled_after_a_disconnect():
    """One-way requests that waited behind unread answers must not be lost with the connection."""
    handled = []

    def handler(request, connection):
        handled.append(request.opaque)
        return large(request, connection)

    async def talk() -> None:
        async with serving(handler) as (server, port):
            text = b"".join(map(bytes, encode(Command(2, opaque=1_000, flag=ONE_WAY))))
            client = open_without_reading(port, frames(60) + text)
            await settled(lambda: server.memory.total > 0)
            assert 1_000 not in handled
            client.close()
            await settled(lambda: not server.connections)
            assert handled[-1] == 1_000
            assert len(handled) < 60

    run(talk)


def test_above_twice_the_limit_the_longest_holder_is_closed():
    async def talk() -> None:
        async with serving(memory_bytes=4 * MIB) as (server, port):
            link = await connect("127.0.0.1", port)
            deaf_ones = [open_without_reading(port, frames(20)) for _ in range(30)]
            await settled(lambda: len(server.connections) < 31)
            assert (await link.ask(Command(2))).code == 0
            assert server.memory.total <= 8 * MIB
            for deaf_one in deaf_ones:
                deaf_one.close()
            await settled(lambda: server.memory.total == 0)
            link.close()

    run(talk)


def test_above_the_limit_stalled_clients_are_closed_and_readers_are_not(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "STALL_TIMEOUT_S", 0.2)
    monkeypatch.setattr(module, "_POLL_INTERVAL_S", 0.05)

    async def talk() -> None:
        async with serving(memory_bytes=MIB // 4) as (server, port):
            link = await connect("127.0.0.1", port)
            item = open_without_reading(port, frames(20))
            await settled(lambda: len(server.connections) == 2)
            await settled(lambda: len(server.connections) == 1)
            assert len(bytes((await link.ask(Command(1))).body)) == MIB
            item.close()
            link.close()

    run(talk)


def test_partial_frames_wait_in_order_and_all_are_answered():
    """Sixty connections that each sent 14 of 15 MiB used 840 MiB. Above the limit, only the oldest is read, and the
    others follow when it is complete.
    """
    body = bytes(2 * MIB)

    async def talk() -> None:
        async with serving(memory_bytes=8 * MIB) as (server, port):
            links = [await connect("127.0.0.1", port) for _ in range(12)]
            peak_bytes = 0

            async def watch() -> None:
                nonlocal peak_bytes
                while True:
                    peak_bytes = max(peak_bytes, server.memory.total)
                    await asyncio.sleep(0)

            watching = asyncio.ensure_future(watch())
            answers = await asyncio.gather(*(link.ask(Command(2, body=body), 60) for link in links))
            watching.cancel()
            assert [answer.code for answer in answers] == [0] * 12
            assert peak_bytes <= 16 * MIB
            assert server.memory.total == 0
            for link in links:
                link.close()

    run(talk)


def test_frames_that_never_complete_are_dropped(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "STALL_TIMEOUT_S", 0.2)
    monkeypatch.setattr(module, "_POLL_INTERVAL_S", 0.05)
    text = b"".join(map(bytes, encode(Command(2, body=bytes(2 * MIB)))))

    async def talk() -> None:
        async with serving(memory_bytes=2 * MIB) as (server, port):
            parts = []
            for _ in range(4):
                connection = socket.create_connection(("127.0.0.1", port))
                connection.setblocking(False)
                parts.append(
                    (connection, asyncio.ensure_future(asyncio.get_running_loop().sock_sendall(connection, text[:-9])))
                )
            await settled(lambda: len(server.connections) < 4 and server.memory.total <= 2 * MIB)
            link = await connect("127.0.0.1", port)
            assert (await link.ask(Command(2, body=bytes(2 * MIB)))).code == 0
            for connection, sending in parts:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)
                connection.close()
            link.close()

    run(talk)


def test_a_closed_connection_that_is_not_read_ends(monkeypatch: pytest.MonkeyPatch):
    """A connection was closed for its silence while the client had unread answers. It stayed, with the memory of those
    answers, until the client closed it.
    """

    async def talk() -> None:
        async with serving(idle=0.3) as (server, port):
            item = open_without_reading(port, frames(20))
            await settled(lambda: server.memory.total > 0)
            await settled(lambda: not server.connections)
            item.close()

    run(talk)
