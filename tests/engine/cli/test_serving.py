"""Addresses of servers, and how servers end."""

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
def test_an_invalid_port(text):
    with pytest.raises(argparse.ArgumentTypeError, match="expected a port from 0 to 65,535"):
        port(text)


@pytest.mark.parametrize("text", ["host", "host:", ":7", "host:x", "host:65536"])
def test_an_invalid_address(text):
    with pytest.raises(argparse.ArgumentTypeError, match="expected host:port"):
        address_list(text)


def test_which_hosts_reach_an_address():
    assert [is_loopback(text) for text in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "broker-a")] == [
        True,
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_server_and_its_handler_is_restored(signal_number):
    handler_before = signal.getsignal(signal_number)

    async def main():
        with ended_by_signals() as ended:
            os.kill(os.getpid(), signal_number)
            await asyncio.wait_for(ended.wait(), 60)

    asyncio.run(main())
    assert signal.getsignal(signal_number) is handler_before


def test_a_failure_is_reported_once_and_again_when_it_is_resolved(monkeypatch):
    monkeypatch.setattr(serving, "POLL_INTERVAL_S", 0.001)

    class Store:
        failures: tuple[ServiceFailure, ...] = ()

        def troubles(self):
            return self.failures

    store, messages = Store(), []

    async def until(count):
        async with asyncio.timeout(60):
            while len(messages) < count:
                await asyncio.sleep(0.001)

    async def main():
        reporting = asyncio.ensure_future(serving.report_troubles(store, messages.append))
        store.failures = (ServiceFailure("the log cannot grow", "no room at 4,096"),)
        await until(1)
        store.failures = (
            ServiceFailure("the log cannot grow", "no room at 8,192"),
            ServiceFailure("dispatch waits", "no room"),
        )
        await until(2)
        store.failures = ()
        await until(4)
        reporting.cancel()

    asyncio.run(main())
    assert messages == [
        "the log cannot grow: no room at 4,096",
        "dispatch waits: no room",
        "resolved: dispatch waits",
        "resolved: the log cannot grow",
    ]
