"""The fields of the filter language: name, kind, and how a unit or a record in JSON's names gives the value.

Names are those of the ``unit`` record. A getter gives None where the value is absent; damage in a foreign record (a
text where a number belongs) counts as absent too.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from engine.codec import message
from engine.codec.compression import unpack
from engine.codec.java import utf8
from engine.codec.message import Unit

Kind = Literal["number", "time", "duration", "text", "property", "list", "condition"]
Getter = Callable[[Any], Any]

HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
OP_TOPIC = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
TIMER_TOPIC = "rmq_sys_wheel_timer"
RETRY_PREFIX = "%RETRY%"
DEAD_LETTER_PREFIX = "%DLQ%"
PROPERTIES = "properties"


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One field: ``unit`` and ``record`` read it, ``column`` has its numbers, ``words`` are all texts it can have."""

    name: str
    kind: Kind
    about: str
    unit: Getter
    record: Getter
    column: str | None = None
    words: tuple[str, ...] = ()


def transaction_word(sys_flag: int, topic: str | None) -> str | None:
    """``half``, ``commit``, ``rollback``, ``op``, or None outside transactions.

    Brokers keep half units under a topic of their own and clear the bits there (spec 13); other writers set the bits.
    """
    if topic == HALF_TOPIC:
        return "half"
    if topic == OP_TOPIC:
        return "op"
    bits = sys_flag & message.TRANSACTION_MASK
    return {message.PREPARED: "half", message.COMMIT: "commit", message.ROLLBACK: "rollback"}.get(bits)


def is_delayed(topic: str) -> bool:
    """A unit under this topic waits, or waited, for its delivery time."""
    return topic in (message.SCHEDULE_TOPIC, TIMER_TOPIC)


def _number(name: str) -> Getter:
    def read(record: Mapping[str, Any]) -> int | None:
        value = record.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    return read


def _text(name: str) -> Getter:
    def read(record: Mapping[str, Any]) -> str | None:
        value = record.get(name)
        return value if isinstance(value, str) else None

    return read


def _texts(name: str) -> Getter:
    def read(record: Mapping[str, Any]) -> list[str] | None:
        value = record.get(name)
        return [item for item in value if isinstance(item, str)] or None if isinstance(value, list | tuple) else None

    return read


def _body_of_unit(unit: Unit) -> str | None:
    return _body_text(unit.body, unit.sys_flag)


def _body_of_record(record: Mapping[str, Any]) -> str | None:
    """Bytes as stored, or base64 of them as the records carry it."""
    body = record.get("body")
    if isinstance(body, str):
        try:
            body = base64.b64decode(body, validate=True)
        except (binascii.Error, ValueError):
            return None
    return _body_text(bytes(body), _flags(record)) if isinstance(body, bytes | bytearray | memoryview) else None


def _body_text(body: bytes, sys_flag: int) -> str | None:
    data, note = unpack(body, sys_flag)
    return None if note is not None and not data else utf8(data)


def _stated_offset(record: Mapping[str, Any]) -> int | None:
    """The records name it only where it differs."""
    name = "physicalOffsetField" if "physicalOffsetField" in record else "physicalOffset"
    stated: int | None = _number(name)(record)
    return stated


_read_flags = _number("sysFlag")
_read_topic = _text("topic")


def _flags(record: Mapping[str, Any]) -> int:
    flags: int = _read_flags(record) or 0
    return flags


def _topic(record: Mapping[str, Any]) -> str:
    topic: str = _read_topic(record) or ""
    return topic


def property_getters(name: str) -> tuple[Getter, Getter]:
    """Getters of the property ``name``: of a unit, of a record."""

    def record(item: Mapping[str, Any]) -> str | None:
        properties = item.get(PROPERTIES)
        value = properties.get(name) if isinstance(properties, Mapping) else None
        return value if isinstance(value, str) else None

    return (lambda unit: unit.properties.get(name)), record


def _numeric(name: str, attribute: str, about: str, kind: Kind = "number", column: str | None = None) -> FieldSpec:
    return FieldSpec(name, kind, about, lambda unit: getattr(unit, attribute), _number(name), column or attribute)


