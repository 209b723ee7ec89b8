"""Stores with tables and groups by seed, damaged so that a certain repair has to act, and what a real broker serves
after it (:mod:`store_readings`).

The kinds of :mod:`mend_campaign` damage the files of messages. Those of this module damage tables, and do what disks,
copies and hands do beside that.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mend_campaign
import peer
import repair_rounds
from mend_campaign import Kind, Planter
from mended_stores import records
from planted_faults import patch
from repair_rounds import Hit
from store_damage import Anatomy
from store_readings import ConsumedMessage, Reading, StoreReader

from engine.codec.config_tables import load_table
from engine.codec.message import Unit
from engine.inspection.snapshot import open_store

GROUP = "readers"
DELAY_TOPIC = "SCHEDULE_TOPIC_XXXX"
LEVEL, LEVEL_MS = 3, 10_000
"""The delay level whose messages come due during a test."""
QUIET_BROKER = {"timerWheelEnable": False, "transactionCheckInterval": 3_600_000, "maxMsgsNumBatch": 10_000}
"""No wheel of 37 MB, no answers of producers that are gone, and all messages of a key: by default a broker returns the
newest 64, and those that it delivers while it is read come first.
"""


# -- stores


@dataclass
class BaseStore:
    """An undamaged store, and what a real broker serves of it."""

    folder: Path
    plan: dict[str, Any]
    units: dict[int, Unit]
    keys: list[list[str]]
    pending: Counter[str]
    before: Reading
    usual: set[str] = field(default_factory=set)
    """Findings of ``check`` that the undamaged store has, before a broker was on it and after that."""

    @property
    def end(self) -> int:
        """Return the end of the log: what is behind it was written by the broker under test."""
        return max(unit.end for unit in self.units.values())

    @property
    def broker_config(self) -> dict[str, Any]:
        return {**self.plan["config"], **QUIET_BROKER}

    @property
    def topics(self) -> list[str]:
        return [topic["name"] for topic in self.plan["topics"]]

    def read(self, reader: StoreReader, store: Path, **command: Any) -> Reading:
        """Read all of a store that was made of this one."""
        return reader.read(
            store,
            config=self.broker_config,
            keys=self.keys,
            groups={GROUP: self.topics[:2]},
            startMs=120_000,
            **command,
        )

    def delivered(self, reading: Reading) -> Counter[tuple[str, int, str]]:
        """Return what the broker delivered from the delay levels while it was read."""
        return Counter(
            (message.topic, message.queue_id, message.body)
            for message in reading.messages.values()
            if message.physical_offset >= self.end and message.topic in self.topics
        )


def make_stores(seeds: Sequence[int], release: str, work: Path, reader: StoreReader) -> list[BaseStore]:
    """Return stores that the real store of a release wrote, and a real broker served: some delayed messages are
    delivered, later ones wait, and a group is in the middle of its queues.
    """
    partner = peer.Peer(release, work)
    plans = {seed: mend_campaign.shape(seed, release) for seed in seeds}
    for seed, plan in plans.items():
        plan["delayEvery"] = 30
        # a push consumer of 4.9.7 fails with a NullPointerException at an empty body, and hands over none of its batch
        plan["body"]["min"] = 1
        partner.write(plan, work / f"store-{seed}")
        _write_topics(work / f"store-{seed}", plan)
    due = time.monotonic() + LEVEL_MS / 1000
    stores = []
    for seed, plan in plans.items():
        store, rng = work / f"store-{seed}", random.Random(f"offsets {seed}")
        with open_store(store) as opened:
            offsets = {
                topic: {str(number): rng.randint(0, queue.max_offset) for number, queue in sorted(queues.items())}
                for topic, queues in opened.queues.by_topic().items()
                if topic in [item["name"] for item in plan["topics"][:2]]
            }
        time.sleep(max(0.0, due - time.monotonic()))
        config = {**plan["config"], **QUIET_BROKER}
        reading = reader.read(store, config=config, topics=[DELAY_TOPIC], commit={GROUP: offsets}, startMs=120_000)
        assert reading.is_started, reading.error
        assert not reading.error, reading.error
    for seed, plan in plans.items():
        store = work / f"store-{seed}"
        reader.wait_closed(store)
        later = {"messages": [], "count": 60, "delayEvery": 9, "uniqStart": 100_000, "seed": seed + 5000}
        partner.write({**plan, **later}, store)
        stores.append(_base_store(store, plan))
    for base in stores:
        copy = work / f"read-{base.folder.name}"
        shutil.copytree(base.folder, copy)
        base.before = base.read(reader, copy, **{"await": dict(awaited(base)), "awaitMs": 2 * LEVEL_MS})
        assert base.before.is_started, base.before.error
        assert not base.before.error, base.before.error
        reader.wait_closed(copy)
        base.usual = findings_of(base.folder) | findings_of(copy)
        shutil.rmtree(copy)
    return stores


def findings_of(store: Path) -> set[str]:
    """Return the rules that ``check`` finds."""
    return {line["id"] for line in records("check", store)[1] if line["type"] == "finding"}


def awaited(base: BaseStore) -> Counter[str]:
    """Return how many messages of each topic are there once the waiting ones were delivered."""
    with open_store(base.folder) as store:
        counts = Counter(
            {
                topic: sum(queue.max_offset - queue.min_offset for queue in queues.values())
                for topic, queues in store.queues.by_topic().items()
                if topic in base.pending
            }
        )
    return counts + base.pending


def _base_store(folder: Path, plan: dict[str, Any]) -> BaseStore:
    units = repair_rounds.units_of(folder)
    rng = random.Random(f"keys {folder.name}")
    keys = {
        (unit.topic, key)
        for unit in units.values()
        if unit.transaction_type in (0, 8) and len(unit.topic) < 100
        for key in [*unit.properties.get("KEYS", "").split(" "), unit.properties.get("UNIQ_KEY", "")]
        if key
    }
    delivered_offset = _by_number(_table(folder, "delayOffset.json")).get(LEVEL, 0)
    pending = Counter(
        unit.properties["REAL_TOPIC"]
        for unit in units.values()
        if unit.topic == DELAY_TOPIC and unit.queue_id == LEVEL - 1 and unit.queue_offset >= delivered_offset
    )
    asked = [list(pair) for pair in rng.sample(sorted(keys), min(30, len(keys)))]
    return BaseStore(folder, plan, units, asked, pending, Reading({}))


def _write_topics(store: Path, plan: dict[str, Any]) -> None:
    """Write ``topics.json``, which the store itself does not have."""
    (store / "config").mkdir(exist_ok=True)
    counts = {topic["name"]: topic.get("firstQueue", 0) + topic["queues"] for topic in plan["topics"]}
    rows = {
        name: {
            "order": False,
            "perm": 6,
            "readQueueNums": count,
            "topicFilterType": "SINGLE_TAG",
            "topicName": name,
            "topicSysFlag": 0,
            "writeQueueNums": count,
        }
        for name, count in counts.items()
    }
    table = {"dataVersion": {"counter": 1, "timestamp": 1_700_000_000_000}, "topicConfigTable": rows}
    (store / "config/topics.json").write_text(json.dumps(table, ensure_ascii=False, indent=1), "utf-8")


# -- damage

KINDS: list[Kind] = list(mend_campaign.KINDS)
"""Every kind of damage; the repair that has to act on it, "" where none has to."""


def _kind(repair: str) -> Callable[[Planter], Planter]:
    def add(plant: Planter) -> Planter:
        KINDS.append(Kind(plant.__name__.replace("_", " "), repair, plant))
        return plant

    return add


@_kind("log")
def ones_in_the_log(rng: random.Random, _: Path, store: Anatomy) -> list[Hit]:
    """Sectors that a copy of a disk could not read, as some tools fill them."""
    unit = rng.choice(store.units[: -len(store.units) // 10])
    path, position = store.place(unit.offset // 512 * 512)
    size = min(rng.choice((512, 4096)), path.stat().st_size - position)
    patch(path, position, b"\xff" * size)
    return [Hit(unit.offset // 512 * 512, unit.offset // 512 * 512 + size, "ones")]


@_kind("files")
def log_files_swapped(rng: random.Random, _: Path, store: Anatomy) -> list[Hit]:
    files = [path for path, start, _ in store.log if start <= store.units[-1].offset]
    _swap(*rng.sample(files, 2) if len(files) > 1 else [files[0], files[0]])
    return []


@_kind("files")
def an_index_file_twice(rng: random.Random, root: Path, _: Anatomy) -> list[Hit]:
    file = rng.choice(sorted((root / "index").iterdir()))
    shutil.copy2(file, file.with_name(rng.choice((f"{int(file.name) + 1000}", f"{file.name}.bak"))))
    return []


@_kind("queues")
def queue_files_swapped(rng: random.Random, _: Path, store: Anatomy) -> list[Hit]:
    _swap(*(rng.choice(files) for files in rng.sample(store.queues, 2)))
    return []


@_kind("queues")
def a_queue_file_of_another_topic(rng: random.Random, _: Path, store: Anatomy) -> list[Hit]:
    """A copy that went into the wrong folder."""
    file = rng.choice(rng.choice(store.queues))
    others = [other for files in store.queues for other in files if other.parent.parent != file.parent.parent]
    shutil.copyfile(rng.choice(others), file)
    return []


@_kind("queues")
def ones_in_a_queue(rng: random.Random, _: Path, store: Anatomy) -> list[Hit]:
    file = rng.choice(rng.choice(store.queues))
    size = file.stat().st_size
    start = rng.randrange(max(len(file.read_bytes().rstrip(b"\0")), 1)) // 512 * 512
    patch(file, start, b"\xff" * min(rng.choice((512, 4096)), size - start))
    return []


@_kind("queues")
def a_queue_file_cut_and_a_wrong_checkpoint(rng: random.Random, root: Path, store: Anatomy) -> list[Hit]:
    file = rng.choice(rng.choice(store.queues))
    os.truncate(file, rng.randrange(1, file.stat().st_size))
    return repair_rounds.damage_files(rng, root, "checkpoint")


@_kind("queues")
def a_file_in_place_of_a_queue(rng: random.Random, _: Path, store: Anatomy) -> list[Hit]:
    folders = sorted({files[0].parent for files in store.queues})
    folder = rng.choice([folder for folder in folders if len(list(folder.parent.iterdir())) > 1])
    shutil.rmtree(folder)
    folder.write_bytes(b"")
    return []


@_kind("start-of-dispatch")
def a_file_in_place_of_all_queues(rng: random.Random, root: Path, _: Anatomy) -> list[Hit]:
    shutil.rmtree(root / "consumequeue")
    (root / "consumequeue").write_bytes(b"")
    return []


@_kind("")
def the_first_log_file_gone(rng: random.Random, _: Path, store: Anatomy) -> list[Hit]:
    files = [file for file in store.log if file[1] <= store.units[-1].offset]
    first, start, size = files[0]
    if len(files) < 2:
        return []
    first.unlink()
    return [Hit(start, start + size, "deleted")]


@_kind("")
def a_log_file_that_nobody_may_read(rng: random.Random, _: Path, store: Anatomy) -> list[Hit]:
    """As after a restore by another user; root reads it all the same."""
    rng.choice(store.log)[0].chmod(0)
    for file in rng.choice(store.queues):
        os.chown(file, 65534, 65534)
    return []


@_kind("index-entries")
def ones_in_an_index_file(rng: random.Random, root: Path, _: Anatomy) -> list[Hit]:
    file = rng.choice(sorted((root / "index").iterdir()))
    start = rng.randrange(file.stat().st_size // 2) // 512 * 512
    patch(file, start, b"\xff" * min(512, file.stat().st_size - start))
    return []


@_kind("checkpoint")
def a_checkpoint_of_the_future(rng: random.Random, root: Path, store: Anatomy) -> list[Hit]:
    newest = store.units[-1].store_timestamp
    numbers = [newest + rng.choice((0, 86_400_000, 31_536_000_000)) for _ in range(3)]
    numbers[rng.randrange(3)] = newest + 86_400_000
    patch(root / "checkpoint", 0, struct.pack(">qqq", *numbers))
    return []


@_kind("checkpoint")
def a_checkpoint_of_ones(rng: random.Random, root: Path, _: Anatomy) -> list[Hit]:
    (root / "checkpoint").write_bytes(b"\xff" * 4096)
    return []


@_kind("topics")
def a_topic_lost(rng: random.Random, root: Path, store: Anatomy) -> list[Hit]:
    """Both tables are those of before the topic."""
    table = _table(root, "topics.json")
    del table["topicConfigTable"][_busy_topic(rng, table, store)]
    _write_table(root, "topics.json", table, with_backup=True)
    return []


@_kind("topics")
def the_topic_table_lost(rng: random.Random, root: Path, _: Anatomy) -> list[Hit]:
    for name in ("topics.json", "topics.json.bak"):
        (root / "config" / name).unlink(missing_ok=True)
    return []


@_kind("topics")
def queues_hidden_by_a_topic(rng: random.Random, root: Path, store: Anatomy) -> list[Hit]:
    table = _table(root, "topics.json")
    row = table["topicConfigTable"]["Orders"]
    row["readQueueNums"] = max(row["readQueueNums"] - 1, 0)
    _write_table(root, "topics.json", table, with_backup=True)
    return []


@_kind("offsets")
def an_offset_ahead(rng: random.Random, root: Path, _: Anatomy) -> list[Hit]:
    table = _table(root, "consumerOffset.json")
    rows = table["offsetTable"][f"Orders@{GROUP}"]
    rows[rng.choice(sorted(rows))] += rng.choice((1000, 10**9))
    _write_table(root, "consumerOffset.json", table, with_backup=True)
    return []


@_kind("offsets")
def offsets_of_no_topic(rng: random.Random, root: Path, _: Anatomy) -> list[Hit]:
    table = _table(root, "consumerOffset.json")
    table["offsetTable"][f"Gone@{GROUP}"] = {"0": rng.randrange(1, 1000)}
    _write_table(root, "consumerOffset.json", table, with_backup=True)
    return []


@_kind("delay-offsets")
def delay_offsets_lost(rng: random.Random, root: Path, _: Anatomy) -> list[Hit]:
    for name in ("delayOffset.json", "delayOffset.json.bak"):
        (root / "config" / name).unlink(missing_ok=True)
    return []


@_kind("delay-offsets")
def a_delay_offset_ahead(rng: random.Random, root: Path, _: Anatomy) -> list[Hit]:
    table = _table(root, "delayOffset.json")
    table["offsetTable"] = _by_number(table) | {LEVEL: 10**6}
    _write_table(root, "delayOffset.json", table, with_backup=True)
    return []


@_kind("tables")
def text_behind_a_table(rng: random.Random, root: Path, _: Anatomy) -> list[Hit]:
    path = root / "config" / rng.choice(("topics.json", "consumerOffset.json", "subscriptionGroup.json"))
    with path.open("ab") as file:
        file.write(rng.choice((b'0}}\n"', b"}", path.read_bytes()[-40:])))
    path.with_name(f"{path.name}.bak").unlink(missing_ok=True)
    return []


@_kind("tables")
def a_table_that_only_its_backup_has(rng: random.Random, root: Path, _: Anatomy) -> list[Hit]:
    path = root / "config" / rng.choice(("topics.json", "consumerOffset.json", "subscriptionGroup.json"))
    data = path.read_bytes()
    shutil.copyfile(path, path.with_name(f"{path.name}.bak"))
    path.write_bytes(rng.choice((b"", bytes(len(data)), b"\xff" * len(data), data[: len(data) // 2])))
    return []


def _swap(path: Path, other: Path) -> None:
    if path != other:
        spare = path.with_name("spare")
        path.rename(spare)
        other.rename(path)
        spare.rename(other)


def _busy_topic(rng: random.Random, table: dict[str, Any], store: Anatomy) -> str:
    topics = {files[0].parent.parent.name for files in store.queues}
    return rng.choice(sorted(topics.intersection(table["topicConfigTable"])))


def _table(root: Path, name: str) -> Any:
    """Return a table as a broker reads it."""

    def read(name: str) -> bytes | None:
        path = root / "config" / name
        return path.read_bytes() if path.exists() else None

    return load_table(name, read).value


def _by_number(table: Any) -> dict[int, int]:
    return {int(number): offset for number, offset in table["offsetTable"].items()}


def _write_table(root: Path, name: str, table: Any, *, with_backup: bool) -> None:
    for suffix in ("", ".bak") if with_backup else ("",):
        (root / "config" / f"{name}{suffix}").write_text(json.dumps(table, ensure_ascii=False, indent=1), "utf-8")


# -- what is served


@dataclass
class Verdict:
    """Numbers for the table, and each disagreement in words."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def compare(
    base: BaseStore, after: Reading, mended: dict[int, Unit], hits: Iterable[Hit], unindexed: range = range(0)
) -> Verdict:
    """Compare what clients get from the mended store with what they got from the undamaged one. ``unindexed`` are the
    offsets of messages whose keys the start loses, as ``check`` said before it.
    """
    verdict, hits = Verdict(), list(hits)
    if not after.is_started or after.error:
        verdict.wrong.append(f"the broker: {after.error}")
        return verdict
    touched = {offset for offset, unit in base.units.items() if any(hit.touches(unit) for hit in hits)}
    end = min(base.end, after.line["loadedMaxPhyOffset"])  # behind it the broker writes what it delivers
    expected = {place: item for place, item in base.before.messages.items() if item.physical_offset < base.end}
    for place, message in expected.items():
        now = after.messages.get(place)
        if message.physical_offset not in touched:
            if now != message:
                verdict.wrong.append(f"{place} is {now}, was {message}")
        else:
            verdict.counts[_fate(message, now, mended)] += 1
    for place, message in after.messages.items():
        is_new = message.physical_offset < end and place not in expected
        if is_new and not _stands_in(mended, message.physical_offset):
            verdict.wrong.append(f"invented: {message}")
    if after.repeated:
        verdict.wrong.append(f"twice: {after.repeated[:5]}")
    for queue, row in after.queues.items():
        was = base.before.queues.get(queue, {})
        if row.get("error", "").split("BROKER")[0] != was.get("error", "").split("BROKER")[0]:
            verdict.wrong.append(f"{queue}: {row.get('error')}")
    unfindable = touched | {offset for offset in base.units if offset in unindexed}
    for key, answer in after.answers.items():
        verdict.wrong += _wrong_answer(base, end, key, answer, unfindable, mended)
    return verdict


