"""What a queue holds, and single messages: by time, by key, by offset (docs/protocol/broker.md#offsets).

Java: ``AdminBrokerProcessor``, ``QueryMessageProcessor``.
"""

from __future__ import annotations

from engine.broker.broker import Broker, Header, Processor
from engine.broker.json_bodies import write
from engine.codec.index_keys import TAG, key_text
from engine.codec.message import decode
from engine.errors import CorruptUnit
from engine.remoting.codes import NOT_SET, Answer, Refused, WrongRequest
from engine.remoting.connection import Connection
from engine.remoting.frame import Command, answer_to
from engine.store.queue_entry import entries_of_file

MOST_BY_UNIQUE_KEY = 32
"""``defaultQueryMaxNum``: how many a query by unique key gives, whatever it asks for."""


def max_offset(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """30: the queue offset behind the last message; 0 for what is not there."""
    found = broker.store.max_offset_in_queue(str(header["topic"]), int(header["queueId"]))
    return answer_to(request, fields={"offset": str(found)})


def min_offset(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """31: the queue offset of the first message."""
    found = broker.store.min_offset_in_queue(str(header["topic"]), int(header["queueId"]))
    return answer_to(request, fields={"offset": str(found)}, remark=None if broker.store.rules.major < 5 else "")


def search_offset(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """29: the queue offset by store time (ms)."""
    boundary = "upper" if str(header["boundaryType"] or "").lower() == "upper" else "lower"
    found = broker.store.offset_in_queue_by_time(
        str(header["topic"]), int(header["queueId"]), int(header["timestamp"]), boundary
    )
    return answer_to(request, fields={"offset": str(found)})


def earliest_time(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """32: store time of a queue's first message (ms), −1 without one."""
    topic, queue_id = str(header["topic"]), int(header["queueId"])
    first = broker.store.min_offset_in_queue(topic, queue_id)
    time = store_time_at(broker, topic, queue_id, first) if first >= 0 else -1
    return answer_to(request, fields={"timestamp": str(time)})


def store_time_at(broker: Broker, topic: str, queue_id: int, offset: int) -> int:
    """Store time (ms) of the message at a queue offset, −1 where none is."""
    if not 0 <= offset < broker.store.max_offset_in_queue(topic, queue_id):
        return -1
    found = broker.store.get_message("", topic, queue_id, offset, 1)
    if found is None:
        return -1
    with found:
        return _store_time(found.messages[0]) if found.messages else -1


def _store_time(message: memoryview) -> int:
    try:
        return decode(message, 0, 0, crc=False).store_timestamp
    except CorruptUnit:
        return -1


def view_message(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """33: the unit that begins at an offset of the log, its bytes as they are stored."""
    offset = int(header["offset"])
    with broker.store.lend_message_by_offset(offset) as found:
        if not found.messages:
            raise Refused(Answer.SYSTEM_ERROR, f"can not find message by the offset, {offset}")
        return answer_to(request, body=bytes(found.messages[0]))


def query_message(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """12: the units that the index knows under a key, or of ``indexType`` T under tags (since RocketMQ 5.4); who asked
    compares the keys again.
    """
    most = MOST_BY_UNIQUE_KEY if header["_UNIQUE_KEY_QUERY"] else int(header["maxNum"])
    if most < 0:
        raise WrongRequest(f"maxNum: expected a number from 0 on, found {most}")
    times = int(header["beginTimestamp"]), int(header["endTimestamp"])
    key = key_text(str(header["key"]), TAG if header["indexType"] == TAG else None)
    with broker.store.query_message(str(header["topic"]), key, most, *times) as found:
        fields = {
            "indexLastUpdateTimestamp": str(found.index_last_update_timestamp),
            "indexLastUpdatePhyoffset": str(found.index_last_update_offset),
        }
        if not found.messages:
            raise Refused(Answer.QUERY_NOT_FOUND, "can not find message, maybe time range not correct", fields)
        return answer_to(request, fields=fields, body=b"".join(found.messages))


def consume_queue(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """321: entries of a queue, as they are stored, and what a group wants of the topic."""
    topic, queue_id, first = str(header["topic"]), int(header["queueId"] or 0), int(header["index"] or 0)
    queue = broker.store.parts.queues.queue(topic, queue_id)
    if queue is None:
        raise Refused(Answer.SYSTEM_ERROR, f"{queue_id}@{topic} is not exist!")
    if not 0 <= first < queue.max_offset:
        return answer_to(request, remark=f"Index {first} of {queue_id}@{topic} is not exist!")
    rows = [
        {"eval": False, "physicOffset": entry.physical_offset, "physicSize": entry.size, "tagsCode": entry.tags_code}
        for entry in entries_of_file(queue, first, max(int(header["count"] or 0), 0)) or ()
    ]
    body: dict[str, object] = {
        "maxQueueIndex": queue.max_offset,
        "minQueueIndex": queue.min_offset,
        "queueData": rows,
    }
    if header["consumerGroup"]:
        wanted = broker.clients.subscription(str(header["consumerGroup"]), topic)
        body["filterData"] = f"{header['consumerGroup']}@{topic} is not online!" if wanted is None else "null"
        body |= {} if wanted is None else {"subscriptionData": wanted.record()}
    return answer_to(request, body=write(body), remark=NOT_SET)


ANSWERS: dict[int, Processor] = {
    12: query_message,
    29: search_offset,
    30: max_offset,
    31: min_offset,
    32: earliest_time,
    33: view_message,
    321: consume_queue,
}
