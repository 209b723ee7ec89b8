"""CONSUMER_SEND_MSG_BACK: a message that a consumer could not consume comes again later, or becomes a dead letter
(docs/protocol/broker.md#send-back; docs/formats/transactions.md#retry).
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from engine.broker.topics import READ, WRITE
from engine.codec import properties
from engine.codec.config_tables import SubscriptionGroup
from engine.codec.encode import Message
from engine.codec.message import Unit
from engine.remoting.codes import Refused, RequestCode, ResponseCode, see
from engine.remoting.connection import Connection
from engine.remoting.frame import Command, answer_to
from engine.system_names import DLQ_PREFIX, RETRY_PREFIX

if TYPE_CHECKING:
    from engine.broker.broker import Broker, Header, Processor


FIRST_RETRY_LEVEL = 3
MAX_RECONSUME_SINCE = 121
"""Version of a client (3.4.9) from which ``maxReconsumeTimes`` counts."""
_UNIT_RETRY = 2
"""Bit of a topic's sysFlag: its messages come back to a unit."""


def send_back(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """CONSUMER_SEND_MSG_BACK: put the message at an offset of the log again. Raises :class:`Refused` in RocketMQ's
    order.
    """
    config, group_name = broker.config, str(header["group"])
    group = broker.topics.group(group_name)
    if group is None:
        words = f"subscription group not exist, {group_name} {see(broker.store.release)}"
        raise Refused(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, words)
    if not config.permission & WRITE:
        raise Refused(ResponseCode.NO_PERMISSION, f"the broker[{config.broker_ip}] sending message is forbidden")
    if group.retry_queue_nums <= 0:
        return answer_to(request)
    retry = RETRY_PREFIX + group_name
    topic = broker.topics.create_plain(
        retry, group.retry_queue_nums, READ | WRITE, _UNIT_RETRY if header["unitMode"] else 0
    )
    if not topic.perm & WRITE:
        raise Refused(ResponseCode.NO_PERMISSION, f"the topic[{retry}] sending message is forbidden")
    unit = _looked_up(broker, header)
    level, retry_limit = int(header["delayLevel"]), max_retries(request, header, group)
    if unit.reconsume_times >= retry_limit or level < 0:
        broker.stats.dead[group_name, str(header["originTopic"] or "")] += 1
        dead = broker.topics.create_plain(DLQ_PREFIX + group_name, 1)
        message = copy_for_retry(unit, dead.name, 0, 0)
    else:
        level = level or FIRST_RETRY_LEVEL + unit.reconsume_times
        message = copy_for_retry(unit, retry, random.randrange(group.retry_queue_nums), level)
    result = broker.store.put_message(message)
    if not result.ok:
        raise Refused(ResponseCode.SYSTEM_ERROR, result.status.value)
    broker.stats.sent_back[group_name, unit.properties.get(properties.RETRY_TOPIC) or unit.topic] += 1
    broker.dispatched()
    return answer_to(request)


def max_retries(request: Command, header: Header, group: SubscriptionGroup) -> int:
    """Return how often a group retries a message before it becomes a dead letter."""
    if request.version >= MAX_RECONSUME_SINCE and header["maxReconsumeTimes"] is not None:
        return int(header["maxReconsumeTimes"])
    return group.retry_max_times


def _looked_up(broker: Broker, header: Header) -> Unit:
    offset = int(header["offset"])
    unit = broker.store.look_message_by_offset(offset)
    if unit is None:
        raise Refused(ResponseCode.SYSTEM_ERROR, f"look message by offset failed, {offset}")
    return unit


def copy_for_retry(unit: Unit, topic: str, queue_id: int, level: int) -> Message:
    """Return a stored message as it is put again, for a topic, at a delay level (0: at once)."""
    unit_properties = unit.properties
    unit_properties.setdefault(properties.RETRY_TOPIC, unit.topic)
    unit_properties[properties.WAIT] = "false"
    unit_properties[properties.DELAY] = str(level)
    if not unit_properties.get(properties.ORIGIN_MESSAGE_ID, "").strip():
        unit_properties[properties.ORIGIN_MESSAGE_ID] = unit.offset_msg_id
    return Message(
        topic,
        unit.body,
        queue_id,
        unit_properties,
        flag=unit.flag,
        sys_flag=unit.sys_flag,
        born_timestamp=unit.born_timestamp,
        born_host=unit.born_host,
        reconsume_times=unit.reconsume_times + 1,
    )


ANSWERS: dict[int, Processor] = {RequestCode.CONSUMER_SEND_MSG_BACK: send_back}
