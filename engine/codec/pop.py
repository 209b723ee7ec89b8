"""Pop consumption: what the revive topic holds, handles, names of retry topics, the three texts of a pop's answer
(docs/protocol/pop.md#response-texts, #handle; docs/formats/transactions.md#pop). Pure.

Java: ``PopCheckPoint``, ``AckMsg``, ``BatchAckMsg``, ``ExtraInfoUtil``, ``KeyBuilder``, ``PopAckConstants``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

RETRY = "%RETRY%"
REVIVE_PREFIX = "rmq_sys_REVIVE_LOG_"
REVIVE_GROUP = "CID_RMQ_SYS_REVIVE_GROUP"
"""The group whose offsets tell which checkpoints are handled."""
CHECK_POINT_TAG, ACK_TAG, BATCH_ACK_TAG = "ck", "ack", "bAck"
ORDERLY = 999
"""The revive queue that a handle of an orderly pop names."""
NORMAL, RETRY_TOPIC, RETRY_TOPIC_V2 = "0", "1", "2"
"""Marks of topics: the normal one, its retry topics of either form."""
MOST_AT_ONCE = 32
"""Messages of one pop, and of one checkpoint: its bit map has as many bits."""


def revive_topic(cluster: str) -> str:
    """The topic that holds checkpoints and acknowledgements; the broker's cluster is in its name."""
    return REVIVE_PREFIX + cluster


def retry_topic(topic: str, group: str, *, v2: bool = False) -> str:
    """The topic in which a group's messages of ``topic`` come again."""
    return f"{RETRY}{group}{'+' if v2 else '_'}{topic}"


def is_retry_v2(topic: str) -> bool:
    """Whether the topic's name is a retry topic's of the second form, which tells topic and group apart."""
    return topic.startswith(RETRY) and "+" in topic


def normal_topic(topic: str, group: str) -> str:
    """The topic whose messages come again in ``topic``, a retry topic of ``group``; any other is its own."""
    if not topic.startswith(RETRY):
        return topic
    second = f"{RETRY}{group}+"
    return topic[len(second) :]  # both forms put one sign behind the group's name


def mark_of(topic: str) -> str:
    """The mark with which texts and handles tell the kind of a topic."""
    if is_retry_v2(topic):
        return RETRY_TOPIC_V2
    return RETRY_TOPIC if topic.startswith(RETRY) else NORMAL


def real_topic(topic: str, group: str, mark: str) -> str:
    """The topic that ``mark`` makes of a normal one. Raises ``ValueError`` for what is no mark."""
    if mark == NORMAL:
        return topic
    if mark not in {RETRY_TOPIC, RETRY_TOPIC_V2}:
        raise ValueError("getRetry fail, format is wrong")
    return retry_topic(topic, group, v2=mark == RETRY_TOPIC_V2)


@dataclass(frozen=True, slots=True)
class Handle:
    """What a client acknowledges a popped message with (``extraInfo``, property ``POP_CK``); times are ms."""

    start_offset: int
    pop_time: int
    invisible_time: int
    revive_queue: int
    mark: str
    broker_name: str

    @classmethod
    def parse(cls, text: str) -> Handle:
        """Read the first six fields; what follows (queue, offset, a proxy's ninth) is told elsewhere too.

        Raises ``ValueError`` in Java's words.
        """
        fields = text.split(" ")
        if len(fields) < 6:
            raise ValueError(f"getBrokerName fail, extraInfoStrs length {len(fields)}")
        try:
            start, popped, invisible, revive = (int(word) for word in fields[:4])
        except ValueError:
            wrong = next(word for word in fields[:4] if not word.removeprefix("-").isdecimal())
            raise ValueError(f'For input string: "{wrong}"') from None
        return cls(start, popped, invisible, revive, fields[4], fields[5])

    @property
    def due(self) -> int:
        """When the message is visible again (ms)."""
        return self.pop_time + self.invisible_time

    @property
    def is_orderly(self) -> bool:
        return self.revive_queue == ORDERLY

    def of_message(self, queue_id: int, queue_offset: int) -> str:
        """The whole text for one message."""
        return (
            f"{self.start_offset} {self.pop_time} {self.invisible_time} {self.revive_queue} {self.mark} "
            f"{self.broker_name} {queue_id} {queue_offset}"
        )


def entries(rows: Iterable[tuple[str, object, object]]) -> str:
    """One of the texts: entries of three fields with ``;`` between."""
    return ";".join(f"{mark} {queue} {value}" for mark, queue, value in rows)


