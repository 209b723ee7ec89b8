"""Stores with special queues (ext, light, batch, compacted, in a RocksDB, over a DLedger log) by seed, damaged in
the ways that their repairs are made for, and what a mended one has to serve.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import made_rocksdb
import mend_campaign
from planted_faults import patch
from repair_rounds import Hit
from store_damage import Anatomy

from engine.codec.batch_consume_queue import BATCH_CQ_UNIT_SIZE
from engine.codec.consume_queue import CQ_UNIT_SIZE
from engine.codec.message import Unit
from engine.inspection.snapshot import open_store

Plan = dict[str, Any]
Rows = list[dict[str, Any]]
Planter = Callable[[random.Random, Path], list[Hit]]
MODES = {
    "ext": ("5.5.1", "5.4.0", "5.3.3", "4.9.8"),
    "light": ("5.5.1", "5.4.0", "5.3.3", "4.9.8"),
    "batch": ("5.5.1", "5.4.0", "5.3.3"),
    "rocksdb": ("5.5.1", "5.4.0", "5.3.3"),
    "compacted": ("5.5.1", "5.4.0", "5.3.3"),
    "dledger": ("5.5.1", "5.4.0", "5.3.3"),
}
"""The releases that have each mode."""


# -- stores


def shape(mode: str, seed: int, release: str, *, is_short: bool = False) -> Plan:
    """Return a plan for the real store: file sizes, topics, queues, keys and kinds of messages follow the seed."""
    rng = random.Random(f"{mode} {seed} {release}")
    plan = mend_campaign.shape(seed, release)
    plan |= {"pauseEvery": 0, "count": 150 if is_short else rng.randrange(300, 600)}
    config = plan["config"]
    match mode:
        case "ext":
            config |= {"enableConsumeQueueExt": "true", "mappedFileSizeConsumeQueueExt": rng.choice((4096, 8192))}
            plan["bitmap"] = rng.choice((8, 64))
        case "light":
            config |= {"enableLmq": "true", "enableMultiDispatch": "true"}
            plan |= {"messages": _light_messages(rng), "count": 0}
            plan["topics"] = [{"name": "parent", "queues": 2}]
        case "batch":
            config["mapperFileSizeBatchConsumeQueue"] = BATCH_CQ_UNIT_SIZE * rng.choice((20, 50, 100))
            plan["batchMax"] = rng.choice((3, 8))
            plan["topics"] += [{"name": f"batches{number}", "queues": 2, "type": "BatchCQ"} for number in (1, 2)]
        case "rocksdb":
            config["storeType"] = "defaultRocksDB"
        case "compacted":
            config |= {
                "enableCompaction": "true",
                "compactionScheduleInternal": 3_600_000,
                "compactionCqMappedFileSize": BATCH_CQ_UNIT_SIZE * 100,
                "compactionMappedFileSize": BATCH_CQ_UNIT_SIZE * 100 * 10,
            }
            plan["topics"] = [{"name": "Orders", "queues": 1}, {"name": "Stock", "queues": 2, "type": "Compaction"}]
            plan |= {"messages": _compacted_messages(rng), "count": 0}
        case "dledger":
            config |= {
                "enableDLegerCommitLog": "true",
                "dLegerGroup": "peer",
                "dLegerSelfId": "n0",
                "mappedFileSizeCommitLog": 1 << 20,
            }
            plan |= {"messages": [], "batchEvery": 0}
    return plan


def _light_messages(rng: random.Random) -> Rows:
    lights = [f"%LMQ%{name}" for name in ("a", "b", "user-1", "Größe")[: rng.randrange(2, 5)]]
    return [
        {
            "topic": "parent",
            "queue": rng.randrange(2),
            "body": "x" * rng.randrange(300),
            "properties": {
                "UNIQ_KEY": f"0A0102031092{number:020X}",
                "KEYS": f"L{number}",
                "TAGS": rng.choice(("TagA", "TagB")),
                **(
                    {"INNER_MULTI_DISPATCH": ",".join(rng.sample(lights, rng.randrange(1, len(lights))))}
                    if rng.random() < 0.8
                    else {}
                ),
            },
        }
        for number in range(rng.randrange(200, 400))
    ]


def _compacted_messages(rng: random.Random) -> Rows:
    keys = rng.choice((20, 60))
    return [
        {
            "topic": "Orders" if rng.random() < 0.1 else "Stock",
            "queue": 0,
            "body": "x" * rng.randrange(200),
            "properties": {"UNIQ_KEY": f"0A0102031093{number:020X}", "KEYS": f"S{rng.randrange(keys)}"},
        }
        | ({"topic": "Stock", "queue": 1} if rng.random() < 0.3 else {})
        for number in range(rng.randrange(500, 900))
    ]


def finish_compaction(root: Path) -> None:
    """Remove the files that compaction was about to delete: a store that is closed meanwhile does not load again."""
    for path in (root / "compaction").glob("*/*/*/*.delete"):
        path.unlink()


def while_written(mode: str, plan: Plan) -> Plan:
    """Return the plan with which the store is written: compaction works while it is."""
    if mode != "compacted":
        return plan
    config = {**plan["config"], "compactionScheduleInternal": 1000}
    return {**plan, "config": config, "servicesUntil": int(time.time() * 1000) + 7000}


def write_topics(root: Path, plan: Plan) -> None:
    """Write ``topics.json`` as a broker with the topics of the plan does."""
    attributes = {"BatchCQ": {"queue.type": "BatchCQ"}, "Compaction": {"cleanup.policy": "COMPACTION"}}
    rows = {
        topic["name"]: {
            "attributes": attributes.get(topic.get("type", ""), {}),
            "order": False,
            "perm": 6,
            "readQueueNums": topic.get("firstQueue", 0) + topic["queues"],
            "topicFilterType": "SINGLE_TAG",
            "topicName": topic["name"],
            "topicSysFlag": 0,
            "writeQueueNums": topic.get("firstQueue", 0) + topic["queues"],
        }
        for topic in plan["topics"]
    }
    table = {"dataVersion": {"counter": 1, "stateVersion": 0, "timestamp": 1}, "topicConfigTable": rows}
    (root / "config").mkdir(exist_ok=True)
    (root / "config" / "topics.json").write_text(json.dumps(table), "utf-8")


# -- damage


@dataclass(frozen=True)
class Kind:
    """One kind of damage of a mode."""

    mode: str
    name: str
    plant: Planter


KINDS: list[Kind] = []


def _kind(*modes: str) -> Callable[[Planter], Planter]:
    def add(plant: Planter) -> Planter:
        KINDS.extend(Kind(mode, plant.__name__.strip("_").replace("_", " "), plant) for mode in modes)
        return plant

    return add


def kinds_of(mode: str) -> list[Kind]:
    """Return the kinds of damage of a mode."""
    return [kind for kind in KINDS if kind.mode == mode]


FOLDER = {"ext": "consumequeue", "light": "consumequeue", "batch": "batchconsumequeue"}
_WIDTH = {"ext": CQ_UNIT_SIZE, "light": CQ_UNIT_SIZE, "batch": BATCH_CQ_UNIT_SIZE}


def _mode_of(root: Path) -> str:
    if (root / "batchconsumequeue").is_dir():
        return "batch"
    return "ext" if (root / "consumequeue_ext").is_dir() else "light"


def _queues(root: Path) -> list[Path]:
    """Return the folders of the special queues."""
    mode = _mode_of(root)
    pattern = "%LMQ%*/*" if mode == "light" else "*/*"
    return sorted(path for path in (root / FOLDER[mode]).glob(pattern) if path.is_dir())


def _queue_file(rng: random.Random, root: Path) -> Path:
    return rng.choice(sorted(rng.choice(_queues(root)).iterdir()))


def _used(root: Path, data: bytes) -> int:
    return max(-(-len(data.rstrip(b"\0")) // _WIDTH[_mode_of(root)]), 1)


@_kind("ext", "light", "batch")
def zeros_in_a_queue(rng: random.Random, root: Path) -> list[Hit]:
    file, width = _queue_file(rng, root), _WIDTH[_mode_of(root)]
    used = _used(root, file.read_bytes())
    start = rng.randrange(used)
    patch(file, start * width, bytes(min(rng.choice((1, 5, 1000)), used - start) * width))
    return []


@_kind("ext", "light", "batch")
def random_bytes_in_a_queue(rng: random.Random, root: Path) -> list[Hit]:
    file, width = _queue_file(rng, root), _WIDTH[_mode_of(root)]
    start = rng.randrange(_used(root, file.read_bytes())) * width
    patch(file, start, rng.randbytes(min(rng.choice((8, 60, 300)), file.stat().st_size - start)))
    return []


@_kind("ext", "light", "batch")
def entries_of_another_queue(rng: random.Random, root: Path) -> list[Hit]:
    target, source = (_queue_file(rng, root) for _ in range(2))
    size = min(target.stat().st_size, source.stat().st_size)
    patch(target, 0, source.read_bytes()[:size])
    return []


@_kind("ext", "light", "batch")
def a_lost_queue_file(rng: random.Random, root: Path) -> list[Hit]:
    _queue_file(rng, root).unlink()
    return []


@_kind("ext", "light", "batch")
def a_lost_queue(rng: random.Random, root: Path) -> list[Hit]:
    queues = _queues(root)
    with_sisters = [folder for folder in queues if len(list(folder.parent.iterdir())) > 1]
    shutil.rmtree(rng.choice(with_sisters or queues))
    return []


@_kind("ext", "light", "batch")
def all_special_queues_lost(_: random.Random, root: Path) -> list[Hit]:
    for folder in _queues(root):
        shutil.rmtree(folder.parent, ignore_errors=True)
    if _mode_of(root) == "batch":
        shutil.rmtree(root / "batchconsumequeue")
    return []


@_kind("ext", "light", "batch")
def all_queues_lost(_: random.Random, root: Path) -> list[Hit]:
    for name in ("consumequeue", "consumequeue_ext", "batchconsumequeue"):
        shutil.rmtree(root / name, ignore_errors=True)
    return []


@_kind("ext")
def random_bytes_in_an_ext_file(rng: random.Random, root: Path) -> list[Hit]:
    file = rng.choice(sorted((root / "consumequeue_ext").glob("*/*/*")))
    used = len(file.read_bytes().rstrip(b"\0"))
    start = rng.randrange(max(used, 1))
    patch(file, start, rng.randbytes(min(rng.choice((2, 30, 300)), file.stat().st_size - start)))
    return []


@_kind("ext")
def a_lost_ext_file(rng: random.Random, root: Path) -> list[Hit]:
    rng.choice(sorted((root / "consumequeue_ext").glob("*/*/*"))).unlink()
    return []


@_kind("ext")
def all_ext_files_lost(_: random.Random, root: Path) -> list[Hit]:
    shutil.rmtree(root / "consumequeue_ext")
    return []


@_kind("ext", "light", "batch", "rocksdb", "dledger")
def zeros_in_the_log(rng: random.Random, root: Path) -> list[Hit]:
    store = Anatomy(root)
    unit = _special_unit(rng, store)
    size = rng.choice((1, 4, 36, 120, 512, 4096))
    return _overwrite(root, store, unit.offset + rng.choice((0, 4, 8, rng.randrange(unit.size))), bytes(size))


@_kind("ext", "light", "batch", "rocksdb", "dledger")
def an_inverted_bit_in_the_log(rng: random.Random, root: Path) -> list[Hit]:
    store = Anatomy(root)
    unit = _special_unit(rng, store)
    offset = unit.offset + rng.randrange(unit.size)
    path, position = _place(root, store, offset)
    return _overwrite(root, store, offset, bytes([path.read_bytes()[position] ^ 1 << rng.randrange(8)]))


@_kind("ext", "light", "batch")
def messages_and_their_entries(rng: random.Random, root: Path) -> list[Hit]:
    store = Anatomy(root)
    hits = _overwrite(root, store, _special_unit(rng, store).offset, rng.choice((bytes, rng.randbytes))(1500))
    for files, width in zip(store.queues, store.unit_sizes, strict=True):
        for file in files:
            data = bytearray(file.read_bytes())
            for place in range(0, len(data) - width + 1, width):
                if hits[0].start <= struct.unpack_from(">q", data, place)[0] < hits[0].stop:
                    data[place : place + width] = bytes(width)
            file.write_bytes(data)
    return hits


@_kind("ext", "light", "batch")
def a_cut_log_file(rng: random.Random, root: Path) -> list[Hit]:
    store = Anatomy(root)
    path, start, size = rng.choice([file for file in store.log if file[1] <= store.units[-1].offset])
    unit = rng.choice([unit for unit in store.units if start <= unit.offset < start + size])
    os.truncate(path, unit.offset - start + rng.randrange(1, unit.size))
    return [Hit(unit.offset, start + size, "cut")]


def _special_unit(rng: random.Random, store: Anatomy) -> Unit:
    """Return a unit of a special queue where there is one; messages follow it."""
    units = store.units[: -max(len(store.units) // 10, 3)]
    special = [unit for unit in units if unit.topic.startswith("batches") or "INNER_MULTI_DISPATCH" in unit.properties]
    return rng.choice(special or units)


def _place(root: Path, store: Anatomy, offset: int) -> tuple[Path, int]:
    return store.place(offset)


def _overwrite(root: Path, store: Anatomy, start: int, data: bytes) -> list[Hit]:
    path, position = _place(root, store, start)
    data = data[: path.stat().st_size - position]
    patch(path, position, data)
    return [Hit(start, start + len(data), "overwritten")]


def planted(kind: Kind, rng: random.Random, root: Path) -> list[Hit] | None:
    """Damage the store at ``root``; None if it has nothing for this kind."""
    try:
        return kind.plant(rng, root)
    except (FileNotFoundError, IndexError, StopIteration):
        return None


# -- compacted queues


def _compacted_file(rng: random.Random, root: Path, part: str) -> Path:
    return rng.choice(sorted(path for path in (root / "compaction" / part).glob("Stock/*/*") if path.stat().st_size))


def _spoil(rng: random.Random, file: Path) -> list[Hit]:
    used = max(len(file.read_bytes().rstrip(b"\0")), 1)
    start = rng.randrange(used)
    data = rng.choice((bytes, rng.randbytes))(rng.choice((4, 46, 300)))
    patch(file, start, data[: file.stat().st_size - start])
    return []


@_kind("compacted")
def damage_in_a_compacted_log(rng: random.Random, root: Path) -> list[Hit]:
    return _spoil(rng, _compacted_file(rng, root, "compactionLog"))


@_kind("compacted")
def damage_in_a_compacted_queue(rng: random.Random, root: Path) -> list[Hit]:
    return _spoil(rng, _compacted_file(rng, root, "compactionCq"))


@_kind("compacted")
def a_lost_file_of_a_compacted_queue(rng: random.Random, root: Path) -> list[Hit]:
    _compacted_file(rng, root, "compactionCq").unlink()
    return []


@_kind("compacted")
def a_lost_file_of_a_compacted_log(rng: random.Random, root: Path) -> list[Hit]:
    _compacted_file(rng, root, "compactionLog").unlink()
    return []


@_kind("compacted")
def a_lost_compacted_log(rng: random.Random, root: Path) -> list[Hit]:
    shutil.rmtree(root / "compaction" / "compactionLog" / "Stock" / rng.choice("01"))
    return []


@_kind("compacted")
def a_lost_compacted_queue(rng: random.Random, root: Path) -> list[Hit]:
    number = rng.choice("01")
    for part in ("compactionLog", "compactionCq"):
        shutil.rmtree(root / "compaction" / part / "Stock" / number)
    return []


@_kind("compacted")
def everything_compacted_lost(_: random.Random, root: Path) -> list[Hit]:
    shutil.rmtree(root / "compaction")
    return []


# -- a RocksDB of queues


def _rocksdb_kind(name: str) -> None:
    def plant(rng: random.Random, root: Path) -> list[Hit]:
        folder = root / "consumequeue"
        with open_store(root) as store:
            long_queues = [
                (topic, number)
                for topic, by_id in store.queues.by_topic().items()
                for number, queue in by_id.items()
                if queue.max_offset > 45
            ]
        made_rocksdb.spoil_queues(folder, name, *rng.choice(long_queues))
        return []

    KINDS.append(Kind("rocksdb", name, plant))


for _name in made_rocksdb.SPOILED:
    _rocksdb_kind(_name)


@_kind("rocksdb")
def a_missing_table(rng: random.Random, root: Path) -> list[Hit]:
    rng.choice(sorted((root / "consumequeue").glob("*.sst"))).unlink()
    return []


@_kind("rocksdb")
def broken_tables(_: random.Random, root: Path) -> list[Hit]:
    for table in sorted((root / "consumequeue").glob("*.sst")):
        patch(table, 20, bytes(40))
    return []


@_kind("rocksdb")
def no_manifest(_: random.Random, root: Path) -> list[Hit]:
    next((root / "consumequeue").glob("MANIFEST-*")).unlink()
    return []


@_kind("rocksdb")
def no_current_file(_: random.Random, root: Path) -> list[Hit]:
    (root / "consumequeue" / "CURRENT").unlink()
    return []


@_kind("rocksdb")
def no_database(_: random.Random, root: Path) -> list[Hit]:
    shutil.rmtree(root / "consumequeue")
    return []


# -- what is served


Entry = tuple[int, str]
"""Physical offset and SHA-1 of a unit."""


@dataclass
class Served:
    """What the real store has, and gives to a consumer from offset 0 on."""

    is_loaded: bool = False
    queues: dict[tuple[str, int], list[Entry]] = field(default_factory=dict)
    bounds: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    odd: list[dict[str, Any]] = field(default_factory=list)
    numbered: dict[tuple[str, int], dict[int, str]] = field(default_factory=dict)
    """SHA-1 of each unit by queue and queue offset, without its physical offset."""


def served(rows: Rows) -> Served:
    """Return the rows of :meth:`peer.Peer.consume` by queue."""
    result = Served()
    for row in rows:
        match row["t"]:
            case "load":
                result.is_loaded = row["ok"]
            case "consumed":
                result.queues.setdefault((row["topic"], row["queue"]), []).append((row["phy"], row["sha"]))
                result.numbered.setdefault((row["topic"], row["queue"]), {})[row["n"]] = row["sha"]
            case "queue" if row["when"] == "dispatched":
                result.bounds[row["topic"], row["queue"]] = (row["min"], row["max"])
            case "noMessage" | "notAMessage" | "unreadable" | "undecodable":
                result.odd.append(row)
    return result


def compare(
    before: Served, after: Served, units: dict[int, Unit], hits: Iterable[Hit]
) -> tuple[Counter[str], list[str]]:
    """Compare a mended store with the undamaged one: a consumer gets each message that was not touched, once, in its
    place; nothing else but what holds the place of a lost one. Returns counts, and each disagreement in words.
    """
    counts: Counter[str] = Counter()
    if not after.is_loaded:
        return counts, ["the real store does not load"]
    hits, wrong = list(hits), [f"odd: {row}" for row in after.odd if row["t"] == "noMessage"]
    touched = {offset for offset, unit in units.items() if any(hit.touches(unit) for hit in hits)}
    for queue, entries in before.queues.items():
        now = after.queues.get(queue, [])
        untouched = [entry for entry in entries if entry[0] not in touched]
        kept = [entry for entry in now if entry[0] not in touched and not _is_inside(entry[0], touched, units, hits)]
        if kept != untouched:
            missing = [entry for entry in untouched if entry not in kept]
            wrong.append(f"{queue}: {len(untouched)} entries untouched, serves {len(kept)}, missing {missing[:3]}")
        same = [entry for entry in entries if entry in now]
        counts["served"] += len(untouched)
        counts["put right"] += len(same) - len(untouched)
        counts["in place of lost"] += len(now) - len(kept) - (len(same) - len(untouched))
        counts["gone"] += len(entries) - len(now)
    for queue in after.queues.keys() - before.queues.keys():
        wrong.append(f"invented queue {queue}")
    for queue, (low, high) in before.bounds.items():
        last = before.queues.get(queue, [(0, "")])[-1][0]
        now_low, now_high = after.bounds.get(queue, (0, 0))
        if now_low != low or (now_high != high and last not in touched):
            wrong.append(f"bounds of {queue}: {(now_low, now_high)}, were {(low, high)}")
    return counts, wrong


def compare_compacted(before: Served, after: Served, units: dict[int, Unit]) -> tuple[Counter[str], list[str]]:
    """Compare compacted queues by queue offset: a consumer gets every message that it got before. A queue that is built
    again from the commit log has others of it as well, until it is compacted again.
    """
    counts: Counter[str] = Counter()
    if not after.is_loaded:
        return counts, ["the real store does not load"]
    wrong = [f"odd: {row}" for row in after.odd if row["t"] == "noMessage"]
    known = {(unit.topic, unit.queue_id, unit.queue_offset) for unit in units.values()}
    for queue, entries in before.numbered.items():
        now = after.numbered.get(queue, {})
        missing = [number for number, sha in entries.items() if now.get(number) != sha]
        invented = [number for number in now.keys() - entries.keys() if (*queue, number) not in known]
        counts["served"] += len(entries) - len(missing)
        counts["not compacted yet"] += len(now.keys() - entries.keys())
        if missing or invented:
            wrong.append(f"{queue}: {len(entries)} messages, missing {missing[:5]}, invented {invented[:5]}")
    return counts, wrong


def _is_inside(offset: int, touched: set[int], units: dict[int, Unit], hits: list[Hit]) -> bool:
    spans = [*((start, units[start].end) for start in touched), *((hit.start, hit.stop) for hit in hits)]
    return any(start <= offset < stop for start, stop in spans) and offset not in units
