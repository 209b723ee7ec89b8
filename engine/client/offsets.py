"""Offsets of a group: stored by brokers, or in a file of the client where it broadcasts
(docs/protocol/clients.md#first-offset).

Java: ``OffsetStore``, ``RemoteBrokerOffsetStore``, ``LocalFileOffsetStore``.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Collection
from pathlib import Path
from typing import Protocol

from engine.callbacks import system_clock
from engine.client import broker_api
from engine.client.events import Committed
from engine.client.instance import FAILURES, ClientInstance
from engine.client.routes import MessageQueue
from engine.codec.config_tables import client_offsets
from engine.codec.json_dialect import parse
from engine.errors import CannotRead
from engine.files.atomic_file import write_atomically
from engine.sentences import sentence

_log = logging.getLogger(__name__)


class OffsetStore(Protocol):
    """Offsets in memory, and their storage that outlives the client. An offset is the next one to read."""

    async def load(self) -> None:
        """Load the stored offsets."""

    def known(self, queue: MessageQueue) -> int | None:
        """Return the offset in memory."""

    async def read(self, queue: MessageQueue) -> int | None:
        """Return the stored offset; None if there is none. Raises the errors of brokers."""

    def update(self, queue: MessageQueue, offset: int, *, only_up: bool = False) -> None:
        """Set an offset in memory; ``only_up`` leaves a larger one alone."""

    async def persist(self, queues: Collection[MessageQueue], *, one_way: bool = True) -> None:
        """Store the offsets of these queues; without ``one_way`` wait until they are stored."""

    def forget(self, queue: MessageQueue) -> None:
        """Forget the offset of a queue that another client has now."""


class BrokerOffsets:
    """Offsets that brokers store."""

    def __init__(self, instance: ClientInstance, group: str) -> None:
        self._instance = instance
        self._group = group
        self._table: dict[MessageQueue, int] = {}
        self._kept: dict[MessageQueue, int] = {}

    async def load(self) -> None:
        """Nothing to load: each offset is asked for when its queue is taken."""

    def known(self, queue: MessageQueue) -> int | None:
        """Return the offset in memory."""
        return self._table.get(queue)

    async def read(self, queue: MessageQueue) -> int | None:
        """Ask the broker for the offset."""
        offset = await broker_api.query_offset(self._instance, self._group, queue)
        if offset is None or offset < 0:
            return None
        self._table[queue] = offset
        return offset

    def update(self, queue: MessageQueue, offset: int, *, only_up: bool = False) -> None:
        """Set an offset in memory."""
        if not only_up or offset > self._table.get(queue, -1):
            self._table[queue] = offset

    async def persist(self, queues: Collection[MessageQueue], *, one_way: bool = True) -> None:
        """Commit the offsets of these queues. With ``one_way`` failures are left for the next time, otherwise they
        are raised.
        """
        for queue in queues:
            offset = self._table.get(queue)
            if offset is None:
                continue
            try:
                await broker_api.commit_offset(self._instance, self._group, queue, offset, one_way=one_way)
            except FAILURES:
                if not one_way:
                    raise
                continue
            _saw(self._instance, self._group, queue, offset, new=self._kept.get(queue) != offset)
            self._kept[queue] = offset

    def forget(self, queue: MessageQueue) -> None:
        """Forget the offset of a queue that another client has now."""
        self._table.pop(queue, None)
        self._kept.pop(queue, None)


class FileOffsets:
    """Offsets in the client's own file, Java's ``offsets.json``; a copy of the previous file is next to it."""

    def __init__(self, instance: ClientInstance, group: str, folder: Path | None = None) -> None:
        self._instance = instance
        self._group = group
        root = folder or Path.home() / ".rocketmq_offsets"
        self.path = root / instance.client_id / group / "offsets.json"
        self._table: dict[MessageQueue, int] = {}
        self._kept: dict[MessageQueue, int] = {}

    async def load(self) -> None:
        """Read the file, or its copy if the file is damaged. Raises :class:`CannotRead` if neither can be read."""
        self._table = await asyncio.to_thread(self._load)

    def _load(self) -> dict[MessageQueue, int]:
        words = ""
        for path in (self.path, self._copy):
            try:
                raw = path.read_bytes()
            except FileNotFoundError:
                continue
            except OSError as error:
                raise CannotRead(error.strerror or str(error), file=str(path)) from error
            read = parse(raw)
            if isinstance(read.value, dict):
                rows = client_offsets(read.value).rows
                return {MessageQueue(row.topic, row.broker, row.queue_id): row.offset for row in rows}
            words = words or (read.complaint or "no object")
        if words:
            raise CannotRead(
                sentence("{words}; expected the offsets of a broadcasting client", words=words), file=str(self.path)
            )
        return {}

    @property
    def _copy(self) -> Path:
        return self.path.with_name("offsets.json.bak")

    def known(self, queue: MessageQueue) -> int | None:
        """Return the offset in memory."""
        return self._table.get(queue)

    async def read(self, queue: MessageQueue) -> int | None:
        """Return the offset of the file, or a newer one."""
        return self._table.get(queue)

    def update(self, queue: MessageQueue, offset: int, *, only_up: bool = False) -> None:
        """Set an offset in memory."""
        if not only_up or offset > self._table.get(queue, -1):
            self._table[queue] = offset

    async def persist(self, queues: Collection[MessageQueue], *, one_way: bool = True) -> None:
        """Write the file with the offsets of these queues. Failures are left for the next time, or raised
        (``OSError``) without ``one_way``.
        """
        table = {queue: self._table[queue] for queue in queues if queue in self._table}
        if not table:
            return
        try:
            await asyncio.to_thread(self._write, rendered(table))
        except OSError as error:
            if not one_way:
                raise
            _log.warning("%s: %s", self.path, error)
            return
        for queue, offset in table.items():
            _saw(self._instance, self._group, queue, offset, new=self._kept.get(queue) != offset)
        self._kept.update(table)

    def _write(self, text: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            write_atomically(self._copy, self.path.read_bytes())
        write_atomically(self.path, text)

    def forget(self, queue: MessageQueue) -> None:
        """Nothing to forget: a broadcasting client keeps all queues."""


def rendered(table: dict[MessageQueue, int]) -> str:
    """Return offsets as Java's client writes them."""
    rows = []
    for queue, offset in table.items():
        members = f'"brokerName":"{queue.broker}",\n\t\t\t"queueId":{queue.queue_id},\n\t\t\t"topic":"{queue.topic}"'
        rows.append(f"{{\n\t\t\t{members}\n\t\t}}:{offset}")
    return '{\n\t"offsetTable":{' + ",".join(rows) + "\n\t}\n}"


def _saw(instance: ClientInstance, group: str, queue: MessageQueue, offset: int, *, new: bool) -> None:
    if new and instance.events.has_subscribers:
        instance.events.emit(Committed(system_clock(), instance.client_id, group, queue, offset))
