"""RECALL_MESSAGE: recall of a timer message that is not due yet (docs/protocol/broker.md#recall;
docs/formats/delays.md#timer-messages, #timer-service).

The sender of a timer message gets a handle. Recalling puts a message with the same delivery time that deletes it.
Java: ``RecallMessageProcessor``, ``RecallMessageHandle``.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING

from engine.broker.stats import TIMERS
from engine.broker.topics import WRITE
from engine.codec import properties
from engine.codec.encode import Message, encode_properties
from engine.remoting.codes import NOT_SET, Refused, RequestCode, ResponseCode
from engine.remoting.connection import Connection
from engine.remoting.frame import Command, answer_to
from engine.store.put_message import PutMessageResult
from engine.system_names import RETRY_PREFIX

if TYPE_CHECKING:
    from engine.broker.broker import Broker, Header, Processor


_VERSION = "v1"
_RECALL_TAG = "_RECALL_TAG_"
_FIELDS = 5


def handle_of(broker: Broker, sent_properties: dict[str, str], result: PutMessageResult) -> str | None:
    """Return the handle with which the sender of a stored message can recall it; None if it is no timer message.
    ``sent_properties`` are the properties that it sent.
    """
    if broker.store.rules.major < 5 or result.append is None or TIMERS.isdisjoint(sent_properties):
        return None
    unit = broker.store.look_message_by_offset(result.append.physical_offset)
    if unit is None:
        return None
    due, topic = unit.properties.get(properties.TIMER_OUT_MS), unit.properties.get(properties.REAL_TOPIC, "")
    if due is None or not topic or topic.startswith(RETRY_PREFIX):
        return None
    # one ms more: a time on a slot's border is moved to the slot before it
    fields = _VERSION, topic, broker.config.broker_name, str(int(due) + 1), unit.unique_key or ""
    return base64.urlsafe_b64encode(" ".join(fields).encode()).decode()


def recall(broker: Broker, request: Command, header: Header, connection: Connection) -> Command:
    """RECALL_MESSAGE: recall a timer message. Each answer names the region: clients begin their trace of a recall with
    it.
    """
    region = {"MSG_REGION": broker.config.region_id}
    try:
        key = _recalled(broker, header, connection)
    except Refused as error:
        raise Refused(error.code, str(error), {**region, **error.fields}) from error
    return answer_to(request, fields={**region, "msgId": key}, remark=NOT_SET)


def _recalled(broker: Broker, header: Header, connection: Connection) -> str:
    """Recall a message, and return its unique key. Raises :class:`Refused` in RocketMQ's order."""
    config, topic = broker.config, "null" if header["topic"] is None else str(header["topic"])
    if not config.recall_message:
        raise Refused(ResponseCode.NO_PERMISSION, "recall failed, operation is forbidden")
    if broker.now() < config.accept_sends_from or not config.permission & WRITE:
        raise Refused(ResponseCode.SERVICE_NOT_AVAILABLE, "recall failed, broker service not available")
    if broker.topics.get(topic) is None:
        raise Refused(ResponseCode.TOPIC_NOT_EXIST, f"recall failed, the topic[{topic}] not exist")
    named, broker_name, time, key = _read(str(header["recallHandle"] or ""))
    if named != topic:
        raise Refused(ResponseCode.ILLEGAL_OPERATION, "recall failed, topic not match")
    if broker_name != config.broker_name:
        raise Refused(ResponseCode.ILLEGAL_OPERATION, "recall failed, broker service not available")
    remaining_ms = int(time) - broker.now() if time.isascii() and time.isdigit() else 0
    if not 0 < remaining_ms < broker.store.config.timer_max_delay_sec * 1000:
        raise Refused(ResponseCode.ILLEGAL_OPERATION, "recall failed, timestamp invalid")
    result = broker.store.put_message(_deleting(broker, header, connection, time, key))
    if result.append is None:
        raise Refused(ResponseCode.SYSTEM_ERROR, "execute recall failed")
    broker.dispatched()
    return key


def _read(handle: str) -> tuple[str, str, str, str]:
    """Parse a handle into topic, broker, delivery time and unique key."""
    try:
        fields = base64.b64decode(handle, altchars=b"-_", validate=True).decode().split(" ")
    except (binascii.Error, ValueError):
        fields = []
    if len(fields) != _FIELDS or fields[0] != _VERSION:
        raise Refused(ResponseCode.ILLEGAL_OPERATION, "recall handle is invalid")
    _, topic, broker_name, time, key = fields
    return topic, broker_name, time, key


def _deleting(broker: Broker, header: Header, connection: Connection, time: str, key: str) -> Message:
    topic = str(header["topic"])
    message_properties = {
        properties.TIMER_DEL_UNIQUE_KEY: f"{topic}+{key}",
        properties.UNIQUE_KEY: key,
        properties.TAGS: _RECALL_TAG,
        properties.TIMER_DELIVER_MS: time,
        "BORN_TIMESTAMP": str(broker.now()),
        "TRACE_CONTEXT": "",
        properties.PRODUCER_GROUP: str(header["producerGroup"] or ""),
    }
    return Message(
        topic,
        b"0",
        0,
        message_properties,
        encode_properties(message_properties),
        born_timestamp=broker.now(),
        born_host=connection.peer,
    )


HANDLERS: dict[int, Processor] = {
    RequestCode.RECALL_MESSAGE: recall,
}
