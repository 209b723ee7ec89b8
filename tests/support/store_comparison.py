"""Two brokers' stores after the same traffic, RocketMQ's and ours, and their differences.

Queues and index of a store agree with its log (``storescope check``); so the units are compared, and the tables. Parts
that must differ are replaced as in the comparison of records (``tests/clients/java/same``): times, addresses, unique
ids (each becomes the message that it stands for), places in the log.
"""

from __future__ import annotations

import hashlib
import re
import runpy
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import real_cluster
from engine_units import units_of

from engine.codec.json_dialect import parse
from engine.codec.message import Unit

_SAME = runpy.run_path(str(real_cluster.JAVA / "same"))
OFTEN = re.compile(r"RMQ_SYS_TRANS_HALF_TOPIC|rmq_sys_wheel_timer|%RETRY%.*[_+]")
"""Topics that hold a message again whenever it is looked at, rolls or was popped too long ago: which they hold must
agree, not how often.
"""
OF_TIME = re.compile(
    r"RMQ_SYS_TRANS_OP_|RMQ_SYS_TRACE_TOPIC|rmq_sys_TRACE_DATA_|TRANS_CHECK_MAX_TIME_TOPIC|rmq_sys_REVIVE|rmq_sys_SYNC|OFFSET_MOVED_EVENT|.*_REPLY_TOPIC$"
)
"""Topics whose messages tell of moments. RocketMQ asks about a half message, too, whose end is not written down yet,
and gives it up later.
"""
BY_CHANCE = re.compile(r"MadeBySending")
"""Topics whose queues the client chose, by a counter that begins anywhere."""
OF_A_MOMENT = re.compile(r"(topic|offsets of) %RETRY%|offsets of .*@broadcast$")
"""Rows that a client's last heartbeat or commit makes, where it comes before the client's end. And where broadcast
groups have been, which 5.x keeps for clients of its proxy, and ours does not.
"""
OF_TRANSACTION, INNER_BATCH, LONG_DELAY = 0xC, 0x40, 4
"""Bits of ``sysFlag``; the first delay level (30 s) whose messages come, or do not, as a scenario ends."""
MEMBER_ID = re.compile(rb"(?<=UNIQ_KEY\x01)[0-9A-F]{32}(?=\x02)")
"""Of the messages of a batch that was stored as one, for its sender had not said that it is a batch (C++)."""
ROWS = ("readQueueNums", "writeQueueNums", "perm", "topicSysFlag", "topicFilterType", "order", "attributes")


def label(unit: Unit) -> str:
    """Return the name of a unit's message in records; the members of an inner batch have ids in its body."""
    if unit.sys_flag & INNER_BATCH:
        return f"batch of {unit.properties['INNER_NUM']} from {unit.properties['INNER_BASE']}"
    body = MEMBER_ID.sub(b"", unit.body)
    return f"{unit.properties.get('KEYS') or '-'}/{hashlib.sha256(body).hexdigest()[:10]}"


def account(store: Path) -> dict[str, Any]:
    """Return the parts that must be equal, by name."""
    units = units_of(store)
    ids: dict[str, str] = {}
    for unit in units:
        ids.setdefault(unit.properties.get("UNIQ_KEY", ""), label(unit))
    units_by_name: defaultdict[str, Counter[str]] = defaultdict(Counter)
    order: defaultdict[str, list[str]] = defaultdict(list)
    for unit in units:
        if OF_TIME.match(unit.topic) or OF_TIME.match(unit.properties.get("REAL_TOPIC", "")) or _came_late(unit):
            continue
        name = f"{unit.topic} has {label(unit)}"
        if OFTEN.match(unit.topic):
            units_by_name[name] = Counter({"": 1})
            continue
        units_by_name[name][_describe_unit(unit, ids)] += 1
        if not _comes_when_it_comes(unit) and not BY_CHANCE.match(unit.topic):
            order[f"{unit.topic}-{unit.queue_id} in order"].append(label(unit))
    return {**{name: dict(sorted(each.items())) for name, each in units_by_name.items()}, **order, **_tables(store)}


def _came_late(unit: Unit) -> bool:
    level = unit.properties.get("DELAY", "")
    return level.isdecimal() and int(level) >= LONG_DELAY and not unit.topic.startswith("SCHEDULE_TOPIC")


def _comes_when_it_comes(unit: Unit) -> bool:
    waits = unit.topic.startswith(("%", "SCHEDULE_TOPIC", "rmq_sys_"))
    return waits or bool(unit.sys_flag & OF_TRANSACTION) or any(name in unit.properties for name in _SAME["LATE"])


def _describe_unit(unit: Unit, ids: dict[str, str]) -> str:
    properties = {
        name: ids.get(text, "unknown") if name in _SAME["IDS"] else "present" if name in _SAME["PRESENT"] else text
        for name, text in sorted(unit.properties.items())
        if name not in _SAME["GONE"]
    }
    prepared = unit.prepared_transaction_offset > 0
    queue = "any" if BY_CHANCE.match(unit.topic) else unit.queue_id
    return (
        f"queue {queue}, sysFlag {unit.sys_flag}, flag {unit.flag}, reconsumeTimes {unit.reconsume_times}, "
        f"prepared {prepared}, body {len(unit.body)}, {properties}"
    )


def _tables(store: Path) -> dict[str, Any]:
    results: dict[str, Any] = {}
    for name, row in _table(store, "topics.json", "topicConfigTable").items():
        results[f"topic {name}"] = {key: row.get(key) for key in ROWS if row.get(key)}
    for name, row in _table(store, "subscriptionGroup.json", "subscriptionGroupTable").items():
        results[f"group {name}"] = dict(row)
    for name, row in _table(store, "consumerOffset.json", "offsetTable").items():
        results[f"offsets of {name}"] = sorted(map(int, row))
    return {name: row for name, row in results.items() if not OF_A_MOMENT.match(name)}


def _table(store: Path, file: str, table: str) -> dict[str, Any]:
    path = store / "config" / file
    value: Any = parse(path.read_bytes()).value if path.exists() else {}
    return dict(value.get(table, {}))


def differences(theirs: Path, ours: Path) -> list[str]:
    """Return readable lines: each difference with the content of both stores."""
    real_account, our_account = account(theirs), account(ours)
    texts = []
    for name in sorted(real_account.keys() | our_account.keys()):
        real_value, our_value = real_account.get(name, "nothing"), our_account.get(name, "nothing")
        if real_value != our_value:
            texts.append(f"{name}:\n  real {real_value}\n  ours {our_value}")
    return texts
