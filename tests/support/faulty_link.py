"""A link between clients and a server that may be away: slow, deaf, half closed or cut on demand."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable

from real_cluster import free_port

from engine.remoting.connection import bind

MAX_READ_BYTES, SLOW_READ_BYTES = 1 << 16, 700
"""Bytes that are carried at a time, usually and where it is ``slow``."""
REST = 0.005
"""Seconds between two pieces where it is ``slow``."""
_RESETS = struct.pack("ii", 1, 0)


class Link:
    """Each connection of a client leads to the server that ``target()`` names at that time (``ip:port``). A closed link
    looks like a port without a listener.
    """

    def __init__(self, target: Callable[[], str]) -> None:
        self._target = target
        self._listening: socket.socket | None = None
        self._carrying: set[asyncio.Task[None]] = set()
        self._pairs: set[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = set()
        self._ended: set[asyncio.StreamWriter] = set()
        self.port = free_port()
        """On the loopback. No connection of another process takes it while the link is closed."""
        self.slow = False
        self.answers_are_lost = False
        """What the server says is thrown away, and what is said to it comes there."""
        self.lost = 0
        """How many pieces of answers were thrown away."""

    def __repr__(self) -> str:
        text = "open" if self._listening is not None else "closed"
        text += ", slow" * self.slow + ", answers are lost" * self.answers_are_lost
        return f"a link that is {text}, {len(self._pairs)} connections, {len(self._ended)} of them half closed"

    async def open(self) -> None:
        """Accept connections."""
        if self._listening is None:
            self._listening = bind("127.0.0.1", self.port)
            self._listening.listen()
            self._listening.setblocking(False)
            asyncio.get_running_loop().add_reader(self._listening, self._accept, self._listening)

    async def close(self) -> None:
        """Accept no more connections, and cut the existing ones."""
        listening, self._listening = self._listening, None
        if listening is not None:
            asyncio.get_running_loop().remove_reader(listening)
            listening.close()
            await asyncio.sleep(0)  # a task that is cancelled before its first step closes nothing
            self.cut()
            for task in self._carrying:
                task.cancel()
            await asyncio.gather(*self._carrying, return_exceptions=True)

    def _accept(self, listening: socket.socket) -> None:
        """Accept a client. This is done at once: a connection that asyncio's server accepts in the turn in which it is
        closed is neither read nor closed (Python 3.11), and its other end waits for ever.
        """
        try:
            accepted, _ = listening.accept()
        except OSError:  # gone already
            return
        accepted.setblocking(False)
        task = asyncio.create_task(self._carry_both(accepted))
        self._carrying.add(task)
        task.add_done_callback(self._carrying.discard)

    async def _carry_both(self, accepted: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=accepted)
        pair = None
        try:
            host, _, port = self._target().rpartition(":")
            present, back = await asyncio.open_connection(host, int(port))
            pair = writer, back
            self._pairs.add(pair)
            await asyncio.gather(self._carry(reader, back), self._carry(present, writer, answers=True))
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
            while data := await reader.read(SLOW_READ_BYTES if self.slow else MAX_READ_BYTES):
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
        """Tell the server that its clients send no more; its answers still reach them."""
        for _, back in list(self._pairs):
            if back not in self._ended:
                self._ended.add(back)
                with contextlib.suppress(OSError):
                    back.write_eof()
