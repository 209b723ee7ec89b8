"""ACK_MESSAGE, BATCH_ACK_MESSAGE, CHANGE_MESSAGE_INVISIBLETIME: the end of popped messages
(docs/protocol/pop.md#ack, #change, #checkpoints, #orderly).

Java: ``AckMessageProcessor``, ``ChangeInvisibleTimeProcessor``.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from engine.broker.json_bodies import read_object_or_none
from engine.broker.lite_topics import acknowledge_lite, names_lite_topic, postpone_lite
from engine.broker.pop_checkpoints import ack_message, check_point_message, count_record, is_stored, put_for
from engine.broker.pop_message import wake_orderly, wrong_queue
from engine.codec import pop as codec
from engine.remoting.codes import NOT_SET, Refused, RequestCode, ResponseCode, WrongRequest, see
from engine.remoting.connection import Connection
from engine.remoting.frame import Command, answer_to
from engine.store.put_message import PutMessageResult

if TYPE_CHECKING:
    from engine.broker.broker import Broker, Header, Processor


_ZEROS = {"popTime": "0", "invisibleTime": "0", "reviveQid": "0"}
_ILLEGAL = "java.lang.IllegalArgumentException: "
_MAX_OFFSET_SPAN = 1 << 16
"""Maximum span of offsets in one entry of a batch."""


def acknowledge(broker: Broker, request: Command, header: Header, connection: Connection) -> Command | None:
    """ACK_MESSAGE: acknowledge one message. An acknowledgement that is too late, comes twice, or of a message that was
    never popped is accepted.
    """
    topic, group, queue_id = str(header["topic"]), str(header["consumerGroup"]), int(header["queueId"])
    offset = int(header["offset"])
    _check_queue(broker, topic, queue_id, connection)
    if names_lite_topic(broker, header):
        return acknowledge_lite(broker, request, header)
    min_offset, end = _bounds(broker, topic, queue_id)
    if not min_offset <= offset <= end:
        words = f"offset is illegal, key:{topic}@{queue_id}, commit:{offset}, store:{min_offset}~{end}"
        raise Refused(ResponseCode.NO_MESSAGE, words)
    handle = _handle(header)
    if handle.is_orderly:
        _acknowledge_orderly(broker, topic, group, queue_id, offset, handle.pop_time, connection)
        return answer_to(request)
    ack = codec.Ack(topic, group, queue_id, handle.start_offset, handle.pop_time, handle.broker_name, offset)
    _put_ack(broker, request, connection, ack, handle.due, handle.revive_queue, answer_to(request))
    _done(broker, ack)
    return None


def _put_ack(
    broker: Broker,
    request: Command,
    connection: Connection,
    ack: codec.Ack,
    due: int,
    revive_queue: int,
    answer: Command | None,
) -> None:
    """Store an acknowledgement; the client gets ``answer`` whatever the result is, as in RocketMQ."""
    broker.stats.acknowledged[ack.group, ack.topic].add(len(ack.all_offsets), 0)

    def put(result: PutMessageResult) -> Command | None:
        count_record(broker, ack, result)
        return answer

    put_for(broker, request, connection, ack_message(broker, ack, due, revive_queue), put)


def _done(broker: Broker, ack: codec.Ack) -> None:
    """Count acknowledged messages as no longer in flight; those popped before this start were not counted."""
    if ack.pop_time >= broker.started:
        broker.popped.done(ack.group, ack.topic, ack.queue_id, len(ack.all_offsets))


def _check_queue(broker: Broker, name: str, queue_id: int, connection: Connection) -> None:
    topic = broker.topics.get(name)
    if topic is None:
        words = f"topic[{name}] not exist, apply first please! {see(broker.store.release)}"
        raise Refused(ResponseCode.TOPIC_NOT_EXIST, words)
    if not 0 <= queue_id < topic.read_queue_nums:
        raise Refused(ResponseCode.MESSAGE_ILLEGAL, wrong_queue(name, queue_id, topic.read_queue_nums, connection))


def _bounds(broker: Broker, topic: str, queue_id: int) -> tuple[int, int]:
    min_offset = max(broker.store.min_offset_in_queue(topic, queue_id), 0)
    return min_offset, broker.store.max_offset_in_queue(topic, queue_id)


def _handle(header: Header) -> codec.Handle:
    try:
        return codec.Handle.parse(str(header["extraInfo"]))
    except ValueError as error:
        raise WrongRequest(_ILLEGAL + str(error)) from None


def _acknowledge_orderly(
    broker: Broker, topic: str, group: str, queue_id: int, offset: int, pop_time: int, connection: Connection
) -> None:
    """Move the group's offset to its first open message; if none is open, the next pop may proceed."""
    tables = broker.store.tables
    committed = tables.consumer_offset(group, topic, queue_id)
    if offset < committed:
        return
    following = broker.orders.acked(topic, group, queue_id, offset, pop_time)
    if following == -1:
        words = (
            f"offset is illegal, key:{topic}@{group}@{queue_id}, old:{committed}, commit:{offset}, next:-1, "
            f"/{connection.peer}"
        )
        raise Refused(ResponseCode.MESSAGE_ILLEGAL, words)
    if following < 0:
        return
    if broker.resets.offset(group, topic, queue_id) is None:
        tables.commit_consumer_offset(group, topic, queue_id, following)
    if not broker.orders.is_blocked(topic, group, queue_id, None):
        wake_orderly(broker, topic, group, queue_id)
    if pop_time >= broker.started:
        broker.popped.done(group, topic, queue_id)