def _textual(name: str, attribute: str, about: str, words: tuple[str, ...] = ()) -> FieldSpec:
    return FieldSpec(name, "text", about, lambda unit: getattr(unit, attribute), _text(name), words=words)


def _flag(name: str, about: str, test: Callable[[int, str], bool]) -> FieldSpec:
    return FieldSpec(
        name,
        "condition",
        about,
        lambda unit: test(unit.sys_flag, unit.topic),
        lambda record: test(_flags(record), _topic(record)),
    )


_ALL = (
    _numeric("physicalOffset", "offset", "where the unit lies in the commit log, bytes"),
    _numeric("size", "size", "bytes of the whole unit"),
    _numeric("version", "version", "1 or 2"),
    FieldSpec("file", "text", "name of the commit log file", lambda _: None, _text("file")),
    _textual("topic", "topic", "topic it is stored under"),
    _numeric("queueId", "queue_id", "queue of the topic"),
    _numeric("queueOffset", "queue_offset", "place in that queue"),
    _numeric("flag", "flag", "the sender's own flag"),
    _numeric("sysFlag", "sys_flag", "bits of the system flag"),
    _numeric("bornTimestamp", "born_timestamp", "the sender's clock", "time"),
    _textual("bornHost", "born_host", "sender, ip:port"),
    _numeric("storeTimestamp", "store_timestamp", "the broker's clock", "time"),
    _textual("storeHost", "store_host", "broker, ip:port"),
    _numeric("reconsumeTimes", "reconsume_times", "how often it was sent back"),
    _numeric("preparedTransactionOffset", "prepared_transaction_offset", "physical offset of the half message"),
    _numeric("bodyCRC", "body_crc", "CRC of the body as stored"),
    _textual("crc", "crc", "verdict on the body", ("ok", "bad", "unchecked")),
    FieldSpec(
        "bodyLength", "number", "bytes of the stored body", lambda u: len(u.body), _number("bodyLength"), "body_length"
    ),
    _textual("tags", "tags", "the tag"),
    FieldSpec("keys", "list", "the keys; a comparison asks for any of them", lambda u: u.keys or None, _texts("keys")),
    _textual("uniqueKey", "unique_key", "unique id the client gave"),
    _numeric("tagsCode", "tags_code", "hash of the tag, or delivery time in the schedule topic"),
    _textual("offsetMsgId", "offset_msg_id", "offset message id"),
    FieldSpec("body", "text", "the body as text, unpacked", _body_of_unit, _body_of_record),
    FieldSpec(
        "physicalOffsetField",
        "number",
        "the physicalOffset that the unit itself states",
        lambda unit: unit.physical_offset,
        _stated_offset,
        "physical_offset",
    ),
    FieldSpec(
        "transaction",
        "text",
        "part in a transaction",
        lambda unit: transaction_word(unit.sys_flag, unit.topic),
        lambda record: transaction_word(_flags(record), _topic(record)),
        words=("half", "commit", "rollback", "op"),
    ),
    _flag("compressed", "the body is compressed", lambda flags, _: bool(flags & message.COMPRESSED)),
    _flag("batch", "the unit holds an inner batch", lambda flags, _: bool(flags & message.INNER_BATCH)),
    _flag("delayed", "it lies in a topic of delayed messages", lambda _, topic: is_delayed(topic)),
    _flag("retry", "it lies in a group's retry topic", lambda _, topic: topic.startswith(RETRY_PREFIX)),
    _flag(
        "deadLetter", "it lies in a group's dead letter topic", lambda _, topic: topic.startswith(DEAD_LETTER_PREFIX)
    ),
)

FIELDS: dict[str, FieldSpec] = {spec.name: spec for spec in _ALL}
"""Every field by its name, in the order in which completion offers them; properties come beside them."""

ALIASES = {"tag": "tags", "key": "keys", "queue": "queueId"}
"""Other names of fields: what the heads of the tables and most people call them."""

BY_TOPIC = frozenset({"topic", "delayed", "retry", "deadLetter"})
"""Fields whose value follows from the topic alone."""
BY_FLAGS = frozenset({"compressed", "batch"})
"""Fields whose value follows from sysFlag alone."""
