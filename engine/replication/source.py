"""A master's HA port: slaves follow the log of an open store (docs/formats/replication.md; Java: ``DefaultHAService``,
``DefaultHAConnection``).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from engine.errors import cause_of
from engine.message_store import MessageStore
from engine.remoting.connection import allow_restart, stop_accepting
from engine.replication.transfer import REPORT_SIZE, read_report, transfer_header

_HEARTBEAT_INTERVAL_S = 5.0
_SILENCE_TIMEOUT_S = 20.0
_POLL_INTERVAL_S = 0.01
"""Interval of checks for new bytes."""
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Slave:
    """A slave that follows: its address, the offset it was sent up to, and the offset it acknowledged."""

    peer: str
    sent: int = 0
    acknowledged: int = 0


class HaServer:
    """Accepts slaves at a bound socket. An async context manager; it does not close the store."""

    def __init__(self, store: MessageStore, bound: socket.socket) -> None:
        self._store = store
        self._bound = bound
        self._server: asyncio.Server | None = None
        self._links: set[asyncio.Task[None]] = set()
        self._wake = asyncio.Event()
        self.slaves: list[Slave] = []
        self.changed: Callable[[], None] = lambda: None
        """Called when a slave connects, leaves, or reports its offset."""

    def hurry(self) -> None:
        """Send new bytes now, because a put waits for the slaves."""
        self._wake.set()

    def acknowledged(self) -> list[int]:
        """Return the offset that each slave acknowledged."""
        return [slave.acknowledged for slave in self.slaves]

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, sock=self._bound)
        allow_restart(self._bound)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        await stop_accepting(self._server)
        for link in list(self._links):
            link.cancel()
        await asyncio.gather(*self._links, return_exceptions=True)
        await self._server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Register the link here, and close it in a callback: a task cancelled before its first step runs no line."""
        link = asyncio.ensure_future(self._serve(reader, writer))
        self._links.add(link)

        def ended(_: object) -> None:
            writer.close()
            self._links.discard(link)

        link.add_done_callback(ended)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, port = writer.get_extra_info("peername")[:2]
        slave = Slave(f"{host}:{port}")
        self.slaves.append(slave)
        self.changed()
        reading_reports: asyncio.Task[None] | None = None
        try:
            async with asyncio.timeout(_SILENCE_TIMEOUT_S):
                start_offset = read_report(await reader.readexactly(REPORT_SIZE))
            slave.sent = slave.acknowledged = max(start_offset, 0)
            if start_offset == 0:
                last_file = self._store.parts.files.last
                slave.sent = 0 if last_file is None else last_file.start_offset
            self.changed()
            reading_reports = asyncio.ensure_future(self._read_reports(reader, slave))
            await self._send(writer, slave, reading_reports)
        except (ConnectionError, TimeoutError, asyncio.IncompleteReadError, OSError) as error:
            _log.info("slave %s: %s", slave.peer, cause_of(error, type(error).__name__))
        finally:
            if reading_reports is not None:
                reading_reports.cancel()
                await asyncio.gather(reading_reports, return_exceptions=True)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
            self.slaves.remove(slave)
            self.changed()

    async def _read_reports(self, reader: asyncio.StreamReader, slave: Slave) -> None:
        while True:
            async with asyncio.timeout(_SILENCE_TIMEOUT_S):
                slave.acknowledged = read_report(await reader.readexactly(REPORT_SIZE))
            self.changed()

    async def _send(self, writer: asyncio.StreamWriter, slave: Slave, reading_reports: asyncio.Task[None]) -> None:
        """Send new bytes, never across a file's end; without new bytes, send a heartbeat every five seconds."""
        batch_bytes, last_sent = self._store.config.ha_transfer_batch_size, time.monotonic()
        files = self._store.parts.files
        while not reading_reports.done():
            data = files.read(slave.sent, batch_bytes)
            if not data and time.monotonic() - last_sent < _HEARTBEAT_INTERVAL_S:
                self._wake.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_POLL_INTERVAL_S):
                        await self._wake.wait()
                continue
            writer.write(transfer_header(slave.sent, len(data)))
            if data:
                writer.write(data)
            await writer.drain()
            slave.sent += len(data)
            last_sent = time.monotonic()
        reading_reports.result()