def acknowledge_batch(broker: Broker, request: Command, _header: Header, connection: Connection) -> Command | None:
    """BATCH_ACK_MESSAGE: acknowledge messages of several pops; offsets out of range are skipped."""
    body = read_object_or_none(request.body)
    rows = body.get("acks")
    if rows is None or rows == []:
        return answer_to(request, ResponseCode.NO_MESSAGE)
    if not isinstance(rows, list | tuple):
        raise WrongRequest("acks is no list of objects")
    waiting = []
    for row in rows:
        if not isinstance(row, Mapping):
            raise WrongRequest("acks is no list of objects")
        pending_ack = _acks_of(broker, row, str(body.get("brokerName") or broker.config.broker_name), connection)
        if pending_ack is not None:
            waiting.append(pending_ack)
    if not waiting:
        return answer_to(request)
    for number, (ack, due, revive_queue) in enumerate(waiting, 1):
        answer = answer_to(request) if number == len(waiting) else None
        _put_ack(broker, request, connection, ack, due, revive_queue, answer)
        _done(broker, ack)
    return None


def _acks_of(
    broker: Broker, row: Mapping[Any, Any], broker_name: str, connection: Connection
) -> tuple[codec.Ack, int, int] | None:
    """Parse one entry: the acknowledgement to store, when it is due (ms), and its revive queue; None if nothing is
    to be stored.
    """
    group, queue_id = _text(row, "c", "consumerGroup"), _whole(row, "q", "queueId")
    start = _whole(row, "so", "startOffset")
    try:
        topic = codec.real_topic(_text(row, "t", "topic"), group, _text(row, "r", "retry"))
        bits = int.from_bytes(base64.b64decode(_text(row, "b", "bitSet"), validate=True), "little")
    except (ValueError, binascii.Error) as error:
        raise WrongRequest(_ILLEGAL + str(error)) from None
    if bits.bit_length() > _MAX_OFFSET_SPAN:
        raise WrongRequest(f"a bit set of {bits.bit_length():,} bits, more than {_MAX_OFFSET_SPAN:,}")
    popped, revive_queue = _whole(row, "pt", "popTime"), _whole(row, "rq", "reviveQueueId")
    min_offset, end = _bounds(broker, topic, queue_id)
    offsets = tuple(
        start + bit for bit in range(bits.bit_length()) if bits >> bit & 1 and min_offset <= start + bit <= end
    )
    if revive_queue == codec.ORDERLY:
        for offset in offsets:
            _acknowledge_orderly(broker, topic, group, queue_id, offset, popped, connection)
        return None
    if not offsets:
        return None
    ack = codec.Ack(topic, group, queue_id, start, popped, broker_name, offsets=offsets)
    return ack, popped + _whole(row, "it", "invisibleTime"), revive_queue


