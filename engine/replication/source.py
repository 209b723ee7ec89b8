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
from engine.remoting.connection import stop_accepting
from engine.replication.transfer import REPORT_SIZE, read_report, transfer_header

_HEARTBEAT = 5.0
_SILENCE = 20.0
_LOOK = 0.01
"""Seconds between looks for new bytes while there are none."""
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Slave:
    """One that follows: its address, what it was sent and what it says it has, in offsets of the log."""

    peer: str
    sent: int = 0
    acknowledged: int = 0


class HaServer:
    """``async with``: accepts slaves at a bound socket, and ends with the block; the store stays its owner's."""

    def __init__(self, store: MessageStore, bound: socket.socket) -> None:
        self._store = store
        self._bound = bound
        self._server: asyncio.Server | None = None
        self._links: set[asyncio.Task[None]] = set()
        self._wanted = asyncio.Event()
        self.slaves: list[Slave] = []
        self.changed: Callable[[], None] = lambda: None
        """Called where a slave has come, gone, or said how far it is."""

    def hurry(self) -> None:
        """Somebody waits for the slaves: what is new is sent now."""
        self._wanted.set()

    def acknowledged(self) -> list[int]:
        """How far each slave says it is."""
        return [one.acknowledged for one in self.slaves]

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, sock=self._bound)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        await stop_accepting(self._server)
        for link in list(self._links):
            link.cancel()
        await asyncio.gather(*self._links, return_exceptions=True)
        await self._server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Known and closed whatever becomes of its task: one that is cancelled before its first step runs no line."""
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
        hearing: asyncio.Task[None] | None = None
        try:
            async with asyncio.timeout(_SILENCE):
                wanted = read_report(await reader.readexactly(REPORT_SIZE))
            slave.sent = slave.acknowledged = max(wanted, 0)
            if wanted == 0:
                last = self._store.parts.files.last
                slave.sent = 0 if last is None else last.start_offset
            self.changed()
            hearing = asyncio.ensure_future(self._hear(reader, slave))
            await self._send(writer, slave, hearing)
        except (ConnectionError, TimeoutError, asyncio.IncompleteReadError, OSError) as error:
            _log.info("slave %s: %s", slave.peer, cause_of(error, type(error).__name__))
        finally:
            if hearing is not None:
                hearing.cancel()
                await asyncio.gather(hearing, return_exceptions=True)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
            self.slaves.remove(slave)
            self.changed()

    async def _hear(self, reader: asyncio.StreamReader, slave: Slave) -> None:
        while True:
            async with asyncio.timeout(_SILENCE):
                slave.acknowledged = read_report(await reader.readexactly(REPORT_SIZE))
            self.changed()

    async def _send(self, writer: asyncio.StreamWriter, slave: Slave, hearing: asyncio.Task[None]) -> None:
        """Bytes as they come, never over a file's end; a word every five seconds where there are none."""
        most, spoken = self._store.config.ha_transfer_batch_size, time.monotonic()
        files = self._store.parts.files
        while not hearing.done():
            data = files.read(slave.sent, most)
            if not data and time.monotonic() - spoken < _HEARTBEAT:
                self._wanted.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK):
                        await self._wanted.wait()
                continue
            writer.write(transfer_header(slave.sent, len(data)))
            if data:
                writer.write(data)
            await writer.drain()
            slave.sent += len(data)
            spoken = time.monotonic()
        hearing.result()
