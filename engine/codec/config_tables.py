"""Typed records from the tables under ``config/`` (docs/formats/config-tables.md#tables).

Pure. A field that is missing or of another kind takes RocketMQ's default and is named in ``problems``; a row that is
not valid is left out and named there too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from engine.codec.json_dialect import ObjectKey
from engine.codec.table_types import to_number
from engine.sentences import sentence

Value = Mapping[str | int, Any]
Row = TypeVar("Row")
PERM_READ, PERM_WRITE, PERM_INHERIT = 4, 2, 1
MAX_PROBLEMS = 100


@dataclass(frozen=True, slots=True)
class Rows(Generic[Row]):
    """The rows of a table in the order of the file, and its problems, at most a hundred sentences."""

    rows: tuple[Row, ...]
    problems: tuple[str, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """A topic as the broker declares it; ``perm`` is a sum of read 4, write 2, inherit 1."""

    name: str
    read_queue_nums: int
    write_queue_nums: int
    perm: int
    order: bool
    topic_sys_flag: int
    topic_filter_type: str
    attributes: dict[str, str]

    @property
    def batch(self) -> bool:
        """True if the topic's queues are batch queues."""
        return self.attributes.get("queue.type") == "BatchCQ"


@dataclass(frozen=True, slots=True)
class SubscriptionGroup:
    """A consumer group as the broker declares it."""

    name: str
    consume_enable: bool
    consume_from_min_enable: bool
    consume_broadcast_enable: bool
    consume_message_orderly: bool
    retry_queue_nums: int
    retry_max_times: int
    attributes: dict[str, str]


@dataclass(frozen=True, slots=True)
class ConsumerOffset:
    """The next offset of a group in a topic, per queue id. A light group (``lmq``) has only queue 0."""

    key: str
    topic: str
    group: str
    mode: Literal["cluster", "broadcast", "lmq"]
    offsets: dict[int, int]


@dataclass(frozen=True, slots=True)
class ConsumerFilter:
    """The SQL filter of a group. Times in ms; ``dead_time`` is 0 while a consumer is connected."""

    topic: str
    group: str
    expression: str
    expression_type: str
    client_version: int
    born_time: int
    dead_time: int
    bit_num: int
    bit_positions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ClientOffset:
    """A line of a broadcasting client's own ``offsets.json``."""

    broker: str
    topic: str
    queue_id: int
    offset: int


