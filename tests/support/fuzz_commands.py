"""Command lines of the fuzz campaign for a mutated store: every reading command, with arguments that mostly exist."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import agree

CommandLine = list[object]
NUMBERS = (0, 1, 7, 20, 100_000, -1, 2**31, 2**63 - 1, -(2**63))
FILTERS = ("topic == 'TopicA' and size > 100", "body contains 'alpha'", "keys =~ '.*1'", "((", "no such field")
TAGS = ("*", "TagA || TagB", "||", "nothing")
SQL = ("a > 1", "TAGS in ('TagA') and a between 0 and 5", "a is null or b = 'x'", "a >", "1 = 1")
RULES = ("CL01,CL02", "CQ01", "IX01", "NOPE")
CONFIGURATIONS = (
    "mappedFileSizeCommitLog=16384\n",
    "mappedFileSizeConsumeQueue=400\nenableConsumeQueueExt=true\n",
    "maxHashSlotNum=20\nmaxIndexNum=60\n",
    "storePathCommitLog=/nowhere\n",
    "messageDelayLevel=1s 2x\n",
    "mappedFileSizeCommitLog=minus one\n",
    "timerWheelEnable=true\nduplicationEnable=true\nforceVerifyPropCRC=true\n",
    "\\u00",
    "=\n:\n\0",
)
ABSENT = "7F00000100002A9F0000000000000000"


@dataclass
class KnownNames:
    """A store and the names in it before any fault is planted; ``elsewhere`` is a folder for output."""

    store: Path
    elsewhere: Path
    topics: list[tuple[str, int]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, store: Path, elsewhere: Path) -> KnownNames:
        """Ask the healthy store for its names."""
        info = agree.records_of("info", store)[0]
        units = [unit for unit in agree.records_of("units", store, "--limit", 300) if unit["type"] == "unit"]
        known_values = cls(store, elsewhere)
        known_values.topics = [
            (topic["topic"], queue["queueId"]) for topic in info["topics"] for queue in topic["queues"]
        ]
        known_values.keys = [key for unit in units for key in (unit.get("uniqueKey"), *unit["keys"]) if key]
        known_values.ids = [unit["offsetMsgId"] for unit in units]
        known_values.numbers = [
            unit[name] for unit in units for name in ("physicalOffset", "storeTimestamp", "queueOffset")
        ]
        known_values.groups = [record["group"] for record in agree.records_of("groups", store) if record.get("group")]
        return known_values

    def topic(self, pick: random.Random) -> tuple[str, int]:
        """Return a queue."""
        return pick.choice([*self.topics, ("NoTopic", 0)])

    def key(self, pick: random.Random) -> str:
        """Return a key or a unique key."""
        return pick.choice([*self.keys, "absent"])

    def number(self, pick: random.Random) -> int:
        """Return an offset or a time: one of a unit, or another number."""
        return pick.choice(NUMBERS) if pick.random() < 0.5 or not self.numbers else pick.choice(self.numbers)

    def group(self, pick: random.Random) -> str:
        """Return a consumer group."""
        return pick.choice([*self.groups, "billing"])

    def message(self, pick: random.Random) -> str:
        """Return a name of a message."""
        topic, queue_id = self.topic(pick)
        place = f"{topic}/{queue_id}/{pick.choice([pick.randrange(40), self.number(pick)])}"
        return pick.choice([self.key(pick), pick.choice([*self.ids, ABSENT]), str(self.number(pick)), place])


Ask = Callable[[KnownNames, random.Random], CommandLine]


def _queue(names_: KnownNames, pick: random.Random) -> CommandLine:
    extra: list[CommandLine] = [["--resolve"], ["--from", names_.number(pick)], ["--to", names_.number(pick)], []]
    return [*names_.topic(pick), *pick.choice(extra)]


def _units(names_: KnownNames, pick: random.Random) -> CommandLine:
    topic, queue_id = names_.topic(pick)
    extra: list[CommandLine] = [
        ["--from", names_.number(pick), "--limit", 20],
        ["--to", names_.number(pick)],
        ["--body", "--limit", 500],
        ["--topic", topic, "--queue", queue_id],
        ["--no-crc"],
        ["--where", pick.choice(FILTERS)],
    ]
    return pick.choice(extra)


def _index(names_: KnownNames, pick: random.Random) -> CommandLine:
    names = [path.name for path in (names_.store / "index").glob("*")]
    return pick.choice([["--entries"], ["--entries"], [], ["--file", pick.choice([*sorted(names), "x"]), "--entries"]])


def _trace(names_: KnownNames, pick: random.Random) -> CommandLine:
    window: list[CommandLine] = [[], ["--begin", names_.number(pick), "--end", names_.number(pick)]]
    return [names_.topic(pick)[0], names_.key(pick), "--max", pick.choice([1, 32]), *pick.choice(window)]


def _get(names_: KnownNames, pick: random.Random) -> CommandLine:
    tag: list[CommandLine] = [[], ["--tag", pick.choice(TAGS)], ["--sql", pick.choice(SQL)]]
    offset = pick.choice([pick.randrange(40), names_.number(pick)])
    return [*names_.topic(pick), offset, *pick.choice(tag), *pick.choice([[], ["--max", 3]])]


def _where(names_: KnownNames, pick: random.Random) -> CommandLine:
    extra: list[CommandLine] = [[], ["--group", names_.group(pick)], ["--topic", names_.topic(pick)[0]]]
    return [names_.message(pick), *pick.choice(extra)]


def _groups(names_: KnownNames, pick: random.Random) -> CommandLine:
    files = sorted((names_.store / "config").glob("*")) or [names_.store / "checkpoint"]
    return pick.choice([[], [], ["--offsets", pick.choice(files)]])


def _check(_: KnownNames, pick: random.Random) -> CommandLine:
    extra: list[CommandLine] = [[], [], ["--fail-on", "chat"], ["--only", pick.choice(RULES)]]
    return pick.choice(extra)


def _snapshot(names_: KnownNames, pick: random.Random) -> CommandLine:
    return [names_.elsewhere / "copy", *pick.choice([[], ["--recovery-set"]])]


READING: dict[str, Ask] = {
    "info": lambda _, __: [],
    "units": _units,
    "queue": _queue,
    "index": _index,
    "trace": _trace,
    "get": _get,
    "message": lambda known_values, pick: [known_values.message(pick), *pick.choice([[], ["--body"]])],
    "offset": lambda known_values, pick: [
        *known_values.topic(pick),
        "--time",
        known_values.number(pick),
        "--boundary",
        pick.choice(["lower", "upper"]),
    ],
    "where": _where,
    "positions": lambda _, __: [],
    "space": lambda _, __: [],
    "groups": _groups,
    "config": lambda _, __: [],
    "check": _check,
    "recover": lambda _, pick: ["--plan", "--like", pick.choice(["4.9", "5.3"])],
    "salvage": lambda _, __: [],
    "snapshot": _snapshot,
}
"""Commands that take the store as their first argument → the rest of the arguments."""

MQADMIN: dict[str, Ask] = {
    "queryMsgByKey": lambda known_values, pick: ["-t", known_values.topic(pick)[0], "-k", known_values.key(pick)],
    "queryMsgById": lambda known_values, pick: ["-i", pick.choice([*known_values.ids, ABSENT, "x,y"])],
    "queryMsgByUniqueKey": lambda known_values, pick: ["-t", known_values.topic(pick)[0], "-i", known_values.key(pick)],
    "queryMsgByOffset": lambda known_values, pick: [*_named(known_values.topic(pick), "-i"), "-o", pick.randrange(40)],
    "queryCq": lambda known_values, pick: [
        *_named(known_values.topic(pick), "-q"),
        "-i",
        known_values.number(pick),
        "-c",
        20,
    ],
    "printMsg": lambda known_values, pick: ["-t", known_values.topic(pick)[0]],
    "printMsgByQueue": lambda known_values, pick: _named(known_values.topic(pick), "-i"),
    "consumerProgress": lambda known_values, pick: pick.choice([[], ["-g", known_values.group(pick)]]),
    "topicStatus": lambda known_values, pick: ["-t", known_values.topic(pick)[0]],
    "topicList": lambda known_values, pick: pick.choice([[], ["-c"]]),
    "getBrokerEpoch": lambda known_values, pick: [],
    "checkRocksdbCqWriteProgress": lambda known_values, pick: ["-cf", "0"],
}
"""mqadmin's names, which take the store with ``-s``."""