@dataclass(frozen=True, slots=True)
class CheckPoint:
    """The messages of one queue that one pop handed out. ``differences`` are their offsets from ``start_offset``.

    ``revive_offset`` is where it stands in its revive queue, once it is read there; ``put_again`` counts how often it
    was written once more because a message could not be revived. Times are ms.
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
    put_again: int | None = None
    revive_offset: int = 0

    @property
    def due(self) -> int:
        """When its messages are visible again (ms; Java: ``reviveTime``)."""
        return self.pop_time + self.invisible_time

    @property
    def offsets(self) -> tuple[int, ...]:
        """Queue offsets of its messages; those of the oldest form, without differences, follow one another."""
        found = self.differences or range(max(self.count, 0))
        return tuple(self.start_offset + one for one in found)

    @property
    def merge_key(self) -> str:
        """What an acknowledgement finds it by."""
        return _merge_key(self.topic, self.group, self.queue_id, self.start_offset, self.pop_time, self.broker_name)

    @property
    def unique_key(self) -> str:
        """``UNIQ_KEY`` of its message."""
        return _unique_key(
            self.topic, self.queue_id, self.start_offset, self.group, self.pop_time, self.broker_name, CHECK_POINT_TAG
        )

    def body(self) -> bytes:
        """As it stands in the revive topic."""
        told: dict[str, Any] = {
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
        if self.put_again is not None:
            told["rp"] = str(self.put_again)
        return _json({**told, "so": self.start_offset, "t": self.topic})


@dataclass(frozen=True, slots=True)
class Ack:
    """Messages of one checkpoint are done with: the one at ``offset``, or those of ``offsets`` (a batch's)."""

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
        """That of its checkpoint."""
        return _merge_key(self.topic, self.group, self.queue_id, self.start_offset, self.pop_time, self.broker_name)

    @property
    def unique_key(self) -> str:
        """``UNIQ_KEY`` of its message: that of a single one, with offset −1, for a batch's too (as 5.3.3 writes it)."""
        return _unique_key(self.topic, self.queue_id, self.offset, self.group, self.pop_time, self.broker_name, ACK_TAG)

    def body(self) -> bytes:
        """As it stands in the revive topic."""
        told: dict[str, Any] = {"ao": self.offset}
        if self.offsets is not None:
            told["aol"] = list(self.offsets)
        return _json(
            {
                **told,
                "bn": self.broker_name,
                "c": self.group,
                "pt": self.pop_time,
                "q": self.queue_id,
                "so": self.start_offset,
                "t": self.topic,
            }
        )


def read_check_point(body: bytes, revive_offset: int) -> CheckPoint | None:
    """The checkpoint in a message with the tag ``ck``; None where the body is none."""
    told = _object(body)
    topic, group = told.get("t"), told.get("c")
    if not isinstance(topic, str) or not isinstance(group, str):
        return None
    again = told.get("rp")
    return CheckPoint(
        topic,
        group,
        _whole(told, "q"),
        _whole(told, "so"),
        _whole(told, "pt"),
        _whole(told, "it"),
        str(told.get("bn") or ""),
        _offsets(told.get("d")),
        min(_whole(told, "n"), MOST_AT_ONCE),
        None if again is None else int(again) if str(again).isdecimal() else 127,
        revive_offset,
    )


def read_ack(body: bytes, tag: str, broker_name: str) -> Ack | None:
    """The acknowledgement in a message with the tag ``ack`` or ``bAck``; ``broker_name`` where it names none."""
    told = _object(body)
    topic, group = told.get("t", told.get("topic")), told.get("c", told.get("consumerGroup"))
    if not isinstance(topic, str) or not isinstance(group, str):
        return None
    offsets = _offsets(told.get("aol", told.get("ackOffsetList"))) if tag == BATCH_ACK_TAG else None
    return Ack(
        topic,
        group,
        _whole(told, "q", "queueId"),
        _whole(told, "so", "startOffset"),
        _whole(told, "pt", "popTime"),
        str(told.get("bn") or told.get("brokerName") or broker_name),
        _whole(told, "ao", "ackOffset"),
        offsets,
    )


def _merge_key(topic: str, group: str, queue_id: int, start: int, popped: int, broker: str) -> str:
    return f"{topic}{group}{queue_id}{start}{popped}{broker}"


def _unique_key(topic: str, queue_id: int, offset: int, group: str, popped: int, broker: str, tag: str) -> str:
    return f"{topic}@{queue_id}@{offset}@{group}@{popped}@{broker}@{tag}"


def _json(told: Mapping[str, Any]) -> bytes:
    return json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _whole(told: Mapping[str, Any], *names: str) -> int:
    for name in names:
        if isinstance(found := told.get(name), int):
            return found
    return 0


def _offsets(found: Any) -> tuple[int, ...]:
    return tuple(one for one in found if isinstance(one, int)) if isinstance(found, Sequence) else ()
