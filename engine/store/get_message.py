"""getMessage: a run of messages from one queue, with RocketMQ's statuses and corrected offsets
(docs/formats/reading.md#get-message).

One code for the live engine and for the read-only door: the queue is a :class:`QueueBytes`, the log a
:class:`ReadableLog`. Messages are lent, not copied.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from operator import add
from types import TracebackType
from typing import TYPE_CHECKING, Self, cast

from engine import system
from engine.codec.message import Unit, decode
from engine.config import MessageStoreConfig
from engine.store.queue_entry import CqEntry, QueueBytes, entries_of_file

if TYPE_CHECKING:
    from engine.store.mapped_log import LentBytes, ReadableLog, Releasable
    from engine.store.message_filter import MessageFilter

MAX_PULL_BYTES = 128 << 20
MIN_PULL_BYTES = 100
_CQ_UNIT_SIZE = 20
_PLACE = struct.Struct(">qi8x")
_PREPARED = 65
_PLACES = tuple(struct.Struct(">" + "qi8x" * n) for n in range(_PREPARED))
"""Structs for pulls of the usual lengths; a longer pull unpacks entry by entry."""


class GetMessageStatus(StrEnum):
    """RocketMQ's names for how getMessage ends."""

    FOUND = "FOUND"
    NO_MATCHED_MESSAGE = "NO_MATCHED_MESSAGE"
    MESSAGE_WAS_REMOVING = "MESSAGE_WAS_REMOVING"
    OFFSET_FOUND_NULL = "OFFSET_FOUND_NULL"
    OFFSET_OVERFLOW_BADLY = "OFFSET_OVERFLOW_BADLY"
    OFFSET_OVERFLOW_ONE = "OFFSET_OVERFLOW_ONE"
    OFFSET_TOO_SMALL = "OFFSET_TOO_SMALL"
    NO_MATCHED_LOGIC_QUEUE = "NO_MATCHED_LOGIC_QUEUE"
    NO_MESSAGE_IN_QUEUE = "NO_MESSAGE_IN_QUEUE"
    OFFSET_RESET = "OFFSET_RESET"


_FOUND = GetMessageStatus.FOUND


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one pull: bytes and counts for messages in memory and on disk.

    A message counts as in memory (cached) if it lies at most ``memory`` bytes before the end of the log.
    """

    memory_bytes: int = 262_144
    memory_count: int = 32
    disk_bytes: int = 65_536
    disk_count: int = 8
    memory: int = 8 << 30
    filter_bytes: int = 16_000
    files: int = 1
    corrects: bool = True
    scans_by_count: bool = False
    """With a filter at most as many entries are looked at as messages are asked for."""

    @classmethod
    def of(cls, config: MessageStoreConfig) -> Self:
        """The limits of a configuration on this machine."""
        slave = config.broker_role == "SLAVE"
        ratio = min(config.access_message_in_memory_max_ratio, 100)
        return cls(
            config.max_transfer_bytes_on_message_in_memory,
            config.max_transfer_count_on_message_in_memory,
            config.max_transfer_bytes_on_message_in_disk,
            config.max_transfer_count_on_message_in_disk,
            physical_memory() * (max(ratio - 10, 0) if slave else ratio) // 100,
            config.max_filter_message_size,
            config.travel_cq_file_num_when_get_message,
            not slave or config.offset_check_in_slave,
        )


class LentMessages:
    """Messages lent by the log: ``messages[i]`` is the complete unit at ``offsets[i]``.

    The files that hold them are not taken away before :meth:`release` (or the end of a ``with`` block, or of the
    object). Copy with ``bytes(...)`` or :meth:`units` what shall live longer.
    """

    __slots__ = ("_lent", "_messages", "_sizes", "offsets")

    def __init__(
        self,
        messages: list[memoryview] | None,
        offsets: Sequence[int],
        sizes: Sequence[int],
        lent: Sequence[Releasable],
    ) -> None:
        self._messages = messages
        self.offsets = offsets
        self._sizes = sizes
        self._lent = lent

    @property
    def messages(self) -> list[memoryview]:
        """The units' bytes, cut out of the log at the first call, which must come before the release."""
        messages = self._messages
        if messages is None:
            lent = cast("LentBytes", self._lent[0])  # messages are left uncut only where one file has all of them
            view, start = lent.view, lent.start_offset
            messages = self._messages = [
                view[offset - start : offset - start + size]
                for offset, size in zip(self.offsets, self._sizes, strict=True)
            ]
        return messages

    def __len__(self) -> int:
        return len(self.offsets)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} messages at {list(self.offsets[:5])}{' …' * (len(self) > 5)})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def __del__(self) -> None:
        for lent in self._lent:
            lent.release()

    def release(self) -> None:
        """Give the bytes back; a second time does nothing."""
        lent, self._lent = self._lent, ()
        if lent and self._messages is None:
            self._messages = []
        for lent_bytes in lent:
            lent_bytes.release()

    def units(self, crc: bool = True) -> list[Unit]:
        """Return the messages as records, copied out of the log; raises :class:`CorruptUnit` for a message that is
        no unit.
        """
        return [decode(message, 0, offset, crc) for message, offset in zip(self.messages, self.offsets, strict=True)]


