"""Where servers listen, how that is read, and how they end."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal

import pytest

from engine.cli import serving
from engine.cli.serving import add_address, address_list, ended_by_signals, is_loopback, port
from engine.services.status import ServiceFailure


def test_an_address_and_a_list_of_them():
    parser = argparse.ArgumentParser()
    add_address(parser, 9876)
    assert vars(parser.parse_args([])) == {"host": "127.0.0.1", "port": None, "tls": None}
    assert parser.parse_args(["--port", "0"]).port == 0
    assert address_list("a:1; b:65535;") == ["a:1", "b:65535"]


@pytest.mark.parametrize("text", ["65536", "99999"])
def test_a_port_that_is_none(text):
    with pytest.raises(argparse.ArgumentTypeError, match="expected a port from 0 to 65,535"):
        port(text)


@pytest.mark.parametrize("text", ["host", "host:", ":7", "host:x", "host:65536"])
def test_an_address_that_is_none(text):
    with pytest.raises(argparse.ArgumentTypeError, match="expected host:port"):
        address_list(text)


def test_who_reaches_an_address():
    assert [is_loopback(text) for text in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "broker-a")] == [
        True,
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_and_is_what_it_was_afterwards(by):
    before = signal.getsignal(by)

    async def main():
        with ended_by_signals() as ended:
            os.kill(os.getpid(), by)
            await asyncio.wait_for(ended.wait(), 60)

    asyncio.run(main())
    assert signal.getsignal(by) is before


def test_what_a_store_cannot_do_is_said_once_and_when_it_is_over(monkeypatch):
    monkeypatch.setattr(serving, "POLL_INTERVAL_S", 0.001)

    class Store:
        found: tuple[ServiceFailure, ...] = ()

        def troubles(self):
            return self.found

    store, calls = Store(), []

    async def until(count):
        async with asyncio.timeout(60):
            while len(calls) < count:
                await asyncio.sleep(0.001)

    async def main():
        telling = asyncio.ensure_future(serving.report_troubles(store, calls.append))
        store.found = (ServiceFailure("the log cannot grow", "no room at 4,096"),)
        await until(1)
        store.found = (
            ServiceFailure("the log cannot grow", "no room at 8,192"),
            ServiceFailure("dispatch waits", "no room"),
        )
        await until(2)
        store.found = ()
        await until(4)
        telling.cancel()

    asyncio.run(main())
    assert calls == [
        "the log cannot grow: no room at 4,096",
        "dispatch waits: no room",
        "resolved: dispatch waits",
        "resolved: the log cannot grow",
    ]
