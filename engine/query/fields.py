"""The fields of the filter language: name, kind, and how to read the value from a unit or a record; and the grammar
in words, for the command line's help and the window's.

Names are those of the ``unit`` record. A getter returns None if the value is absent. Damage in a foreign record
(a text in the place of a number) counts as absent too.

"""

from __future__ import annotations

import base64
import binascii
import functools
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Literal

from engine.codec import message, properties
from engine.codec.compression import kind_of, missing_package, unpack
from engine.codec.java import utf8
from engine.codec.message import Unit
from engine.codec.priority import counting_priority
from engine.codec.unit_fields import OF_RECORDS, Field
from engine.decoding.bodies import UNDECODED, field_of, field_of_body
from engine.decoding.values import Path
from engine.extras import install_line
from engine.sentences import msgid
from engine.system_names import DLQ_PREFIX, HALF_TOPIC, OP_TOPIC, RETRY_PREFIX, SCHEDULE_TOPIC, TIMER_TOPIC

Kind = Literal["number", "time", "duration", "text", "property", "list", "condition"]
Getter = Callable[[Any], Any]

PROPERTIES = "properties"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """A field: ``unit`` and ``record`` read it, ``column`` has its numbers, ``words`` are all texts it can have."""

    name: str
    kind: Kind
    about: str
    unit: Getter
    record: Getter
    column: str | None = None
    words: tuple[str, ...] = ()


def transaction_word(sys_flag: int, topic: str | None) -> str | None:
    """Return ``half``, ``commit``, ``rollback``, ``op``, or None outside transactions.

    Brokers keep half units under a topic of their own and clear the bits there (docs/formats/transactions.md);
    other writers set the bits.

    """
    if topic == HALF_TOPIC:
        return "half"
    if topic == OP_TOPIC:
        return "op"
    bits = sys_flag & message.TRANSACTION_MASK
    return {message.PREPARED: "half", message.COMMIT: "commit", message.ROLLBACK: "rollback"}.get(bits)


def is_delayed(topic: str) -> bool:
    """Return True for a topic in which units wait, or waited, for their delivery time."""
    return topic in (SCHEDULE_TOPIC, TIMER_TOPIC)


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
    stored = _stored_body(record)
    return None if stored is None else _body_text(stored, _flags(record))


def _stored_body(record: Mapping[str, Any]) -> bytes | None:
    """Return the body: bytes as stored, or decoded from the base64 of the records."""
    body = record.get("body")
    if isinstance(body, str):
        try:
            body = base64.b64decode(body, validate=True)
        except (binascii.Error, ValueError):
            return None
    return bytes(body) if isinstance(body, bytes | bytearray | memoryview) else None


def _body_text(body: bytes, sys_flag: int) -> str | None:
    data, note = unpack(body, sys_flag)
    if note is None or data:
        return utf8(data)
    if (kind := kind_of(sys_flag)) is not None and (package := missing_package(kind)) is not None:
        _warn_of_package(kind, package)
    return None


@functools.cache
def _warn_of_package(kind: str, package: str) -> None:
    """Report once in a process that conditions on such bodies are not true."""
    _log.warning("%s bodies are not searched: they need the package %s: %s", kind, package, install_line(package))


def _stated_offset(record: Mapping[str, Any]) -> int | None:
    """Return the unit's own offset; records have it only if it differs."""
    name = "physicalOffsetField" if "physicalOffsetField" in record else "physicalOffset"
    stated: int | None = _number(name)(record)
    return stated


_read_flags = _number("sysFlag")
_read_topic = _text("topic")
_read_tags = _text("tags")


def _flags(record: Mapping[str, Any]) -> int:
    flags: int = _read_flags(record) or 0
    return flags


def _topic(record: Mapping[str, Any]) -> str:
    topic: str = _read_topic(record) or ""
    return topic


def property_getters(name: str) -> tuple[Getter, Getter]:
    """Return the getters of the property ``name``: for a unit, for a record."""

    def record(item: Mapping[str, Any]) -> str | None:
        properties = item.get(PROPERTIES)
        value = properties.get(name) if isinstance(properties, Mapping) else None
        return value if isinstance(value, str) else None

    return (lambda unit: unit.properties.get(name)), record


def path_getters(path: Path) -> tuple[Getter, Getter]:
    """Return the getters of a field of the decoded body: for a unit, for a record. See :func:`bodies.field_of`."""

    def record(item: Mapping[str, Any]) -> Any:
        stored = _stored_body(item)
        if stored is None:
            return UNDECODED
        properties = {str(name): str(value) for name, value in _record_properties(item).items()}
        return field_of_body(_topic(item), _read_tags(item), properties, stored, _flags(item), path)

    return (lambda unit: field_of(unit, path)), record


def _record_properties(record: Mapping[str, Any]) -> Mapping[str, Any]:
    properties = record.get(PROPERTIES)
    return properties if isinstance(properties, Mapping) else {}


def _priority(message_properties: Mapping[str, Any]) -> int | None:
    """Return the priority by which a broker chooses the queue; None if there is none that counts."""
    return counting_priority({str(name): value for name, value in message_properties.items() if isinstance(value, str)})


