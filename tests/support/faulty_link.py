"""Between clients and a server that may be away: slow, deaf, half closed and cut as a test says."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable

LARGEST, SMALLEST = 1 << 16, 700
"""Bytes that are carried at a time, usually and where it is ``slow``."""
REST = 0.005
"""Seconds between two pieces where it is ``slow``."""
_RESETS = struct.pack("ii", 1, 0)


class Link:
    """Each connection of a client is one to whatever ``target()`` names then (``ip:port``). A link that is not open is
    as a port where nobody listens.
    """

    def __init__(self, target: Callable[[], str]) -> None:
        self._target = target
        self._server: asyncio.Server | None = None
        self._pairs: set[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = set()
        self._ended: set[asyncio.StreamWriter] = set()
        self.port = 0
        """On the loopback, once it has been open."""
        self.slow = False
        self.answers_are_lost = False
        """What the server says is thrown away, and what is said to it comes there."""
        self.lost = 0
        """How many pieces of answers were thrown away."""

    async def open(self) -> None:
        """Accept connections."""
        if self._server is None:
            self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
            self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Accept none, and cut those that stand."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
            self.cut()
            await server.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        pair = None
        try:
            host, _, port = self._target().rpartition(":")
            there, back = await asyncio.open_connection(host, int(port))
            pair = writer, back
            self._pairs.add(pair)
            await asyncio.gather(self._carry(reader, back), self._carry(there, writer, answers=True))
        except (OSError, ValueError):  # nobody is there
            return
        finally:
            writer.close()
            if pair is not None:
                pair[1].close()
                self._ended.discard(pair[1])
                self._pairs.discard(pair)

    async def _carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, answers: bool = False
    ) -> None:
        try:
            while data := await reader.read(SMALLEST if self.slow else LARGEST):
                if answers and self.answers_are_lost:
                    self.lost += 1
                    continue
                if writer in self._ended:
                    continue
                writer.write(data)
                await writer.drain()
                if self.slow:
                    await asyncio.sleep(REST)
        finally:
            writer.close()

    def cut(self) -> None:
        """Reset every connection, both ways."""
        for pair in list(self._pairs):
            for writer in pair:
                with contextlib.suppress(OSError):
                    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESETS)
                writer.transport.abort()

    def half_close(self) -> None:
        """Tell the server that its clients say no more; what it says still comes to them."""
        for _, back in list(self._pairs):
            if back not in self._ended:
                self._ended.add(back)
                with contextlib.suppress(OSError):
                    back.write_eof()
