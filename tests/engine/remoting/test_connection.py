"""Connections on which both sides ask: answers by number, refusals in words, and an end that leaves nothing waiting."""

from __future__ import annotations

import asyncio
import contextlib
import socket

import pytest

from engine.errors import CannotRead
from engine.remoting.codes import Answer, Refused
from engine.remoting.connection import Limits, Server, bind, connect, port_of
from engine.remoting.frame import ONE_WAY, Command, answer_to


def asked(handler, talk, limits=None):
    async def main():
        server = Server(handler, limits)
        bound = bind("127.0.0.1", 0)
        await server.listen(bound)
        link = await connect("127.0.0.1", port_of(bound), limits=limits)
        try:
            return await talk(link, server)
        finally:
            link.close()
            await server.close()

    return asyncio.run(asyncio.wait_for(main(), 60))


def echo(request, _connection):
    return answer_to(request, fields=dict(request.fields), body=bytes(request.body))


def test_answers_come_to_those_who_asked_in_any_order():
    async def talk(link, _server):
        asks = [link.ask(Command(7, {"n": str(number)}, b"x" * number)) for number in range(20)]
        return await asyncio.gather(*reversed(asks))

    answers = asked(echo, talk)
    assert [(one.fields["n"], len(one.body)) for one in answers] == [(str(n), n) for n in reversed(range(20))]


def test_a_refusal_has_its_code_and_words_and_a_fault_the_text_of_the_error():
    def handler(request, _connection):
        if request.code == 1:
            raise Refused(Answer.TOPIC_NOT_EXIST, "no such topic")
        raise ValueError("odd")

    async def talk(link, _server):
        return [await link.ask(Command(code)) for code in (1, 2)]

    first, second = asked(handler, talk)
    assert (first.code, first.remark) == (Answer.TOPIC_NOT_EXIST, "no such topic")
    assert (second.code, second.remark) == (Answer.SYSTEM_ERROR, "ValueError: odd")


def test_the_server_asks_too_and_one_way_gets_no_answer():
    seen = []

    def handler(request, connection):
        seen.append(request.code)
        if not request.is_one_way:
            connection.send(Command(40, flag=ONE_WAY))
        return answer_to(request)

    async def talk(link, _server):
        link.send(Command(5, flag=ONE_WAY))
        return await link.ask(Command(6))

    assert asked(handler, talk).code == 0
    assert seen == [5, 6]


def test_who_asks_over_a_connection_that_ends_is_told():
    def handler(_request, connection):
        connection.close()

    async def talk(link, _server):
        with pytest.raises((OSError, CannotRead, TimeoutError)):
            await link.ask(Command(1))

    asked(handler, talk)


def test_an_address_that_is_taken_is_named():
    first = bind("127.0.0.1", 0)
    first.listen()
    try:
        with pytest.raises(CannotRead, match=f"cannot listen on 127.0.0.1:{port_of(first)}"):
            bind("127.0.0.1", port_of(first)).listen()
    finally:
        first.close()


def test_more_than_are_allowed_are_sent_away():
    async def talk(link, server):
        assert (await link.ask(Command(7))).code == 0
        address = next(iter(server.connections))._transport.get_extra_info("sockname")
        with contextlib.suppress(OSError, TimeoutError):
            other = await connect(*address[:2])
            with pytest.raises((OSError, CannotRead, TimeoutError)):
                await other.ask(Command(7))
        return len(server.connections)

    assert asked(echo, talk, Limits(connections=1)) == 1


@pytest.mark.parametrize("turns", range(6))
def test_who_comes_in_the_turn_of_the_end_sees_the_end(turns: int) -> None:
    """A client that had been accepted in the turn in which a server was closed was neither read nor closed (asyncio's
    server in Python 3.11): it waited for an answer until it gave up, again and again over the same connection.
    """

    async def main() -> bytes:
        loop = asyncio.get_running_loop()
        server, bound = Server(echo), bind("127.0.0.1", 0)
        await server.listen(bound)
        with socket.socket() as client:
            client.setblocking(False)
            await loop.sock_connect(client, ("127.0.0.1", port_of(bound)))
            for _ in range(turns):
                await asyncio.sleep(0)
            await server.close()
            async with asyncio.timeout(60):
                with contextlib.suppress(ConnectionResetError):
                    return await loop.sock_recv(client, 1)
        return b""

    assert asyncio.run(main()) == b""
