"""INVOKE_BROKER_TO_RESET_OFFSET: an administrator sets the offset that a group reads next
(docs/protocol/broker.md#admin).

Since 5.x the broker remembers it until the group pulls; before, it notifies the group's members. Java:
``AdminBrokerProcessor.resetOffset``, ``Broker2Client.resetOffset``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.broker.admin_topics import queue_key
from engine.broker.json_bodies import write_table
from engine.codec.config_tables import TopicConfig
from engine.remoting.codes import Refused, RequestCode, ResponseCode
from engine.remoting.connection import Connection
from engine.remoting.frame import ONE_WAY, Command, answer_to

if TYPE_CHECKING:
    from engine.broker.broker import Broker, Header, Processor


_FIRST_VERSION = 61
"""First client version that takes a reset (3.0.7)."""


def reset_offsets(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """INVOKE_BROKER_TO_RESET_OFFSET: reset offsets, and return the new ones by queue. Raises :class:`Refused` in
    RocketMQ's order.
    """
    name, group = str(header["topic"]), "null" if header["group"] is None else str(header["group"])
    topic = broker.topics.get(name)
    if broker.store.rules.major < 5:
        return _by_members(broker, request, header, topic)
    if topic is None:
        raise Refused(ResponseCode.TOPIC_NOT_EXIST, f"Topic {name} does not exist")
    if not broker.topics.is_group(group):
        raise Refused(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"Group {group} does not exist")
    queue_id = -1 if header["queueId"] is None else int(header["queueId"])
    queues = [queue_id] if queue_id >= 0 else range(topic.read_queue_nums)
    offset = None if header["offset"] in (None, -1) or queue_id < 0 else int(header["offset"])
    if offset is not None:
        _in_range(broker, name, queue_id, offset)
    offsets = {
        reset_queue: _at_time(broker, name, reset_queue, int(header["timestamp"] or 0)) if offset is None else offset
        for reset_queue in queues
    }
    for reset_queue, new_offset in offsets.items():
        if new_offset >= 0:
            broker.resets.set(group, name, reset_queue, new_offset)
            broker.store.tables.commit_consumer_offset(group, name, reset_queue, new_offset)
    return answer_to(request, body=_body(broker, name, offsets))


def _in_range(broker: Broker, topic: str, queue_id: int, offset: int) -> None:
    min_offset, end = (
        broker.store.min_offset_in_queue(topic, queue_id),
        broker.store.max_offset_in_queue(topic, queue_id),
    )
    if 0 <= min_offset > offset or offset > end + 1:
        raise Refused(
            ResponseCode.SYSTEM_ERROR, f"Target offset {offset} not in consume queue range [{min_offset}-{end}]"
        )


def _at_time(broker: Broker, topic: str, queue_id: int, timestamp: int) -> int:
    """Return the queue offset at a store time; the queue's end for a time below 0."""
    if timestamp < 0:
        return broker.store.max_offset_in_queue(topic, queue_id)
    return broker.store.offset_in_queue_by_time(topic, queue_id, timestamp)


def _body(broker: Broker, topic: str, offsets: dict[int, int]) -> bytes:
    return write_table(
        "offsetTable", [(queue_key(broker, topic, queue_id), offset) for queue_id, offset in offsets.items()], {}
    )


def _by_members(broker: Broker, request: Command, header: Header, topic: TopicConfig | None) -> Command:
    """Reset as 4.9 does: each member sets its offsets; without ``isForce`` no group is moved forward."""
    name, timestamp = str(header["topic"]), int(header["timestamp"] or 0)
    group = "null" if header["group"] is None else str(header["group"])
    if topic is None:
        raise Refused(
            ResponseCode.SYSTEM_ERROR, f"[reset-offset] reset offset failed, no topic in this broker. topic={name}"
        )
    offsets = {}
    for queue_id in range(topic.write_queue_nums):
        committed = broker.store.tables.consumer_offset(group, name, queue_id)
        if committed == -1:
            raise Refused(ResponseCode.SYSTEM_ERROR, f"THe consumer group <{group}> not exist")
        new_offset = max(_at_time(broker, name, queue_id, timestamp), 0)
        offsets[queue_id] = new_offset if header["isForce"] or new_offset < committed else committed
    body = _body(broker, name, offsets)
    consuming = broker.clients.consumers.get(group)
    if consuming is None:
        words = f"Consumer not online, so can not reset offset, Group: {group} Topic: {name} Timestamp: {timestamp}"
        raise Refused(ResponseCode.CONSUMER_NOT_ONLINE, words)
    fields = {"topic": name, "group": group, "timestamp": str(timestamp)}
    for connection, member in list(consuming.members.items()):
        if member.version < _FIRST_VERSION:
            words = f"the client does not support this feature. version={member.version}"
            raise Refused(ResponseCode.SYSTEM_ERROR, words)
        connection.send(Command(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, fields, body=body, flag=ONE_WAY))
    return answer_to(request, body=body)


ANSWERS: dict[int, Processor] = {RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: reset_offsets}
