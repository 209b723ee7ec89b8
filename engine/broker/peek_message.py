"""PEEK_MESSAGE, NOTIFICATION, POLLING_INFO: messages that a pop would get, without popping them
(docs/protocol/pop.md#notification).

Java: ``PeekMessageProcessor``, ``NotificationProcessor``, ``PollingInfoProcessor``.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from engine.broker.lite_topics import has_lite_message, light_queue_ends, waiting_key
from engine.broker.pop_holds import HeldPop, PopKey, refusal_to_hold
from engine.broker.pop_message import (
    FOUND,
    NOTHING,
    ZEROS,
    check_readable,
    max_messages_of,
    queues_of,
)
from engine.broker.topics import READ
from engine.codec import pop as codec
from engine.remoting.codes import NOT_SET, Refused, RequestCode, ResponseCode
from engine.remoting.connection import Connection
from engine.remoting.frame import Command, answer_to
from engine.store.get_message import GetMessageStatus

if TYPE_CHECKING:
    from engine.broker.broker import Broker, Header, Processor


_WRONG_OFFSET = {GetMessageStatus.OFFSET_TOO_SMALL, GetMessageStatus.OFFSET_OVERFLOW_BADLY}
_NO_MESSAGE_FIELDS = {"hasMsg": "false", "pollingFull": "false"}


def _check(broker: Broker, header: Header, connection: Connection, fields: dict[str, str]) -> None:
    """Check that the group may read. Raises :class:`Refused` with header fields that say nothing."""
    try:
        if not broker.config.permission & READ:
            words = f"the broker[{broker.config.broker_ip}] peeking message is forbidden"
            raise Refused(ResponseCode.NO_PERMISSION, words)
        check_readable(broker, header, connection)
    except Refused as error:
        error.fields = fields
        raise


def _key(header: Header) -> PopKey:
    return PopKey(str(header["topic"]), str(header["consumerGroup"]), int(header["queueId"] or 0))


def _queues(broker: Broker, key: PopKey) -> list[tuple[str, int]]:
    """Return the queues that a pop at ``key`` reads, with those of the retry topic first or last, at random."""
    topic = broker.topics.get(key.topic)
    retry = codec.retry_topic(key.topic, key.group, v2=broker.config.retry_topic_v2)
    count = topic.read_queue_nums if topic else 0
    first_queue = random.randrange(count) if count else 0
    queues = [(key.topic, (first_queue + step) % count) for step in range(count)] if key.queue_id < 0 else [key[::2]]
    retry_config = broker.topics.get(retry)
    retry_queues = [(retry, queue_id) for queue_id in range(retry_config.read_queue_nums if retry_config else 0)]
    return retry_queues + queues if random.randrange(5) == 0 else queues + retry_queues


def _next_offset(broker: Broker, group: str, topic: str, queue_id: int) -> int:
    offset = broker.store.tables.consumer_offset(group, topic, queue_id)
    if offset < 0:
        offset = max(broker.store.min_offset_in_queue(topic, queue_id), 0)
    return max(offset, broker.popped.latest(group, topic, queue_id))


def peek(broker: Broker, request: Command, header: Header, connection: Connection) -> Command:
    """PEEK_MESSAGE: return the messages that a pop would return, without handles; nothing changes."""
    _check(broker, header, connection, ZEROS)
    key, max_messages = _key(header), max_messages_of(header)
    bodies: list[bytes] = []
    remaining = 0
    for topic, queue_id in _queues(broker, key):
        offset = _next_offset(broker, key.group, topic, queue_id)
        remaining += broker.store.max_offset_in_queue(topic, queue_id) - offset
        if len(bodies) < max_messages:
            bodies += _read(broker, key.group, topic, queue_id, offset, max_messages - len(bodies))
    code, words = (ResponseCode.SUCCESS, FOUND) if bodies else (ResponseCode.PULL_NOT_FOUND, NOTHING)
    return answer_to(request, code, fields={**ZEROS, "restNum": str(remaining)}, body=b"".join(bodies), remark=words)


def _read(broker: Broker, group: str, topic: str, queue_id: int, offset: int, max_messages: int) -> list[bytes]:
    result = broker.store.get_message(group, topic, queue_id, offset, max_messages)
    if result is not None and result.status in _WRONG_OFFSET:
        result = broker.store.get_message(group, topic, queue_id, result.next_begin_offset, max_messages)
    if result is None:
        return []
    with result:
        return list(map(bytes, result.messages))


def notify(broker: Broker, request: Command, header: Header, connection: Connection) -> Command | None:
    """NOTIFICATION: tell whether there is a message, now or within ``pollTime`` (ms); filters are ignored."""
    _check(broker, header, connection, _NO_MESSAGE_FIELDS)
    return _look(broker, request, header, connection, int(header["bornTime"] or 0) or broker.now())


def _look(broker: Broker, request: Command, header: Header, connection: Connection, born: int) -> Command | None:
    key, hold, is_full = _key(header), int(header["pollTime"] or 0), False
    lite_client = str(header["clientId"]) if header["isLiteConsumer"] and broker.store.rules.lite_topics else None
    if lite_client is None:
        has_message = any(_has_message(broker, key, header, *queue) for queue in _queues(broker, key))
    else:
        key = waiting_key(lite_client, key.group)
        has_message = has_lite_message(broker, lite_client)
    if not has_message:
        code = refusal_to_hold(broker.notices, key, born + hold, may_wait=hold > 0)
        if code is None:
            held_notice = HeldPop(
                request, connection, key, born + hold, lambda: _look(broker, request, header, connection, born)
            )
            ends = queues_of(broker, key) if lite_client is None else light_queue_ends(broker, lite_client)
            broker.notices.hold(held_notice, ends)
            return None
        is_full = code == ResponseCode.POLLING_FULL
    return answer_to(
        request, fields={"hasMsg": str(has_message).lower(), "pollingFull": str(is_full).lower()}, remark=NOT_SET
    )


def _has_message(broker: Broker, key: PopKey, header: Header, topic: str, queue_id: int) -> bool:
    attempt = None if header["attemptId"] is None else str(header["attemptId"])
    if header["order"] and broker.orders.is_blocked(key.topic, key.group, queue_id, attempt):
        return False
    return broker.store.max_offset_in_queue(topic, queue_id) > _next_offset(broker, key.group, topic, queue_id)


def polling_info(broker: Broker, request: Command, header: Header, connection: Connection) -> Command:
    """POLLING_INFO: the number of pops that are held for exactly that topic, group and queue."""
    _check(broker, header, connection, {"pollingNum": "0"})
    return answer_to(request, fields={"pollingNum": str(broker.pops.count(_key(header)))}, remark=NOT_SET)


HANDLERS: dict[int, Processor] = {
    RequestCode.PEEK_MESSAGE: peek,
    RequestCode.NOTIFICATION: notify,
    RequestCode.POLLING_INFO: polling_info,
}
