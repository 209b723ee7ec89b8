"""Describe a unit's properties in words: what this message is, and what has happened to it
(docs/formats/commit-log.md#sysflag, #properties, docs/formats/delays.md, docs/formats/transactions.md).

Each :class:`UnitNote` is a kind with facts, so that a window can translate it; ``text`` is the English sentence.
No I/O. Made for single units that a user inspects. Only bodies that RocketMQ itself wrote are interpreted.

"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from engine.codec import compression
from engine.codec import properties as props
from engine.codec.java import split
from engine.codec.json_dialect import parse
from engine.codec.message import (
    BORN_HOST_V6,
    COMMIT,
    DEFAULT_DELAY_LEVELS,
    INNER_BATCH,
    NEED_UNWRAP,
    PREPARED,
    ROLLBACK,
    STORE_HOST_V6,
    Unit,
)
from engine.codec.priority import is_priority_message, priority_of
from engine.system_names import (
    CHECK_MAX_TOPIC,
    DLQ_PREFIX,
    HALF_TOPIC,
    OFFSET_MOVED_TOPIC,
    OP_TOPIC,
    RETRY_PREFIX,
    REVIVE_PREFIX,
    SCHEDULE_TOPIC,
    TIMER_TOPIC,
)
from engine.times import time_text

POP_TAGS = ("ck", "ack", "bAck")

MAX_LISTED = 50
_MAX_JSON_BYTES = 1 << 20
_DELIVERED_AT_ONCE = (1 << 63) - 1
TIMES = frozenset({"due", "enqueued", "dequeued", "popped", "revived"})
"""Facts that are times, ms since the epoch."""

TEXTS = {
    "half": "half message: goes to {topic} queue {queue} when its producer {group} commits",
    "halfAgain": "half message, appended again for check {checks}: goes to {topic} queue {queue} on commit",
    "halfPutBack": "copy of half message {original} (half queue), put back without a check",
    "committed": "committed transaction: its half message lies at {half}",
    "checked": "its producer was asked {checks} times",
    "givenUp": "transaction given up after {checks} checks: would have gone to {topic} queue {queue}",
    "op": "answers for {count} half messages, by half-queue offset: {offsets}",
    "opUnclear": "op message whose body is no list of half-queue offsets",
    "preparedFlag": "PREPARED by its sysFlag: has no queue entry",
    "rollbackFlag": "ROLLBACK by its sysFlag: has no queue entry and no index entry",
    "delayed": "waiting at delay level {level}: due {due} for {topic} queue {queue}",
    "delayDelivered": "was delayed at level {level} and delivered",
    "delayLater": "asks for delay level {level} when it is committed",
    "retryWaiting": "retry {times} of group {group}, waiting at level {level}: due {due}; came from {topic}",
    "retryDelivered": "retry {times} of group {group}: came from {topic}",
    "retryTopic": "in the retry topic of group {group}",
    "deadLetter": "dead letter of group {group} after {times} deliveries: came from {topic}",
    "origin": "first stored as {id}",
    "timerWaiting": "timer message: due {due} for {topic} queue {queue}",
    "timerRolled": "timer message, rolled {times} times: due {due} for {topic} queue {queue}",
    "timerDelivered": "timer message, delivered: was due {due}, left the wheel {dequeued}",
    "timerAtOnce": "timer message, delivered at once: was due {due} before it reached the wheel",
    "timerPast": "timer message that was already due when it came: stored as an ordinary one",
    "recall": "recalls the timer message {key} of {topic}: due {due}",
    "popCheckpoint": "pop checkpoint of group {group}: {count} messages of {topic} queue {queue} from {start}, popped {popped}, revived {revived}",  # noqa: E501
    "popAck": "pop acknowledgement of group {group}: {topic} queue {queue} offset {offset}, popped {popped}",
    "popAcks": "pop acknowledgements of group {group}: {topic} queue {queue} offsets {offsets}, popped {popped}",
    "popUnclear": "pop record with tag {tag} whose body cannot be read",
    "popRetry": "put back for {name} because nobody acknowledged it: first popped {popped}",
    "offsetMoved": "group {group} asked for offset {asked} of {topic} queue {queue} and was sent to {given}",
    "light": "dispatched to light queues as well: {queues}",
    "lightBroken": "names {names} light queues but {offsets} offsets: they get no entry",
    "lite": "message of lite topic {lite} of {topic}",
    "priority": "priority {priority}: since RocketMQ 5.4 it chooses the queue, and the highest one is popped first",
    "innerBatch": "inner batch of {count} messages: queue offsets {first} to {last}",
    "innerBatchUnclear": "inner batch without valid INNER_NUM and INNER_BASE",
    "needUnwrap": "consumers have to unwrap it",
    "compressed": "body compressed with {by}",
    "compressedUnclear": "body compressed with the unknown type {type}",
    "bornIpv6": "sent from an IPv6 address",
    "storeIpv6": "stored by a broker with an IPv6 address",
    "propertyCrc": "carries a CRC of the whole unit",
    "propertyCrcBad": "carries a wrong CRC of the whole unit",
    "version2": "version 2 unit: releases before 5.1 treat it as damage",
    "stale": "belongs to offset {field} by its own field: left over in a reused file",
    "emptyValues": "empty values, lost when encoded again: {names}",
    "notText": "properties cannot be read: {length} bytes without a single pair",
}
"""Every kind → its English sentence; the names in braces are the facts."""

ROLES = (
    "half",
    "halfAgain",
    "halfPutBack",
    "op",
    "opUnclear",
    "givenUp",
    "popCheckpoint",
    "popAck",
    "popAcks",
    "popUnclear",
    "popRetry",
    "retryWaiting",
    "retryDelivered",
    "deadLetter",
    "recall",
    "timerRolled",
    "timerWaiting",
    "delayed",
    "rollbackFlag",
    "preparedFlag",
    "committed",
    "timerDelivered",
    "timerAtOnce",
    "timerPast",
    "delayDelivered",
    "offsetMoved",
    "innerBatch",
    "light",
    "retryTopic",
)
"""Kinds that say what a unit *is*, the most specific first."""


@dataclass(frozen=True, slots=True)
class UnitNote:
    """A statement about a unit: ``kind`` is a key of :data:`TEXTS`; times among the facts are ms since the epoch."""

    kind: str
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The English sentence, without a full stop."""
        return TEXTS[self.kind].format_map({name: _fact_text(name, value) for name, value in self.facts.items()})


