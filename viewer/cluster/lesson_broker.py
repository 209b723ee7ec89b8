"""A broker of ours for one lesson, in the process of one's own clients: with short waits, or on a slow disk.

It registers with the name servers that are looked at, has the topics of its lesson and makes no others, so that no
other client comes to it. Its store lies in a folder for temporary files, and goes with it. No Qt.
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

QUEUES = 2
"""Queues of each of its topics."""
PATIENCE = 10.0
"""Seconds until name servers must know it."""
SMALL = """\
mappedFileSizeCommitLog=16777216
mappedFileSizeConsumeQueue=60000
timerWheelEnable=false
autoCreateTopicEnable=false
brokerTopicEnable=false
clusterTopicEnable=false
"""
"""Lines of broker.conf that each of them has: small files, and topics that are made for it alone."""
_LOOK_EVERY = 0.05


class LessonBroker:
    """``name`` is its ``brokerName``, ``settings`` are further lines of its ``broker.conf``; each flush of its log
    takes ``slow`` seconds longer.
    """

    def __init__(
        self, name: str, namesrv: str, topics: Sequence[str], settings: str, slow: float, folder: Path
    ) -> None:
        self.name = name
        self._namesrv = namesrv
        self._topics = tuple(topics)
        self._settings = settings
        self._slow = slow
        self._folder = folder
        self._block = contextlib.AsyncExitStack()

    async def start(self) -> None:
        """Accept, and be known to the name servers with all topics. Raises :class:`CannotRead`, ``OSError``."""
        try:
            await self._start()
        except BaseException:
            await self.stop()
            raise

    async def _start(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        conf = self._folder / "broker.conf"
        conf.write_text(f"brokerName={self.name}\n{SMALL}{self._settings}\n", "utf-8")
        config, store_config, _ = read_config(conf)

        def opened(shown: str) -> MessageStore:
            disk = SlowDisk(self._slow) if self._slow else None
            return MessageStore(self._folder / "store", store_config, disk=disk, store_host=shown)

        names = [one.strip() for one in self._namesrv.split(";") if one.strip()]
        server = await self._block.enter_async_context(serving_open(opened, config, name_servers=names))
        for topic in self._topics:
            server.broker.topics.create_plain(topic, QUEUES)
        await self._known()

    async def _known(self) -> None:
        """Until name servers tell clients of each topic."""
        asking = ClientInstance(self._namesrv)
        end = time.monotonic() + PATIENCE
        try:
            for topic in self._topics:
                while not await self._is_in_route(asking, topic):
                    if time.monotonic() > end:
                        raise CannotRead(f"no name server knows the topic {topic} of {self.name}")
                    await asyncio.sleep(_LOOK_EVERY)
        finally:
            await asking.kill()

    async def _is_in_route(self, asking: ClientInstance, topic: str) -> bool:
        route = await asking.fresh_route(topic)
        return route is not None and self.name in route.brokers

    async def stop(self) -> None:
        """Take the name back from the name servers, close the store, take its folder away; once."""
        try:
            await self._block.aclose()
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
