"""The Java types of the tables below ``config/``, and which values RocketMQ's parsers accept for them
(docs/formats/config-tables.md#rules).

A broker reads a table into typed classes. A value that does not fit its type ends the load of the whole table:
the broker takes the ``.bak``, and does not start if that fails too. RocketMQ 4.9 and 5.3 parse with fastjson 1,
later releases with fastjson 2, which converts more. Fields that no class has are ignored.

Pure. The result of each release for 74 values at 78 places is in ``tests/engine/codec/table_loads.json.xz``.

"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.codec.json_dialect import ObjectKey
from engine.releases import JsonParser, Release, rules_of
from engine.sentences import sentence

INT_MAX, LONG_MAX = (1 << 31) - 1, (1 << 63) - 1
_DIGITS = re.compile(r"[+-]?[0-9][0-9,]*", re.ASCII)
_DECIMAL = re.compile(r"[+-]?[0-9]+\.0*", re.ASCII)
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?", re.ASCII)
_FLAGS = {"": False, "null": False, "true": True, "false": False, "1": True, "0": False}
_FLAGS_OF_1 = {**_FLAGS, "Y": True, "N": False, "T": True, "F": False}


@dataclass(frozen=True, slots=True)
class Number:
    """A Java int or long. ``boxed``: a value in a ConcurrentMap, where null is refused."""

    name: str
    largest: int
    boxed: bool = False


@dataclass(frozen=True, slots=True)
class Flag:
    """A Java boolean."""


@dataclass(frozen=True, slots=True)
class Text:
    """A Java String: every value is accepted; other values become their JSON text."""


@dataclass(frozen=True, slots=True)
class Enum:
    """A Java enum: any text (unknown names become null), or the number of a constant."""

    constants: int


@dataclass(frozen=True, slots=True)
class Items:
    """A Java collection or array of ``item``."""

    item: Type
    required: bool = False


@dataclass(frozen=True, slots=True)
class MapOf:
    """A Java map. ``key`` is None if keys are texts; ``required``: a null ends the load."""

    value: Type
    key: Number | None = None
    required: bool = False


@dataclass(frozen=True, slots=True)
class Record:
    """A Java class by its fields; ``since_5`` are those that 4.9 does not have. ``required`` as in a map."""

    fields: Mapping[str, Type]
    since_5: Mapping[str, Type] = field(default_factory=dict)
    required: bool = False
    must_have: tuple[str, ...] = ()  # fields that no object of the class may lack


Type = Number | Flag | Text | Enum | Items | MapOf | Record

_INT, _LONG, _FLAG, _TEXT = Number("int", INT_MAX), Number("long", LONG_MAX), Flag(), Text()
_OFFSET = Number("long", LONG_MAX, boxed=True)
_KEY = Number("int", INT_MAX, boxed=True)
_VERSION = Record({"counter": _LONG, "timestamp": _LONG}, {"stateVersion": _LONG})
_NEEDED_VERSION = Record({**_VERSION.fields, "counter": _OFFSET}, _VERSION.since_5, required=True)
_ATTRIBUTES = MapOf(_TEXT)
_TOPIC = Record(
    {
        "topicName": _TEXT,
        "readQueueNums": _INT,
        "writeQueueNums": _INT,
        "perm": _INT,
        "topicFilterType": Enum(2),
        "topicSysFlag": _INT,
        "order": _FLAG,
    },
    {"attributes": _ATTRIBUTES},
    required=True,
)
_GROUP = Record(
    {
        "groupName": _TEXT,
        "consumeEnable": _FLAG,
        "consumeFromMinEnable": _FLAG,
        "consumeBroadcastEnable": _FLAG,
        "retryQueueNums": _INT,
        "retryMaxTimes": _INT,
        "brokerId": _LONG,
        "whichBrokerWhenConsumeSlowly": _LONG,
        "notifyConsumerIdsChangedEnable": _FLAG,
    },
    {
        "consumeMessageOrderly": _FLAG,
        "groupRetryPolicy": Record({"type": Enum(2)}),
        "groupSysFlag": _INT,
        "consumeTimeoutMinute": _INT,
        "subscriptionDataSet": Items(Record({})),
        "attributes": _ATTRIBUTES,
    },
    required=True,
)
_FILTER = Record(
    {
        "consumerGroup": _TEXT,
        "topic": _TEXT,
        "expression": _TEXT,
        "expressionType": _TEXT,
        "bornTime": _LONG,
        "deadTime": _LONG,
        "clientVersion": _LONG,
        "bloomFilterData": Record({"bitPos": Items(_INT), "bitNum": _INT}),
    },
    required=True,
)
_METRIC = Record({"count": _LONG, "timeStamp": _LONG}, required=True)
_OFFSETS = MapOf(MapOf(_OFFSET, _KEY, required=True))

TABLE_TYPES: Mapping[str, Record] = {
    "topics.json": Record({"topicConfigTable": MapOf(_TOPIC, required=True), "dataVersion": _NEEDED_VERSION}),
    "subscriptionGroup.json": Record(
        {"subscriptionGroupTable": MapOf(_GROUP, required=True), "dataVersion": _NEEDED_VERSION},
        {"forbiddenTable": MapOf(MapOf(_KEY, required=True))},
    ),
    "consumerOffset.json": Record({"offsetTable": _OFFSETS}, {"dataVersion": _VERSION}),
    "lmqConsumerOffset.json": Record(
        {"offsetTable": _OFFSETS, "lmqOffsetTable": MapOf(_OFFSET)}, {"dataVersion": _VERSION}
    ),
    "delayOffset.json": Record({"offsetTable": MapOf(_OFFSET, _KEY, required=True)}, {"dataVersion": _VERSION}),
    "consumerFilter.json": Record(
        {"filterDataByTopic": MapOf(Record({"groupFilterData": MapOf(_FILTER, required=True)}, required=True))}
    ),
    "consumerOrderInfo.json": Record(
        {},
        {
            "table": MapOf(
                MapOf(
                    Record(
                        {
                            "popTime": _LONG,
                            "i": _LONG,
                            "l": _LONG,
                            "o": Items(_LONG),
                            "oc": MapOf(_INT, Number("long", LONG_MAX)),
                        }
                    ),
                    _KEY,
                    required=True,
                ),
                required=True,
            )
        },
    ),
    "topicQueueMapping.json": Record(
        {},
        {
            "topicQueueMappingInfoMap": MapOf(
                Record(
                    {
                        "topic": _TEXT,
                        "bname": _TEXT,
                        "scope": _TEXT,
                        "totalQueues": _INT,
                        "epoch": _LONG,
                        "dirty": _FLAG,
                        "currIdMap": MapOf(_KEY, _KEY),
                        "hostedQueues": MapOf(Items(Record({}), required=True), _KEY),
                    },
                    required=True,
                ),
                required=True,
            ),
            "dataVersion": _NEEDED_VERSION,
        },
        must_have=("topicQueueMappingInfoMap",),
    ),
    "messageRequestMode.json": Record(
        {}, {"messageRequestModeMap": MapOf(MapOf(Record({"mode": Enum(2), "popShareQueueNum": _INT}, required=True)))}
    ),
    "timermetrics": Record({}, {"timingCount": MapOf(_METRIC, required=True), "dataVersion": _VERSION}),
    "transactionMetrics": Record({}, {"transactionCount": MapOf(_METRIC, required=True), "dataVersion": _VERSION}),
}
"""The type into which a broker reads each table."""


def find_misfit(table: str, value: Any, release: Release) -> str | None:
    """Return why a broker of ``release`` cannot load the table ``value``, with the field; None if it can.

    ``table`` is the file's name without ``.bak``, ``value`` the parsed JSON.

    """
    table_type = TABLE_TYPES.get(table)
    if table_type is None or value is None:
        return None
    try:
        _Reader(rules_of(release).json_parser, has_fields_of_5=rules_of(release).tables_of_5).read(
            value, table_type, ""
        )
    except _NotAccepted as misfit:
        return misfit.words
    return None


def to_number(value: object) -> int | None:
    """Return the whole number that a broker reads from ``value``, also from 372.0 and "372"; None if it reads none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if -LONG_MAX - 1 <= value <= LONG_MAX else None
    if isinstance(value, float):
        return int(value) if abs(value) <= LONG_MAX else None
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        return to_number(int(value.replace(",", ""))) if len(value) <= 32 else None
    return None


