"""What mqadmin prints about a cluster, as values: to compare our commands of the same names with it."""

from __future__ import annotations

import re
from typing import Any

_FIGURE = re.compile(r"(\S.*?)\s*: (.*)")
_STATISTICS = re.compile(r"(\S+)\s+(\S*)\s+(-?\d+)\s+(\d+\.\d+)\s+(\d+\.\d+|)\s*(\d+)\s+(\d+|NO_CONSUMER)")
_MESSAGE = re.compile(
    r"MSGID: (\S+) .*?queueId=(\d+), storeSize=(\d+), queueOffset=(\d+), .*?storeTimestamp=(\d+), "
    r".*?commitLogOffset=(\d+)"
)
_EPOCH = re.compile(r"#Epoch: EpochEntry\{epoch=(\d+), startOffset=(\d+), endOffset=(\d+)\}")
OWN_FIGURES = frozenset({"storeRelease"})
"""Figures that RocketMQ's brokers do not have."""
LEFT_OUT_FIGURES = frozenset(
    {
        "EndTransactionThreadPoolQueueCapacity",
        "ackThreadPoolQueueCapacity",
        "dispatchMaxBuffer",
        "litePullThreadPoolQueueCapacity",
        "pullThreadPoolQueueCapacity",
        "queryThreadPoolQueueCapacity",
        "sendThreadPoolQueueCapacity",
    }
)
"""Figures that our broker does not have (docs/protocol/mqadmin.md#figures)."""
FIGURES_THAT_DIFFER = re.compile(
    r"bootTimestamp|brokerVersionDesc|commitLogDirCapacity|.*DiskRatio.*|get.*|put(Tps|MessageTimesTotal)|runtime|timerReadBehind"
)
"""Figures of time, of the disk, and of requests before."""


def outputs_by_command(text: str) -> dict[str, list[str]]:
    """Split the outputs of several commands: lines by command line, without the tool's own log."""
    parts = (part.partition("\n") for part in text.split("### ")[1:])
    return {
        head: [line.rstrip() for line in body.splitlines() if line.strip() and "|-" not in line]
        for head, _, body in parts
    }


def figures(lines: list[str]) -> dict[str, str]:
    """Read the output of ``brokerStatus -b``."""
    pairs = (match.groups() for line in lines if (match := _FIGURE.fullmatch(line)))
    return {_of_any_store(name): value for name, value in pairs}


def _of_any_store(name: str) -> str:
    return re.sub(r"DiskRatio_.*", "DiskRatio_STORE", name)


def statistics(lines: list[str]) -> set[tuple[Any, ...]]:
    """Read the output of ``statsAll``: topic, group, accumulation, rates, sums."""
    rows = set()
    for line in lines[1:]:
        match = _STATISTICS.fullmatch(line)
        assert match, line
        topic, group, lag, in_rate, out_rate, in_sum, out_sum = match.groups()
        has_group = out_sum != "NO_CONSUMER"
        rows.add(
            (
                topic,
                group or None,
                int(lag),
                float(in_rate),
                float(out_rate) if has_group else None,
                int(in_sum),
                int(out_sum) if has_group else None,
            )
        )
    return rows


def topics_with_groups(lines: list[str]) -> set[tuple[str, str, str | None]]:
    """Read the output of ``topicList -c``: cluster, topic, group."""
    rows = (line.split() for line in lines[1:])
    return {(row[0], row[1], row[2] if len(row) > 2 else None) for row in rows}


def epochs(lines: list[str]) -> list[tuple[int, int, int]]:
    """Read the output of ``getBrokerEpoch``, one broker after another: epoch, start offset, end offset."""
    return [(int(match[1]), int(match[2]), int(match[3])) for line in lines if (match := _EPOCH.fullmatch(line))]


def messages(lines: list[str]) -> list[tuple[str, int, int, int, int, int]]:
    """Read the output of ``consumeMessage``: unique key, queue, size, queue offset, store time, offset in the log."""
    matches = (_MESSAGE.match(line) for line in lines)
    return [(match[1], *map(int, match.groups()[1:])) for match in matches if match]


def records_as_rows(name: str, records: list[dict[str, Any]]) -> Any:
    """Return the records of our command ``name`` as the function for mqadmin's output returns it."""
    match name:
        case "brokerStatus":
            return {_of_any_store(record["name"]): record["value"] for record in records}
        case "statsAll":
            fields = ("topic", "group", "accumulation", "inTps", "outTps", "inMessages", "outMessages")
        case "topicList":
            fields = ("cluster", "topic", "group")
        case "consumeMessage":
            fields = ("uniqueKey", "queueId", "size", "queueOffset", "storeTimestamp", "physicalOffset")
        case "getBrokerEpoch":
            fields = ("epoch", "startOffset", "endOffset")
        case _:
            raise ValueError(name)
    rows = [tuple(record[field] for field in fields) for record in records]
    return rows if name in ("consumeMessage", "getBrokerEpoch") else set(rows)
