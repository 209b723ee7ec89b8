"""Puts that rules apply to: delays and timers, transactions, inner batches, light queues, property CRC; batches of
clients; and units that are stored again as they are (docs/formats/commit-log.md#property-crc, #batches,
docs/formats/consume-queue.md#light-queues, docs/formats/writing.md#checks, docs/formats/delays.md#levels).

The long way beside :meth:`engine.store.commit_log.CommitLog.put_message`: it takes any message, to the same bytes. A
client's batch is messages of one topic and queue that are stored side by side. What a client encoded is cut at its
lengths and never decoded: a unit is its head, and slices of what came. Java: ``CommitLog.asyncPutMessages``,
``DefaultAppendMessageCallback.doAppend`` with a ``MessageExtBatch``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from engine.codec import message as codec
from engine.codec import properties as props
from engine.codec.batch import MemberDamage, spans
from engine.codec.encode import (
    CRC_TAIL_BYTES,
    Message,
    UnitRun,
    encode_batch,
    encode_properties,
    encode_unit,
    host_raw,
    property_text,
    stored_properties,
    utf16_length,
    write_property_crc,
)
from engine.codec.java import split
from engine.codec.unit_flavours import MAX_PROPERTIES_BYTES
from engine.errors import CorruptUnit, NotWriteable, UsageError
from engine.releases import rules_of
from engine.sentences import sentence
from engine.store.put_message import (
    BLANK_SIZE,
    UNIT_SLACK,
    AppendMessageResult,
    AppendMessageStatus,
    PutMessageResult,
    PutMessageStatus,
    check_inner_batch,
    delay_level,
    reschedule,
    wants_light_queues,
)
from engine.system_names import LMQ_PREFIX, RETRY_PREFIX

if TYPE_CHECKING:
    from engine.mapped.mapped_file import MappedFile
    from engine.store.commit_log import CommitLog


_OUTSIDE_QUEUES = (codec.PREPARED, codec.ROLLBACK)
_PHYSICAL_OFFSET = struct.Struct(">q")
_PHYSICAL_POSITION = 28
_MAX_LIGHT_QUEUES = 20_000
_MAX_MESSAGE_COUNT = 32_767
Status = PutMessageStatus


def put_ruled(log: CommitLog, message: Message) -> PutMessageResult:
    """Check, rewrite where a rule says so, and append one message of any kind."""
    if not check_inner_batch(message, log.is_batch_topic):
        return PutMessageResult(Status.MESSAGE_ILLEGAL)
    try:
        stored_message = reschedule(message, log.config, log.clock(), log.release)
        if isinstance(stored_message, Status):
            return PutMessageResult(stored_message)
        if stored_message.sys_flag & codec.INNER_BATCH and stored_message.properties is None:
            stored_message = stored_message.changed(properties=props.decode(stored_message.properties_raw or b""))
        light_queues = _light_queues(log, stored_message)
        raw_properties = property_text(stored_message)
        host_raw(stored_message.born_host)
        host = host_raw(stored_message.store_host) if stored_message.store_host is not None else log.store_host_raw
        count = _message_count(log, stored_message)
    except ValueError:
        return PutMessageResult(Status.MESSAGE_ILLEGAL)
    size_status = _too_long(log, stored_message, b"" if light_queues else raw_properties)
    if size_status is not None:
        return PutMessageResult(size_status)
    if light_queues and rules_of(log.release).light_queue_limit and _light_queue_count(log) > _MAX_LIGHT_QUEUES:
        return PutMessageResult(Status.LMQ_CONSUME_QUEUE_NUM_EXCEEDED)
    return in_turn(log, lambda now: _append(log, stored_message, light_queues, host, count, now))


def in_turn(log: CommitLog, append: Callable[[int], PutMessageResult]) -> PutMessageResult:
    """Return what ``append`` answers once it holds the lock, given the time (ms); or a status that keeps it from
    appending.
    """
    try:
        with log.appending as now:
            return append(now)
    except NotWriteable:
        return PutMessageResult(log.refused)
    except OSError as error:
        return log.failed(error)
    except ValueError:
        return PutMessageResult(Status.MESSAGE_ILLEGAL)


def _append(
    log: CommitLog, message: Message, light_queues: list[str], host: bytes, count: int, now: int
) -> PutMessageResult:
    table = log.queue_offsets
    queued = message.sys_flag & codec.TRANSACTION_MASK not in _OUTSIDE_QUEUES
    queue_offset = table.next(message.topic, message.queue_id) if queued else 0
    if queued and message.sys_flag & codec.INNER_BATCH and log.is_batch_topic(message.topic):
        properties = {**(message.properties or {}), props.INNER_BASE: str(queue_offset)}
        message = message.changed(properties=properties, properties_raw=encode_properties(properties))
        size_status = _too_long(log, message, property_text(message))
        if size_status is not None:
            return PutMessageResult(size_status)
    if light_queues:
        message = _with_light_offsets(log, message, light_queues)
        light_status = _light_too_long(log, message)
        if light_status is not None:
            return PutMessageResult(Status.MESSAGE_ILLEGAL, AppendMessageResult(light_status))

    def unit(offset: int) -> bytes:
        return _encode(log, message, queue_offset, offset, now)

    size = len(unit(0))
    if size > log.max_message_size + UNIT_SLACK:
        return PutMessageResult(Status.MESSAGE_ILLEGAL)
    file = log.room_for(size, now)
    if isinstance(file, PutMessageResult):
        return file
    offset = file.start_offset + file.wrote
    publish(log, file, unit(offset), now, (message.topic, message.queue_id, count if queued else 0))
    for name in light_queues:
        if name.startswith(LMQ_PREFIX):
            table.increase(name, 0)
    answer = AppendMessageResult(AppendMessageStatus.PUT_OK, offset, size, now, queue_offset, count, host)
    return PutMessageResult(Status.PUT_OK, answer)


def publish(
    log: CommitLog, file: MappedFile, data: bytes | memoryview, now: int, taken_offsets: tuple[str, int, int]
) -> None:
    """Append ``data``, which takes queue offsets of a queue: ``taken_offsets`` is (topic, queue id, count). An
    interrupt in here leaves the unit with its number, or neither of them.
    """
    topic, queue_id, count = taken_offsets
    if not count:
        file.append(data, now)
        return
    table, wrote = log.queue_offsets, file.wrote
    place = table.place(topic, queue_id)
    old_offset = table.numbers[place]
    try:
        table.numbers[place] = old_offset + count
        file.append(data, now)
    except BaseException:
        if file.wrote == wrote:
            table.numbers[place] = old_offset
        raise


def _encode(log: CommitLog, message: Message, queue_offset: int, offset: int, now: int) -> bytes:
    return encode_unit(
        message,
        queue_offset=queue_offset,
        physical_offset=offset,
        store_timestamp=now,
        store_host=log.store_host,
        property_crc=log.property_crc,
        auto_version=log.auto_version,
    )


def _too_long(log: CommitLog, message: Message, raw: bytes) -> PutMessageStatus | None:
    """The status that the sizes of a message ask for, None if they are fine (docs/formats/writing.md#checks)."""
    if (
        rules_of(log.release).limits_properties_by_letters
        and utf16_length(raw.decode("utf-8", "replace")) > MAX_PROPERTIES_BYTES
    ):
        return Status.MESSAGE_ILLEGAL
    if len(stored_properties(raw, log.property_crc)) > MAX_PROPERTIES_BYTES:
        return Status.PROPERTIES_SIZE_EXCEEDED
    return Status.MESSAGE_ILLEGAL if len(message.body) > log.max_message_size else None


def _message_count(log: CommitLog, message: Message) -> int:
    """Number of queue offsets that the message takes: INNER_NUM in a batch queue, else 1
    (docs/formats/consume-queue.md#queue-offsets).
    """
    text = (message.properties or {}).get(props.INNER_NUM)
    if text is None or not (message.sys_flag & codec.INNER_BATCH or log.is_batch_topic(message.topic)):
        return 1
    count = int(text)
    if count > _MAX_MESSAGE_COUNT:
        raise ValueError(
            sentence(
                "INNER_NUM says {count:,}, a unit holds at most {most_count:,} messages",
                count=count,
                most_count=_MAX_MESSAGE_COUNT,
            )
        )
    return max(1, count)


def _light_queues(log: CommitLog, message: Message) -> list[str]:
    """The names in INNER_MULTI_DISPATCH where light queues are on, else none
    (docs/formats/consume-queue.md#light-queues).
    """
    on = (
        log.config.enable_lmq
        if rules_of(log.release).light_queues_by == "enableLmq"
        else log.config.enable_multi_dispatch
    )
    if not on or not wants_light_queues(message):
        return []
    return split((message.properties or {})[props.INNER_MULTI_DISPATCH], ",")


def _light_queue_count(log: CommitLog) -> int:
    with log.lock:
        return log.queue_offsets.count_of(LMQ_PREFIX)


def _with_light_offsets(log: CommitLog, message: Message, light_queues: list[str]) -> Message:
    offsets = [
        str(log.queue_offsets.next(name, 0)) if name.startswith(LMQ_PREFIX) and log.config.enable_lmq else ""
        for name in light_queues
    ]
    properties = {**(message.properties or {}), props.INNER_MULTI_QUEUE_OFFSET: ",".join(offsets)}
    if rules_of(log.release).drops_wait_of_light:
        properties.pop(props.WAIT, None)
    return message.changed(properties=properties, properties_raw=encode_properties(properties))


def _light_too_long(log: CommitLog, message: Message) -> AppendMessageStatus | None:
    """The append's own limits for a message whose text is finished only there (docs/formats/commit-log.md#append,
    step 1).
    """
    raw = stored_properties(property_text(message), log.property_crc)
    if len(raw) > MAX_PROPERTIES_BYTES:
        return AppendMessageStatus.PROPERTIES_SIZE_EXCEEDED
    if len(_encode(log, message, 0, 0, 0)) > log.max_message_size:
        return AppendMessageStatus.MESSAGE_SIZE_EXCEEDED
    return None


def append_raw(log: CommitLog, unit: bytes) -> int:
    """Store a whole unit again at the end of the log and give its offset there.

    PHYSICALOFFSET (and a property CRC) are written again; times, hosts, queue offset and text stay. Raises
    :class:`CorruptUnit`, :class:`UsageError` if no file is long enough or none can be made, :class:`NotWriteable`,
    ``OSError``.
    """
    frame = codec.check_frame(unit, 0, len(unit))
    if isinstance(frame, str) or frame.size != len(unit):
        raise CorruptUnit(
            frame if isinstance(frame, str) else f"{len(unit):,} bytes given for a unit of {frame.size:,}"
        )
    (stored,) = _PHYSICAL_OFFSET.unpack_from(unit, frame.store_timestamp)
    if frame.size + BLANK_SIZE > log.files.file_size:
        raise UsageError(
            sentence(
                "a unit of {size:,} bytes does not fit into files of {file_size:,}",
                size=frame.size,
                file_size=log.files.file_size,
            )
        )
    with log.appending:
        file = log.room_for(frame.size, stored)
        if isinstance(file, PutMessageResult):
            raise UsageError(sentence("no new file of the commit log can be made"))
        offset = file.start_offset + file.wrote
        copy = bytearray(unit)
        _PHYSICAL_OFFSET.pack_into(copy, _PHYSICAL_POSITION, offset)
        if frame.properties_length >= CRC_TAIL_BYTES and props.verify_crc(unit):
            write_property_crc(copy)
        file.append(bytes(copy), stored)
    return offset


_ILLEGAL = PutMessageStatus.MESSAGE_ILLEGAL


def put_batch(
    log: CommitLog, messages: Sequence[Message], properties: dict[str, str] | None = None
) -> PutMessageResult:
    """Put messages of one topic and queue as one batch; ``properties`` belong to the batch itself.

    Queue, birth, flags and hosts are those of the first message.
    """
    if log.refuses is not None:
        return PutMessageResult(log.refuses)
    if not messages:
        return PutMessageResult(_ILLEGAL)
    first_message = messages[0]
    if any(message.topic != first_message.topic or message.queue_id != first_message.queue_id for message in messages):
        return PutMessageResult(_ILLEGAL)
    if any(message.body is None for message in messages):
        return PutMessageResult(_ILLEGAL)
    try:
        if any(delay_level(message) > 0 for message in messages):
            return PutMessageResult(_ILLEGAL)
        body = encode_batch(messages)
    except ValueError:
        return PutMessageResult(_ILLEGAL)
    return put_encoded_batch(log, first_message.changed(body=body, properties=properties, properties_raw=None))


def put_encoded_batch(log: CommitLog, batch: Message) -> PutMessageResult:
    """Put a batch as SEND_BATCH_MESSAGE brings it: its members are the body, each with its flag and properties, to
    which the batch's own are added (to 5.3.3).

    In a topic of batch queues, with UNIQ_KEY among the batch's properties, they become one unit; else a unit each, all
    in one file.
    """
    if log.refuses is not None:
        return PutMessageResult(log.refuses)
    shared = batch.properties or {}
    if not _may_be_batch(log, batch) or len(batch.body) > log.max_message_size:
        return PutMessageResult(_ILLEGAL)
    members = spans(batch.body)
    if isinstance(members, MemberDamage) or not members:
        return PutMessageResult(_ILLEGAL)
    if props.UNIQUE_KEY in shared and log.is_batch_topic(batch.topic):
        properties = {**shared, props.INNER_NUM: str(len(members))}
        flags = batch.sys_flag | codec.INNER_BATCH | codec.NEED_UNWRAP
        return log.put_message(batch.changed(properties=properties, sys_flag=flags))
    try:
        host = host_raw(batch.store_host) if batch.store_host is not None else log.store_host_raw
        run = UnitRun(
            batch,
            members,
            property_text(batch) if rules_of(log.release).appends_batch_properties else b"",
            stored_host=host,
            property_crc=log.property_crc,
            auto_version=log.auto_version,
        )
    except ValueError:
        return PutMessageResult(_ILLEGAL)
    if run.longest_properties > MAX_PROPERTIES_BYTES:
        return PutMessageResult(PutMessageStatus.PROPERTIES_SIZE_EXCEEDED)
    if log.is_busy:
        return PutMessageResult(PutMessageStatus.OS_PAGE_CACHE_BUSY)
    return in_turn(log, lambda now: _append_batch(log, batch, run, host, now))


def _may_be_batch(log: CommitLog, batch: Message) -> bool:
    if batch.topic.startswith(RETRY_PREFIX) or batch.queue_id < 0 or not log.topic(batch.topic).legal:
        return False
    if batch.sys_flag & codec.TRANSACTION_MASK or batch.body is None:
        return False
    try:
        return delay_level(batch) <= 0
    except ValueError:
        return False


def _append_batch(log: CommitLog, batch: Message, run: UnitRun, host: bytes, now: int) -> PutMessageResult:
    base = log.queue_offsets.next(batch.topic, batch.queue_id)
    file = log.room_for(run.size, now)
    if isinstance(file, PutMessageResult):
        return file
    start = file.start_offset + file.wrote
    data, offsets = run.place(base, start, now)
    publish(log, file, data, now, (batch.topic, batch.queue_id, len(offsets)))
    answer = AppendMessageResult(
        AppendMessageStatus.PUT_OK, start, run.size, now, base, len(offsets), host, tuple(offsets)
    )
    return PutMessageResult(PutMessageStatus.PUT_OK, answer)