class _NotAccepted(Exception):
    """A value that its type does not accept."""

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.words = words


class _Reader:
    """Compares a table with its types; raises :class:`_NotAccepted` at the first value that does not fit."""

    def __init__(self, parser: JsonParser, *, has_fields_of_5: bool) -> None:
        self._second = parser == "fastjson 2"
        self._flags_are_longs = parser != "fastjson 1.2.69"
        self._has_fields_of_5 = has_fields_of_5

    def read(self, value: Any, type_: Type, place: str) -> None:
        match type_:
            case Record():
                self._record(value, type_, place)
            case MapOf():
                self._map(value, type_, place)
            case Items():
                self._items(value, type_, place)
            case Number():
                self._number(value, type_, place)
            case Flag():
                self._flag(value, place)
            case Enum():
                self._enum(value, type_, place)

    def _record(self, value: Any, record: Record, place: str) -> None:
        if value is None or value == "" or (value == [] and not self._second):
            if record.required:
                raise _misfit(place, sentence("an object"), _short(value))
            return
        if not isinstance(value, dict) or any(isinstance(key, int) for key in value):
            raise _misfit(place, sentence("an object with named fields"), _short(value))
        fields = {**record.fields, **record.since_5} if self._has_fields_of_5 else record.fields
        for name, field_type in fields.items():
            if name in value:
                self.read(value[name], field_type, f"{place}.{name}" if place else name)
        missing = next((name for name in record.must_have if self._has_fields_of_5 and name not in value), None)
        if missing is not None:
            raise _NotAccepted(
                sentence("{place}: it has no {name}", place=place or sentence("the table"), name=missing)
            )

    def _map(self, value: Any, map_type: MapOf, place: str) -> None:
        if value is None and not map_type.required:
            return
        if self._second and value in ("", "null") and not map_type.required:
            return
        if not isinstance(value, dict):
            raise _misfit(place, sentence("an object"), _short(value))
        for key, member in value.items():
            if isinstance(key, ObjectKey):
                raise _misfit(place, sentence("a name"), sentence("the object {key}", key=_short(key)))
            if map_type.key is not None and not self._is_key(key, map_type.key):
                bits = _bits(map_type.key)
                expected = sentence("a whole number of {bits} bits as key", bits=bits)
                raise _misfit(place, expected, repr(str(key)[:40]))
            if (
                map_type.key is None
                and isinstance(key, int)
                and not (self._second and not isinstance(map_type.value, Text))
            ):
                raise _misfit(place, sentence("a name"), sentence("the number {key}", key=key))
            self.read(member, map_type.value, f"{place}.{key}")

    def _is_key(self, key: str | int, key_type: Number) -> bool:
        if key == "true" and self._second:
            return True
        number = to_number(int(float(key)) if isinstance(key, str) and _DECIMAL.fullmatch(key) else key)
        return number is not None and -key_type.largest - 1 <= number <= key_type.largest

    def _items(self, value: Any, items_type: Items, place: str) -> None:
        of_objects = isinstance(items_type.item, Record)
        if value is None and not items_type.required:
            return
        if value == "" and (self._second or not of_objects):
            return
        if self._second and of_objects and isinstance(value, dict):
            return
        if not of_objects and items_type.item == _LONG and not isinstance(value, list | dict):
            value = [value]
        if not isinstance(value, list):
            raise _misfit(place, sentence("a list"), _short(value))
        for number, item in enumerate(value):
            self.read(item, items_type.item, f"{place}[{number}]")

    def _number(self, value: Any, number_type: Number, place: str) -> None:
        if not self._takes_number(value, number_type):
            expected = sentence("a whole number of {bits} bits", bits=_bits(number_type))
            raise _misfit(place, expected, _short(value))

    def _takes_number(self, value: Any, number_type: Number) -> bool:
        if value is None or value in ("", "null"):
            return not number_type.boxed
        if isinstance(value, bool):
            return number_type.largest == INT_MAX or self._flags_are_longs
        if isinstance(value, list):
            return (
                self._second and len(value) == 1 and self._takes_number(value[0], number_type) and value[0] is not None
            )
        if isinstance(value, dict):
            return self._second and number_type.largest == INT_MAX
        if isinstance(value, str) and to_number(value) is None:
            if number_type.largest == INT_MAX and _DECIMAL.fullmatch(value):
                value = float(value)
            elif self._second and (value == "true" or _NUMBER.fullmatch(value)):
                value = 1 if value == "true" else float(value)
        number = to_number(value)
        return number is not None and -number_type.largest - 1 <= number <= number_type.largest

    def _flag(self, value: Any, place: str) -> None:
        if value is None or isinstance(value, bool | float):
            return
        if isinstance(value, int) and (self._second or -INT_MAX - 1 <= value <= INT_MAX):
            return
        if not isinstance(value, str) or value not in (_FLAGS if self._second else _FLAGS_OF_1):
            raise _misfit(place, sentence("true or false"), _short(value))

    def _enum(self, value: Any, enum_type: Enum, place: str) -> None:
        if value is None or isinstance(value, str):
            return
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < enum_type.constants:
            raise _misfit(place, sentence("the name of a constant"), _short(value))


def _misfit(place: str, expected: str, actual: str) -> _NotAccepted:
    return _NotAccepted(
        sentence(
            "{place}: expected {expected}, found {found}",
            place=place or sentence("the table"),
            expected=expected,
            found=actual,
        )
    )


def _bits(number_type: Number) -> int:
    return 32 if number_type.largest == INT_MAX else 64


def _short(value: object) -> str:
    match value:
        case None:
            return "null"
        case dict():
            return sentence("an object")
        case list():
            return sentence("a list")
        case bool():
            return str(value).lower()
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:39]}…"
