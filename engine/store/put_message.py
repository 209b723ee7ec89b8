"""Results of a put, and the checks of a message before it is stored (docs/formats/writing.md#flush, #checks,
docs/formats/delays.md#levels, #timer-messages).

Java: PutMessageStatus, PutMessageResult, AppendMessageResult, and of the broker HookUtils. A message that a rule
rewrites (a delay level, a delivery time) is never changed itself: the rewritten one is a copy.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import Any, NamedTuple, cast, overload

from engine.codec import properties as props
from engine.codec.encode import Message, encode_properties, utf16_length
from engine.codec.java import divide
from engine.codec.message import COMMIT, INNER_BATCH, TRANSACTION_MASK, offset_message_id
from engine.config import MessageStoreConfig
from engine.files.layout import MAX_NAME_BYTES, MAX_TOPIC_BYTES
from engine.releases import Release, rules_of
from engine.sentences import sentence
from engine.system_names import RETRY_PREFIX, SCHEDULE_TOPIC, SYSTEM_PREFIX, TIMER_TOPIC

BLANK_SIZE = 8
"""Bytes that must be left behind every unit (docs/formats/commit-log.md#append)."""
UNIT_SLACK = 65_536
"""Bytes by which a unit may be longer than ``maxMessageSize``."""
_TIMES = (props.TIMER_DELAY_SEC, props.TIMER_DELAY_MS, props.TIMER_DELIVER_MS)
RULED = frozenset(
    {
        props.DELAY,
        *_TIMES,
        props.INNER_NUM,
        props.INNER_BASE,
        props.INNER_MULTI_DISPATCH,
        props.CRC32,
    }
)
"""Properties for which a put has rules; a message without any of them is stored as it is."""


class PutMessageStatus(Enum):
    """Outcome of a put, in the words of 5.x (docs/formats/writing.md#flush)."""

    PUT_OK = "PUT_OK"
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"
    SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE"
    SERVICE_NOT_AVAILABLE = "SERVICE_NOT_AVAILABLE"
    CREATE_MAPPED_FILE_FAILED = "CREATE_MAPPED_FILE_FAILED"
    MESSAGE_ILLEGAL = "MESSAGE_ILLEGAL"
    PROPERTIES_SIZE_EXCEEDED = "PROPERTIES_SIZE_EXCEEDED"
    OS_PAGE_CACHE_BUSY = "OS_PAGE_CACHE_BUSY"
    UNKNOWN_ERROR = "UNKNOWN_ERROR"
    IN_SYNC_REPLICAS_NOT_ENOUGH = "IN_SYNC_REPLICAS_NOT_ENOUGH"
    PUT_TO_REMOTE_BROKER_FAIL = "PUT_TO_REMOTE_BROKER_FAIL"
    LMQ_CONSUME_QUEUE_NUM_EXCEEDED = "LMQ_CONSUME_QUEUE_NUM_EXCEEDED"
    WHEEL_TIMER_FLOW_CONTROL = "WHEEL_TIMER_FLOW_CONTROL"
    WHEEL_TIMER_MSG_ILLEGAL = "WHEEL_TIMER_MSG_ILLEGAL"
    WHEEL_TIMER_NOT_ENABLE = "WHEEL_TIMER_NOT_ENABLE"


class AppendMessageStatus(Enum):
    """Outcome of the append inside a put (docs/formats/commit-log.md#append)."""

    PUT_OK = "PUT_OK"
    END_OF_FILE = "END_OF_FILE"
    MESSAGE_SIZE_EXCEEDED = "MESSAGE_SIZE_EXCEEDED"
    PROPERTIES_SIZE_EXCEEDED = "PROPERTIES_SIZE_EXCEEDED"
    UNKNOWN_ERROR = "UNKNOWN_ERROR"
    ROCKSDB_ERROR = "ROCKSDB_ERROR"


class AppendMessageResult(NamedTuple):
    """Position of an appended message: ``physical_offset`` and ``size`` in bytes of the log, ``store_timestamp`` ms.

    ``queue_offset`` is 0 for PREPARED and ROLLBACK. Of a batch, ``size`` covers all units and ``unit_offsets``
    are their starts.
    """

    status: AppendMessageStatus
    physical_offset: int = 0
    size: int = 0
    store_timestamp: int = 0
    queue_offset: int = 0
    message_count: int = 1
    store_host: bytes = b""
    unit_offsets: tuple[int, ...] = ()

    @property
    def msg_id(self) -> str:
        """Offset message id; of a batch all of them, joined by commas (docs/formats/commit-log.md#message-ids)."""
        offsets = self.unit_offsets or (self.physical_offset,)
        return ",".join(offset_message_id(self.store_host, offset) for offset in offsets)

    @property
    def end_offset(self) -> int:
        """Offset behind the last byte, up to which a waiting sender wants a flush."""
        return self.physical_offset + self.size


class PutMessageResult:
    """Result of a put; a late flush may still change ``status``."""

    __slots__ = ("fields", "status")

    def __init__(self, status: PutMessageStatus, append: AppendMessageResult | None = None) -> None:
        self.status = status
        self.fields: AppendMessageResult | tuple[Any, ...] | None = append
        """The fields of :attr:`append`; a plain tuple until it is read, because a put has to be quick."""

    @property
    def append(self) -> AppendMessageResult | None:
        """The result of the append; None if nothing was tried."""
        fields = self.fields
        if fields.__class__ is tuple:
            fields = self.fields = AppendMessageResult(*fields)
        return cast("AppendMessageResult | None", fields)

    @property
    def ok(self) -> bool:
        """True if the message is in the log (PUT_OK alone does not say so: docs/formats/writing.md#put)."""
        return self.fields is not None and self.fields[0] is AppendMessageStatus.PUT_OK

    def __repr__(self) -> str:
        return f"PutMessageResult({self.status.name}, {self.append!r})"


class PutMessageResults(Sequence[PutMessageResult]):
    """Results of one call that put many messages, in order; each is made when it is first read.

    ``end_offset`` is the offset that a flush has to reach for all of them, ``waits`` is True if any of them wants
    that flush.
    """

    __slots__ = ("_made", "_make", "_rows", "end_offset", "ok", "waits")

    def __init__(
        self, rows: int, make: Callable[[int], PutMessageResult], *, ok: bool, end_offset: int, waits: bool = True
    ) -> None:
        self._rows = rows
        self._make = make
        self._made: dict[int, PutMessageResult] = {}
        self.ok = ok
        self.end_offset = end_offset
        self.waits = waits

    @classmethod
    def of(cls, results: list[PutMessageResult], *, waits: bool = True) -> PutMessageResults:
        """Wrap results that exist already."""
        ends = [result.append.end_offset for result in results if result.append is not None and result.ok]
        return cls(
            len(results),
            results.__getitem__,
            ok=all(result.ok for result in results),
            end_offset=max(ends, default=0),
            waits=waits,
        )

    @classmethod
    def refused(cls, rows: int, status: PutMessageStatus) -> PutMessageResults:
        """Return the same refusal for all messages."""
        refused = PutMessageResult(status)
        return cls(rows, lambda _row: refused, ok=False, end_offset=0, waits=False)

    @classmethod
    def of_rows(
        cls,
        out: array[int],
        row_results: dict[int, PutMessageResult],
        times: Sequence[tuple[int, int]],
        stored_host: Callable[[int], bytes],
        *,
        waits: bool = True,
    ) -> PutMessageResults:
        """Build the results: those of ``row_results`` by their rows; of all other rows ``out`` has the offsets, then
        the queue offsets, then the sizes in bytes, ``times`` the first row of each store time (ms), and
        ``stored_host`` gives the raw host.
        """
        rows = len(out) // 3

        def make(row: int) -> PutMessageResult:
            row_result = row_results.get(row)
            if row_result is not None:
                return row_result
            now = times[bisect_right(times, (row, 1 << 63)) - 1][1]
            offset, queue_offset, size = out[row], out[rows + row], out[2 * rows + row]
            return PutMessageResult(
                PutMessageStatus.PUT_OK,
                AppendMessageResult(AppendMessageStatus.PUT_OK, offset, size, now, queue_offset, 1, stored_host(row)),
            )

        if rows and not row_results:
            return cls(rows, make, ok=True, end_offset=out[rows - 1] + out[-1], waits=waits)
        ends = [result.append.end_offset for result in row_results.values() if result.ok and result.append is not None]
        ends += (out[row] + out[2 * rows + row] for row in range(rows) if row not in row_results)
        ok = all(result.ok for result in row_results.values())
        return cls(rows, make, ok=ok, end_offset=max(ends, default=0), waits=waits)

    def __len__(self) -> int:
        return self._rows

    @overload
    def __getitem__(self, row: int) -> PutMessageResult: ...
    @overload
    def __getitem__(self, row: slice) -> list[PutMessageResult]: ...
    def __getitem__(self, row: int | slice) -> PutMessageResult | list[PutMessageResult]:
        if isinstance(row, slice):
            return [self[index] for index in range(*row.indices(self._rows))]
        index = row + self._rows if row < 0 else row
        if not 0 <= index < self._rows:
            raise IndexError(row)
        result = self._made.get(index)
        if result is None:
            result = self._made[index] = self._make(index)
        return result

    def __iter__(self) -> Iterator[PutMessageResult]:
        made_results, make = self._made, self._make
        for row in range(self._rows):
            result = made_results.get(row)
            if result is None:
                result = made_results[row] = make(row)
            yield result

    def set_status(self, status: PutMessageStatus) -> None:
        """Give every message that is in the log this status, after a late flush."""
        for result in self:
            if result.ok:
                result.status = status


def check_topic(topic: str, release: Release) -> bool:
    """Return True if the store takes messages of ``topic`` (docs/formats/writing.md#checks, rule 2); False also for
    names that are no folder's name.
    """
    if not topic or topic in (".", "..") or "/" in topic or "\0" in topic:
        return False
    try:
        size = len(topic.encode())
    except UnicodeEncodeError:
        return False
    units = utf16_length(topic)
    if not rules_of(release).long_retry_topics:
        return units <= MAX_TOPIC_BYTES and size <= MAX_TOPIC_BYTES
    if size > MAX_TOPIC_BYTES and not topic.startswith(RETRY_PREFIX):
        return False
    return size <= MAX_NAME_BYTES


def check_inner_batch(message: Message, is_batch_topic: Callable[[str], bool]) -> bool:
    """Rule 4 of docs/formats/writing.md#checks: INNER_NUM only with the INNER_BATCH bit, that bit only in a topic
    of batch queues.
    """
    inner = bool(message.sys_flag & INNER_BATCH)
    if not inner:
        return props.INNER_NUM not in (message.properties or {})
    return is_batch_topic(message.topic)


def reschedule(message: Message, config: MessageStoreConfig, now: int, release: Release) -> Message | PutMessageStatus:
    """Return the message that is stored in the place of a delayed or timed one; others come back as they are
    (docs/formats/delays.md#levels, #timer-messages). ``now`` is ms.
    """
    if message.sys_flag & TRANSACTION_MASK not in (0, COMMIT):
        return message
    level = delay_level(message)
    if level > 0:
        return _delayed(message, level, config, release)
    if not rules_of(release).timers or not _is_timed(message):
        return message
    if not config.timer_wheel_enable:
        return PutMessageStatus.WHEEL_TIMER_NOT_ENABLE
    return _timed(message, config, now)


def delay_level(message: Message) -> int:
    """The level in DELAY, 0 for none; raises ``ValueError`` where it is no number."""
    text = (message.properties or {}).get(props.DELAY)
    return 0 if text is None else _number(text)


def _number(text: str) -> int:
    """``Long.parseLong``: no blanks, no underscores."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isascii() or not digits.isdigit():
        raise ValueError(sentence("expected a number, found {text}", text=repr(text)))
    return int(text)


def _delayed(message: Message, level: int, config: MessageStoreConfig, release: Release) -> Message:
    max_level = len(config.delay_levels())
    properties = dict(message.properties or {})
    if rules_of(release).drops_times_of_delayed:
        for name in _TIMES:
            properties.pop(name, None)
    if level > max_level:
        level = max_level
        properties[props.DELAY] = str(level)
    moved = _moved(message, properties, SCHEDULE_TOPIC, level - 1)
    if not rules_of(release).closes_last_property and moved.properties_raw:  # the end of the last pair is left out
        moved.properties_raw = moved.properties_raw[:-1]
    return moved


def _is_timed(message: Message) -> bool:
    properties = message.properties or {}
    if message.topic == TIMER_TOPIC or props.TIMER_OUT_MS in properties:
        return False
    return any(name in properties for name in _TIMES)


def _timed(message: Message, config: MessageStoreConfig, now: int) -> Message | PutMessageStatus:
    properties = dict(message.properties or {})
    try:
        if props.TIMER_DELAY_SEC in properties:
            delivery_time = now + _number(properties[props.TIMER_DELAY_SEC]) * 1000
        elif props.TIMER_DELAY_MS in properties:
            delivery_time = now + _number(properties[props.TIMER_DELAY_MS])
        else:
            delivery_time = _number(properties[props.TIMER_DELIVER_MS])
    except ValueError:
        return PutMessageStatus.WHEEL_TIMER_MSG_ILLEGAL
    if delivery_time <= now:
        return PutMessageStatus.WHEEL_TIMER_MSG_ILLEGAL if props.TIMER_DEL_UNIQUE_KEY in properties else message
    if delivery_time - now > config.timer_max_delay_sec * 1000:
        return PutMessageStatus.WHEEL_TIMER_MSG_ILLEGAL
    precision = config.timer_precision_ms
    delivery_time = (
        delivery_time - precision if delivery_time % precision == 0 else divide(delivery_time, precision) * precision
    )
    properties[props.TIMER_OUT_MS] = str(delivery_time)
    return _moved(message, properties, TIMER_TOPIC, 0)


def _moved(message: Message, properties: dict[str, str], topic: str, queue_id: int) -> Message:
    properties[props.REAL_TOPIC] = message.topic
    properties[props.REAL_QUEUE_ID] = str(message.queue_id)
    return message.changed(
        topic=topic, queue_id=queue_id, properties=properties, properties_raw=encode_properties(properties)
    )


def wants_light_queues(message: Message) -> bool:
    """Return True if the message goes to light queues too, where enableLmq is on
    (docs/formats/consume-queue.md#light-queues).
    """
    named = (message.properties or {}).get(props.INNER_MULTI_DISPATCH)
    if not named or named.isspace():
        return False
    return may_have_light_queues(message.topic)


def may_have_light_queues(topic: str) -> bool:
    """Return True if messages of the topic go to light queues, too (Java: ``MixAll.topicAllowsLMQ``)."""
    return not topic.startswith((RETRY_PREFIX, SYSTEM_PREFIX)) and topic != SCHEDULE_TOPIC
