"""Our name server and broker in this process, for our clients, and the units in the store."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from engine.broker.config import BrokerConfig
from engine.broker.server import ListeningBroker
from engine.broker.serving import serving_store
from engine.codec.message import Unit
from engine.config import MessageStoreConfig
from engine.namesrv.server import ListeningNameServer
from engine.releases import Release


class ServedBroker:
    """A broker and its name server."""

    def __init__(self, namesrv: str, server: ListeningBroker) -> None:
        self.namesrv = namesrv
        self.server = server

    def units(self, topic: str, queue_id: int | None = None) -> list[Unit]:
        """Return the units of a topic's queue, or of all of them, after everything is dispatched."""
        store = self.server.broker.store
        store.wait_dispatched()
        all_units: list[Unit] = []
        for number in range(16) if queue_id is None else (queue_id,):
            position = 0
            while (answer := store.get_message("test", topic, number, position, 32)) is not None:
                with answer:
                    units = list(answer.units())
                if not units:
                    break
                all_units += units
                position += len(units)
        return all_units


QUICK = MessageStoreConfig(message_delay_level="1s " * 17 + "1s")
"""What comes again comes again in a second."""


@contextlib.asynccontextmanager
async def served(
    path: Path,
    config: BrokerConfig | None = None,
    store_config: MessageStoreConfig | None = None,
    release: Release | None = None,
) -> AsyncIterator[ServedBroker]:
    async with (
        ListeningNameServer(port=0) as names,
        serving_store(
            path, config, store_config or QUICK, name_servers=[names.address], port=0, release=release
        ) as server,
    ):
        yield ServedBroker(names.address, server)


async def wait_until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until ``what()`` is true; fail loudly if it is not in time."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)