def _of_unit(field: Field, kind: Kind) -> FieldSpec:
    """Return the spec of a field of units and records; exceptions are in :data:`_SPECIAL_GETTERS`."""
    plain: Getter = attrgetter(field.attribute) if field.attribute else lambda _: None
    record = {"list": _texts, "text": _text}.get(kind, _number)(field.name)
    unit, record = _SPECIAL_GETTERS.get(field.name, (plain, record))
    column = field.attribute if field.column and kind != "text" else None
    return FieldSpec(field.name, kind, field.in_filters, unit, record, column, field.words)


def _flag(name: str, about: str, test: Callable[[int, str], bool]) -> FieldSpec:
    return FieldSpec(
        name,
        "condition",
        about,
        lambda unit: test(unit.sys_flag, unit.topic),
        lambda record: test(_flags(record), _topic(record)),
    )


_SPECIAL_GETTERS: dict[str, tuple[Getter, Getter]] = {
    "keys": (lambda unit: unit.keys or None, _texts("keys")),
    "body": (_body_of_unit, _body_of_record),
    "physicalOffsetField": (lambda unit: unit.physical_offset, _stated_offset),
}
_ALL = (
    *(_of_unit(field, field.kind) for field in OF_RECORDS if field.kind is not None),
    FieldSpec(
        "transaction",
        "text",
        msgid("part in a transaction"),
        lambda unit: transaction_word(unit.sys_flag, unit.topic),
        lambda record: transaction_word(_flags(record), _topic(record)),
        words=("half", "commit", "rollback", "op"),
    ),
    FieldSpec(
        "priority",
        "number",
        msgid("priority that counts since RocketMQ 5.4"),
        lambda unit: _priority(unit.properties),
        lambda record: _priority(_record_properties(record)),
    ),
    FieldSpec(
        "liteTopic",
        "text",
        msgid("lite topic, since RocketMQ 5.5"),
        *property_getters(properties.LITE_TOPIC),
    ),
    _flag("compressed", msgid("the body is compressed"), lambda flags, _: bool(flags & message.COMPRESSED)),
    _flag("batch", msgid("the unit holds an inner batch"), lambda flags, _: bool(flags & message.INNER_BATCH)),
    _flag("delayed", msgid("it lies in a topic of delayed messages"), lambda _, topic: is_delayed(topic)),
    _flag("retry", msgid("it lies in a group's retry topic"), lambda _, topic: topic.startswith(RETRY_PREFIX)),
    _flag("deadLetter", msgid("it lies in a group's dead letter topic"), lambda _, topic: topic.startswith(DLQ_PREFIX)),
)

FIELDS: dict[str, FieldSpec] = {spec.name: spec for spec in _ALL}
"""Every field by its name, in the order of completion; properties are not in the table."""

ALIASES = {"tag": "tags", "key": "keys", "queue": "queueId"}
"""Other names of fields, as in the column heads of the tables."""

BY_TOPIC = frozenset({"topic", "delayed", "retry", "deadLetter"})
"""Fields whose value follows from the topic alone."""
BY_FLAGS = frozenset({"compressed", "batch"})
"""Fields whose value follows from sysFlag alone."""


def _fields() -> str:
    width = max(map(len, FIELDS))
    lines = []
    for spec in FIELDS.values():
        words = f" ({', '.join(spec.words)})" if spec.words else ""
        lines.append(f"  {spec.name:<{width}}  {spec.kind:<9}  {spec.about}{words}")
    return "\n".join(lines)


GRAMMAR = f"""\
A filter is a condition over the fields of a message unit:

  topic = "OrderPaid" and storeTimestamp >= "2026-11-20 09:41:07"
  keys = "O-1042" or body matches /refund(ed)?/i
  size > 4KiB and not crc = "ok"
  properties.region in ("eu", "us") and storeTimestamp > now - 5m
  storeTimestamp - bornTimestamp > 2s

Conditions
  a = b   a != b   a < b   a <= b   a > b   a >= b      also == and <>
  a in (1, 2, 3)            a not in (…)
  a between 1 and 9         a not between …             both ends included
  a contains "x"            a startswith "x"            a endswith "x"      a like "ab%_"
  a matches /regex/flags    a matches "regex"           flags: i m s x; searched in the first 64 KiB
  a is null                 a is not null
  not c    c and d    c or d    ( c )                   also !  &&  ||; not binds tighter than and, and than or
  A comparison with an absent value is false, also != and not in. For keys it asks for any of the keys.

Values
  numbers    42   1_000   0xFF   4KiB  1 MiB  2GiB      whole, 64 bits; beside body.NAME also 10.5, -0.25, 1.5e-3
  texts      "in double" or 'in single' quotes          escapes \\" \\' \\\\ \\n \\t \\xNN \\uNNNN
  times      "2026-11-20 09:41:07.250"   "2026-11-20"   your zone, or Z, or +08:00 behind it; or milliseconds
  durations  250ms  5s  5m  2h  1d  1w                  for now - 5m, or between two times
  now, true, false
  a + b   a - b   a & b                                 sums of numbers and times; bits: sysFlag & 0x8 != 0

Fields
{_fields()}
  tag, key and queue are read as tags, keys and queueId
  properties.NAME, properties["NAME"]: any property; beside a number it is read as a number
  body.NAME, body.customer.id, body.items[0], body["NAME"]: a field of a body that is decoded by rules; beside a
  number it is read as a number, compared exactly. Where no rule decodes the body, no comparison is true, also not
  is null
"""
