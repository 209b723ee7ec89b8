"""Queries: the bounds of a queue, and single messages by time, by key, by offset (docs/protocol/broker.md#offsets).

Java: ``AdminBrokerProcessor``, ``QueryMessageProcessor``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.broker.json_bodies import write
from engine.codec import properties
from engine.codec.index_keys import TAG, key_text
from engine.codec.message import decode
from engine.errors import CorruptUnit
from engine.remoting.codes import NOT_SET, Refused, RequestCode, ResponseCode, WrongRequest
from engine.remoting.connection import Connection
from engine.remoting.frame import Command, answer_to
from engine.store.put_message import may_have_light_queues
from engine.store.query_message import lend_message_by_offset
from engine.store.queue_entry import entries_of_file
from engine.system_names import CHECK_MAX_TOPIC, HALF_TOPIC, LMQ_PREFIX, SCHEDULE_TOPIC, TIMER_TOPIC

if TYPE_CHECKING:
    from engine.broker.broker import Broker, Header, Processor


MAX_BY_UNIQUE_KEY = 32
"""``defaultQueryMaxNum``: maximum of a query by unique key, whatever the request says."""


def max_offset(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """GET_MAX_OFFSET: the queue offset after the last message; 0 if there is no such queue."""
    broker.store.services.dispatch_now()  # a sender that has its answer sees its message counted
    offset = broker.store.max_offset_in_queue(str(header["topic"]), int(header["queueId"]))
    return answer_to(request, fields={"offset": str(offset)})


def min_offset(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """GET_MIN_OFFSET: the queue offset of the first message."""
    offset = broker.store.min_offset_in_queue(str(header["topic"]), int(header["queueId"]))
    return answer_to(request, fields={"offset": str(offset)}, remark=None if broker.store.rules.major < 5 else "")


def search_offset(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """SEARCH_OFFSET_BY_TIMESTAMP: the queue offset by store time (ms)."""
    boundary = "upper" if str(header["boundaryType"] or "").lower() == "upper" else "lower"
    broker.store.services.dispatch_now()
    offset = broker.store.offset_in_queue_by_time(
        str(header["topic"]), int(header["queueId"]), int(header["timestamp"]), boundary
    )
    return answer_to(request, fields={"offset": str(offset)})


def earliest_time(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """GET_EARLIEST_MSG_STORETIME: store time of a queue's first message (ms), −1 without one."""
    topic, queue_id = str(header["topic"]), int(header["queueId"])
    offset = broker.store.min_offset_in_queue(topic, queue_id)
    time = store_time_at(broker, topic, queue_id, offset) if offset >= 0 else -1
    return answer_to(request, fields={"timestamp": str(time)})


def store_time_at(broker: Broker, topic: str, queue_id: int, offset: int) -> int:
    """Return the store time (ms) of the message at a queue offset, −1 without one."""
    if not 0 <= offset < broker.store.max_offset_in_queue(topic, queue_id):
        return -1
    result = broker.store.get_message("", topic, queue_id, offset, 1)
    if result is None:
        return -1
    with result:
        return _store_time(result.messages[0]) if result.messages else -1


def _store_time(message: memoryview) -> int:
    try:
        return decode(message, 0, 0, crc=False).store_timestamp
    except CorruptUnit:
        return -1


