"""Put plans with an explicit list of messages, and comparison of stores without their store times."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engine.codec import batch
from engine.codec.message import Unit, check_frame
from engine.inspection.snapshot import StoreSnapshot, open_store
from engine.system_names import SCHEDULE_TOPIC

WORDS = ("alpha", "中文", "Größe", "x", "😀", "a b", "0", "value\x01with\x01marks")


def explicit_plan(seed: int, release: str = "5.3.3", count: int = 400) -> dict[str, Any]:
    """Return messages of every kind that both stores write the same way, over several small files."""
    pick = random.Random(f"{seed} explicit {release}")
    newer = release.startswith("5")
    topics = ["TopicA", "Größe" if newer else "TopicB", "%RETRY%group"]
    if newer:
        topics.append("%RETRY%" + "g" * 150)
    plan: dict[str, Any] = {
        "config": {
            "mappedFileSizeCommitLog": pick.choice([65_536, 131_072]),
            "mappedFileSizeConsumeQueue": 20 * pick.choice([30, 100]),
            "maxHashSlotNum": 50,
            "maxIndexNum": 300,
        },
        "topics": [{"name": name, "queues": 3} for name in topics],
        "messages": [_message(pick, topics, newer) for _ in range(count)],
        "bornHosts": ["10.9.8.7:4000"],
        "storeHost": "192.168.7.7:10911",
        "bornBase": 1_690_000_000_000,
    }
    if newer:
        plan["topics"].append({"name": "Batches", "queues": 2, "type": "BatchCQ"})
        plan["messages"] += [_inner_batch(pick) for _ in range(count // 10)]
        pick.shuffle(plan["messages"])
    return plan


def _message(pick: random.Random, topics: list[str], newer: bool) -> dict[str, Any]:
    record: dict[str, Any] = {"topic": pick.choice(topics), "queue": pick.randrange(3)}
    if pick.random() < 0.5:
        record["body"] = pick.choice(WORDS) * pick.randrange(100)
    else:
        record["bodyHex"] = pick.randbytes(pick.choice([0, 10, 300, 5000])).hex()
    names = ["TAGS", "KEYS", "UNIQ_KEY", "WAIT", *(f"p{n}" for n in range(20)), "ключ"]
    chosen = pick.sample(names, pick.randrange(len(names)))
    record["properties"] = {name: _value(pick, name) for name in chosen}
    if not chosen and pick.random() < 0.5:
        del record["properties"]
    optional = {
        "flag": pick.randrange(-(1 << 31), 1 << 31),
        "sysFlag": pick.choice([0, 1, 2, 4, 8, 12, 0x301]),
        "reconsumeTimes": pick.randrange(16),
        "preparedTransactionOffset": pick.randrange(1 << 40),
        "bornTimestamp": pick.randrange(1 << 41),
        "bornHost": pick.choice(["10.0.0.1:1", "[2001:db8::1]:65535", "[::ffff:10.2.3.4]:77"]),
        "storeHost": pick.choice(["10.0.0.2:2", "[2001:db8::2]:10911"]),
    }
    record |= {name: value for name, value in optional.items() if pick.random() < 0.4}
    if newer and pick.random() < 0.1:
        record["properties"] = {**record.get("properties", {}), "DELAY": "3"}
    return record


def _value(pick: random.Random, name: str) -> str | int | bool:
    if name == "WAIT":
        return pick.choice(["true", True, "false"])
    if name == "KEYS":
        return " ".join(f"K{pick.randrange(50)}" for _ in range(pick.randrange(1, 4)))
    if name == "UNIQ_KEY":
        return pick.randbytes(16).hex().upper()
    return pick.choice([*WORDS, 7, -1, ""])


def _inner_batch(pick: random.Random) -> dict[str, Any]:
    members = [batch.encode(0, pick.randbytes(20), {"TAGS": "t"}) for _ in range(pick.randrange(1, 6))]
    properties = {"INNER_NUM": len(members), "UNIQ_KEY": pick.randbytes(16).hex().upper()}
    return {
        "topic": "Batches",
        "queue": 0,
        "bodyHex": b"".join(members).hex(),
        "sysFlag": 0xC0,
        "properties": properties,
    }


def plan_of_units(store: StoreSnapshot, config: dict[str, Any], topics: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a plan that puts each unit of ``store`` once more, one by one, under another configuration."""
    return {
        "config": config,
        "topics": topics,
        "messages": [_as_message(u) for u in store.units() if isinstance(u, Unit)],
    }


