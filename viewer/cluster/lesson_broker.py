"""A broker of Storescope for one lesson, with short delays or a slow disk, in the process of the user's own clients.

It registers with the shown name servers, has only the topics of its lesson and creates no others, so that no other
client uses it. Its store is in a temporary folder that is deleted with it. No Qt.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from engine.broker.config import read_config
from engine.broker.serving import serving_open
from engine.client.instance import ClientInstance
from engine.errors import CannotRead
from engine.mapped.disk import RealDisk
from engine.mapped.real_file import OpenFiles, RealFile
from engine.message_store import MessageStore
from engine.sentences import sentence

QUEUE_COUNT = 2
"""Queues of each of its topics."""
REGISTER_TIMEOUT_S = 10.0
"""Maximum time until the name servers have registered it."""
BASE_SETTINGS = """\
mappedFileSizeCommitLog=16777216
mappedFileSizeConsumeQueue=60000
timerWheelEnable=false
autoCreateTopicEnable=false
brokerTopicEnable=false
clusterTopicEnable=false
"""
"""Lines of broker.conf for each lesson broker: small files, and no topics but its own."""
_POLL_INTERVAL_S = 0.05


class LessonBroker:
    """A broker that exists for one lesson. :meth:`start` and :meth:`stop` are called once each.

    ``name`` is the ``brokerName``, ``settings`` are further lines of ``broker.conf``. Each flush of the log takes
    ``flush_delay_s`` seconds longer. ``folder`` is made by :meth:`start` and deleted by :meth:`stop`.
    """

    def __init__(
        self, name: str, namesrv: str, topics: Sequence[str], settings: str, flush_delay_s: float, folder: Path
    ) -> None:
        self.name = name
        self._namesrv = namesrv
        self._topics = tuple(topics)
        self._settings = settings
        self._flush_delay_s = flush_delay_s
        self._folder = folder
        self._exit_stack = contextlib.AsyncExitStack()

    async def start(self) -> None:
        """Accept connections and wait until the name servers know all topics.

        Raises :class:`CannotRead`, ``OSError``.
        """
        try:
            await self._start()
        except BaseException:
            await self.stop()
            raise

    async def _start(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        conf = self._folder / "broker.conf"
        conf.write_text(f"brokerName={self.name}\n{BASE_SETTINGS}{self._settings}\n", "utf-8")
        config, store_config, _ = read_config(conf)

        def open_store(store_host: str) -> MessageStore:
            disk = SlowDisk(self._flush_delay_s) if self._flush_delay_s else None
            return MessageStore(self._folder / "store", store_config, disk=disk, store_host=store_host)

        name_servers = [address.strip() for address in self._namesrv.split(";") if address.strip()]
        server = await self._exit_stack.enter_async_context(serving_open(open_store, config, name_servers=name_servers))
        for topic in self._topics:
            server.broker.topics.create_plain(topic, QUEUE_COUNT)
        await self._wait_until_registered()

    async def _wait_until_registered(self) -> None:
        """Wait until the name servers report each topic to clients."""
        instance = ClientInstance(self._namesrv)
        deadline = time.monotonic() + REGISTER_TIMEOUT_S
        try:
            for topic in self._topics:
                while not await self._is_in_route(instance, topic):
                    if time.monotonic() > deadline:
                        raise CannotRead(
                            sentence(
                                "no name server knows the topic {topic} of {broker}", topic=topic, broker=self.name
                            )
                        )
                    await asyncio.sleep(_POLL_INTERVAL_S)
        finally:
            await instance.kill()

    async def _is_in_route(self, instance: ClientInstance, topic: str) -> bool:
        route = await instance.fresh_route(topic)
        return route is not None and self.name in route.brokers

    async def stop(self) -> None:
        """Unregister from the name servers, close the store, delete its folder."""
        try:
            await self._exit_stack.aclose()
        finally:
            await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)


class SlowDisk(RealDisk):
    """The system's disk, but each flush of a commit log takes ``seconds`` longer."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    def _file(self, path: str, size: int, new_folders: tuple[str, ...] = ()) -> RealFile:
        if Path(path).parent.name != "commitlog":
            return super()._file(path, size, new_folders)
        return _SlowFile(path, size, self._files, new_folders, self._seconds)


class _SlowFile(RealFile):
    __slots__ = ("_seconds",)

    def __init__(self, path: str, size: int, files: OpenFiles, new_folders: tuple[str, ...], seconds: float) -> None:
        super().__init__(path, size, files, new_folders)
        self._seconds = seconds

    def flush(self, start: int, stop: int) -> None:
        time.sleep(self._seconds)
        super().flush(start, stop)
