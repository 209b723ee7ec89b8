"""The tables under ``config/``: typed records from them, and which of their files a broker loads
(docs/formats/config-tables.md#tables, #rules).

Pure: the bytes come from a function of the caller. A field that is missing or of another kind takes RocketMQ's default
and is named in ``problems``; a row that is not valid is left out and named there too.

A missing, empty or unparsable main file → the ``.bak``. If that is missing or empty → the broker starts with defaults.
If it cannot be parsed → the broker does not start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from engine.codec.json_dialect import ObjectKey, Parsed, parse
from engine.codec.table_types import find_misfit, to_number
from engine.releases import NEWEST, Release, rules_of
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
        self.add_problem(_expected(f"{where}.{name}", sentence("a whole number"), value))
        return default

    def flag(self, row: Value, name: str, default: bool, where: str) -> bool:
        value = row.get(name, default)
        if isinstance(value, bool):
            return value
        self.add_problem(_expected(f"{where}.{name}", sentence("true or false"), value))
        return default

    def text(self, row: Value, name: str, default: str, where: str) -> str:
        value = row.get(name, default)
        if isinstance(value, str):
            return value
        if value is not None:
            self.add_problem(_expected(f"{where}.{name}", sentence("a text"), value))
        return default

    def texts(self, row: Value, name: str, where: str) -> dict[str, str]:
        return {str(key): str(value) for key, value in self.members(row, name, where)}

    def members(self, row: Value, name: str, where: str = "") -> Iterator[tuple[str | int, Any]]:
        """Yield the pairs of the object ``name``; none if it is missing."""
        value = row.get(name)
        if isinstance(value, dict):
            yield from value.items()
        elif value is not None:
            self.add_problem(_expected(f"{where}.{name}" if where else name, sentence("an object"), value))

    def objects(self, row: Value, name: str, where: str = "") -> Iterator[tuple[str, Value]]:
        """Yield the pairs of the object ``name`` whose values are objects."""
        for key, value in self.members(row, name, where):
            if isinstance(value, dict):
                yield str(key), value
            else:
                self.add_problem(_expected(f"{name}.{key}", sentence("an object"), value))

    def offsets(self, row: Value, where: str) -> dict[int, int]:
        """Return queue id (or level) → offset; keys may be bare or quoted."""
        offset_by_queue = {}
        for key, value in row.items():
            number, offset = whole_number(key), to_number(value)
            if number is None or offset is None:
                self.add_problem(
                    sentence(
                        "{place}: expected a queue number and an offset, found {key}: {value}",
                        place=where,
                        key=repr(str(key)[:40]),
                        value=_kind(value),
                    )
                )
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
            stated_name = repr(row.get("topicName"))
            check.add_problem(sentence("{topic}: topicName says {name}", topic=name, name=stated_name))
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
            check.add_problem(
                sentence("offsetTable: expected topic@group, found {key}; a broker ignores it", key=repr(key[:80]))
            )
            continue
        mode: Literal["cluster", "broadcast"] = "cluster" if len(pieces) == 2 else "broadcast"
        rows.append(ConsumerOffset(key, pieces[0], pieces[1], mode, check.offsets(row, key)))
    for light_key, offset in check.members(value, "lmqOffsetTable"):
        topic, separator, group = str(light_key).partition("@")
        number = to_number(offset)
        if not separator or number is None:
            check.add_problem(
                sentence(
                    "lmqOffsetTable: expected topic@group and an offset, found {key}: {value}",
                    key=repr(str(light_key)[:80]),
                    value=_kind(offset),
                )
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
            check.add_problem(
                sentence(
                    "offsetTable: expected a queue and an offset, found {key}: {value}",
                    key=repr(str(key)[:80]),
                    value=_kind(offset),
                )
            )
            continue
        queue = key.value
        broker, topic = check.text(queue, "brokerName", "", "key"), check.text(queue, "topic", "", "key")
        rows.append(ClientOffset(broker, topic, check.number(queue, "queueId", 0, "key"), offset))
    return Rows(tuple(rows), tuple(check.problems))


def _expected(place: str, expected: str, value: Any) -> str:
    return sentence(
        "{place}: expected {expected}, found {found}",
        place=place,
        expected=expected,
        found=_kind(value),
    )


def _kind(value: object) -> str:
    if isinstance(value, dict):
        return sentence("an object")
    if isinstance(value, list):
        return sentence("a list")
    return repr(value)[:40]


def topics_by_group(offset_table: Value) -> dict[str, list[str]]:
    """Return the ``groupTopicMap`` that 5.x derives from an ``offsetTable``: keys of exactly two parts."""
    topics: dict[str, list[str]] = {}
    for key in offset_table:
        pieces = str(key).split("@")
        if len(pieces) == 2:
            topics.setdefault(pieces[1], []).append(pieces[0])
    return topics


BACKUP = ".bak"
TABLES = (
    "topics.json",
    "subscriptionGroup.json",
    "consumerOffset.json",
    "lmqConsumerOffset.json",
    "delayOffset.json",
    "consumerFilter.json",
    "consumerOrderInfo.json",
    "topicQueueMapping.json",
    "messageRequestMode.json",
    "timermetrics",
    "transactionMetrics",
)
"""The JSON tables of a broker; ``timercheck`` beside them is binary."""
OPTIONAL_TABLES = ("messageRequestMode.json", "transactionMetrics")
"""Tables that may fail to load without stopping the broker."""
Used = Literal["main", "bak", "rocksdb", "defaults", "nothing"]
State = Literal["ok", "missing", "empty", "bad", "unreadable"]


@dataclass(frozen=True, slots=True)
class TableFile:
    """Either of the two files of a table. ``complaint`` is why a broker would reject it, None if it would accept it."""

    name: str
    state: State
    complaint: str | None
    parsed: Parsed | None  # None if there was no text


@dataclass(frozen=True, slots=True)
class Table:
    """The content that a broker would have after loading ``name``; ``value`` is {} for defaults and if it would not
    start.
    """

    name: str
    used: Used  # ``nothing``: both files are bad, the broker does not start
    why: str
    value: dict[str | int, Any]
    main: TableFile
    bak: TableFile | None  # None: not read, because the main file is good
    folder: str = ""  # of the RocksDB that has the table, as seen from the store

    @property
    def will_load(self) -> bool:
        """True if a broker starts with this table."""
        return self.used != "nothing"

    @property
    def file(self) -> str | None:
        """The name of the file that was used; the folder of a RocksDB, as seen from ``config``."""
        if self.used == "rocksdb":
            return self.folder.removeprefix("config/")
        return {"main": self.name, "bak": self.name + BACKUP}.get(self.used)


def load_table(name: str, read: Callable[[str], bytes | None], release: Release = NEWEST) -> Table:
    """Load the table ``name`` as a broker of ``release`` does.

    ``read`` returns the bytes of a file by name, None if there is no such file. An ``OSError`` of ``read`` counts
    as an unreadable file and is reported in ``complaint``.

    """
    main = read_table_file(name, read, release)
    if main.state == "ok":
        return Table(name, "main", sentence("{file} is sound", file=name), _value(main), main, None)
    bak = read_table_file(name + BACKUP, read, release)
    if bak.state == "ok":
        return Table(
            name,
            "bak",
            sentence("{reason}, so a broker uses {file}", reason=_reason(main), file=bak.name),
            _value(bak),
            main,
            bak,
        )
    if bak.state in {"missing", "empty"}:
        reason = sentence("{one} and {other}: a broker starts with defaults", one=_reason(main), other=_reason(bak))
        return Table(name, "defaults", reason, {}, main, bak)
    if name in OPTIONAL_TABLES:
        reason = sentence("{one} and {other}: a broker starts with defaults", one=_reason(main), other=_reason(bak))
        return Table(name, "defaults", reason, {}, main, bak)
    reason = sentence("{one} and {other}: a broker does not start", one=_reason(main), other=_reason(bak))
    return Table(name, "nothing", reason, {}, main, bak)


def read_table_file(name: str, read: Callable[[str], bytes | None], release: Release = NEWEST) -> TableFile:
    """Read the file ``name`` alone, whichever file a broker would take; arguments as for :func:`load_table`."""
    try:
        raw = read(name)
    except OSError as error:
        return TableFile(name, "unreadable", error.strerror or str(error), None)
    if raw is None:
        return TableFile(name, "missing", sentence("no such file"), None)
    if not raw:
        return TableFile(name, "empty", sentence("0 bytes"), None)
    parsed = parse(raw)
    complaint = parsed.complaint_of(rules_of(release).json_parser)
    if complaint is None:
        complaint = find_misfit(name.removesuffix(BACKUP), parsed.value, release)
    return TableFile(name, "bad" if complaint else "ok", complaint, parsed)


def _value(file: TableFile) -> dict[str | int, Any]:
    value = file.parsed.value if file.parsed else None
    return value if isinstance(value, dict) else {}


def _reason(file: TableFile) -> str:
    match file.state:
        case "missing":
            return sentence("{file} is missing", file=file.name)
        case "empty":
            return sentence("{file} is empty", file=file.name)
        case _:
            return sentence("{file} cannot be read ({why})", file=file.name, why=file.complaint)
