"""Stores of every shape by seed, damaged in every way that a repair is made for, and what a mended store has to serve.

Each kind of damage names the repair that has to mend it. :func:`disagreements` compares what a real consumer got from
the mended store with what it got from the undamaged one.
"""

from __future__ import annotations

import os
import random
import shutil
import struct
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import repair_rounds
from planted_faults import patch
from repair_rounds import Hit
from store_damage import Anatomy

from engine.codec.consume_queue import CQ_UNIT_SIZE
from engine.codec.filler import LOST
from engine.codec.message import Unit
from engine.codec.unit_scan import Blank
from engine.inspection.snapshot import open_store

Rows = list[dict[str, Any]]
Planter = Callable[[random.Random, Path, Anatomy], list[Hit]]
TO_END = 1 << 62


# -- stores


def shape(seed: int, release: str) -> dict[str, Any]:
    """Return a plan for the real store: sizes of files, topics, queues, keys and kinds of messages follow the seed."""
    rng = random.Random(f"shape {seed} {release}")
    slots = rng.choice((50, 100, 300))
    topics = [
        {"name": "Orders", "queues": rng.randrange(1, 5)},
        {"name": rng.choice(("Größe", "Payments", "T" * 100)), "queues": rng.randrange(1, 3)},
        {"name": "%RETRY%group", "queues": 1},
    ]
    if rng.random() < 0.3:
        topics.append({"name": "Quiet", "queues": 1, "firstQueue": 7})
    messages = [
        {"topic": "Orders", "queue": 0, "body": "x" * 100, "properties": {"KEYS": "long", "note": "y" * 20_000}}
        for _ in range(rng.choice((0, 0, 1, 3)))
    ]
    return {
        "config": {
            "mappedFileSizeCommitLog": rng.choice((65_536, 98_304, 131_072, 262_144)),
            "mappedFileSizeConsumeQueue": CQ_UNIT_SIZE * rng.choice((50, 100, 300, 1000)),
            "maxHashSlotNum": slots,
            "maxIndexNum": slots * rng.choice((2, 4)),
        },
        "topics": topics,
        "messages": messages,
        "unicode": rng.random() < 0.5,
        "bornHosts": ["10.1.2.3:40001", *(["[2001:db8::12:34]:40002"] if rng.random() < 0.4 else [])],
        "body": {"min": 0, "max": rng.choice((30, 200, 700)), "largeEvery": rng.choice((53, 97)), "largeSize": 9000},
        "keys": {"max": rng.choice((0, 1, 3, 3)), "space": rng.choice((40, 400))},
        "halfEvery": rng.choice((0, 30, 50)),
        "endHalfEvery": rng.choice((40, 60)),
        "batchEvery": rng.choice((0, 17)),
        "delayEvery": rng.choice((0, 30, 70)),
        "delayLevels": [3, 17],
        "compressEvery": rng.choice((0, 20, 60)),
        "pauseEvery": 300,
        "pauseMs": 1100,
        "seed": seed,
        "count": rng.randrange(400, 900),
    }


# -- damage


@dataclass(frozen=True)
class Kind:
    """One kind of damage, and the name of the repair that is made for it."""

    name: str
    repair: str
    plant: Planter


KINDS: list[Kind] = []


def _kind(repair: str) -> Callable[[Planter], Planter]:
    def add(plant: Planter) -> Planter:
        KINDS.append(Kind(plant.__name__.replace("_", " "), repair, plant))
        return plant

    return add


def _log_file(rng: random.Random, store: Anatomy) -> tuple[Path, int, int]:
    """Return a file of the log that is not the last one with messages, if there are two."""
    files = [file for file in store.log if file[1] <= store.units[-1].offset]
    return rng.choice(files[:-1] or files)


def _inner_log_file(rng: random.Random, store: Anatomy) -> tuple[Path, int, int]:
    """Return a file of the log between others; raises IndexError if there is none."""
    return rng.choice([file for file in store.log if file[1] <= store.units[-1].offset][1:-1])