def words(
    unit: Unit, levels: tuple[int, ...] = DEFAULT_DELAY_LEVELS, property_crc: bool | None = None
) -> list[UnitNote]:
    """Return all statements about ``unit``; ``levels`` are the delay levels in ms.

    ``property_crc`` is :func:`engine.codec.properties.verify_crc` of the unit's bytes, if the caller has them.

    """
    families = (
        _transaction(unit),
        _delay(unit, levels),
        _timer(unit),
        _retry(unit, levels),
        _pop(unit),
        _broker_event(unit),
        _queues(unit),
        _form(unit, property_crc),
    )
    return [word for family in families for word in family]


def role(unit: Unit) -> str:
    """Return the unit's kind from :data:`ROLES`; ``plain`` for an ordinary message."""
    kinds = {word.kind for word in words(unit)}
    return next((kind for kind in ROLES if kind in kinds), "plain")


def op_offsets(body: bytes) -> list[int] | None:
    """Return half-queue offsets of an op message: ``0,3,2,`` (5.x) or ``17`` (4.9); None if the body is something
    else.
    """
    text = body.decode("ascii", "replace")
    offsets = []
    for piece in split(text, ","):
        number = _whole(piece)
        if number is None or number < 0:
            return None
        offsets.append(number)
    return offsets or None


def _transaction(unit: Unit) -> Iterator[UnitNote]:
    properties = unit.properties
    place = {"topic": properties.get(props.REAL_TOPIC), "queue": _number(unit, props.REAL_QUEUE_ID)}
    checks = _number(unit, props.TRANSACTION_CHECK_TIMES)
    if unit.topic == HALF_TOPIC:
        put_back = _number(unit, "TRAN_PREPARED_QUEUE_OFFSET")
        if checks is not None:
            yield UnitNote("halfAgain", {"checks": checks, **place})
        else:
            yield UnitNote("half", {"group": properties.get(props.PRODUCER_GROUP), **place})
        if put_back is not None:
            yield UnitNote("halfPutBack", {"original": put_back})
        if (_number(unit, props.DELAY) or 0) > 0:
            yield UnitNote("delayLater", {"level": _number(unit, props.DELAY)})
    elif unit.topic == OP_TOPIC:
        offsets = op_offsets(unit.body)
        if offsets is None:
            yield UnitNote("opUnclear")
        else:
            yield UnitNote("op", {"count": len(offsets), "offsets": offsets})
    elif unit.topic == CHECK_MAX_TOPIC:
        yield UnitNote("givenUp", {"checks": checks, **place})
    if unit.transaction_type == COMMIT:
        yield UnitNote("committed", {"half": unit.prepared_transaction_offset})
        if checks is not None:
            yield UnitNote("checked", {"checks": checks})
    elif unit.transaction_type in {PREPARED, ROLLBACK}:
        yield UnitNote("preparedFlag" if unit.transaction_type == PREPARED else "rollbackFlag")


