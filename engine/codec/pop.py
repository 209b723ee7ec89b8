"""Pop consumption: records of the revive topic, handles, names of retry topics, the three texts of a pop response
(docs/protocol/pop.md#response-texts, #handle; docs/formats/transactions.md#pop). Pure.

Java: ``PopCheckPoint``, ``AckMsg``, ``BatchAckMsg``, ``ExtraInfoUtil``, ``KeyBuilder``, ``PopAckConstants``.

"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.system_names import RETRY_PREFIX, REVIVE_PREFIX

CHECK_POINT_TAG, ACK_TAG, BATCH_ACK_TAG = "ck", "ack", "bAck"
ORDERLY = 999
"""The revive queue that a handle of an orderly pop names."""
NORMAL, RETRY_TOPIC, RETRY_TOPIC_V2 = "0", "1", "2"
"""Marks of topics: the normal one, its retry topics of either form."""
MAX_POP_MESSAGES = 32
"""Maximum messages of one pop and of one checkpoint: its bit map has as many bits."""


def revive_topic(cluster: str) -> str:
    """Return the topic that holds checkpoints and acknowledgements; the broker's cluster is in its name."""
    return REVIVE_PREFIX + cluster


def retry_topic(topic: str, group: str, *, v2: bool = False) -> str:
    """Return the topic in which a group's messages of ``topic`` are retried."""
    return f"{RETRY_PREFIX}{group}{'+' if v2 else '_'}{topic}"


def is_retry_v2(topic: str) -> bool:
    """Return True for the name of a retry topic of the second form, which separates topic and group unambiguously."""
    return topic.startswith(RETRY_PREFIX) and "+" in topic


def normal_topic(topic: str, group: str) -> str:
    """Return the original topic of ``topic``, a retry topic of ``group``; any other topic is its own."""
    if not topic.startswith(RETRY_PREFIX):
        return topic
    prefix = f"{RETRY_PREFIX}{group}+"
    return topic[len(prefix) :]  # both forms have one character behind the group's name


def mark_of(topic: str) -> str:
    """Return the mark that stands for the kind of a topic in texts and handles."""
    if is_retry_v2(topic):
        return RETRY_TOPIC_V2
    return RETRY_TOPIC if topic.startswith(RETRY_PREFIX) else NORMAL


def real_topic(topic: str, group: str, mark: str) -> str:
    """Return the topic that ``mark`` makes of a normal one. Raises ``ValueError`` for an unknown mark."""
    if mark == NORMAL:
        return topic
    if mark not in {RETRY_TOPIC, RETRY_TOPIC_V2}:
        raise ValueError("getRetry fail, format is wrong")
    return retry_topic(topic, group, v2=mark == RETRY_TOPIC_V2)


@dataclass(frozen=True, slots=True)
class Handle:
    """The handle with which a client acknowledges a popped message (``extraInfo``, property ``POP_CK``); times are
    ms.
    """

    start_offset: int
    pop_time: int
    invisible_time: int
    revive_queue: int
    mark: str
    broker_name: str

    @classmethod
    def parse(cls, text: str) -> Handle:
        """Read the first six fields; the others (queue, offset, a proxy's ninth) are known from elsewhere.

        Raises ``ValueError`` with Java's message.

        """
        fields = text.split(" ")
        if len(fields) < 6:
            raise ValueError(f"getBrokerName fail, extraInfoStrs length {len(fields)}")
        try:
            start, pop_time, invisible_time, revive_queue = (int(word) for word in fields[:4])
        except ValueError:
            invalid_word = next(word for word in fields[:4] if not word.removeprefix("-").isdecimal())
            raise ValueError(f'For input string: "{invalid_word}"') from None
        return cls(start, pop_time, invisible_time, revive_queue, fields[4], fields[5])

    @property
    def due(self) -> int:
        """The time at which the message is visible again (ms)."""
        return self.pop_time + self.invisible_time

    @property
    def is_orderly(self) -> bool:
        return self.revive_queue == ORDERLY

    def of_message(self, queue_id: int, queue_offset: int) -> str:
        """Return the complete text for one message."""
        return (
            f"{self.start_offset} {self.pop_time} {self.invisible_time} {self.revive_queue} {self.mark} "
            f"{self.broker_name} {queue_id} {queue_offset}"
        )


def entries(rows: Iterable[tuple[str, object, object]]) -> str:
    """Return one of the texts: entries of three fields with ``;`` between."""
    return ";".join(f"{mark} {queue} {value}" for mark, queue, value in rows)