class GetMessageResult(LentMessages):
    """Result of getMessage. ``count`` counts the messages inside batches, ``len()`` the units; sizes are bytes.

    ``queue_offsets`` are the units' queue offsets; that of a batch is its first message's.
    """

    __slots__ = (
        "count",
        "max_offset",
        "min_offset",
        "next_begin_offset",
        "queue_offsets",
        "status",
        "suggest_pulling_from_slave",
        "total_size",
    )

    def __init__(
        self,
        status: GetMessageStatus,
        next_begin_offset: int,
        min_offset: int,
        max_offset: int,
        messages: list[memoryview] | None,
        offsets: Sequence[int],
        sizes: Sequence[int],
        lent: list[LentBytes],
        count: int,
        total_size: int,
        suggest_pulling_from_slave: bool,
        queue_offsets: Sequence[int] = (),
    ) -> None:
        self._messages = messages
        self.offsets = offsets
        self._sizes = sizes
        self._lent = lent
        self.status = status
        self.next_begin_offset = next_begin_offset
        self.min_offset = min_offset
        self.max_offset = max_offset
        self.count = count
        self.total_size = total_size
        self.suggest_pulling_from_slave = suggest_pulling_from_slave
        self.queue_offsets = queue_offsets

    def __repr__(self) -> str:
        return (
            f"GetMessageResult({self.status}, {self.count} messages, next {self.next_begin_offset}, "
            f"queue {self.min_offset} to {self.max_offset})"
        )


def get_message(
    queue: QueueBytes | None,
    log: ReadableLog,
    offset: int,
    max_count: int = 32,
    message_filter: MessageFilter | None = None,
    limits: Limits | None = None,
    max_bytes: int = MAX_PULL_BYTES,
) -> GetMessageResult:
    """Return messages from queue offset ``offset`` on: at most ``max_count`` that the filter lets pass, within the
    limits.

    The first message is returned whatever its size. ``next_begin_offset`` is the offset to ask for next.
    """
    limits = limits or Limits()
    if queue is None:
        return _empty_result(GetMessageStatus.NO_MATCHED_LOGIC_QUEUE, 0 if limits.corrects else offset, 0, 0)
    min_offset, max_offset = queue.min_offset, queue.max_offset
    if min_offset <= offset < max_offset:
        if message_filter is None and max_count > 0 and queue.kind == "simple":
            result = _run_of_messages(queue, log, offset, max_count, limits, max_bytes, min_offset, max_offset)
            if result is not None:
                return result
        return _Scan(queue, log, offset, max_count, message_filter, limits, max_bytes).run(min_offset, max_offset)
    if max_offset == 0:
        return _empty_result(
            GetMessageStatus.NO_MESSAGE_IN_QUEUE, 0 if limits.corrects else offset, min_offset, max_offset
        )
    if offset < min_offset:
        return _empty_result(
            GetMessageStatus.OFFSET_TOO_SMALL, min_offset if limits.corrects else offset, min_offset, max_offset
        )
    if offset == max_offset:
        return _empty_result(GetMessageStatus.OFFSET_OVERFLOW_ONE, offset, min_offset, max_offset)
    return _empty_result(
        GetMessageStatus.OFFSET_OVERFLOW_BADLY, max_offset if limits.corrects else offset, min_offset, max_offset
    )