def _delay(unit: Unit, levels: tuple[int, ...]) -> Iterator[UnitNote]:
    level = _number(unit, props.DELAY) or 0
    real = unit.properties.get(props.REAL_TOPIC)
    if unit.topic == SCHEDULE_TOPIC:
        capped = min(level, len(levels))  # a level above the last one waits in the queue of the last
        facts = {"level": capped, "due": _due(unit, levels)}
        yield UnitNote("delayed", {**facts, "topic": real, "queue": _number(unit, props.REAL_QUEUE_ID)})
    elif level > 0 and real == unit.topic:
        yield UnitNote("delayDelivered", {"level": level})


def _timer(unit: Unit) -> Iterator[UnitNote]:
    properties = unit.properties
    due = _number(unit, props.TIMER_OUT_MS)
    rolled = _number(unit, props.TIMER_ROLL_TIMES)
    place = {"due": due, "topic": properties.get(props.REAL_TOPIC), "queue": _number(unit, props.REAL_QUEUE_ID)}
    recalled = properties.get(props.TIMER_DEL_UNIQUE_KEY)
    if unit.topic == TIMER_TOPIC:
        if recalled is not None:
            topic, _, key = recalled.rpartition("+")
            yield UnitNote("recall", {"key": key, "topic": topic, "due": due})
        elif rolled is not None:
            yield UnitNote("timerRolled", {"times": rolled, **place})
        else:
            yield UnitNote("timerWaiting", place)
    elif due is not None:
        at_once = _number(unit, props.TIMER_ENQUEUE_MS) == _DELIVERED_AT_ONCE
        dequeued = _number(unit, props.TIMER_DEQUEUE_MS)
        yield (
            UnitNote("timerAtOnce", {"due": due})
            if at_once
            else UnitNote("timerDelivered", {"due": due, "dequeued": dequeued})
        )
    elif unit.topic != SCHEDULE_TOPIC and any(
        name in properties for name in (props.TIMER_DELAY_SEC, props.TIMER_DELAY_MS, props.TIMER_DELIVER_MS)
    ):
        yield UnitNote("timerPast")


def _retry(unit: Unit, levels: tuple[int, ...]) -> Iterator[UnitNote]:
    properties = unit.properties
    real = properties.get(props.REAL_TOPIC, "")
    origin = {"times": unit.reconsume_times, "topic": properties.get(props.RETRY_TOPIC)}
    if unit.topic == SCHEDULE_TOPIC and real.startswith(RETRY_PREFIX):
        level = _number(unit, props.DELAY)
        group = real.removeprefix(RETRY_PREFIX)
        yield UnitNote("retryWaiting", {"group": group, "level": level, "due": _due(unit, levels), **origin})
    elif unit.topic.startswith(DLQ_PREFIX):
        yield UnitNote("deadLetter", {"group": unit.topic.removeprefix(DLQ_PREFIX), **origin})
    elif unit.topic.startswith(RETRY_PREFIX) and props.FIRST_POP_TIME not in properties:
        group = unit.topic.removeprefix(RETRY_PREFIX)
        yield (
            UnitNote("retryDelivered", {"group": group, **origin})
            if props.RETRY_TOPIC in properties
            else UnitNote("retryTopic", {"group": group})
        )
    if props.ORIGIN_MESSAGE_ID in properties:
        yield UnitNote("origin", {"id": properties[props.ORIGIN_MESSAGE_ID]})


def _pop(unit: Unit) -> Iterator[UnitNote]:
    properties = unit.properties
    if props.FIRST_POP_TIME in properties:
        name = unit.topic.removeprefix(RETRY_PREFIX)
        yield UnitNote("popRetry", {"name": name, "popped": _number(unit, props.FIRST_POP_TIME)})
    target_topic = properties.get(props.REAL_TOPIC, "") if unit.topic == TIMER_TOPIC else unit.topic
    if not target_topic.startswith(REVIVE_PREFIX) or unit.tags not in POP_TAGS:
        return
    record = _json(unit.body)
    if record is None:
        yield UnitNote("popUnclear", {"tag": unit.tags})
        return
    common = {"group": record.get("c"), "topic": record.get("t"), "queue": record.get("q"), "popped": record.get("pt")}
    if unit.tags == "ck":
        facts = {"count": record.get("n"), "start": record.get("so"), "revived": record.get("reviveTime")}
        yield UnitNote("popCheckpoint", {**common, **facts})
    elif unit.tags == "ack":
        yield UnitNote("popAck", {**common, "offset": record.get("ao")})
    else:
        yield UnitNote("popAcks", {**common, "offsets": record.get("aol")})