def _text(row: Mapping[Any, Any], *names: str) -> str:
    return next((str(row[name]) for name in names if row.get(name) is not None), "")


def _whole(row: Mapping[Any, Any], *names: str) -> int:
    return next((row[name] for name in names if isinstance(row.get(name), int)), 0)


def change_invisible_time(broker: Broker, request: Command, header: Header, connection: Connection) -> Command | None:
    """CHANGE_MESSAGE_INVISIBLETIME: keep a popped message invisible for a given time from now; the client gets a new
    handle.
    """
    topic, group, queue_id = str(header["topic"]), str(header["consumerGroup"]), int(header["queueId"])
    offset, invisible = int(header["offset"]), int(header["invisibleTime"])
    try:
        _check_queue(broker, topic, queue_id, connection)
        if names_lite_topic(broker, header):
            return postpone_lite(broker, request, header)
        min_offset, end = _bounds(broker, topic, queue_id)
        if not min_offset <= offset < end:
            return answer_to(request, ResponseCode.NO_MESSAGE, fields=_ZEROS, remark=NOT_SET)
        handle = _handle(header)
    except Refused as error:
        error.fields = _ZEROS
        raise
    now = broker.now()
    if handle.is_orderly:
        return _change_orderly(broker, request, (topic, group, queue_id, offset), handle, now + invisible)
    new_check_point = codec.CheckPoint(topic, group, queue_id, offset, now, invisible, handle.broker_name, (0,))
    done = codec.Ack(topic, group, queue_id, handle.start_offset, handle.pop_time, handle.broker_name, offset)
    fields = {"popTime": str(now), "invisibleTime": str(invisible), "reviveQid": str(handle.revive_queue)}

    def put(result: PutMessageResult) -> Command | None:
        """Acknowledge the message of the old checkpoint, now that the new one is stored."""
        count_record(broker, new_check_point, result)
        if not is_stored(result):
            return answer_to(request, ResponseCode.SYSTEM_ERROR, fields=_ZEROS, remark=NOT_SET)
        broker.stats.checkpoints[group, topic].add(1, 0)
        answer = answer_to(request, fields=fields, remark=NOT_SET)
        _put_ack(broker, request, connection, done, handle.due, handle.revive_queue, answer)
        return None

    put_for(broker, request, connection, check_point_message(broker, new_check_point, handle.revive_queue), put)
    return None


def _change_orderly(
    broker: Broker, request: Command, message: tuple[str, str, int, int], handle: codec.Handle, visible_at: int
) -> Command:
    topic, group, queue_id, offset = message
    if offset < broker.store.tables.consumer_offset(group, topic, queue_id):
        return answer_to(request, fields=_ZEROS, remark=NOT_SET)
    broker.orders.postponed(topic, group, queue_id, offset, handle.pop_time, visible_at)
    fields = {
        "popTime": str(handle.pop_time),
        "invisibleTime": str(visible_at - handle.pop_time),
        "reviveQid": str(handle.revive_queue),
    }
    return answer_to(request, fields=fields, remark=NOT_SET)


HANDLERS: dict[int, Processor] = {
    RequestCode.ACK_MESSAGE: acknowledge,
    RequestCode.CHANGE_MESSAGE_INVISIBLETIME: change_invisible_time,
    RequestCode.BATCH_ACK_MESSAGE: acknowledge_batch,
}
