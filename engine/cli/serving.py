"""Shared code of the commands that serve: address options, messages, signals."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ipaddress
import logging
import signal
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from engine import system
from engine.cli.options import number
from engine.cli.output import Output
from engine.namesrv.server import LOOPBACK
from engine.remoting.connection import MAX_PORT
from engine.remoting.tls import DEFAULT_TLS, Tls, read_tls

if TYPE_CHECKING:
    from engine.message_store import MessageStore

MAX_DESCRIPTORS = 20_000
FILE_READERS = (
    "engine.broker.plain_acl",
    "engine.broker.access",
    "engine.broker.tiered_store",
    "engine.store.config_tables",
)
"""Loggers that warn about the accounts and tables of a broker: unknown keys, unusable or missing files."""
POLL_INTERVAL_S = 0.25
"""Interval at which the failing functions of a store are read."""


def add_address(parser: argparse.ArgumentParser, default_port: int) -> None:
    """Add ``--listen``, also by its older name ``--host``, ``--port`` and ``--tls``."""
    listen_help = f"the address to listen on (default: {LOOPBACK})"
    parser.add_argument("--listen", "--host", dest="host", metavar="ADDRESS", default=LOOPBACK, help=listen_help)
    parser.add_argument(
        "--port",
        type=port,
        metavar="PORT",
        help=f"the port to listen on; 0 takes a free one (default: the configuration's, or {default_port})",
    )
    tls_help = (
        "RocketMQ's TLS settings: certificate, key, required or not (default: clients may use TLS, with a certificate "
        "that is made at the start)"
    )
    parser.add_argument("--tls", metavar="tls.properties", help=tls_help)


def read_tls_option(args: argparse.Namespace, out: Output) -> Tls:
    """Read the file of ``--tls``; keys that have no effect here are reported. Raises :class:`CannotRead` and
    :class:`UsageError`.
    """
    if args.tls is None:
        return DEFAULT_TLS
    tls, unknown = read_tls(args.tls)
    if unknown:
        out.say(f"{args.tls}: without effect here: {', '.join(unknown)}")
    return tls


def port(text: str) -> int:
    """Parse an argument that is a port."""
    value = number(text)
    if not 0 <= value <= MAX_PORT:
        raise argparse.ArgumentTypeError(f"expected a port from 0 to {MAX_PORT:,}, found '{text}'")
    return value


def address_list(text: str) -> list[str]:
    """Parse an argument that names servers: ``host:port``, with ``;`` between."""
    addresses = [address.strip() for address in text.split(";") if address.strip()]
    for address in addresses:
        host, colon, digits = address.rpartition(":")
        if not (host and colon and digits.isdecimal() and int(digits) <= MAX_PORT):
            raise argparse.ArgumentTypeError(f"expected host:port, found '{address}'")
    return addresses


def is_loopback(host: str) -> bool:
    """Return True if the address is reachable only from this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def allow_many_connections() -> None:
    """Raise the limit of descriptors as far as the system permits, up to :data:`MAX_DESCRIPTORS`: usually it is
    1,024, and each connection needs one. If the system refuses, the limit stays.
    """
    limit = system.descriptor_limit()
    if limit is None:
        return
    soft, hard = limit
    new_limit = MAX_DESCRIPTORS if hard is None else min(hard, MAX_DESCRIPTORS)
    if soft is not None and soft < new_limit:
        with contextlib.suppress(OSError, ValueError):
            system.set_descriptor_limit(new_limit)


@contextlib.contextmanager
def ended_by_signals() -> Iterator[asyncio.Event]:
    """Yield an event that Ctrl+C and TERM set; after the block the old handlers are restored."""
    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    old_handlers = {
        signal_number: signal.signal(signal_number, lambda *_: loop.call_soon_threadsafe(ended.set))
        for signal_number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield ended
    finally:
        for signal_number, handler in old_handlers.items():
            signal.signal(signal_number, handler)


class _SayWarnings(logging.Handler):
    """Passes messages of a logger on to ``say``."""

    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        self._say(record.getMessage())


@contextlib.contextmanager
def report_warnings(say: Callable[[str], None]) -> Iterator[None]:
    """Report the warnings of :data:`FILE_READERS` during the block.

    Otherwise the engine's loggers are silent, because programs embed it.
    """
    handler = _SayWarnings(say)
    for name in FILE_READERS:
        logging.getLogger(name).addHandler(handler)
    try:
        yield
    finally:
        for name in FILE_READERS:
            logging.getLogger(name).removeHandler(handler)


async def report_troubles(store: MessageStore, say: Callable[[str], None]) -> None:
    """Report each function of the store that begins to fail, and when it works again. Runs until cancelled."""
    reported: set[str] = set()
    while True:
        reasons = {trouble.what: trouble.why for trouble in store.troubles()}
        for subject in [trouble for trouble in reasons if trouble not in reported]:
            say(f"{subject}: {reasons[subject]}")
        for subject in sorted(reported - reasons.keys()):
            say(f"resolved: {subject}")
        reported = set(reasons)
        await asyncio.sleep(POLL_INTERVAL_S)


def print_record(out: Output, record: dict[str, Any]) -> None:
    """Print a record and flush."""
    out.record(record)
    out.flush()


def print_line(out: Output, text: str) -> None:
    """Print a line and flush."""
    out.line(text)
    out.flush()
