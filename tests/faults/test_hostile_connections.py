"""Many, slow, silent, half-open or flooding connections: others are answered, and memory is bounded."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from served_stores import a_send, responses_of, served

from engine.remoting.connection import Connection, connect
from engine.remoting.frame import Command, encode

pytestmark = pytest.mark.timeout(240)

MANY = 2_000
GROWTH = 96 << 20
"""Bytes that the process may take more."""
FLOOD = 60 << 20
"""Bytes of requests of somebody who reads no answer: some thirty times the buffers between the two."""


def resident(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) << 10
    raise LookupError(pid)


@pytest.fixture
def descriptors() -> Iterator[None]:
    """Allow enough file descriptors for both sides."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    expected = MANY * 2 + 500
    if hard not in {resource.RLIM_INFINITY} and hard < expected:
        pytest.fail(f"this user may open {hard} files, and {expected} are needed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, expected), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def steady(pid: int) -> int:
    """Return :func:`resident` once it is stable for a second: compiled code is loaded, or compiled, in the
    background.
    """
    observed, since, end = 0, time.monotonic(), time.monotonic() + 120
    while time.monotonic() - since < 1 and time.monotonic() < end:
        now = resident(pid)
        if abs(now - observed) > 1 << 20:
            observed, since = now, time.monotonic()
        time.sleep(0.05)
    return observed


@pytest.fixture
def broker(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """Serve a store; a connection that is silent for three seconds, or for the test's number, is ended."""
    conf = tmp_path / "broker.conf"
    conf.write_text(f"serverChannelMaxIdleTimeSeconds={getattr(request, 'param', 3)}\n")
    with served(tmp_path / "store", "--config", str(conf)) as results:
        assert responses_of(results[1]["broker"], a_send(b"first"))[0].code == 0
        while responses_of(results[1]["broker"], end_of_queue())[0].fields["offset"] != "1":
            time.sleep(0.02)  # it is dispatched
        yield results


def place(record: dict[str, Any]) -> tuple[str, int]:
    host, _, port = record["broker"].rpartition(":")
    return host, int(port)


def end_of_queue() -> Command:
    return Command(30, {"topic": "Orders", "queueId": "0"})


@pytest.mark.parametrize("broker", [120], indirect=True)
def test_two_thousand_connections_at_once_are_answered(broker, descriptors) -> None:
    process, record = broker
    memory_before = steady(process.pid)

    async def all_of_them() -> list[str]:
        opened: list[Connection] = []
        try:
            for start in range(0, MANY, 100):
                opened += await asyncio.gather(*(connect(*place(record)) for _ in range(start, start + 100)))
            answers = await asyncio.gather(*(connection.ask(end_of_queue(), 60) for connection in opened))
            assert resident(process.pid) - memory_before < GROWTH
            return [answer.fields["offset"] for answer in answers]
        finally:
            for connection in opened:
                connection.close()

    assert asyncio.run(all_of_them()) == ["1"] * MANY


def test_a_client_that_reads_no_answers_fills_no_memory(broker) -> None:
    process, record = broker
    memory_before = resident(process.pid)
    frame = b"".join(map(bytes, encode(Command(26)))) * 500
    with socket.create_connection(place(record)) as flood:
        flood.settimeout(2)
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < FLOOD:
                sent += flood.send(frame)
        assert sent < FLOOD
        assert resident(process.pid) - memory_before < GROWTH
        assert responses_of(record["broker"], a_send(b"meanwhile"))[0].code == 0
    assert responses_of(record["broker"], end_of_queue())[0].code == 0


@pytest.mark.parametrize("broker", [120], indirect=True)
def test_forty_clients_that_pull_without_reading_delay_nobody(broker) -> None:
    """Forty clients asked for 400 pulls of 250 kB each in one write and read none. The broker first answered all
    requests that it had read: 3.6 GB of memory, and everybody else waited for three seconds.
    """
    process, record = broker
    codes = {
        answer.code for answer in responses_of(record["broker"], *(a_send(bytes(250_000), "Large") for _ in range(20)))
    }
    assert codes == {0}
    while responses_of(record["broker"], Command(30, {"topic": "Large", "queueId": "0"}))[0].fields["offset"] != "20":
        time.sleep(0.02)
    memory_before = steady(process.pid)
    fields = {
        "consumerGroup": "deaf",
        "topic": "Large",
        "queueId": "0",
        "queueOffset": "0",
        "maxMsgNums": "32",
        "sysFlag": "4",
        "commitOffset": "0",
        "suspendTimeoutMillis": "1000",
        "subscription": "*",
        "subVersion": "0",
    }
    pulls = b"".join(b"".join(map(bytes, encode(Command(11, fields, opaque=number)))) for number in range(400))
    with contextlib.ExitStack() as opened:
        for _ in range(40):
            connection = opened.enter_context(socket.socket())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(place(record))
            connection.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                connection.send(pulls)
        for _ in range(20):
            assert responses_of(record["broker"], a_send(b"meanwhile"))[0].code == 0
        assert steady(process.pid) - memory_before < GROWTH


def test_slow_silent_and_half_open_connections_delay_nobody(broker) -> None:
    process, record = broker
    with contextlib.ExitStack() as opened:
        silent = [opened.enter_context(socket.create_connection(place(record))) for _ in range(50)]
        frame = b"".join(map(bytes, encode(a_send(b"slowly"))))
        slow = opened.enter_context(socket.create_connection(place(record)))
        half = opened.enter_context(socket.create_connection(place(record)))
        half.sendall(frame[: len(frame) // 2])
        half.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        half.close()
        for position in range(len(frame)):
            slow.sendall(frame[position : position + 1])
            if position % 50 == 0:
                assert responses_of(record["broker"], a_send(b"quickly"))[0].code == 0
        slow.settimeout(60)
        assert int.from_bytes(slow.recv(4), "big") > 0
        for item in silent:  # they said nothing for longer than the configuration allows
            item.settimeout(60)
            assert item.recv(1) == b""
    assert process.poll() is None


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x7f\xff\xff\xff" + b"x" * 100,
        b"GET / HTTP/1.1\r\n\r\n",
        b"\0" * 64,
        b"\x16\x03\x01\x02\0\x01\0",
        b"PROXY TCP4 1 2 3 4\r\n",
    ],
)
def test_garbage_ends_only_its_own_connection(broker, garbage: bytes) -> None:
    _, record = broker
    with socket.create_connection(place(record)) as connection:
        connection.sendall(garbage)
        connection.settimeout(60)
        with contextlib.suppress(ConnectionResetError):
            assert connection.recv(1) == b""
    assert responses_of(record["broker"], end_of_queue())[0].fields["offset"] == "1"
