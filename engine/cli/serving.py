"""What the commands that serve have in common: where they listen, what they say, how they end."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ipaddress
import signal
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from engine.cli.options import number
from engine.cli.output import Output
from engine.namesrv.server import LOOPBACK
from engine.remoting.connection import LAST_PORT
from engine.remoting.tls import Tls, read_tls

if TYPE_CHECKING:
    from engine.message_store import MessageStore

MOST_DESCRIPTORS = 20_000
LOOK = 0.25
"""Seconds between two looks at what a store cannot do."""


def add_address(parser: argparse.ArgumentParser, usual: int) -> None:
    """``--listen``, by its older name ``--host``, ``--port`` and ``--tls``."""
    told = f"the address that it listens on ({LOOPBACK})"
    parser.add_argument("--listen", "--host", dest="host", metavar="ADDRESS", default=LOOPBACK, help=told)
    parser.add_argument("--port", type=port, help=f"0 takes a free one ({usual}, or what the configuration says)")
    tls = "RocketMQ's TLS settings: certificate, key, who must; without it TLS is not spoken"
    parser.add_argument("--tls", metavar="tls.properties", help=tls)


def tls_of(args: argparse.Namespace, out: Output) -> Tls | None:
    """What ``--tls`` says; what has no effect here is named. Raises :class:`CannotRead` and :class:`UsageError`."""
    if args.tls is None:
        return None
    tls, unknown = read_tls(args.tls)
    if unknown:
        out.say(f"{args.tls}: without effect here: {', '.join(unknown)}")
    return tls


def port(text: str) -> int:
    """An argument that is a port."""
    value = number(text)
    if not 0 <= value <= LAST_PORT:
        raise argparse.ArgumentTypeError(f"expected a port from 0 to {LAST_PORT:,}, found '{text}'")
    return value


def address_list(text: str) -> list[str]:
    """An argument that names servers: ``host:port``, with ``;`` between."""
    found = [one.strip() for one in text.split(";") if one.strip()]
    for one in found:
        host, colon, digits = one.rpartition(":")
        if not (host and colon and digits.isdecimal() and int(digits) <= LAST_PORT):
            raise argparse.ArgumentTypeError(f"expected host:port, found '{one}'")
    return found


def is_loopback(host: str) -> bool:
    """Whether nobody outside this machine reaches the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def allow_many_connections() -> None:
    """As many descriptors as the system lets this process have, up to :data:`MOST_DESCRIPTORS`: systems begin with
    1,024, and each connection takes one. What is refused stays as it is.
    """
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource  # there is none on Windows

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
        if soft != resource.RLIM_INFINITY and soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


@contextlib.contextmanager
def ended_by_signals() -> Iterator[asyncio.Event]:
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


async def tell_troubles(store: MessageStore, told: Callable[[str], None]) -> None:
    """Say what the store cannot do as soon as that is so, and when it is over; until cancelled."""
    known: set[str] = set()
    while True:
        found = {one.what: one.why for one in store.troubles()}
        for what in [one for one in found if one not in known]:
            told(f"{what}: {found[what]}")
        for what in sorted(known - found.keys()):
            told(f"over: {what}")
        known = set(found)
        await asyncio.sleep(LOOK)


def say_record(out: Output, record: dict[str, Any]) -> None:
    """A record, at once."""
    out.record(record)
    out.flush()


def say_line(out: Output, text: str) -> None:
    """A line, at once."""
    out.line(text)
    out.flush()