TWICE = ("recover", "check", "where", "trace", "get", "units", "index")
"""Commands that do the most with a store's bytes come twice as often."""

NAMES = (*READING, *MQADMIN, *TWICE)


def _named(queue: tuple[str, int], option: str) -> CommandLine:
    return ["-t", queue[0], option, queue[1]]


def question(names_: KnownNames, pick: random.Random) -> CommandLine:
    """Return one command line."""
    name = pick.choice(NAMES)
    ways: list[CommandLine] = [["--json"], ["--json"], [], ["--markdown"]]
    if name in MQADMIN:
        return [name, "-s", names_.store, *MQADMIN[name](names_, pick), *pick.choice(ways)]
    sample = [name, _opened(names_.store, pick), *READING[name](names_, pick), *pick.choice(ways)]
    if pick.random() < 0.05 and name != "snapshot":
        path = names_.elsewhere / "broker.conf"
        path.write_text(pick.choice(CONFIGURATIONS))
        sample += ["--config", path]
    return sample


def _opened(store: Path, pick: random.Random) -> Path:
    """Return the path to open: the store, or for one case in ten its log, a file of it, or the folder above."""
    if pick.random() < 0.9:
        return store
    files = sorted((store / "commitlog").glob("*")) if (store / "commitlog").is_dir() else []
    return pick.choice([store / "commitlog", *files[:2], store.parent])
