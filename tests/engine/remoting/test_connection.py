"""Connections with requests in both directions: answers by number, refusals with messages, and an end without waiting
calls.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket

import pytest

from engine.errors import CannotRead
from engine.remoting.codes import Refused, ResponseCode
from engine.remoting.connection import BusyPolling, Limits, Server, bind, connect, port_of
from engine.remoting.frame import ONE_WAY, Command, answer_to


def run_talk(handler, talk, limits=None):
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


def test_answers_reach_their_callers_in_any_order():
    async def talk(link, _server):
        asks = [link.ask(Command(7, {"n": str(number)}, b"x" * number)) for number in range(20)]
        return await asyncio.gather(*reversed(asks))

    answers = run_talk(echo, talk)
    assert [(answer.fields["n"], len(answer.body)) for answer in answers] == [(str(n), n) for n in reversed(range(20))]


def test_large_traffic_in_both_directions_does_not_block():
    """A client wrote sixty large requests at once and read no answer meanwhile. The server read no request while its
    answers were not read, so both blocked until a timeout.
    """

    async def talk(link, _server):
        answers = await asyncio.gather(*(link.ask(Command(7, {}, bytes(1 << 20)), 50) for _ in range(60)))
        assert {len(answer.body) for answer in answers} == {1 << 20}

    run_talk(echo, talk)


def test_blocked_writers_continue_in_order_when_the_other_side_reads():
    got = []

    def handler(request, _connection):
        got.append(request.opaque)

    async def talk(link, server):
        await asyncio.sleep(0)
        (side,) = server.connections
        side._transport.pause_reading()

        async def write(number):
            await link.room_to_write()
            link.send(Command(7, {}, bytes(1 << 20), opaque=number, flag=ONE_WAY))

        writing = [asyncio.ensure_future(write(number)) for number in range(40)]
        while not link.must_wait_to_write:
            await asyncio.sleep(0)
        assert link._transport.get_write_buffer_size() < 4 << 20
        side._transport.resume_reading()
        await asyncio.gather(*writing)
        while len(got) < 40:
            await asyncio.sleep(0.001)
        assert got == list(range(40))

    run_talk(handler, talk)


def test_a_blocked_writer_ends_a_connection_that_is_not_read():
    async def talk(link, server):
        await asyncio.sleep(0)
        (side,) = server.connections
        side._transport.pause_reading()
        link.send(Command(7, {}, bytes(14 << 20)))
        assert link.must_wait_to_write
        results = await asyncio.gather(*(link.room_to_write(0.05) for _ in range(3)), return_exceptions=True)
        assert isinstance(results[0], ConnectionError)
        assert "has taken nothing for 0.05 s" in str(results[0])
        await link.closed.wait()

    run_talk(echo, talk)


def test_a_refusal_has_its_code_and_message_and_a_fault_the_errors_text():
    def handler(request, _connection):
        if request.code == 1:
            raise Refused(ResponseCode.TOPIC_NOT_EXIST, "no such topic")
        raise ValueError("odd")

    async def talk(link, _server):
        return [await link.ask(Command(code)) for code in (1, 2)]

    refusal, fault = run_talk(handler, talk)
    assert (refusal.code, refusal.remark) == (ResponseCode.TOPIC_NOT_EXIST, "no such topic")
    assert (fault.code, fault.remark) == (ResponseCode.SYSTEM_ERROR, "ValueError: odd")


def test_the_server_sends_requests_too_and_one_way_gets_no_answer():
    codes = []

    def handler(request, connection):
        codes.append(request.code)
        if not request.is_one_way:
            connection.send(Command(40, flag=ONE_WAY))
        return answer_to(request)

    async def talk(link, _server):
        link.send(Command(5, flag=ONE_WAY))
        return await link.ask(Command(6))

    assert run_talk(handler, talk).code == 0
    assert codes == [5, 6]


def test_a_request_over_a_connection_that_ends_fails():
    def handler(_request, connection):
        connection.close()

    async def talk(link, _server):
        with pytest.raises((OSError, CannotRead, TimeoutError)):
            await link.ask(Command(1))

    run_talk(handler, talk)


def test_a_free_port_is_nobody_elses_before_it_listens():
    """Another process could bind the same port and listen first; then ours failed with "Address already in use"."""
    bound, other = bind("127.0.0.1", 0), socket.socket()
    other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    with pytest.raises(OSError, match="in use"):
        other.bind(bound.getsockname())
    bound.close()
    other.close()


def test_an_occupied_address_is_named():
    listener = bind("127.0.0.1", 0)
    listener.listen()
    try:
        with pytest.raises(CannotRead, match=f"cannot listen on 127.0.0.1:{port_of(listener)}"):
            bind("127.0.0.1", port_of(listener)).listen()
    finally:
        listener.close()


def test_connections_over_the_limit_are_refused():
    async def talk(link, server):
        assert (await link.ask(Command(7))).code == 0
        address = next(iter(server.connections))._transport.get_extra_info("sockname")
        with contextlib.suppress(OSError, TimeoutError):
            excess = await connect(*address[:2])
            with pytest.raises((OSError, CannotRead, TimeoutError)):
                await excess.ask(Command(7))
        return len(server.connections)

    assert run_talk(echo, talk, Limits(connections=1)) == 1


@pytest.mark.parametrize("turns", range(6))
def test_a_connection_accepted_while_the_server_closes_is_closed(turns: int) -> None:
    """A client accepted in the event-loop turn in which a server closed was neither read nor closed (asyncio's server
    in Python 3.11). It waited for an answer until its timeout, again and again over the same connection.
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


