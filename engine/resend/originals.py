"""Restore a stored message as its producer sent it: its topic, and its properties without those of brokers.

A retry, a dead letter, a delayed message and a half message are copies that a broker stored in another topic; their
properties name the original topic (docs/formats/delays.md, docs/formats/transactions.md). Pure.

Neither mqadmin nor RocketMQ's dashboard stores a dead letter again: the dashboard hands it to one running consumer,
with its message id. A Java consumer that sends a message back by itself keeps the unique key. So it is kept here, too:
consumers that know the id of a message recognise it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from engine.codec import batch
from engine.codec import properties as props
from engine.codec.compression import unpack
from engine.codec.filler import LOST
from engine.codec.message import COMPRESSED, COMPRESSION_MASK, INNER_BATCH, MULTI_TAGS, Unit
from engine.codec.pop import normal_topic
from engine.sentences import sentence
from engine.system_names import (
    CHECK_MAX_TOPIC,
    DLQ_PREFIX,
    HALF_TOPIC,
    RETRY_PREFIX,
    ROCKSDB_HALF_TOPIC,
    SCHEDULE_TOPIC,
    TIMER_TOPIC,
    is_system_topic,
)

HALF_TOPICS = frozenset({HALF_TOPIC, ROCKSDB_HALF_TOPIC, CHECK_MAX_TOPIC})
DELAY_TOPICS = frozenset({SCHEDULE_TOPIC, TIMER_TOPIC})
DEAD_LETTER, RETRY, HALF, DELAYED, ORDINARY = "deadLetter", "retry", "half", "delayed", "ordinary"
"""Kinds of stored messages."""
_DLQ_ORIGIN_TOPIC = "DLQ_ORIGIN_TOPIC"
BROKER_PROPERTIES = frozenset(
    {
        props.WAIT,
        props.DELAY,
        props.RETRY_TOPIC,
        props.REAL_TOPIC,
        props.REAL_QUEUE_ID,
        props.TRANSACTION_PREPARED,
        props.PRODUCER_GROUP,
        props.TRANSACTION_ID,
        props.TRANSACTION_OFFSET,
        props.CHECK_IMMUNITY_SECONDS,
        props.TRANSACTION_CHECK_TIMES,
        props.INNER_NUM,
        props.INNER_BASE,
        props.INNER_MULTI_DISPATCH,
        props.INNER_MULTI_QUEUE_OFFSET,
        props.TIMER_DELAY_SEC,
        props.TIMER_DELAY_MS,
        props.TIMER_DELIVER_MS,
        props.TIMER_OUT_MS,
        props.TIMER_ENQUEUE_MS,
        props.TIMER_DEQUEUE_MS,
        props.TIMER_ROLL_TIMES,
        props.TIMER_DEL_UNIQUE_KEY,
        props.FIRST_POP_TIME,
        props.ORIGIN_GROUP,
        props.CRC32,
        _DLQ_ORIGIN_TOPIC,
        "DLQ_ORIGIN_MESSAGE_ID",
        "MIN_OFFSET",
        "MAX_OFFSET",
        "RECONSUME_TIME",
        "MAX_RECONSUME_TIMES",
        "CONSUME_START_TIME",
        "TRAN_PREPARED_QUEUE_OFFSET",
        "POP_CK",
        "POP_CK_OFFSET",
        "DUP_INFO",
        "MSG_REGION",
        "TRACE_ON",
        "CLUSTER",
        "EXTEND_UNIQ_INFO",
    }
)
"""Properties that a broker or a consumer's client sets, or that would delay the message or make it a half message."""
_KEPT_FLAGS = COMPRESSED | COMPRESSION_MASK | MULTI_TAGS


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message of a unit: the unit itself, or ``member`` of the inner batch in it."""

    unit: Unit
    member: int | None
    body: bytes
    properties: dict[str, str]
    flag: int
    sys_flag: int

    @property
    def unique_key(self) -> str | None:
        return self.properties.get(props.UNIQUE_KEY)


def messages_of(unit: Unit) -> Iterator[StoredMessage]:
    """Yield the messages of a unit; those of an inner batch one by one, up to the first that is damaged."""
    if not unit.sys_flag & INNER_BATCH:
        yield StoredMessage(unit, None, unit.body, unit.properties, unit.flag, unit.sys_flag & _KEPT_FLAGS)
        return
    for member in batch.walk(unpack(unit.body, unit.sys_flag).data):
        if isinstance(member, batch.MemberDamage):
            return
        yield StoredMessage(unit, member.index, member.body, member.properties, member.flag, 0)


def kind_of(topic: str) -> str:
    """Return the kind of the messages of a topic."""
    if topic.startswith(DLQ_PREFIX):
        return DEAD_LETTER
    if topic.startswith(RETRY_PREFIX):
        return RETRY
    if topic in HALF_TOPICS:
        return HALF
    return DELAYED if topic in DELAY_TOPICS else ORDINARY


def original_topic(topic: str, properties: dict[str, str]) -> str | None:
    """Return the topic to which a stored message was sent; None if its properties do not name it."""
    original: str | None = topic
    if topic in HALF_TOPICS or topic in DELAY_TOPICS:
        original = properties.get(props.REAL_TOPIC)
    group = properties.get(props.ORIGIN_GROUP)
    if original is not None and original.startswith(DLQ_PREFIX):
        group = original.removeprefix(DLQ_PREFIX)
        original = properties.get(props.RETRY_TOPIC) or properties.get(_DLQ_ORIGIN_TOPIC)
    if original is not None and original.startswith(RETRY_PREFIX):
        stated = properties.get(props.RETRY_TOPIC, RETRY_PREFIX)
        original = stated if not stated.startswith(RETRY_PREFIX) else _popped_topic(original, group)
    if original is None or is_system_topic(original) or original.startswith(DLQ_PREFIX):
        return None
    return original


def _popped_topic(retry_topic: str, group: str | None) -> str | None:
    """Return the topic in the name of a popping group's retry topic (docs/protocol/pop.md)."""
    if group and retry_topic.startswith((f"{RETRY_PREFIX}{group}_", f"{RETRY_PREFIX}{group}+")):
        return normal_topic(retry_topic, group) or None
    return retry_topic.partition("+")[2] or None