class _FieldReader:
    """Reads values of an expected kind from a table and collects the problems."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def add_problem(self, problem: str) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(problem)

    def number(self, row: Value, name: str, default: int, where: str) -> int:
        value = row.get(name, default)
        number = to_number(value)
        if number is not None:
            return number
        self.add_problem(_expected(f"{where}.{name}", "a whole number", value))
        return default

    def flag(self, row: Value, name: str, default: bool, where: str) -> bool:
        value = row.get(name, default)
        if isinstance(value, bool):
            return value
        self.add_problem(_expected(f"{where}.{name}", "true or false", value))
        return default

    def text(self, row: Value, name: str, default: str, where: str) -> str:
        value = row.get(name, default)
        if isinstance(value, str):
            return value
        if value is not None:
            self.add_problem(_expected(f"{where}.{name}", "a text", value))
        return default

    def texts(self, row: Value, name: str, where: str) -> dict[str, str]:
        return {str(key): str(value) for key, value in self.members(row, name, where)}

    def members(self, row: Value, name: str, where: str = "") -> Iterator[tuple[str | int, Any]]:
        """Yield the pairs of the object ``name``; none if it is missing."""
        value = row.get(name)
        if isinstance(value, dict):
            yield from value.items()
        elif value is not None:
            self.add_problem(_expected(f"{where}.{name}" if where else name, "an object", value))

    def objects(self, row: Value, name: str, where: str = "") -> Iterator[tuple[str, Value]]:
        """Yield the pairs of the object ``name`` whose values are objects."""
        for key, value in self.members(row, name, where):
            if isinstance(value, dict):
                yield str(key), value
            else:
                self.add_problem(_expected(f"{name}.{key}", "an object", value))

    def offsets(self, row: Value, where: str) -> dict[int, int]:
        """Return queue id (or level) → offset; keys may be bare or quoted."""
        offset_by_queue = {}
        for key, value in row.items():
            number, offset = whole_number(key), to_number(value)
            if number is None or offset is None:
                pair = f"{str(key)[:40]!r}: {_kind(value)}"
                self.add_problem(f"{where}: expected a queue number and an offset, found {pair}")
            else:
                offset_by_queue[number] = offset
        return offset_by_queue


def whole_number(key: str | int) -> int | None:
    """Return an integer key of a table, bare or quoted; None for anything else."""
    if isinstance(key, int):
        return key
    digits = key[1:] if key[:1] == "-" else key
    return int(key) if digits.isascii() and digits.isdigit() and len(digits) < 20 else None


def topics(value: Value) -> Rows[TopicConfig]:
    """Read ``topics.json``."""
    check = _FieldReader()
    rows = []
    for name, row in check.objects(value, "topicConfigTable"):
        rows.append(
            TopicConfig(
                name,
                check.number(row, "readQueueNums", 16, name),
                check.number(row, "writeQueueNums", 16, name),
                check.number(row, "perm", PERM_READ | PERM_WRITE, name),
                check.flag(row, "order", False, name),
                check.number(row, "topicSysFlag", 0, name),
                check.text(row, "topicFilterType", "SINGLE_TAG", name),
                check.texts(row, "attributes", name),
            )
        )
        if check.text(row, "topicName", name, name) != name:
            check.add_problem(f"{name}: topicName says {row.get('topicName')!r}")
    return Rows(tuple(rows), tuple(check.problems))


def subscription_groups(value: Value) -> Rows[SubscriptionGroup]:
    """Read ``subscriptionGroup.json``."""
    check = _FieldReader()
    rows = [
        SubscriptionGroup(
            name,
            check.flag(row, "consumeEnable", True, name),
            check.flag(row, "consumeFromMinEnable", True, name),
            check.flag(row, "consumeBroadcastEnable", True, name),
            check.flag(row, "consumeMessageOrderly", False, name),
            check.number(row, "retryQueueNums", 1, name),
            check.number(row, "retryMaxTimes", 16, name),
            check.texts(row, "attributes", name),
        )
        for name, row in check.objects(value, "subscriptionGroupTable")
    ]
    return Rows(tuple(rows), tuple(check.problems))


def consumer_offsets(value: Value) -> Rows[ConsumerOffset]:
    """Read ``consumerOffset.json`` or ``lmqConsumerOffset.json``: groups, broadcasters (three parts), light groups."""
    check = _FieldReader()
    rows: list[ConsumerOffset] = []
    for key, row in check.objects(value, "offsetTable"):
        pieces = key.rstrip("@").split("@")  # like Java's split, which drops empty ends
        if len(pieces) not in {2, 3}:
            check.add_problem(f"offsetTable: expected topic@group, found {key[:80]!r}; a broker ignores it")
            continue
        mode: Literal["cluster", "broadcast"] = "cluster" if len(pieces) == 2 else "broadcast"
        rows.append(ConsumerOffset(key, pieces[0], pieces[1], mode, check.offsets(row, key)))
    for light_key, offset in check.members(value, "lmqOffsetTable"):
        topic, separator, group = str(light_key).partition("@")
        number = to_number(offset)
        if not separator or number is None:
            check.add_problem(
                f"lmqOffsetTable: expected topic@group and an offset, found {str(light_key)[:80]!r}: {_kind(offset)}"
            )
            continue
        rows.append(ConsumerOffset(str(light_key), topic, group, "lmq", {0: number}))
    return Rows(tuple(rows), tuple(check.problems))


def delay_offsets(value: Value) -> tuple[dict[int, int], tuple[str, ...]]:
    """Read ``delayOffset.json``: delay **level** (queue id + 1) → next offset, and the problems."""
    check = _FieldReader()
    offset_by_level = check.offsets(dict(check.members(value, "offsetTable")), "offsetTable")
    return offset_by_level, tuple(check.problems)


def consumer_filters(value: Value) -> Rows[ConsumerFilter]:
    """Read ``consumerFilter.json``."""
    check = _FieldReader()
    rows = []
    for topic, by_group in check.objects(value, "filterDataByTopic"):
        for group, row in check.objects(by_group, "groupFilterData", topic):
            bloom = row.get("bloomFilterData")
            bloom = bloom if isinstance(bloom, dict) else {}
            positions = bloom.get("bitPos")
            where = f"{topic}.{group}"
            rows.append(
                ConsumerFilter(
                    topic,
                    group,
                    check.text(row, "expression", "", where),
                    check.text(row, "expressionType", "", where),
                    check.number(row, "clientVersion", 0, where),
                    check.number(row, "bornTime", 0, where),
                    check.number(row, "deadTime", 0, where),
                    check.number(bloom, "bitNum", 0, where),
                    tuple(bit for bit in positions if isinstance(bit, int)) if isinstance(positions, list) else (),
                )
            )
    return Rows(tuple(rows), tuple(check.problems))


def metrics(value: Value) -> dict[str, tuple[int, int]]:
    """Read ``timermetrics`` or ``transactionMetrics``: topic → (balance, time in ms). The balance may be negative;
    it is no count.
    """
    check = _FieldReader()
    return {
        topic: (check.number(row, "count", 0, topic), check.number(row, "timeStamp", 0, topic))
        for name in ("timingCount", "transactionCount")
        for topic, row in check.objects(value, name)
    }


def client_offsets(value: Value) -> Rows[ClientOffset]:
    """Read a broadcasting client's ``offsets.json``, whose keys are objects."""
    check = _FieldReader()
    rows = []
    for key, offset in check.members(value, "offsetTable"):
        if not isinstance(key, ObjectKey) or not isinstance(offset, int) or isinstance(offset, bool):
            check.add_problem(f"offsetTable: expected a queue and an offset, found {str(key)[:80]!r}: {_kind(offset)}")
            continue
        queue = key.value
        broker, topic = check.text(queue, "brokerName", "", "key"), check.text(queue, "topic", "", "key")
        rows.append(ClientOffset(broker, topic, check.number(queue, "queueId", 0, "key"), offset))
    return Rows(tuple(rows), tuple(check.problems))


def _expected(place: str, expected: str, value: Any) -> str:
    return sentence(
        "{place}: expected {expected}, found {found}",
        place=place,
        expected=sentence(expected),
        found=sentence(_kind(value)),
    )


def _kind(value: object) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    return repr(value)[:40]
