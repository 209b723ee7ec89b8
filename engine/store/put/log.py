"""The log as the ways to put into it see it (docs/formats/writing.md#put), and what it keeps of a topic for them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from engine.callbacks import Clock
from engine.codec.encode import Message, TopicField
from engine.codec.message_columns import Encoder, TopicRow
from engine.releases import Release

if TYPE_CHECKING:
    from engine.codec.object_put import ObjectPut
    from engine.config import MessageStoreConfig
    from engine.mapped.mapped_file import MappedFile
    from engine.mapped.mapped_file_queue import MappedFileQueue
    from engine.store.put.message import PutMessageResult, PutMessageStatus
    from engine.store.queue_offsets import QueueOffsetTable


MOST_QUEUES = 1 << 16
"""Queue ids from this one on go the long way: no table of their places is made."""


class Topic:
    """The log's data of one topic: its encoded field, and where its queues' offsets stand."""

    __slots__ = ("field", "fixed", "legal", "magic", "name", "places", "raw", "row")

    def __init__(self, name: str, legal: bool, auto_version: bool) -> None:
        self.name = name
        try:
            self.field = TopicField(name, auto_version) if legal else None
        except ValueError:
            self.field = None
        self.legal = self.field is not None
        self.magic, self.raw, self.fixed = (
            (self.field.magic, self.field.raw, self.field.fixed) if self.field is not None else (0, b"", 0)
        )
        self.places: dict[int, int] = {}
        self.row = TopicRow(self.raw, self.magic)
        """The topic's row for a run over columns."""


class PutLog(Protocol):
    """The parts of the log that a put uses; :class:`engine.store.commit_log.CommitLog` describes each."""

    config: MessageStoreConfig
    files: MappedFileQueue
    queue_offsets: QueueOffsetTable
    clock: Clock
    like: Release
    is_batch_topic: Callable[[str], bool]
    lock: threading.Lock
    refuses: PutMessageStatus | None
    store_host: str
    store_host_raw: bytes
    max_message_size: int
    auto_version: bool
    property_crc: bool
    flushes_at_once: bool
    encoder: Encoder

    @property
    def appending(self) -> AbstractContextManager[int]: ...
    @property
    def copying(self) -> AbstractContextManager[int]: ...
    @property
    def wrote(self) -> int: ...
    @property
    def is_busy(self) -> bool: ...
    @property
    def refused(self) -> PutMessageStatus: ...
    def put_message(self, message: Message) -> PutMessageResult: ...
    def put_otherwise(self, message: Message) -> PutMessageResult: ...
    def compiled_put(self) -> ObjectPut | None: ...
    def topic(self, name: str) -> Topic: ...
    def place(self, topic: Topic, queue_id: int) -> int: ...
    def room_for(self, size: int, now: int) -> MappedFile | PutMessageResult: ...
    def failed(self, error: OSError) -> PutMessageResult: ...