def _early_unit(rng: random.Random, store: Anatomy) -> Unit:
    return rng.choice(store.units[: -len(store.units) // 10])


def _overwrite(store: Anatomy, start: int, data: bytes) -> list[Hit]:
    path, position = store.place(start)
    data = data[: path.stat().st_size - position]
    patch(path, position, data)
    return [Hit(start, start + len(data), "overwritten")]


def _queue_files(rng: random.Random, store: Anatomy) -> list[Path]:
    return rng.choice(store.queues)


def _used(data: bytes) -> int:
    return -(-len(data.rstrip(b"\0")) // CQ_UNIT_SIZE) * CQ_UNIT_SIZE


@_kind("log")
def zeros_in_the_log(rng: random.Random, _: Path, store: Anatomy) -> list[Hit]:
    unit = _early_unit(rng, store)
    size = rng.choice((1, 4, 36, 120, 512, 4096, 9000))
    return _overwrite(store, unit.offset + rng.choice((0, 0, 4, 8, rng.randrange(unit.size))), bytes(size))


@_kind("log")
def random_bytes_in_the_log(rng: random.Random, _: Path, store: Anatomy) -> list[Hit]:
    unit = _early_unit(rng, store)
    size = rng.choice((4, 8, 36, 120, 512, 4096, 9000))
    return _overwrite(store, unit.offset + rng.randrange(unit.size), rng.randbytes(size))


@_kind("log")
def a_page_of_the_log_elsewhere(rng: random.Random, _: Path, store: Anatomy) -> list[Hit]:
    """A page was written to the place of another one: its messages stand there twice."""
    content = _log_file(rng, store)[0].read_bytes()
    start = 4096 * rng.randrange(len(content) // 4096)
    data = content[start : start + 4096]
    offset = _early_unit(rng, store).offset // 4096 * 4096
    return _overwrite(store, offset, data) if offset + 4096 < store.units[-10].offset else []


@_kind("log")
def an_inverted_bit(rng: random.Random, _: Path, store: Anatomy) -> list[Hit]:
    unit = _early_unit(rng, store)
    offset = unit.offset + rng.randrange(unit.size)
    path, position = store.place(offset)
    return _overwrite(store, offset, bytes([path.read_bytes()[position] ^ 1 << rng.randrange(8)]))


@_kind("log")
def a_field_of_a_message(rng: random.Random, _: Path, store: Anatomy) -> list[Hit]:
    unit = _early_unit(rng, store)
    position, size = rng.choice(((0, 4), (4, 4), (8, 4), (12, 4), (20, 8), (28, 8), (36, 4)))
    return _overwrite(store, unit.offset + position, rng.randbytes(size))


@_kind("log")
def zeros_to_the_end_of_a_log_file(rng: random.Random, _: Path, store: Anatomy) -> list[Hit]:
    start, size = _log_file(rng, store)[1:]
    unit = rng.choice([unit for unit in store.units if start <= unit.offset < start + size])
    return _overwrite(store, unit.offset, bytes(start + size - unit.offset))


@_kind("log")
def the_begin_of_a_log_file(rng: random.Random, _: Path, store: Anatomy) -> list[Hit]:
    start = _log_file(rng, store)[1]
    return _overwrite(store, start, bytes(rng.choice((36, 4096))))


@_kind("log")
def messages_and_their_queue_entries(rng: random.Random, _: Path, store: Anatomy) -> list[Hit]:
    unit = _early_unit(rng, store)
    hits = _overwrite(store, unit.offset, rng.choice((bytes, rng.randbytes))(2000))
    for files in store.queues:
        for file in files:
            data = bytearray(file.read_bytes())
            for place in range(0, len(data) - CQ_UNIT_SIZE + 1, CQ_UNIT_SIZE):
                if hits[0].start <= struct.unpack_from(">q", data, place)[0] < hits[0].stop:
                    data[place : place + CQ_UNIT_SIZE] = bytes(CQ_UNIT_SIZE)
            file.write_bytes(data)
    return hits


@_kind("log")
def a_wrong_blank(rng: random.Random, root: Path, store: Anatomy) -> list[Hit]:
    with open_store(root) as opened:
        blanks = [item for item in opened.log.walk(opened.log.min_offset) if isinstance(item, Blank)]
    return _overwrite(store, rng.choice(blanks).offset, rng.choice((rng.randbytes(4), bytes(8)))) if blanks else []


@_kind("lengths")
def a_cut_log_file(rng: random.Random, root: Path, store: Anatomy) -> list[Hit]:
    path, start, size = _log_file(rng, store)
    unit = rng.choice([unit for unit in store.units if start <= unit.offset < start + size])
    os.truncate(path, unit.offset - start + rng.randrange(1, unit.size))
    return [Hit(unit.offset, start + size, "cut")]


@_kind("lengths")
def the_last_log_file_cut(rng: random.Random, root: Path, _: Anatomy) -> list[Hit]:
    return repair_rounds.damage_files(rng, root, "last file cut")


@_kind("lengths")
def a_log_file_that_is_too_long(rng: random.Random, _: Path, store: Anatomy) -> list[Hit]:
    with _log_file(rng, store)[0].open("ab") as file:
        file.write(rng.choice((bytes, rng.randbytes))(rng.choice((1, 4096))))
    return []


@_kind("files")
def a_log_file_under_another_name(rng: random.Random, root: Path, store: Anatomy) -> list[Hit]:
    path, start, _ = _log_file(rng, store)
    name = rng.choice((f"{path.name}.bak", str(start), f"{start + 1:020d}", f"copy of {path.name}", f"{path.name}.tmp"))
    path.rename(path.with_name(name))
    return []


@_kind("files")
def an_empty_last_log_file(rng: random.Random, root: Path, store: Anatomy) -> list[Hit]:
    last, start, size = store.log[-1]
    last.with_name(f"{start + size:020d}").touch()
    return []


@_kind("files")
def an_empty_last_queue_file(rng: random.Random, root: Path, store: Anatomy) -> list[Hit]:
    last = _queue_files(rng, store)[-1]
    last.with_name(f"{int(last.name) + last.stat().st_size:020d}").touch()
    return []


@_kind("files")
def a_foreign_file(rng: random.Random, root: Path, store: Anatomy) -> list[Hit]:
    folder = rng.choice((root / "commitlog", _queue_files(rng, store)[0].parent))
    (folder / rng.choice((".DS_Store", "notes.txt", "core.4711"))).write_bytes(b"x" * rng.choice((0, 10, 6148)))
    return []


@_kind("missing-files")
def a_lost_log_file_and_all_queues(rng: random.Random, root: Path, store: Anatomy) -> list[Hit]:
    path, start, size = _inner_log_file(rng, store)
    path.unlink()
    shutil.rmtree(root / "consumequeue")
    return [Hit(start, start + size, "lost")]


@_kind("missing-files")
def a_lost_log_file_and_queues_that_end_before_it(rng: random.Random, root: Path, store: Anatomy) -> list[Hit]:
    path, start, size = _inner_log_file(rng, store)
    path.unlink()
    for files in store.queues:
        for file in files:
            data = bytearray(file.read_bytes())
            for place in range(0, len(data) - CQ_UNIT_SIZE + 1, CQ_UNIT_SIZE):
                offset, unit_size, _ = struct.unpack_from(">qiq", data, place)
                if offset >= start and unit_size:
                    data[place : place + CQ_UNIT_SIZE] = bytes(CQ_UNIT_SIZE)
            file.write_bytes(data)
    return [Hit(start, start + size, "lost")]


@_kind("queues")
def the_first_log_file_and_all_queue_entries(rng: random.Random, _: Path, store: Anatomy) -> list[Hit]:
    """As after a restore of only the newer files: queues begin behind the messages that are gone."""
    files = [file for file in store.log if file[1] <= store.units[-1].offset]
    if len(files) < 2:
        return []
    first, start, size = files[0]
    first.unlink()
    for queue in store.queues:
        for file in queue:
            file.write_bytes(bytes(file.stat().st_size))
    return [Hit(start, start + size, "deleted")]


@_kind("queues")
def zeros_in_a_queue(rng: random.Random, _: Path, store: Anatomy) -> list[Hit]:
    file = rng.choice(_queue_files(rng, store))
    used = _used(file.read_bytes()) // CQ_UNIT_SIZE
    start = rng.randrange(max(used, 1))
    count = min(rng.choice((1, 10, 1000)), max(used - start, 1))
    patch(file, start * CQ_UNIT_SIZE, bytes(count * CQ_UNIT_SIZE))
    return []


@_kind("queues")
def random_bytes_in_a_queue(rng: random.Random, _: Path, store: Anatomy) -> list[Hit]:
    file = rng.choice(_queue_files(rng, store))
    size = file.stat().st_size
    start = rng.randrange(max(_used(file.read_bytes()), 1))
    patch(file, start, rng.randbytes(min(rng.choice((8, 60, 600)), size - start)))
    return []


@_kind("queues")
def entries_of_a_queue_shifted(rng: random.Random, _: Path, store: Anatomy) -> list[Hit]:
    file = rng.choice(_queue_files(rng, store))
    data = file.read_bytes()
    used = _used(data)
    place = rng.randrange(max(used // CQ_UNIT_SIZE, 1)) * CQ_UNIT_SIZE
    shifted = data[:place] + data[place : place + CQ_UNIT_SIZE] + data[place:used]
    file.write_bytes(shifted[: len(data)].ljust(len(data), b"\0"))
    return []


@_kind("queues")
def entries_of_another_queue(rng: random.Random, _: Path, store: Anatomy) -> list[Hit]:
    target, source = (rng.choice(_queue_files(rng, store)) for _ in range(2))
    size = min(target.stat().st_size, source.stat().st_size)
    patch(target, 0, source.read_bytes()[:size])
    return []


@_kind("queues")
def a_lost_queue_file(rng: random.Random, _: Path, store: Anatomy) -> list[Hit]:
    rng.choice(_queue_files(rng, store)).unlink()
    return []


@_kind("queues")
def a_lost_queue(rng: random.Random, _: Path, store: Anatomy) -> list[Hit]:
    folders = {files[0].parent for files in store.queues}
    with_sisters = sorted(folder for folder in folders if len(list(folder.parent.iterdir())) > 1)
    if not with_sisters:
        return []
    shutil.rmtree(rng.choice(with_sisters))
    return []


@_kind("queues")
def a_queue_file_cut_or_too_long(rng: random.Random, _: Path, store: Anatomy) -> list[Hit]:
    file = rng.choice(_queue_files(rng, store))
    size = file.stat().st_size
    if rng.random() < 0.5:
        os.truncate(file, rng.randrange(1, size))
    else:
        with file.open("ab") as handle:
            handle.write(bytes(rng.choice((1, 20, 4096))))
    return []


@_kind("queues")
def every_queue_but_one_file(rng: random.Random, root: Path, store: Anatomy) -> list[Hit]:
    kept = rng.choice(store.queues)[0]
    for files in store.queues:
        for file in files:
            if file != kept:
                file.unlink()
    return []


@_kind("start-of-dispatch")
def all_queues_gone(rng: random.Random, root: Path, _: Anatomy) -> list[Hit]:
    shutil.rmtree(root / "consumequeue")
    return []


@_kind("index-entries")
def entries_of_an_index_file(rng: random.Random, root: Path, _: Anatomy) -> list[Hit]:
    repair_rounds.damage_index(rng, root)
    return []


@_kind("index")
def links_of_an_index_file(rng: random.Random, root: Path, _: Anatomy) -> list[Hit]:
    with open_store(root) as store:
        files = [file for file in store.index_files() if file.header.entries > 20]
        if not files:
            return []
        file = rng.choice(files)
        path, geometry, header = Path(file.path), file.geometry, file.header
    assert geometry is not None
    number = rng.randrange(2, header.entries)
    match rng.choice(("link", "slot", "count")):
        case "link":
            wrong = rng.choice((number, header.index_count + 7))
            patch(path, geometry.entry_position(number) + 16, struct.pack(">i", wrong))
        case "slot":
            patch(path, geometry.slot_position(rng.randrange(geometry.slots)), struct.pack(">i", number + 10**6))
        case "count":
            patch(path, rng.choice((32, 36)), struct.pack(">i", max(header.index_count - rng.randrange(1, 9), 1)))
    return []


@_kind("checkpoint")
def a_wrong_checkpoint(rng: random.Random, root: Path, _: Anatomy) -> list[Hit]:
    return repair_rounds.damage_files(rng, root, "checkpoint")


@_kind("log")
def two_kinds_at_once(rng: random.Random, root: Path, _: Anatomy) -> list[Hit]:
    hits: list[Hit] = []
    for kind in rng.sample([kind for kind in KINDS if kind.plant is not two_kinds_at_once], 2):
        hits += planted(kind, rng, root)
    return hits


def planted(kind: Kind, rng: random.Random, root: Path) -> list[Hit]:
    """Damage the store at ``root``; an earlier damage may leave nothing for this one."""
    try:
        return kind.plant(rng, root, Anatomy(root))
    except (FileNotFoundError, IndexError, StopIteration):
        return []


# -- what is served


@dataclass
class Served:
    """What the real store has and gives to a consumer."""

    messages: dict[int, dict[str, Any]] = field(default_factory=dict)
    entries: dict[tuple[str, int, int], tuple[int, int]] = field(default_factory=dict)
    consumed: dict[tuple[str, int, int], tuple[int, str]] = field(default_factory=dict)
    bounds: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    loaded_end: int = 0
    is_loaded: bool = False


def served(rows: Rows) -> Served:
    """Return the rows of :meth:`peer.Peer.consume` by place."""
    served = Served()
    for row in rows:
        match row["t"]:
            case "load":
                served.is_loaded = row["ok"]
            case "state" if row["when"] == "loaded":
                served.loaded_end = row["maxPhy"]
            case "msg":
                served.messages[row["phy"]] = row
            case "cq":
                served.entries[row["topic"], row["queue"], row["n"]] = (row["phy"], row["size"])
            case "consumed":
                place = (row["topic"], row["queue"], row["n"])
                assert place not in served.consumed, place
                served.consumed[place] = (row["phy"], row["sha"])
            case "queue" if row["when"] == "dispatched":
                served.bounds[row["topic"], row["queue"]] = (row["min"], row["max"])
    return served


@dataclass
class Outcome:
    """What a mend brought: numbers for the table, and each disagreement in words."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def _stands_in(row: dict[str, Any]) -> bool:
    """Return True for a placeholder or filler."""
    is_short = row["sysFlag"] & 0xC1 == 0xC1 and not row["bornHost"].strip("0")  # without room for the property
    return LOST in row["props"] or is_short


def compare(before: Served, after: Served, units: dict[int, Unit], hits: Iterable[Hit]) -> Outcome:
    """Compare the mended store with the undamaged one: untouched messages are served as before, lost ones have
    placeholders or are gone with the end of the log, and nothing is invented.
    """
    outcome, hits = Outcome(), list(hits)
    if not after.is_loaded:
        outcome.wrong.append("the real store does not load")
        return outcome
    touched = {offset for offset, unit in units.items() if any(hit.touches(unit) for hit in hits)}
    lengths = {offset: unit.end for offset, unit in units.items()}
    for offset in before.messages.keys() - touched:
        row = after.messages.get(offset)
        if row != before.messages[offset]:
            outcome.wrong.append(f"message at {offset} {'changed' if row else 'missing'}")
    for place, entry in before.consumed.items():
        now = after.consumed.get(place)
        if entry[0] not in touched:
            if now != entry:
                outcome.wrong.append(f"{place} is served as {now}, was {entry}")
        elif now == entry:
            outcome.counts["put right"] += 1
        elif now is None:
            outcome.counts["gone"] += 1
        else:
            row = after.messages.get(now[0])
            if row is not None and _stands_in(row):
                outcome.counts["placeholder"] += 1
            elif now[0] == entry[0] and row is not None and row["bodySha"] == before.messages[entry[0]]["bodySha"]:
                outcome.counts["body as it was"] += 1
            else:
                outcome.counts["served damaged"] += 1
    for place in after.consumed.keys() - before.consumed.keys():
        outcome.wrong.append(f"invented: {place} {after.consumed[place]}")
    for offset, row in after.messages.items():
        spans = [*((start, lengths[start]) for start in touched), *((hit.start, hit.stop) for hit in hits)]
        is_inside = any(start <= offset < stop for start, stop in spans)
        if offset not in before.messages and not (_stands_in(row) and is_inside):
            outcome.wrong.append(f"invented: {row['topic']} at {offset}")
    for queue, (low, high) in before.bounds.items():
        now_low, now_high = after.bounds.get(queue, (0, 0))
        last = before.entries.get((*queue, high - 1), (0, 0))[0]
        first = min((offset for offset in after.messages), default=0)
        is_deleted = before.entries.get((*queue, low), (first, 0))[0] < first  # as by a broker's retention
        if (now_low != low and not is_deleted) or (now_high != high and last not in touched):
            outcome.wrong.append(f"bounds of {queue}: {(now_low, now_high)}, were {(low, high)}")
    return outcome
