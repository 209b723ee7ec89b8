"""Offsets of groups and of delay levels: requests 14, 15, 43, 45 (docs/protocol/broker.md#offsets, #admin).

Java: ``ConsumerManageProcessor``, ``AdminBrokerProcessor``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.remoting.codes import Refused, RequestCode, ResponseCode, invalid
from engine.remoting.connection import Connection
from engine.remoting.frame import Command, answer_to
from engine.store.config_tables import DELAY_OFFSETS
from engine.store.get_message import GetMessageStatus

if TYPE_CHECKING:
    from engine.broker.broker import Broker, Header, Processor


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


ANSWERS: dict[int, Processor] = {
    RequestCode.QUERY_CONSUMER_OFFSET: query_offset,
    RequestCode.UPDATE_CONSUMER_OFFSET: update_offset,
    RequestCode.GET_ALL_CONSUMER_OFFSET: all_offsets,
    RequestCode.GET_ALL_DELAY_OFFSET: delay_offsets,
}
