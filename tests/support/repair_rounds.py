"""Random damage of a store's log and queues, and what a repair may not change: every message that was not touched."""

from __future__ import annotations

import os
import random
import shutil
import struct
from pathlib import Path
from typing import NamedTuple

from planted_faults import patch
from store_damage import Anatomy

from engine.codec.consume_queue import CQ_UNIT_SIZE
from engine.codec.filler import is_stand_in
from engine.codec.message import Unit
from engine.inspection.snapshot import open_store


class Hit(NamedTuple):
    """Bytes [start, stop) of the log that were changed."""

    start: int
    stop: int
    kind: str

    def touches(self, unit: Unit) -> bool:
        return self.start < unit.end and unit.offset < self.stop


def damage_log(rng: random.Random, root: Path) -> list[Hit]:
    """Overwrite one to four places of the log with zeros or random bytes, or invert a bit; messages follow each."""
    store = Anatomy(root)
    last = store.units[-1]
    hits = []
    for _ in range(rng.choice((1, 1, 2, 4))):
        unit = rng.choice(store.units[:-3])
        size = rng.choice((1, 4, 8, 36, 120, 512, 4096, 9000))
        start = min(unit.offset + rng.choice((0, 0, 4, 8, rng.randrange(unit.size))), last.offset - size - 1)
        path, position = store.place(start)
        size = min(size, path.stat().st_size - position)
        kind = rng.choice(("zeros", "random bytes", "a bit"))
        if kind == "a bit":
            size = 1
            new = bytes([path.read_bytes()[position] ^ 1 << rng.randrange(8)])
        else:
            new = bytes(size) if kind == "zeros" else rng.randbytes(size)
        patch(path, position, new)
        hits.append(Hit(start, start + size, kind))
    return hits


def damage_queues(rng: random.Random, root: Path) -> None:
    """Spoil one to three queues: entries, a file, all of the folder."""
    folders = sorted(path for path in (root / "consumequeue").glob("*/*") if path.is_dir())
    for folder in rng.sample(folders, min(len(folders), rng.choice((1, 2, 3)))):
        files = sorted(folder.iterdir())
        file = rng.choice(files)
        data = bytearray(file.read_bytes())
        used = len(data.rstrip(b"\0")) // CQ_UNIT_SIZE * CQ_UNIT_SIZE
        start = rng.randrange(max(used // CQ_UNIT_SIZE, 1)) * CQ_UNIT_SIZE
        kinds = ["zeros", "random bytes", "twice", "a file"]
        if len(list(folder.parent.iterdir())) > 1:  # else it looks like the queue of a deleted topic
            kinds.append("the folder")
        match rng.choice(kinds):
            case "zeros":
                data[start : start + 200] = bytes(len(data[start : start + 200]))
            case "random bytes":
                data[start : start + 60] = rng.randbytes(len(data[start : start + 60]))
            case "twice":
                data[start + CQ_UNIT_SIZE : used] = data[start : used - CQ_UNIT_SIZE]
            case "a file":
                file.unlink()
                continue
            case "the folder":
                shutil.rmtree(folder)
                continue
        file.write_bytes(data)


def damage_files(rng: random.Random, root: Path, kind: str) -> list[Hit]:
    """Damage a file as disks, copies and hands do; ``kind`` is one of :data:`FILE_DAMAGE`."""
    store = Anatomy(root)
    last_unit = store.units[-1]
    files = [file for file in store.log if file[1] <= last_unit.offset]
    path, start, size = rng.choice(files[:-1])
    match kind:
        case "cut":
            unit = rng.choice([unit for unit in store.units if start <= unit.offset < start + size])
            os.truncate(path, unit.offset - start + rng.randrange(1, unit.size))
            return [Hit(unit.offset, start + size, kind)]
        case "last file cut":
            unit = rng.choice(store.units[-10:])
            path, position = store.place(unit.offset + rng.randrange(1, unit.size))
            os.truncate(path, position)
            return [Hit(unit.offset, 1 << 62, kind)]
        case "too long":
            with path.open("ab") as file:
                file.write(bytes(rng.choice((1, 4096))))
        case "other name":
            name = rng.choice((f"{path.name}.bak", str(start), f"{start + 1:020d}", f"copy of {path.name}"))
            path.rename(path.with_name(name))
        case "lost, and all queues":
            path, start, size = files[len(files) // 2]
            path.unlink()
            shutil.rmtree(root / "consumequeue")
            return [Hit(start, start + size, kind)]
        case "index":
            damage_index(rng, root)
        case "checkpoint":
            newest = last_unit.store_timestamp + 10**10
            content = rng.choice((b"", bytes(4096), rng.randbytes(4096), struct.pack(">qqq", *[newest] * 3)))
            (root / "checkpoint").write_bytes(content)
    return []


FILE_DAMAGE = ("cut", "last file cut", "too long", "other name", "index", "checkpoint")
"""Kinds of damage for every store; "lost, and all queues" needs a log of three files at least."""


def damage_index(rng: random.Random, root: Path) -> None:
    """Overwrite a part of an index file, cut it, or empty it."""
    file = rng.choice(sorted((root / "index").iterdir()))
    size = file.stat().st_size
    match rng.choice(("header", "entries", "cut", "empty")):
        case "header":
            patch(file, 0, bytes(40))
        case "entries":
            patch(file, rng.randrange(size // 4, size - 100), rng.randbytes(60))
        case "cut":
            os.truncate(file, size // 2)
        case "empty":
            os.truncate(file, 0)


def units_of(root: Path) -> dict[int, Unit]:
    """Return the units of a log by their offsets."""
    with open_store(root) as store:
        return {item.offset: item for item in store.log.walk(store.log.min_offset) if isinstance(item, Unit)}


def stands_in(unit: Unit) -> bool:
    """Return True for a unit that holds the place of a lost message."""
    return is_stand_in(unit.sys_flag, unit.body, unit.properties_raw)


def wrongs(before: dict[int, Unit], after: dict[int, Unit], hits: list[Hit]) -> list[str]:
    """Return what a repair did wrong: a message that was not touched is lost or changed, or there is a new one."""
    touched = {offset for offset, unit in before.items() if any(hit.touches(unit) for hit in hits)}
    lost = [offset for offset in before.keys() - touched if after.get(offset) != before[offset]]
    new = [
        offset
        for offset, unit in after.items()
        if offset not in touched and unit != before.get(offset) and not stands_in(unit)
    ]
    return [*(f"lost or changed: {offset}" for offset in lost), *(f"invented: {offset}" for offset in new)]


def overwrite_with_zeros(root: Path, start: int, size: int) -> Hit:
    """Overwrite bytes of the log; they may end in the next unit."""
    path, position = Anatomy(root).place(start)
    patch(path, position, bytes(size))
    return Hit(start, start + size, "zeros")