def _fate(message: ConsumedMessage, now: ConsumedMessage | None, mended: dict[int, Unit]) -> str:
    if now == message:
        return "put right"
    if now is None:
        return "not served"
    if _stands_in(mended, now.physical_offset):
        return "placeholder"
    return "body as it was" if now.body == message.body else "served damaged"


def _stands_in(mended: dict[int, Unit], offset: int) -> bool:
    return offset in mended and repair_rounds.stands_in(mended[offset])


def _wrong_answer(
    base: BaseStore,
    end: int,
    key: tuple[str, str],
    answer: list[int] | str,
    unfindable: set[int],
    mended: dict[int, Unit],
) -> list[str]:
    was = base.before.answers[key]
    before = {offset for offset in was if offset < base.end} if isinstance(was, list) else set()
    after = {offset for offset in answer if offset < end} if isinstance(answer, list) else set()
    wrong = []
    if lost := before - after - unfindable:
        wrong.append(f"the index does not lead from {key} to {sorted(lost)[:5]}: {answer if not after else ''}")
    if new := {offset for offset in after - before if not _stands_in(mended, offset)}:
        wrong.append(f"the index leads from {key} to {sorted(new)[:5]}, which it did not")
    return wrong


def _offsets_by_queue(messages: list[ConsumedMessage], end: int) -> dict[tuple[str, int], list[int]]:
    offsets: dict[tuple[str, int], list[int]] = {}
    for message in messages:
        if message.physical_offset < end:
            offsets.setdefault((message.topic, message.queue_id), []).append(message.queue_offset)
    return offsets