def why_not_sent(message: StoredMessage) -> str | None:
    """Return why a message cannot be sent to any topic; None if it can."""
    unit = message.unit
    carries_others = unit.topic in HALF_TOPICS or unit.topic in DELAY_TOPICS
    topic = message.properties.get(props.REAL_TOPIC, "") if carries_others else unit.topic
    if is_system_topic(topic):
        return sentence("{topic} has RocketMQ's own records, no messages of a producer", topic=topic)
    if props.TIMER_DEL_UNIQUE_KEY in message.properties:
        return sentence("it deletes another timer message")
    if LOST in unit.properties:
        return sentence("a repair wrote it in place of a lost message")
    if unit.crc == "bad":
        return sentence("its body does not match its CRC")
    if not message.body:
        return sentence("its body is empty, and no broker accepts that")
    return None


def properties_to_send(message: StoredMessage, topic: str, unique_key: str) -> dict[str, str]:
    """Return the properties with which a message is sent to ``topic``: the producer's own ones and its unique key.

    ORIGIN_MESSAGE_ID names the stored message if a broker has not set it before. A retry topic needs RETRY_TOPIC: a
    consumer hands the message out under that name.
    """
    properties = {name: value for name, value in message.properties.items() if name not in BROKER_PROPERTIES}
    properties[props.UNIQUE_KEY] = unique_key
    properties[props.WAIT] = "true"
    properties.setdefault(props.ORIGIN_MESSAGE_ID, message.unit.offset_msg_id)
    if topic.startswith(RETRY_PREFIX) and (original := original_topic(message.unit.topic, message.properties)):
        properties[props.RETRY_TOPIC] = original
    return properties
