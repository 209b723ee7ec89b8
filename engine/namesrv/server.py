"""A name server on a port: answers requests, drops brokers without heartbeats, reports broken connections."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Self

from engine.namesrv.config import NameServerConfig
from engine.namesrv.requests import NameServer
from engine.namesrv.routes import (
    Change,
)
from engine.remoting.connection import Connection, Limits, Server, Tap, bind, not_supported, port_of
from engine.remoting.frame import Command
from engine.remoting.tls import Tls

LOOPBACK = "127.0.0.1"


class ListeningNameServer:
    """A name server on a port; use it with ``async with``. ``tap`` sees each frame."""

    def __init__(
        self,
        config: NameServerConfig | None = None,
        host: str = LOOPBACK,
        port: int | None = None,
        changed: Callable[[Change], None] | None = None,
        tls: Tls | None = None,
        tap: Tap | None = None,
    ) -> None:
        self.names = NameServer(lambda: int(time.time() * 1000), config)
        if changed is not None:
            self.names.changed = changed
        self._server = Server(self._answer, Limits(tap=tap), tls)
        self._server.on_close = self.names.disconnected
        self._host = host
        self._port = self.names.config.listen_port if port is None else port
        self._scan: asyncio.Task[None] | None = None
        self.address = ""
        """``ip:port``, once it accepts."""

    async def __aenter__(self) -> Self:
        """Accept. Raises :class:`CannotRead` if the port is taken."""
        bound = bind(self._host, self._port, "the name server's port")
        self.address = f"{self._host}:{port_of(bound)}"
        await self._server.listen(bound)
        self._scan = asyncio.create_task(self._look_for_silent())
        return self

    async def __aexit__(self, *_: object) -> None:
        """Accept no more; connections end."""
        if self._scan is not None:
            self._scan.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._scan
        await self._server.close()

    def _answer(self, request: Command, connection: Connection) -> Command:
        if not self.names.knows(request.code):
            return not_supported(request)
        return self.names.answer(request, connection)

    async def _look_for_silent(self) -> None:
        while True:
            await asyncio.sleep(self.names.config.scan_interval / 1000)
            for connection in self.names.expire():
                if isinstance(connection, Connection):
                    connection.close()