def _empty_result(status: GetMessageStatus, next_offset: int, min_offset: int, max_offset: int) -> GetMessageResult:
    return GetMessageResult(status, next_offset, min_offset, max_offset, [], (), (), [], 0, 0, False)


def _run_of_messages(
    queue: QueueBytes,
    log: ReadableLog,
    offset: int,
    max_count: int,
    limits: Limits,
    max_bytes: int,
    min_offset: int,
    max_offset: int,
) -> GetMessageResult | None:
    """Return what :class:`_Scan` would in the common case, without a look at each entry; None in any other case.

    Common: no filter, everything in memory, below the limits and in one file of the log.
    """
    count = min(max_offset - offset, max_count, limits.memory_count)
    data = queue.lend_bytes(offset * _CQ_UNIT_SIZE, count * _CQ_UNIT_SIZE)
    count = len(data) // _CQ_UNIT_SIZE
    if not count:
        return None
    if count < _PREPARED:
        places = _PLACES[count].unpack_from(data)
        offsets, sizes = places[0::2], places[1::2]
    else:
        offsets, sizes = tuple(zip(*_PLACE.iter_unpack(data[: count * _CQ_UNIT_SIZE]), strict=True))
    total = sum(sizes)
    if total > limits.memory_bytes or total > max_bytes or min(sizes) <= 0:
        return None
    first_offset, end = min(offsets), log.max_offset
    lent = log.lend(first_offset, sizes[0])
    if lent is None:
        return None
    # No message is longer than all together: if that many bytes follow the last offset, every message is in the file.
    room, last_offset = lent.start_offset + len(lent.view), max(offsets)
    if end - first_offset > limits.memory or (last_offset + total > room and max(map(add, offsets, sizes)) > room):
        lent.release()
        return None
    is_beyond_memory = end - offsets[-1] > limits.memory
    return GetMessageResult(
        _FOUND,
        offset + count,
        min_offset,
        max_offset,
        None,
        offsets,
        sizes,
        [lent],
        count,
        total,
        is_beyond_memory,
        range(offset, offset + count),
    )


