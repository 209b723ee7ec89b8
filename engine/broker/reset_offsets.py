"""INVOKE_BROKER_TO_RESET_OFFSET: an administrator says what a group reads next (docs/protocol/broker.md#admin).

Since 5.x the broker remembers it until the group pulls; before, its members are told. Java:
``AdminBrokerProcessor.resetOffset``, ``Broker2Client.resetOffset``.
"""

from __future__ import annotations

from engine.broker.admin_topics import queue_key
from engine.broker.broker import Broker, Header, Processor
from engine.broker.json_bodies import write_table
from engine.codec.config_tables import TopicConfig
from engine.remoting.codes import Answer, Refused
from engine.remoting.connection import Connection
from engine.remoting.frame import ONE_WAY, Command, answer_to

RESET_CONSUMER_CLIENT_OFFSET = 220
_FIRST_VERSION = 61
"""Of clients that can be told (3.0.7)."""


def reset_offsets(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """222: the offsets that hold now, by queue. Raises :class:`Refused` in RocketMQ's order."""
    name, group = str(header["topic"]), "null" if header["group"] is None else str(header["group"])
    topic = broker.topics.get(name)
    if broker.store.rules.major < 5:
        return _by_members(broker, request, header, topic)
    if topic is None:
        raise Refused(Answer.TOPIC_NOT_EXIST, f"Topic {name} does not exist")
    if not broker.topics.is_group(group):
        raise Refused(Answer.SUBSCRIPTION_GROUP_NOT_EXIST, f"Group {group} does not exist")
    queue_id = -1 if header["queueId"] is None else int(header["queueId"])
    queues = [queue_id] if queue_id >= 0 else range(topic.read_queue_nums)
    offset = None if header["offset"] in (None, -1) or queue_id < 0 else int(header["offset"])
    if offset is not None:
        _in_range(broker, name, queue_id, offset)
    found = {
        one: _at_time(broker, name, one, int(header["timestamp"] or 0)) if offset is None else offset for one in queues
    }
    for one, at in found.items():
        if at >= 0:
            broker.resets.set(group, name, one, at)
            broker.store.tables.commit_consumer_offset(group, name, one, at)
    return answer_to(request, body=_body(broker, name, found))


def _in_range(broker: Broker, topic: str, queue_id: int, offset: int) -> None:
    least, end = broker.store.min_offset_in_queue(topic, queue_id), broker.store.max_offset_in_queue(topic, queue_id)
    if 0 <= least > offset or offset > end + 1:
        raise Refused(Answer.SYSTEM_ERROR, f"Target offset {offset} not in consume queue range [{least}-{end}]")


def _at_time(broker: Broker, topic: str, queue_id: int, timestamp: int) -> int:
    """The queue offset at a store time; the queue's end for a time below 0."""
    if timestamp < 0:
        return broker.store.max_offset_in_queue(topic, queue_id)
    return broker.store.offset_in_queue_by_time(topic, queue_id, timestamp)


def _body(broker: Broker, topic: str, found: dict[int, int]) -> bytes:
    return write_table("offsetTable", [(queue_key(broker, topic, one), at) for one, at in found.items()], {})


def _by_members(broker: Broker, request: Command, header: Header, topic: TopicConfig | None) -> Command:
    """As 4.9 does: each member sets it; without ``isForce`` no group is set forward."""
    name, timestamp = str(header["topic"]), int(header["timestamp"] or 0)
    group = "null" if header["group"] is None else str(header["group"])
    if topic is None:
        raise Refused(Answer.SYSTEM_ERROR, f"[reset-offset] reset offset failed, no topic in this broker. topic={name}")
    found = {}
    for queue_id in range(topic.write_queue_nums):
        known = broker.store.tables.consumer_offset(group, name, queue_id)
        if known == -1:
            raise Refused(Answer.SYSTEM_ERROR, f"THe consumer group <{group}> not exist")
        at = max(_at_time(broker, name, queue_id, timestamp), 0)
        found[queue_id] = at if header["isForce"] or at < known else known
    body = _body(broker, name, found)
    consuming = broker.clients.consumers.get(group)
    if consuming is None:
        words = f"Consumer not online, so can not reset offset, Group: {group} Topic: {name} Timestamp: {timestamp}"
        raise Refused(Answer.CONSUMER_NOT_ONLINE, words)
    fields = {"topic": name, "group": group, "timestamp": str(timestamp)}
    for connection, member in list(consuming.members.items()):
        if member.version < _FIRST_VERSION:
            words = f"the client does not support this feature. version={member.version}"
            raise Refused(Answer.SYSTEM_ERROR, words)
        connection.send(Command(RESET_CONSUMER_CLIENT_OFFSET, fields, body=body, flag=ONE_WAY))
    return answer_to(request, body=body)


ANSWERS: dict[int, Processor] = {222: reset_offsets}