def wrong_groups(base: BaseStore, after: Reading, mended_store: Path) -> list[str]:
    """Compare what the group got with the rows of the mended table: each queue from its offset on."""
    table = _table(mended_store, "consumerOffset.json")["offsetTable"]
    end = min(base.end, after.line["loadedMaxPhyOffset"])
    received = _offsets_by_queue(after.groups[GROUP], end)
    wrong = []
    for topic in base.topics[:2]:
        rows = {int(number): offset for number, offset in table.get(f"{topic}@{GROUP}", {}).items()}
        for queue in [queue for name, queue in after.queues if name == topic]:
            start = _corrected(rows.get(queue, 0), after.queues[topic, queue])
            due = sorted(
                place[2]
                for place, message in after.messages.items()
                if place[:2] == (topic, queue) and place[2] >= start and message.physical_offset < end
            )
            got = sorted(received.get((topic, queue), []))
            if got != due:
                wrong.append(f"{GROUP} got {got[:1]}…{got[-1:]} of {topic}/{queue}, due is {due[:1]}…{due[-1:]}")
    return wrong


def _corrected(offset: int, queue: dict[str, int]) -> int:
    """Return where a broker lets a group go on that asks for ``offset``, by ``DefaultMessageStore.getMessage``."""
    return min(max(offset, queue["min"]), queue["max"])
