"""Serve a store for the duration of a ``with`` block, for test suites that need a broker.

>>> async with serving(path) as addresses:
...     print(addresses.broker, addresses.namesrv)
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.broker.config import BrokerConfig
from engine.broker.server import ListeningBroker
from engine.broker.tiered_store import open_served_store
from engine.config import MessageStoreConfig
from engine.message_store import MessageStore
from engine.namesrv.server import LOOPBACK, ListeningNameServer
from engine.releases import Release
from engine.remoting.connection import Tap, bind, port_of


@dataclass(frozen=True, slots=True)
class Addresses:
    """Addresses of the servers: ``ip:port`` each."""

    broker: str
    namesrv: str


@contextlib.asynccontextmanager
async def serving_open(
    open_store: Callable[[str], MessageStore],
    config: BrokerConfig | None = None,
    *,
    name_servers: Sequence[str] = (),
    host: str = LOOPBACK,
    port: int = 0,
    tap: Tap | None = None,
) -> AsyncIterator[ListeningBroker]:
    """Serve a broker over the store that ``open_store(ip:port)`` opens; the store is closed after the block.

    ``tap`` receives each frame.
    """
    config = config or BrokerConfig()
    bound = bind(host, port)
    with bound:
        store = await asyncio.to_thread(open_store, f"{config.broker_ip}:{port_of(bound)}")
        try:
            async with ListeningBroker(
                store, config, name_servers=name_servers, listening_socket=bound, tap=tap
            ) as server:
                yield server
        finally:
            await asyncio.to_thread(store.close)


@contextlib.asynccontextmanager
async def serving_store(
    path: Path | str,
    config: BrokerConfig | None = None,
    store_config: MessageStoreConfig | None = None,
    *,
    name_servers: Sequence[str] = (),
    host: str = LOOPBACK,
    port: int | None = None,
    tap: Tap | None = None,
    release: Release | None = None,
) -> AsyncIterator[ListeningBroker]:
    """Serve the store in ``path`` as a broker; it is created if absent, and closed after the block.

    ``release`` is the RocketMQ release to behave as; None: :class:`MessageStore` decides.
    """
    config = config or BrokerConfig()

    def open_store(address: str) -> MessageStore:
        return open_served_store(path, store_config, store_host=address, release=release)

    port = config.listen_port if port is None else port
    async with serving_open(open_store, config, name_servers=name_servers, host=host, port=port, tap=tap) as server:
        yield server


@contextlib.asynccontextmanager
async def serving(path: Path | str, config: BrokerConfig | None = None) -> AsyncIterator[Addresses]:
    """Serve a name server and a broker over the store in ``path``, on free ports of the loopback.

    Raises the errors of :class:`MessageStore`, for example if another process has opened the store.
    """
    async with (
        ListeningNameServer(port=0) as names,
        serving_store(path, config, name_servers=[names.address], port=0) as server,
    ):
        yield Addresses(server.address, names.address)


@contextlib.contextmanager
def serving_beside(path: Path | str, config: BrokerConfig | None = None) -> Iterator[Addresses]:
    """Run :func:`serving` in a thread of its own, for code without an event loop: a fixture, a blocking client."""
    results: queue.SimpleQueue[Addresses | BaseException] = queue.SimpleQueue()
    ending: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def served() -> None:
        ended = asyncio.Event()
        ending.append((asyncio.get_running_loop(), ended))
        async with serving(path, config) as addresses:
            results.put(addresses)
            await ended.wait()

    def run() -> None:
        try:
            asyncio.run(served())
        except BaseException as error:  # noqa: BLE001  passed to the thread that waits
            results.put(error)

    thread = threading.Thread(target=run, name="storescope-serving", daemon=True)
    thread.start()
    result = results.get()
    if isinstance(result, BaseException):
        thread.join()
        raise result
    try:
        yield result
    finally:
        loop, ended = ending[0]
        loop.call_soon_threadsafe(ended.set)
        thread.join()