def view_message(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """VIEW_MESSAGE_BY_ID: the unit that begins at an offset of the log, its bytes as they are stored."""
    offset = int(header["offset"])
    with lend_message_by_offset(broker.store.parts.log, offset) as result:
        if not result.messages:
            raise Refused(ResponseCode.SYSTEM_ERROR, f"can not find message by the offset, {offset}")
        message = bytes(result.messages[0])
    topic = str(header["topic"] or "")
    if broker.store.rules.checks_viewed_topic and topic.strip() and not _belongs_to(message, topic):
        raise Refused(ResponseCode.NO_PERMISSION, "The topic does not match the message")
    return answer_to(request, body=message)


_REPLACED_TOPICS = frozenset({SCHEDULE_TOPIC, TIMER_TOPIC, HALF_TOPIC, CHECK_MAX_TOPIC})
"""Topics whose messages belong to the topic in their REAL_TOPIC."""


def _belongs_to(message: bytes, topic: str) -> bool:
    """Return True if a message belongs to a topic, or is in that light queue. Raises :class:`Refused` for a unit that
    cannot be decoded.
    """
    try:
        unit = decode(message, 0, 0, crc=False)
    except CorruptUnit:
        raise Refused(ResponseCode.SYSTEM_ERROR, "decode message by the offset failed") from None
    own_topic = unit.properties.get(properties.REAL_TOPIC, "") if unit.topic in _REPLACED_TOPICS else unit.topic
    if topic == own_topic:
        return True
    dispatched = unit.properties.get(properties.INNER_MULTI_DISPATCH, "").split(",")
    return topic.startswith(LMQ_PREFIX) and may_have_light_queues(own_topic) and topic in dispatched


def query_message(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """QUERY_MESSAGE: units that the index has for a key, or with ``indexType`` T for tags (since RocketMQ 5.4); the
    client compares the keys again.
    """
    max_messages = MAX_BY_UNIQUE_KEY if header["_UNIQUE_KEY_QUERY"] else int(header["maxNum"])
    if max_messages < 0:
        raise WrongRequest(f"maxNum: expected a number from 0 on, found {max_messages}")
    times = int(header["beginTimestamp"]), int(header["endTimestamp"])
    key = key_text(str(header["key"]), TAG if header["indexType"] == TAG else None)
    broker.store.services.dispatch_now()  # a message whose sender has its answer is found
    with broker.store.query_message(str(header["topic"]), key, max_messages, *times) as result:
        fields = {
            "indexLastUpdateTimestamp": str(result.index_last_update_timestamp),
            "indexLastUpdatePhyoffset": str(result.index_last_update_offset),
        }
        if not result.messages:
            raise Refused(ResponseCode.QUERY_NOT_FOUND, "can not find message, maybe time range not correct", fields)
        return answer_to(request, fields=fields, body=b"".join(result.messages))


def consume_queue(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """QUERY_CONSUME_QUEUE: entries of a queue as they are stored, and a group's subscription to the topic."""
    topic, queue_id, start_offset = str(header["topic"]), int(header["queueId"] or 0), int(header["index"] or 0)
    queue = broker.store.parts.queues.queue(topic, queue_id)
    if queue is None:
        raise Refused(ResponseCode.SYSTEM_ERROR, f"{queue_id}@{topic} is not exist!")
    if not 0 <= start_offset < queue.max_offset:
        return answer_to(request, remark=f"Index {start_offset} of {queue_id}@{topic} is not exist!")
    rows = [
        {"eval": False, "physicOffset": entry.physical_offset, "physicSize": entry.size, "tagsCode": entry.tags_code}
        for entry in entries_of_file(queue, start_offset, max(int(header["count"] or 0), 0)) or ()
    ]
    body: dict[str, object] = {
        "maxQueueIndex": queue.max_offset,
        "minQueueIndex": queue.min_offset,
        "queueData": rows,
    }
    if header["consumerGroup"]:
        subscription = broker.clients.subscription(str(header["consumerGroup"]), topic)
        body["filterData"] = f"{header['consumerGroup']}@{topic} is not online!" if subscription is None else "null"
        body |= {} if subscription is None else {"subscriptionData": subscription.record()}
    return answer_to(request, body=write(body), remark=NOT_SET)


HANDLERS: dict[int, Processor] = {
    RequestCode.QUERY_MESSAGE: query_message,
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: search_offset,
    RequestCode.GET_MAX_OFFSET: max_offset,
    RequestCode.GET_MIN_OFFSET: min_offset,
    RequestCode.GET_EARLIEST_MSG_STORETIME: earliest_time,
    RequestCode.VIEW_MESSAGE_BY_ID: view_message,
    RequestCode.QUERY_CONSUME_QUEUE: consume_queue,
}