def test_requests_of_one_turn_are_sent_in_few_writes():
    """Twenty tasks send request after request. The follow-up requests are gathered, and up to 32 KiB are one write."""

    async def talk(link, _server):
        writes = []
        plainly = link._transport.writelines

        def noted(pieces):
            pieces = list(pieces)
            writes.append(sum(map(len, pieces)))
            plainly(pieces)

        link._transport.writelines = noted

        async def one(number):
            return [(await link.ask(Command(7, {"n": f"{number}.{turn}"}))).fields["n"] for turn in range(20)]

        actual_results = await asyncio.gather(*map(one, range(20)))
        return actual_results, writes

    results, writes = run_talk(echo, talk)
    assert results == [[f"{number}.{turn}" for turn in range(20)] for number in range(20)]
    assert len(writes) < 400


@pytest.mark.parametrize("size", [100, 20_000, 200_000])
def test_a_large_frame_among_small_ones_keeps_its_order(size):
    order = []

    def handler(request, _connection):
        order.append(int(request.fields["n"]))
        return echo(request, _connection)

    async def talk(link, _server):
        async def one(number):
            for turn in range(3):
                body = bytes(size if number % 3 == 0 else 10)
                assert len((await link.ask(Command(7, {"n": str(number + 100 * turn)}, body))).body) == len(body)

        await asyncio.gather(*map(one, range(12)))

    run_talk(handler, talk)
    assert order[:12] == list(range(12))
    assert sorted(order) == [number + 100 * turn for turn in range(3) for number in range(12)]


def test_a_timed_out_request_fails_and_the_others_wait_on():
    def handler(request, connection):
        if request.code == 1:
            return  # this request is never answered
        asyncio.get_running_loop().call_later(0.3, connection.send, answer_to(request))
        return

    async def talk(link, _server):
        late = asyncio.gather(
            *(link.ask(Command(1), timeout_s) for timeout_s in (0.2, 0.05, 0.1)), return_exceptions=True
        )
        answered = asyncio.ensure_future(link.ask(Command(2), 30.0))
        reported = await late
        return [type(item) for item in reported], (await answered).code, link._waiting

    assert run_talk(handler, talk) == ([TimeoutError] * 3, 0, {})


def test_a_cancelled_request_leaves_no_state():
    def handler(request, _connection):
        return None if request.code == 1 else answer_to(request)

    async def talk(link, _server):
        waiting = asyncio.ensure_future(link.ask(Command(1)))
        await link.ask(Command(2))
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        return link._waiting, (await link.ask(Command(2))).code

    assert run_talk(handler, talk) == ({}, 0)


def test_frames_written_before_a_close_are_sent():
    def handler(request, connection):
        connection.send(answer_to(request, remark="the last word"))
        connection.close()

    async def talk(link, _server):
        return await link.ask(Command(1))

    assert run_talk(handler, talk).remark == "the last word"


def polling(gaps, processors=2, moment=400e-6):
    """Return a busy-polling state after reads with ``gaps`` (s) between them."""
    busy_polling, now = BusyPolling(moment, processors), 1.0
    for gap in gaps:
        now += gap
        busy_polling.note_arrival(now)
    return busy_polling


@pytest.mark.parametrize(
    ("gaps", "processors", "looks"),
    [
        ([3e-4] * 20, 2, True),
        ([3e-4] * 10, 2, False),  # too few reads yet
        ([3e-4] * 20, 1, False),  # the client needs the one processor
        ([1e-3] * 100, 2, False),
        ([3e-4, 3e-4, 1e-3] * 50, 2, False),  # one read in three is late
        ([1e-3] + [3e-4] * 20, 2, True),
        ([3e-4] * 20 + [1e-3, 1e-3], 2, True),  # once polling is on, two late reads do not end it
    ],
)
def test_busy_polling_needs_reads_in_quick_succession(gaps, processors, looks):
    async def main():
        return polling(gaps, processors).is_polling

    assert asyncio.run(main()) is looks


def test_busy_polling_ends_after_a_moment_without_reads():
    async def main():
        results = polling([3e-4] * 20, moment=1e9)
        for _ in range(50):
            await asyncio.sleep(0)
        assert results.is_polling
        results.poll_s = 0.0
        await asyncio.sleep(0)
        assert not results.is_polling

    asyncio.run(main())


def test_a_server_that_polls_answers_the_same():
    async def talk(link, server):
        answers = [await link.ask(Command(7, {"n": str(number)})) for number in range(100)]
        return [answer.fields["n"] for answer in answers]

    assert run_talk(echo, talk, Limits(polling=BusyPolling())) == [str(number) for number in range(100)]
