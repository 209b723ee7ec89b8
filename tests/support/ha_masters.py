"""A master whose log is followed, and the content of a store's log."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from unittest.mock import patch

from engine.codec.encode import Message
from engine.config import MessageStoreConfig
from engine.message_store import MessageStore
from engine.remoting.connection import bind, port_of
from engine.replication import source
from engine.replication.source import HaServer

CONFIG = MessageStoreConfig(
    mapped_file_size_commit_log=4096, mapped_file_size_consume_queue=6000, ha_transfer_batch_size=333
)


class Master:
    """A store, and its HA port; :meth:`cut` breaks its links."""

    def __init__(self, store: MessageStore, server: HaServer) -> None:
        self.store = store
        self.server = server

    def cut(self) -> None:
        for link in list(self.server._links):
            link.cancel()


@asynccontextmanager
async def master(path: Path, count: int = 40) -> AsyncIterator[tuple[Master, int]]:
    """Run a master with messages, and its HA port; without new bytes it soon sends a heartbeat."""
    with (
        MessageStore(path, CONFIG) as store,
        bind("127.0.0.1", 0) as bound,
        patch.object(source, "_HEARTBEAT_INTERVAL_S", 0.2),
    ):
        put(store, count)
        async with HaServer(store, bound) as server:
            yield Master(store, server), port_of(bound)


def put(store: MessageStore, count: int) -> None:
    for number in range(count):
        assert store.put_message(Message("Orders", b"%d" % number * 99, number % 2)).ok


def log_of(store: MessageStore) -> bytes:
    return b"".join(file.read(0, file.wrote) for file in store.parts.files.files)
