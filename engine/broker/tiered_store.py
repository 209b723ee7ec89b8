"""A store whose deleted messages are served from tiered storage (docs/formats/tiered.md#serve).

Reading only: nothing is copied there. Java: ``TieredMessageStore`` with the level ``NOT_IN_DISK``.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.config import MessageStoreConfig
from engine.errors import CannotRead
from engine.files.layout import StorePaths
from engine.mapped.read_only import DescriptorCache
from engine.mapped.reading import Reading
from engine.message_store import MessageStore
from engine.sentences import sentence
from engine.store.get_message import GetMessageResult
from engine.store.offset_by_time import earliest_time
from engine.store.query_message import MAX_TIME_MS, QueryMessageResult
from engine.store.queue_entry import unit_at
from engine.store.tiered import TieredQueue, TieredStore, open_tiered

if TYPE_CHECKING:
    from engine.store.message_filter import MessageFilter

_LOG = logging.getLogger(__name__)


def open_served_store(path: Path | str, config: MessageStoreConfig | None = None, **options: Any) -> MessageStore:
    """Open a store as :class:`MessageStore` does; one with tiered storage serves what is only there, too."""
    cache = DescriptorCache(reading=Reading(alone=True))
    try:
        tiered = open_tiered(StorePaths(Path(path)), config, cache)
    except CannotRead as error:
        _LOG.warning("%s", error)
        tiered = None
    if tiered is None or tiered.folder is None:
        if tiered is not None:
            _LOG.warning(
                "%s",
                sentence(
                    "messages that are only in tiered storage are not served: name the broker's configuration, with "
                    "tieredStoreFilePath in it"
                ),
            )
        cache.close()
        return MessageStore(path, config, **options)
    return TieredMessageStore(path, config, tiered=tiered, **options)


class TieredMessageStore(MessageStore):
    """A :class:`MessageStore` that reads from ``tiered`` what its own queue or log does not have.

    Where a file of tiered storage cannot be read, the answer is the store's own.
    """

    def __init__(
        self, path: Path | str, config: MessageStoreConfig | None = None, *, tiered: TieredStore, **options: Any
    ) -> None:
        self._tiered = tiered
        super().__init__(path, config, **options)

    def _let_go(self, *, abandoned: bool = False) -> None:
        super()._let_go(abandoned=abandoned)
        self._tiered.close()

    def _is_in_log(self, topic: str, queue_id: int, offset: int) -> bool:
        queue = self._parts.queues.queue(topic, queue_id)
        if queue is None or not queue.min_offset <= offset < queue.max_offset:
            return False
        entry = unit_at(queue, offset)
        return entry is not None and entry.physical_offset >= self._parts.log.min_offset

    def get_message(
        self,
        group: str,
        topic: str,
        queue_id: int,
        offset: int,
        max_count: int = 32,
        message_filter: MessageFilter | None = None,
    ) -> GetMessageResult | None:
        """Implement :meth:`MessageStore.get_message`."""
        tiered = self._tiered.queue(topic, queue_id)
        if tiered is not None and offset < tiered.max_offset and not self.closed and self._flags.readable:
            try:
                if not self._is_in_log(topic, queue_id, offset):
                    return self._from_tiered(tiered, offset, max_count, message_filter)
            except CannotRead:
                pass
        return super().get_message(group, topic, queue_id, offset, max_count, message_filter)

    def _from_tiered(
        self, tiered: TieredQueue, offset: int, max_count: int, message_filter: MessageFilter | None
    ) -> GetMessageResult:
        result = tiered.get_messages(offset, max_count, message_filter)
        entries = [entry for entry, _ in result.messages]
        sizes = [entry.size for entry in entries]
        return GetMessageResult(
            result.status,
            result.next_begin_offset,
            self.min_offset_in_queue(tiered.topic, tiered.queue_id),
            tiered.max_offset,
            [memoryview(data) for _, data in result.messages],
            [entry.offset for entry in entries],
            sizes,
            [],
            len(entries),
            sum(sizes),
            suggest_pulling_from_slave=False,
            queue_offsets=[entry.queue_offset for entry in entries],
        )

    def min_offset_in_queue(self, topic: str, queue_id: int) -> int:
        """Implement :meth:`MessageStore.min_offset_in_queue`."""
        own_offset = super().min_offset_in_queue(topic, queue_id)
        tiered = self._tiered.queue(topic, queue_id)
        try:
            return own_offset if tiered is None else min(own_offset, tiered.min_offset)
        except CannotRead:
            return own_offset

    def offset_in_queue_by_time(self, topic: str, queue_id: int, timestamp: int, boundary: str = "lower") -> int:
        """Implement :meth:`MessageStore.offset_in_queue_by_time`."""
        tiered = self._tiered.queue(topic, queue_id)
        if tiered is not None and timestamp < earliest_time(self._parts.log):
            try:
                return tiered.offset_by_time(timestamp, boundary)
            except CannotRead:
                pass
        return super().offset_in_queue_by_time(topic, queue_id, timestamp, boundary)

    def query_message(
        self, topic: str, key: str, max_count: int = 32, begin: int = 0, end: int = MAX_TIME_MS
    ) -> QueryMessageResult:
        """Implement :meth:`MessageStore.query_message`."""
        result = super().query_message(topic, key, max_count, begin, end)
        earliest = earliest_time(self._parts.log)
        if len(result) >= max_count or begin >= earliest:
            return result
        messages, offsets = list(result.messages), list(result.offsets)
        last_time, last_offset = result.index_last_update_timestamp, result.index_last_update_offset
        try:
            for data, offset in self._by_key(topic, key, begin, min(end, earliest - 1)):
                if len(messages) >= max_count:
                    break
                messages.append(memoryview(data))
                offsets.append(offset)
        except CannotRead:
            return result
        if len(messages) == len(result):
            return result
        with result:
            copies = [memoryview(bytes(message)) for message in messages]
            return QueryMessageResult(copies, offsets, (), last_time, last_offset)

    def _by_key(self, topic: str, key: str, begin: int, end: int) -> list[tuple[bytes, int]]:
        data_by_place: dict[tuple[int, int], bytes] = {}
        for unit in self._tiered.by_key(key, topic):
            queue = self._tiered.queue(unit.topic, unit.queue_id)
            entry = queue.entry(unit.queue_offset) if queue is not None else None
            if queue is not None and entry is not None and begin <= unit.store_timestamp <= end:
                data_by_place[unit.queue_id, entry.offset] = queue.unit_bytes(entry)
        return [(data, offset) for (_, offset), data in sorted(data_by_place.items())]
