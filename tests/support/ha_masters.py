"""A master's HA port over a store of ours, and what it holds."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from engine.codec.encode import Message
from engine.config import MessageStoreConfig
from engine.message_store import MessageStore

CONFIG = MessageStoreConfig(mapped_file_size_commit_log=4096, mapped_file_size_consume_queue=6000)


class Master:
    """A master's HA port over a store (``DefaultHAConnection``). ``limit``: bytes after which it cuts the link."""

    def __init__(self, store: MessageStore) -> None:
        self.store = store
        self.said: list[int] = []
        self.limit: int | None = None
        self.links: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.links.add(task)
        hearing = None
        try:
            at = await self._hear(reader)
            files = self.store.parts.files
            if at == 0 and files.last is not None:
                at = files.last.start_offset
            hearing = asyncio.ensure_future(self._hear_on(reader))
            sent = 0
            while self.limit is None or sent < self.limit:
                data = files.read(at, 333)
                writer.write(struct.pack(">qi", at, len(data)) + data)
                await writer.drain()
                at += len(data)
                sent += len(data)
                if not data:
                    await asyncio.sleep(0.02)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            if hearing is not None:
                hearing.cancel()
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            self.links.discard(task)

    async def _hear(self, reader: asyncio.StreamReader) -> int:
        (offset,) = struct.unpack(">q", await reader.readexactly(8))
        self.said.append(offset)
        return int(offset)

    async def _hear_on(self, reader: asyncio.StreamReader) -> None:
        with suppress(asyncio.IncompleteReadError):
            while True:
                await self._hear(reader)


@asynccontextmanager
async def master(path: Path, count: int = 40) -> AsyncIterator[tuple[Master, int]]:
    """A master with messages, and its port."""
    with MessageStore(path, CONFIG) as store:
        put(store, count)
        made = Master(store)
        server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
        async with server:
            try:
                yield made, server.sockets[0].getsockname()[1]
            finally:
                for link in list(made.links):
                    link.cancel()
                await asyncio.gather(*made.links, return_exceptions=True)


def put(store: MessageStore, count: int) -> None:
    for number in range(count):
        assert store.put_message(Message("Orders", b"%d" % number * 99, number % 2)).ok


def log_of(store: MessageStore) -> bytes:
    return b"".join(file.read(0, file.wrote) for file in store.parts.files.files)
