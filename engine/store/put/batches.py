"""A client's batch: messages of one topic and queue that are stored side by side (docs/formats/commit-log.md#batches).

Java: ``CommitLog.asyncPutMessages``, ``DefaultAppendMessageCallback.doAppend`` with a ``MessageExtBatch``. What a
client encoded is cut at its lengths and never decoded: a unit is its head, and slices of what came.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.codec import message as codec
from engine.codec import properties as props
from engine.codec.batch import MemberDamage, spans
from engine.codec.encode import (
    Message,
    UnitRun,
    encode_batch,
    host_raw,
    property_text,
)
from engine.codec.unit_flavours import LONGEST_PROPERTIES
from engine.store.put.message import (
    AppendMessageResult,
    AppendMessageStatus,
    PutMessageResult,
    PutMessageStatus,
    delay_level,
)
from engine.store.put.ruled import in_turn, publish
from engine.system_names import RETRY_PREFIX

if TYPE_CHECKING:
    from engine.store.put.log import PutLog


_ILLEGAL = PutMessageStatus.MESSAGE_ILLEGAL


def put_batch(log: PutLog, messages: Sequence[Message], properties: dict[str, str] | None = None) -> PutMessageResult:
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


def put_encoded_batch(log: PutLog, batch: Message) -> PutMessageResult:
    """Put a batch as SEND_BATCH_MESSAGE brings it: its members are the body, each with its flag and properties, to
    which the batch's own are added.

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
            property_text(batch),
            stored_host=host,
            property_crc=log.property_crc,
            auto_version=log.auto_version,
        )
    except ValueError:
        return PutMessageResult(_ILLEGAL)
    if run.longest_properties > LONGEST_PROPERTIES:
        return PutMessageResult(PutMessageStatus.PROPERTIES_SIZE_EXCEEDED)
    if log.is_busy:
        return PutMessageResult(PutMessageStatus.OS_PAGE_CACHE_BUSY)
    return in_turn(log, lambda now: _append(log, batch, run, host, now))


def _may_be_batch(log: PutLog, batch: Message) -> bool:
    if batch.topic.startswith(RETRY_PREFIX) or batch.queue_id < 0 or not log.topic(batch.topic).legal:
        return False
    if batch.sys_flag & codec.TRANSACTION_MASK or batch.body is None:
        return False
    try:
        return delay_level(batch) <= 0
    except ValueError:
        return False


def _append(log: PutLog, batch: Message, run: UnitRun, host: bytes, now: int) -> PutMessageResult:
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