class _Scan:
    """The scan of docs/formats/reading.md#get-message, entry by entry."""

    def __init__(
        self,
        queue: QueueBytes,
        log: ReadableLog,
        offset: int,
        max_count: int,
        message_filter: MessageFilter | None,
        limits: Limits,
        max_bytes: int,
    ) -> None:
        self._queue, self._log, self._offset, self._max = queue, log, offset, max_count
        self._filter, self._limits = message_filter, limits
        least_bytes = 0 if limits.scans_by_count else limits.filter_bytes
        self._scan_bytes = max(least_bytes, max_count * queue.unit_size)
        self._pull_bytes = min(max(max_bytes, MIN_PULL_BYTES), MAX_PULL_BYTES)
        self._log_end = log.max_offset
        self._lent: list[LentBytes] = []
        self._messages: list[memoryview] = []
        self._offsets: list[int] = []
        self._queue_offsets: list[int] = []
        self._bytes = self._count = self._newest = 0
        self._next = offset
        self._skip_below: int | None = None
        self._status = GetMessageStatus.NO_MATCHED_MESSAGE

    def run(self, min_offset: int, max_offset: int) -> GetMessageResult:
        files = 0
        while not self._bytes and self._next < max_offset and files < self._limits.files:
            files += 1
            entries = entries_of_file(self._queue, self._next, self._scan_bytes // self._queue.unit_size + 1)
            if entries is None:
                self._status = GetMessageStatus.OFFSET_FOUND_NULL
                self._next = self._roll(self._next) if self._limits.corrects else self._next
                break
            for entry in entries:
                if entry.queue_offset >= max_offset or not self._take(entry):
                    break
        is_beyond_memory = self._log_end - self._newest > self._limits.memory
        return GetMessageResult(
            self._status,
            self._next,
            min_offset,
            max_offset,
            self._messages,
            self._offsets,
            (),
            self._lent,
            self._count,
            self._bytes,
            is_beyond_memory,
            self._queue_offsets,
        )

    def _roll(self, queue_offset: int) -> int:
        """First queue offset of the next file (rollNextFile); 0 for a batch queue."""
        if self._queue.kind == "batch":
            return 0
        per_file = max(self._queue.file_size // self._queue.unit_size, 1)
        return queue_offset + per_file - queue_offset % per_file

    def _take(self, entry: CqEntry) -> bool:
        """Look at one entry; False ends the scan."""
        in_memory = self._log_end - entry.physical_offset <= self._limits.memory
        batch = entry.batch_size or 1
        if (entry.queue_offset - self._offset) * self._queue.unit_size >= self._scan_bytes:
            return False
        if self._full(entry, in_memory, batch) or self._bytes >= self._pull_bytes:
            return False
        self._newest = entry.physical_offset
        self._next = entry.queue_offset + batch
        if self._skip_below is not None and entry.physical_offset < self._skip_below:
            return True
        if self._filter is not None and not self._filter.matches_entry(entry.real_tags_code, entry.ext):
            return self._passed(GetMessageStatus.NO_MATCHED_MESSAGE)
        message = self._bytes_of(entry)
        if message is None:
            size = max(self._log.file_size, 1)
            self._skip_below = entry.physical_offset - entry.physical_offset % size + size
            return self._passed(GetMessageStatus.MESSAGE_WAS_REMOVING)
        if self._filter is not None and not self._filter.matches_unit(message):
            return self._passed(GetMessageStatus.NO_MATCHED_MESSAGE)
        self._messages.append(message)
        self._offsets.append(entry.physical_offset)
        self._queue_offsets.append(entry.queue_offset)
        self._bytes += entry.size
        self._count += batch
        self._status, self._skip_below = GetMessageStatus.FOUND, None
        return True

    def _bytes_of(self, entry: CqEntry) -> memoryview | None:
        lent = self._lent[-1] if self._lent else None
        position = entry.physical_offset - lent.start_offset if lent is not None else -1
        if lent is None or position < 0 or position + entry.size > len(lent.view):
            lent = self._log.lend(entry.physical_offset, entry.size)
            if lent is None:
                return None
            self._lent.append(lent)
            position = entry.physical_offset - lent.start_offset
        return lent.view[position : position + entry.size]

    def _passed(self, status: GetMessageStatus) -> bool:
        if not self._messages:
            self._status = status
        return True

    def _full(self, entry: CqEntry, in_memory: bool, batch: int) -> bool:
        limits = self._limits
        if not self._bytes:
            return False
        if self._count + batch > self._max or self._bytes + entry.size > self._pull_bytes:
            return True
        if in_memory:
            return self._bytes + entry.size > limits.memory_bytes or self._count > limits.memory_count - 1
        return self._bytes + entry.size > limits.disk_bytes or self._count > limits.disk_count - 1


@cache
def physical_memory() -> int:
    """Bytes of memory of this machine; 8 GiB if unknown."""
    return system.memory_bytes() or 8 << 30