@dataclass(frozen=True, slots=True)
class CheckPoint:
    """The messages of one queue that one pop delivered. ``differences`` are their offsets minus ``start_offset``.

    ``revive_offset`` is its offset in the revive queue, once it is read from there. ``rewrite_count`` counts how
    often it was written again because a message could not be revived. Times are ms.

    """

    topic: str
    group: str
    queue_id: int
    start_offset: int
    pop_time: int
    invisible_time: int
    broker_name: str
    differences: tuple[int, ...]
    count: int = -1
    """How many messages; −1: as many as there are differences."""
    rewrite_count: int | None = None
    revive_offset: int = 0

    @property
    def due(self) -> int:
        """The time at which its messages are visible again (ms; Java: ``reviveTime``)."""
        return self.pop_time + self.invisible_time

    @property
    def offsets(self) -> tuple[int, ...]:
        """Queue offsets of its messages. In the oldest form, without differences, they are consecutive."""
        differences = self.differences or range(max(self.count, 0))
        return tuple(self.start_offset + difference for difference in differences)

    @property
    def merge_key(self) -> str:
        """The key under which an acknowledgement finds it."""
        return _merge_key(self.topic, self.group, self.queue_id, self.start_offset, self.pop_time, self.broker_name)

    @property
    def unique_key(self) -> str:
        """``UNIQ_KEY`` of its message."""
        return _unique_key(
            self.topic, self.queue_id, self.start_offset, self.group, self.pop_time, self.broker_name, CHECK_POINT_TAG
        )

    def body(self) -> bytes:
        """Return its body in the revive topic."""
        fields: dict[str, Any] = {
            "bm": 0,
            "bn": self.broker_name,
            "c": self.group,
            "d": list(self.differences),
            "it": self.invisible_time,
            "n": len(self.differences),
            "pt": self.pop_time,
            "q": self.queue_id,
            "reviveTime": self.due,
            "ro": 0,
        }
        if self.rewrite_count is not None:
            fields["rp"] = str(self.rewrite_count)
        return _json({**fields, "so": self.start_offset, "t": self.topic})


@dataclass(frozen=True, slots=True)
class Ack:
    """An acknowledgement of messages of one checkpoint: the one at ``offset``, or those of ``offsets`` (a batch's)."""

    topic: str
    group: str
    queue_id: int
    start_offset: int
    pop_time: int
    broker_name: str
    offset: int = -1
    offsets: tuple[int, ...] | None = None

    @property
    def tag(self) -> str:
        return ACK_TAG if self.offsets is None else BATCH_ACK_TAG

    @property
    def all_offsets(self) -> tuple[int, ...]:
        return (self.offset,) if self.offsets is None else self.offsets

    @property
    def merge_key(self) -> str:
        """The key of its checkpoint."""
        return _merge_key(self.topic, self.group, self.queue_id, self.start_offset, self.pop_time, self.broker_name)

    @property
    def unique_key(self) -> str:
        """``UNIQ_KEY`` of its message. A batch has the key of a single one with offset −1 (as 5.3.3 writes it)."""
        return _unique_key(self.topic, self.queue_id, self.offset, self.group, self.pop_time, self.broker_name, ACK_TAG)

    def body(self) -> bytes:
        """Return its body in the revive topic."""
        fields: dict[str, Any] = {"ao": self.offset}
        if self.offsets is not None:
            fields["aol"] = list(self.offsets)
        return _json(
            {
                **fields,
                "bn": self.broker_name,
                "c": self.group,
                "pt": self.pop_time,
                "q": self.queue_id,
                "so": self.start_offset,
                "t": self.topic,
            }
        )


def read_check_point(body: bytes, revive_offset: int) -> CheckPoint | None:
    """Return the checkpoint in a message with the tag ``ck``; None if the body is none."""
    fields = _object(body)
    topic, group = fields.get("t"), fields.get("c")
    if not isinstance(topic, str) or not isinstance(group, str):
        return None
    rewrite_count = fields.get("rp")
    return CheckPoint(
        topic,
        group,
        _int_field(fields, "q"),
        _int_field(fields, "so"),
        _int_field(fields, "pt"),
        _int_field(fields, "it"),
        str(fields.get("bn") or ""),
        _offsets(fields.get("d")),
        min(_int_field(fields, "n"), MAX_POP_MESSAGES),
        None if rewrite_count is None else int(rewrite_count) if str(rewrite_count).isdecimal() else 127,
        revive_offset,
    )


def read_ack(body: bytes, tag: str, broker_name: str) -> Ack | None:
    """Return the acknowledgement in a message with the tag ``ack`` or ``bAck``; ``broker_name`` is used if it names
    none.
    """
    fields = _object(body)
    topic, group = fields.get("t", fields.get("topic")), fields.get("c", fields.get("consumerGroup"))
    if not isinstance(topic, str) or not isinstance(group, str):
        return None
    offsets = _offsets(fields.get("aol", fields.get("ackOffsetList"))) if tag == BATCH_ACK_TAG else None
    return Ack(
        topic,
        group,
        _int_field(fields, "q", "queueId"),
        _int_field(fields, "so", "startOffset"),
        _int_field(fields, "pt", "popTime"),
        str(fields.get("bn") or fields.get("brokerName") or broker_name),
        _int_field(fields, "ao", "ackOffset"),
        offsets,
    )


def _merge_key(topic: str, group: str, queue_id: int, start: int, pop_time: int, broker: str) -> str:
    return f"{topic}{group}{queue_id}{start}{pop_time}{broker}"


def _unique_key(topic: str, queue_id: int, offset: int, group: str, pop_time: int, broker: str, tag: str) -> str:
    return f"{topic}@{queue_id}@{offset}@{group}@{pop_time}@{broker}@{tag}"


def _json(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def is_record(body: bytes) -> bool:
    """Return True if a broker can read the body of a message in the revive topic: it is a JSON object."""
    try:
        return isinstance(json.loads(body), dict)
    except (ValueError, RecursionError):
        return False


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _int_field(fields: Mapping[str, Any], *names: str) -> int:
    for name in names:
        if isinstance(value := fields.get(name), int):
            return value
    return 0


def _offsets(value: Any) -> tuple[int, ...]:
    return tuple(offset for offset in value if isinstance(offset, int)) if isinstance(value, Sequence) else ()