def _as_message(unit: Unit) -> dict[str, Any]:
    return {
        "topic": unit.topic,
        "queue": unit.queue_id,
        "bodyHex": unit.body.hex(),
        "properties": unit.properties,
        "flag": unit.flag,
        "sysFlag": unit.sys_flag,
        "reconsumeTimes": unit.reconsume_times,
        "preparedTransactionOffset": unit.prepared_transaction_offset,
        "bornTimestamp": unit.born_timestamp,
        "bornHost": unit.born_host,
        "storeHost": unit.store_host,
    }


def log_without_times(root: Path) -> dict[str, bytes]:
    """Return the bytes of each log file, with every unit's store time set to zero."""
    files = {}
    for file in sorted((root / "commitlog").iterdir()):
        data = bytearray(file.read_bytes())
        position = 0
        while not isinstance(frame := check_frame(data, position, len(data)), str):
            data[position + frame.store_timestamp : position + frame.store_timestamp + 8] = bytes(8)
            position += frame.size
        files[file.name] = bytes(data)
    return files


def account(root: Path, config: Path | None = None) -> dict[str, list[Any]]:
    """Return the content of a store, without store times and their consequences, and without the order of
    properties.
    """
    arguments = None
    if config is not None:
        from engine.config import read_properties

        arguments, _ = read_properties(config)
    with open_store(root, arguments) as store:
        return {
            "files": [(file.name, file.size) for file in store.log.files],
            "units": [_fields(unit) for unit in store.units() if isinstance(unit, Unit)],
            "queues": list(_queues(store)),
            "index": list(_index(store)),
        }


def _fields(unit: Unit) -> tuple[Any, ...]:
    return (
        unit.offset,
        unit.size,
        unit.physical_offset,
        unit.version,
        unit.topic,
        unit.queue_id,
        unit.queue_offset,
        unit.flag,
        unit.sys_flag,
        unit.born_timestamp,
        unit.born_host,
        unit.store_host,
        unit.reconsume_times,
        unit.prepared_transaction_offset,
        unit.body,
        tuple(sorted(unit.properties.items())),
        unit.crc,
    )


def _queues(store: StoreSnapshot) -> Iterator[tuple[Any, ...]]:
    for topic, queues in store.topics().items():
        for number, queue in queues.items():
            yield topic, number, queue.kind, queue.min_offset, queue.max_offset
            yield [(file.name, file.size) for file in queue.files]
            for entry in queue.entries():
                code = None if topic == SCHEDULE_TOPIC else entry.real_tags_code
                yield entry.queue_offset, entry.physical_offset, entry.size, code, entry.batch_size


def _index(store: StoreSnapshot) -> Iterator[tuple[int, ...]]:
    for file in store.index_files():
        header = file.header
        yield header.begin_phy_offset, header.end_phy_offset, header.hash_slot_count, header.index_count
        for number, entry in file.entries():
            yield number, entry.key_hash, entry.phy_offset, entry.prev


def write_conf(path: Path, config: dict[str, Any]) -> Path:
    """Write a broker's configuration file."""
    path.write_text("".join(f"{key}={value}\n" for key, value in config.items()), encoding="ascii")
    return path


def write_plan(path: Path, plan: dict[str, Any]) -> Path:
    """Write a plan into a file."""
    path.write_text(json.dumps(plan, ensure_ascii=False), encoding="utf-8")
    return path
