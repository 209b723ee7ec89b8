"""``namesrv``: a name server on the loopback, for brokers and clients of RocketMQ."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ipaddress
import os
import signal
from collections.abc import Iterator
from typing import Any

from engine.cli.options import common, number
from engine.cli.output import Output
from engine.namesrv.config import PORT, NameServerConfig, read_config
from engine.namesrv.routes import Change
from engine.namesrv.server import LOOPBACK, ListeningNameServer

LAST_PORT = 65_535


def register(commands: Any) -> None:
    parser = commands.add_parser("namesrv", parents=[common(store=False)], help="a name server for brokers and clients")
    parser.add_argument("--host", default=LOOPBACK, help=f"the address that it listens on ({LOOPBACK})")
    parser.add_argument("--port", type=_port, help=f"0 takes a free one ({PORT}, or what the configuration says)")
    parser.add_argument("--config", metavar="namesrv.conf", help="a name server's configuration")
    parser.set_defaults(run=run)


def _port(text: str) -> int:
    value = number(text)
    if not 0 <= value <= LAST_PORT:
        raise argparse.ArgumentTypeError(f"expected a port from 0 to {LAST_PORT:,}, found '{text}'")
    return value


def run(args: argparse.Namespace, out: Output) -> int:
    config, unknown = read_config(args.config) if args.config else (NameServerConfig(), [])
    if unknown:
        out.say(f"{args.config}: without effect here: {', '.join(unknown)}")
    if not _is_loopback(args.host):
        out.say(f"listening on {args.host}: whoever reaches it may register brokers and change routes")
    asyncio.run(_serve(args, config, out))
    return 0


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def _serve(args: argparse.Namespace, config: NameServerConfig, out: Output) -> None:
    """Until Ctrl+C or TERM."""

    def told(change: Change) -> None:
        if out.as_json:
            _record(
                out, {"type": "broker", "state": change.word, "brokerName": change.broker, "address": change.address}
            )
        else:
            _line(out, f"{change.broker} at {change.address}: {change.word}")

    with _ended_by_signals() as ended:
        async with ListeningNameServer(config, args.host, args.port, told) as server:
            if out.as_json:
                _record(out, {"type": "serving", "namesrv": server.address, "pid": os.getpid()})
            else:
                _line(out, f"serving: name server {server.address}, pid {os.getpid()}; Ctrl+C ends it")
            await ended.wait()


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[asyncio.Event]:
    """Set by Ctrl+C and TERM; behind the block they do what they did before."""
    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    before = {
        one: signal.signal(one, lambda *_: loop.call_soon_threadsafe(ended.set))
        for one in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield ended
    finally:
        for one, what in before.items():
            signal.signal(one, what)


def _record(out: Output, record: dict[str, Any]) -> None:
    out.record(record)
    out.flush()


def _line(out: Output, text: str) -> None:
    out.line(text)
    out.flush()
