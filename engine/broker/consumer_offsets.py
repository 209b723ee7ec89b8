"""Offsets of groups and of delay levels: read, written, and reset by administrators (docs/protocol/broker.md#offsets,
#admin, #pull).

A reset offset is kept since 5.x until the group's next pull gets it; before, the broker notifies the group's members.
Java: ``ConsumerManageProcessor``, ``ConsumerOffsetManager`` (its ``resetOffsetTable``),
``AdminBrokerProcessor.resetOffset``, ``Broker2Client.resetOffset``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.broker.admin_topics import queue_key
from engine.broker.json_bodies import write_table
from engine.codec.config_tables import TopicConfig
from engine.remoting.codes import Refused, RequestCode, ResponseCode, invalid
from engine.remoting.connection import Connection
from engine.remoting.frame import ONE_WAY, Command, answer_to
from engine.store.config_tables import DELAY_OFFSETS
from engine.store.get_message import GetMessageStatus

if TYPE_CHECKING:
    from engine.broker.broker import Broker, Header, Processor


class Resets:
    """Table of the offsets that an administrator has set, by group, topic and queue."""

    def __init__(self) -> None:
        self._offsets: dict[tuple[str, str, int], int] = {}

    def set(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """The group's next pull of the queue gets ``offset``."""
        self._offsets[group, topic, queue_id] = offset

    def offset(self, group: str, topic: str, queue_id: int) -> int | None:
        """Return the reset offset that the group has not fetched yet; None if there was no reset. Until it has, its
        commits are ignored.
        """
        return self._offsets.get((group, topic, queue_id))

    def take(self, group: str, topic: str, queue_id: int) -> int | None:
        """Return :meth:`offset`, and forget it."""
        return self._offsets.pop((group, topic, queue_id), None)


def query_offset(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """QUERY_CONSUMER_OFFSET: the offset that a group reads next; 0 for a first start on a queue that still has its
    first message.
    """
    group, topic, queue_id = str(header["consumerGroup"]), str(header["topic"]), int(header["queueId"])
    reset = broker.resets.offset(group, topic, queue_id)
    if reset is not None:
        return answer_to(request, fields={"offset": str(reset)})
    stored = broker.store.tables.consumer_offset(group, topic, queue_id)
    if stored >= 0:
        return answer_to(request, fields={"offset": str(stored)})
    if broker.store.rules.major < 5 and broker.store.max_offset_in_queue(topic, queue_id) <= 0:
        return answer_to(request, fields={"offset": "0"})
    if header["setZeroIfNotFound"] is False and broker.store.rules.major >= 5:
        raise Refused(ResponseCode.QUERY_NOT_FOUND, "Not found, do not set to zero, maybe this group boot first")
    if _has_its_first(broker, group, topic, queue_id):
        return answer_to(request, fields={"offset": "0"})
    raise Refused(ResponseCode.QUERY_NOT_FOUND, "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first")


def _has_its_first(broker: Broker, group: str, topic: str, queue_id: int) -> bool:
    if broker.store.max_offset_in_queue(topic, queue_id) <= 0:
        return False
    result = broker.store.get_message(group, topic, queue_id, 0, 1)
    if result is None:
        return False
    with result:
        return result.status is GetMessageStatus.FOUND


def update_offset(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """UPDATE_CONSUMER_OFFSET: commit the offset that a group reads next. Raises :class:`Refused` if the group or the
    topic is not declared.
    """
    since_5, topic = broker.store.rules.major >= 5, str(header["topic"])
    group = "null" if header["consumerGroup"] is None else str(header["consumerGroup"])
    if since_5 and not broker.topics.is_group(group):
        raise Refused(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"Group {group} not exist!")
    if since_5 and broker.topics.get(topic) is None:
        raise Refused(ResponseCode.TOPIC_NOT_EXIST, f"Topic {topic} not exist!")
    for label, name in (("QueueId", "queueId"), ("Offset", "commitOffset")):
        if header[name] is None:
            raise Refused(invalid(broker.store.release), f"{label} is null, topic is {topic}")
    queue_id = int(header["queueId"])
    if broker.resets.offset(group, topic, queue_id) is not None:
        return answer_to(request, remark="Offset has been previously reset")
    broker.store.tables.commit_consumer_offset(group, topic, queue_id, int(header["commitOffset"]))
    return answer_to(request)


def all_offsets(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """GET_ALL_CONSUMER_OFFSET: the table of offsets, as its file has it."""
    tables = broker.store.tables
    return answer_to(request, body=tables.text(tables.offsets_file).encode())


def delay_offsets(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """GET_ALL_DELAY_OFFSET: the offset of each delay level, as its file has it."""
    return answer_to(request, body=broker.store.tables.text(DELAY_OFFSETS).encode())


_FIRST_VERSION = 61
"""First client version that takes a reset (3.0.7)."""


def reset_offsets(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """INVOKE_BROKER_TO_RESET_OFFSET: reset offsets, and return the new ones by queue. Raises :class:`Refused` in
    RocketMQ's order.
    """
    name, group = str(header["topic"]), "null" if header["group"] is None else str(header["group"])
    topic = broker.topics.get(name)
    broker.store.services.dispatch_now()  # messages whose senders have their answers count
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


HANDLERS: dict[int, Processor] = {
    RequestCode.QUERY_CONSUMER_OFFSET: query_offset,
    RequestCode.UPDATE_CONSUMER_OFFSET: update_offset,
    RequestCode.GET_ALL_CONSUMER_OFFSET: all_offsets,
    RequestCode.GET_ALL_DELAY_OFFSET: delay_offsets,
    RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: reset_offsets,
}