def _broker_event(unit: Unit) -> Iterator[UnitNote]:
    if unit.topic != OFFSET_MOVED_TOPIC:
        return
    record = _json(unit.body)
    if record is not None:
        queue = record.get("messageQueue")
        queue = queue if isinstance(queue, dict) else {}
        yield UnitNote(
            "offsetMoved",
            {
                "group": record.get("consumerGroup"),
                "topic": queue.get("topic"),
                "queue": queue.get("queueId"),
                "asked": record.get("offsetRequest"),
                "given": record.get("offsetNew"),
            },
        )


def _queues(unit: Unit) -> Iterator[UnitNote]:
    properties = unit.properties
    if lite_topic := properties.get(props.LITE_TOPIC):
        yield UnitNote("lite", {"lite": lite_topic, "topic": properties.get(props.REAL_TOPIC, unit.topic)})
    if (priority := priority_of(properties)) >= 0 and is_priority_message(properties):
        yield UnitNote("priority", {"priority": priority})
    dispatch = properties.get(props.INNER_MULTI_DISPATCH)
    if dispatch:
        names, offsets = split(dispatch, ","), split(properties.get(props.INNER_MULTI_QUEUE_OFFSET, ""), ",")
        if len(names) == len(offsets):
            paired = [f"{name}/{offset}" if offset else name for name, offset in zip(names, offsets, strict=True)]
            yield UnitNote("light", {"queues": paired})
        else:
            yield UnitNote("lightBroken", {"names": len(names), "offsets": len([text for text in offsets if text])})
    if unit.sys_flag & INNER_BATCH:
        count, first_offset = _number(unit, props.INNER_NUM), _number(unit, props.INNER_BASE)
        if count is None or first_offset is None or count <= 0 or first_offset < 0:
            yield UnitNote("innerBatchUnclear")
        else:
            yield UnitNote("innerBatch", {"count": count, "first": first_offset, "last": first_offset + count - 1})
    elif unit.sys_flag & NEED_UNWRAP:
        yield UnitNote("needUnwrap")


def _form(unit: Unit, property_crc: bool | None) -> Iterator[UnitNote]:
    if unit.sys_flag & compression.COMPRESSED:
        kind = compression.kind_of(unit.sys_flag)
        if kind:
            yield UnitNote("compressed", {"by": kind})
        else:
            yield UnitNote("compressedUnclear", {"type": (unit.sys_flag & compression.KIND_MASK) >> 8})
    if unit.sys_flag & BORN_HOST_V6:
        yield UnitNote("bornIpv6")
    if unit.sys_flag & STORE_HOST_V6:
        yield UnitNote("storeIpv6")
    if property_crc is not None or props.CRC32 in unit.properties:
        yield UnitNote("propertyCrcBad" if property_crc is False else "propertyCrc")
    if unit.version == 2:
        yield UnitNote("version2")
    if unit.stale:
        yield UnitNote("stale", {"field": unit.physical_offset})
    if unit.properties_raw and not unit.properties:
        yield UnitNote("notText", {"length": len(unit.properties_raw)})
    empty = _empty_values(unit.properties_raw)
    if empty:
        yield UnitNote("emptyValues", {"names": empty})


def _empty_values(raw: bytes) -> list[str]:
    """Return names whose value is empty on disk; Java's decoder loses them."""
    pieces = raw.split(b"\x02")
    return [piece[:-1].decode("utf-8", "replace") for piece in pieces if piece.find(b"\x01") == len(piece) - 1 > 0]


def _due(unit: Unit, levels: tuple[int, ...]) -> int | None:
    """Return the delivery time of a unit in the schedule topic, ms."""
    level = min(_number(unit, props.DELAY) or 0, len(levels))
    return unit.store_timestamp + levels[level - 1] if level > 0 else None


def _number(unit: Unit, name: str) -> int | None:
    return _whole(unit.properties.get(name, ""))


def _whole(text: str) -> int | None:
    digits = text[1:] if text[:1] == "-" else text
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 20 else None


def _json(body: bytes) -> dict[str | int, Any] | None:
    if len(body) > _MAX_JSON_BYTES:
        return None
    value = parse(body).value
    return value if isinstance(value, dict) else None


def _fact_text(name: str, value: object) -> str:
    """Return a fact as text for an English sentence."""
    if value is None:
        return "?"
    if name in TIMES and isinstance(value, int):
        return time_text(value)
    if isinstance(value, list):
        omitted = len(value) - MAX_LISTED
        listed = ", ".join(str(item) for item in value[:MAX_LISTED])
        return f"{listed} and {omitted:,} more" if omitted > 0 else listed
    return str(value)
