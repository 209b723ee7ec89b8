"""Single faults planted into copies of healthy stores: each kind knows what the check must name, and where.

A kind is a function of (random numbers, store) that spoils one thing and gives an :class:`Expected`. The store is read
with the program's own readers before it is spoilt; what they say of healthy stores is proven elsewhere.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.codec.message import Unit
from engine.codec.unit_scan import Blank
from engine.inspection.snapshot import open_store


@dataclass(frozen=True)
class Expected:
    """Ids of which one must be found, at ``offset`` (None: anywhere) of a file whose path ends with ``file``."""

    ids: tuple[str, ...]
    file: str | None = None
    offset: int | None = None


@dataclass(frozen=True)
class Entry:
    """One queue entry, where it stands, and whether it has neighbours on both sides."""

    path: Path
    position: int
    topic: str
    queue_id: int
    number: int
    physical: int
    size: int
    tags: int


class Spoiled:
    """A copy of a store, and what healthy things are in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        with open_store(root) as store:
            items = list(store.units())
            self.units = [i for i in items if isinstance(i, Unit)]
            self.blanks = [i for i in items if isinstance(i, Blank)]
            self.log_files = [(Path(f.path), f.start_offset, f.size) for f in store.log.files]
            self.end = store.log.max_offset
            self.queues = {
                (q.topic, q.queue_id): q for queues in store.topics().values() for q in queues.values()
            }
            self.entries = [e for q in self.queues.values() if q.kind == "simple" for e in _entries(q)]
            self.index = [(Path(i.path), i.header, i.geometry) for i in store.index_files() if i.geometry]
            self.queue_files = {key: [Path(f.path) for f in q.files] for key, q in self.queues.items()}
        entered = [u for u in self.units if u.transaction_type in (0, 8)]
        self.dispatched = [u for u in entered if (u.topic, u.queue_id) in self.queues]

    def place(self, offset: int) -> tuple[Path, int]:
        """File and position of an offset of the log."""
        path, start, _ = next(f for f in self.log_files if f[1] <= offset < f[1] + f[2])
        return path, offset - start

    def write(self, offset: int, data: bytes) -> None:
        """Overwrite bytes of the log."""
        path, position = self.place(offset)
        patch(path, position, data)


def _entries(queue) -> list[Entry]:
    found = []
    for entry in queue.entries():
        if entry.state != "entry":
            continue
        at = entry.queue_offset * 20
        file = queue.sequence.find(at)
        found.append(
            Entry(
                Path(file.path), at - file.start_offset, queue.topic, queue.queue_id, entry.queue_offset,
                entry.physical_offset, entry.size, entry.tags_code,
            )
        )  # fmt: skip
    return found[1:-1]


def patch(path: Path, position: int, data: bytes) -> None:
    """Overwrite bytes of a file."""
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)


def read(path: Path, position: int, size: int) -> bytes:
    with path.open("rb") as file:
        file.seek(position)
        return file.read(size)


class Unsuitable(Exception):
    """This store has nothing that could be spoilt in this way."""


def pick(rng: random.Random, things: Sequence[Any]) -> Any:
    """One of ``things``; a store without any is unsuitable."""
    if not things:
        raise Unsuitable
    return rng.choice(things)


Kind = Callable[[random.Random, Spoiled], Expected]
KINDS: dict[str, Kind] = {}


def kind(function: Kind) -> Kind:
    KINDS[function.__name__] = function
    return function


def some_unit(rng: random.Random, store: Spoiled, **wanted: int) -> Unit:
    """A dispatched unit that is neither the first nor the last of the log, with a body where asked."""
    able = [u for u in store.dispatched[3:-3] if len(u.body) >= wanted.get("body", 0)]
    return pick(rng, able)


# -- the log


@kind
def body_byte_flipped(rng, store):
    unit = some_unit(rng, store, body=1)
    at = unit.offset + unit.size - len(unit.properties_raw) - 2 - len(unit.topic.encode()) - unit.version
    at = at - len(unit.body) + rng.randrange(len(unit.body))
    path, position = store.place(at)
    patch(path, position, bytes([read(path, position, 1)[0] ^ 1 << rng.randrange(8)]))
    return Expected(("CL03",), path.name, unit.offset)


@kind
def length_flipped(rng, store):
    unit = some_unit(rng, store)
    store.write(unit.offset, struct.pack(">i", unit.size ^ 1 << rng.randrange(30)))
    return Expected(("CL01",), None, unit.offset)


@kind
def body_length_changed(rng, store):
    unit = some_unit(rng, store)
    at = unit.offset + 84 + (12 if unit.sys_flag & 16 else 0) + (12 if unit.sys_flag & 32 else 0)
    store.write(at, struct.pack(">i", len(unit.body) + rng.choice((1, 7, 1000, 1 << 28))))
    return Expected(("CL01",), None, unit.offset)


@kind
def magic_changed(rng, store):
    unit = some_unit(rng, store)
    store.write(unit.offset + 4, rng.randbytes(4))
    return Expected(("CL01",), None, unit.offset)


@kind
def page_zeroed(rng, store):
    unit = some_unit(rng, store)
    page = unit.offset // 4096 * 4096
    path, position = store.place(page)
    first = next(u for u in store.units if u.end > page)
    if first.offset >= page + 4096 or first.offset < store.units[1].offset:
        raise Unsuitable
    patch(path, position, bytes(4096))
    return Expected(("CL01", "CL03", "CL04"), None, first.offset)


@kind
def foreign_unit_copied_over(rng, store):
    unit = some_unit(rng, store)
    others = [u for u in store.units if u.offset != unit.offset]
    other = min(others, key=lambda u: (abs(u.size - unit.size), rng.random()))
    path, position = store.place(other.offset)
    store.write(unit.offset, read(path, position, min(other.size, unit.size)))
    return Expected(("CL05",) if other.size <= unit.size else ("CL05", "CL01"), None, unit.offset)


@kind
def physical_offset_changed(rng, store):
    unit = some_unit(rng, store)
    store.write(unit.offset + 28, struct.pack(">q", unit.offset ^ 1 << rng.randrange(40)))
    return Expected(("CL05",), None, unit.offset)


@kind
def queue_offset_changed(rng, store):
    unit = some_unit(rng, store)
    store.write(unit.offset + 20, struct.pack(">q", unit.queue_offset ^ 1 << rng.randrange(3, 40)))
    return Expected(("CL09",), None, unit.offset)


@kind
def queue_id_changed(rng, store):
    unit = some_unit(rng, store)
    store.write(unit.offset + 12, struct.pack(">i", unit.queue_id + rng.choice((1, 2, 77))))
    return Expected(("CL09",), None, unit.offset)


@kind
def message_turned_into_a_half_one(rng, store):
    unit = some_unit(rng, store)
    if unit.transaction_type:
        raise Unsuitable
    store.write(unit.offset + 36, struct.pack(">i", unit.sys_flag | rng.choice((4, 12))))
    return Expected(("CL09",), None, unit.offset)


@kind
def topic_letter_changed(rng, store):
    unit = some_unit(rng, store)
    topic = unit.topic.encode()
    at = unit.end - len(unit.properties_raw) - 2 - len(topic) + rng.randrange(len(topic))
    path, position = store.place(at)
    patch(path, position, bytes([read(path, position, 1)[0] ^ 1]))
    return Expected(("CL09",), None, unit.offset)


@kind
def properties_zeroed(rng, store):
    unit = pick(rng, [u for u in store.dispatched[3:-3] if len(u.properties_raw) > 8])
    store.write(unit.end - 8, bytes(8))
    return Expected(("CL04",), None, unit.offset)


@kind
def store_time_set_back(rng, store):
    unit = some_unit(rng, store)
    at = unit.offset + (68 if unit.sys_flag & 16 else 56)
    store.write(at, struct.pack(">q", unit.store_timestamp - rng.randrange(3_600_000, 7_200_000)))
    return Expected(("CL08",), None, unit.offset)


@kind
def log_file_cut_short(rng, store):
    path, start, size = pick(rng, store.log_files[:-1])
    with path.open("r+b") as file:
        file.truncate(rng.randrange(1, size))
    return Expected(("CL07",), path.name, start)


@kind
def middle_log_file_deleted(rng, store):
    path, start, _ = pick(rng, store.log_files[1:-1])
    path.unlink()
    return Expected(("CL07",), None, start)


@kind
def empty_last_file(rng, store):
    last, start, size = store.log_files[-1]
    path = last.parent / f"{start + size:020d}"
    path.touch()
    return Expected(("CL07",), path.name, start + size)


@kind
def log_file_too_long(rng, store):
    path, start, _ = pick(rng, store.log_files if len(store.log_files) > 1 else [])
    with path.open("ab") as file:
        file.write(bytes(rng.choice((1, 512, 4096))))
    return Expected(("CL07",), path.name, start)


@kind
def blank_says_another_length(rng, store):
    blank = pick(rng, store.blanks)
    store.write(blank.offset, struct.pack(">i", blank.size + rng.choice((-1, 1, 100))))
    return Expected(("CL02",), None, blank.offset)


@kind
def blank_has_another_magic(rng, store):
    blank = pick(rng, store.blanks)
    store.write(blank.offset + 4, rng.randbytes(4))
    return Expected(("CL01",), None, blank.offset)


@kind
def torn_bytes_behind_the_end(rng, store):
    path, position = store.place(store.end)
    patch(path, position, bytes(rng.randrange(1, 256) for _ in range(rng.randrange(9, 60))))
    return Expected(("CL06", "CL01"), path.name, store.end)


@kind
def tail_zeroed(rng, store):
    """As after a power loss that a clean exit hides: queues, index and checkpoint know more than the log."""
    last, start, _ = store.log_files[-1]
    unit = pick(rng, [u for u in store.dispatched[-30:-3] if u.offset >= start])
    patch(last, unit.offset - start, bytes(store.end - unit.offset))
    return Expected(("CL11", "CL06"), None, unit.offset)


@kind
def last_log_file_deleted(rng, store):
    path, start, _ = store.log_files[-1]
    if len(store.log_files) < 2 or start >= store.end:
        raise Unsuitable
    path.unlink()
    return Expected(("CL07",), None, start)


@kind
def stray_file_in_the_log(rng, store):
    path = store.log_files[0][0].parent / rng.choice(("notes.txt", "core.4711", "00000000000000000000.bak"))
    path.write_bytes(b"x" * 100)
    return Expected(("DK01",), path.name)


# -- queues


@kind
def entry_offset_changed(rng, store):
    entry = pick(rng, store.entries)
    patch(entry.path, entry.position, struct.pack(">q", entry.physical + rng.choice((1, -1, 1000, 1 << 33))))
    return Expected(("CQ04", "CQ12"), entry.path.name, entry.position)


@kind
def entry_size_changed(rng, store):
    entry = pick(rng, store.entries)
    patch(entry.path, entry.position + 8, struct.pack(">i", entry.size + rng.choice((1, -1, 4096))))
    return Expected(("CQ04",), entry.path.name, entry.position)


@kind
def entry_tag_changed(rng, store):
    entry = pick(rng, [e for e in store.entries if e.topic != "SCHEDULE_TOPIC_XXXX"])
    patch(entry.path, entry.position + 12, struct.pack(">q", (entry.tags if abs(entry.tags) < 1 << 31 else 0) + 17))
    return Expected(("CQ09",), entry.path.name, entry.position)


@kind
def entry_repeats_the_one_before(rng, store):
    entry = pick(rng, [e for e in store.entries if e.position >= 20])
    patch(entry.path, entry.position, read(entry.path, entry.position - 20, 20))
    return Expected(("CQ05",), entry.path.name, entry.position)


@kind
def entry_points_back(rng, store):
    entry = pick(rng, [e for e in store.entries if e.position >= 60])
    patch(entry.path, entry.position, read(entry.path, entry.position - 60, 20))
    return Expected(("CQ12",), entry.path.name, entry.position)


@kind
def entry_emptied(rng, store):
    entry = pick(rng, store.entries)
    patch(entry.path, entry.position, bytes(20))
    return Expected(("CQ03",), entry.path.name, entry.position)


@kind
def entry_inserted_twice(rng, store):
    """All later entries of the file stand one place too far."""
    entry = pick(rng, [e for e in store.entries if e.position >= 20])
    data = entry.path.read_bytes()
    at = entry.position
    entry.path.write_bytes((data[:at] + data[at - 20 : at] + data[at:])[: len(data)])
    return Expected(("CQ05",), entry.path.name, at)


@kind
def entry_left_out(rng, store):
    """All later entries of the file stand one place too early."""
    entry = pick(rng, store.entries)
    data = entry.path.read_bytes()
    at = entry.position
    entry.path.write_bytes(data[:at] + data[at + 20 :] + bytes(20))
    return Expected(("CQ04",), entry.path.name, at)


@kind
def queue_file_deleted(rng, store):
    simple = [files for key, files in store.queue_files.items() if store.queues[key].kind == "simple"]
    several = [files for files in simple if len(files) > 1]
    path = pick(rng, pick(rng, several)[:-1])
    path.unlink()
    return Expected(("CQ01", "CQ10"), None)


@kind
def queue_folder_deleted(rng, store):
    numbers: dict[str, list[int]] = {}
    for topic, number in store.queues:
        if store.queues[topic, number].kind == "simple" and store.queues[topic, number].max_offset:
            numbers.setdefault(topic, []).append(number)
    several = [(topic, n) for topic, found in numbers.items() if len(found) > 1 for n in found]
    topic, number = pick(rng, several)
    for path in store.queue_files[topic, number]:
        path.unlink()
    (store.root / "consumequeue" / topic / str(number)).rmdir()
    first = next(u for u in store.dispatched if (u.topic, u.queue_id) == (topic, number))
    return Expected(("CQ10",), None, first.offset)


@kind
def queue_file_cut_short(rng, store):
    simple = [files for key, files in store.queue_files.items() if store.queues[key].kind == "simple"]
    path = pick(rng, [file for files in simple for file in files])
    with path.open("r+b") as file:
        file.truncate(rng.randrange(20, path.stat().st_size - 20))
    return Expected(("CQ01",), path.name)


@kind
def batch_entry_changed(rng, store):
    key = pick(rng, [key for key, q in store.queues.items() if q.kind == "batch" and q.max_offset > 4])
    queue, path = store.queues[key], store.queue_files[key][0]
    number = rng.randrange(1, min(queue.valid_end // 46, path.stat().st_size // 46) - 1)
    field, layout, step = rng.choice(((0, ">q", 3), (8, ">i", 1), (28, ">q", 70)))
    old = struct.unpack(layout, read(path, number * 46 + field, struct.calcsize(layout)))[0]
    patch(path, number * 46 + field, struct.pack(layout, old + step))
    return Expected(("CQ04",), path.name, number * 46)


@kind
def ext_file_deleted(rng, store):
    folder = store.root / "consumequeue_ext"
    path = pick(rng, sorted(p for p in folder.rglob("0*") if p.is_file()) if folder.is_dir() else [])
    path.unlink()
    return Expected(("CQ09",))


# -- the index


def some_index(rng, store):
    return pick(rng, [i for i in store.index if i[1].entries > 20])


@kind
def index_entry_links_to_itself(rng, store):
    path, header, geometry = some_index(rng, store)
    number = rng.randrange(2, header.entries)
    patch(path, geometry.entry_position(number) + 16, struct.pack(">i", rng.choice((number, number + 1))))
    return Expected(("IX03",), path.name, geometry.entry_position(number) + 16)


@kind
def index_link_past_the_count(rng, store):
    path, header, geometry = some_index(rng, store)
    number = rng.randrange(2, header.entries)
    patch(path, geometry.entry_position(number) + 16, struct.pack(">i", header.index_count + rng.randrange(1, 9999)))
    return Expected(("IX02",), path.name, geometry.entry_position(number) + 16)


@kind
def index_slot_past_the_count(rng, store):
    path, header, geometry = some_index(rng, store)
    slot = rng.randrange(geometry.slots)
    patch(path, geometry.slot_position(slot), struct.pack(">i", header.index_count + rng.randrange(1, 9999)))
    return Expected(("IX02",), path.name, geometry.slot_position(slot))


@kind
def index_header_counts_wrong(rng, store):
    path, header, _ = some_index(rng, store)
    if rng.random() < 0.5:
        patch(path, 36, struct.pack(">i", header.index_count - rng.randrange(1, 9)))
        return Expected(("IX01",), path.name, 36)
    patch(path, 32, struct.pack(">i", header.hash_slot_count + rng.choice((-3, 5))))
    return Expected(("IX01",), path.name, 32)


@kind
def index_entry_points_nowhere(rng, store):
    path, header, geometry = some_index(rng, store)
    number = rng.randrange(2, header.entries)
    at = geometry.entry_position(number) + 4
    old = struct.unpack(">q", read(path, at, 8))[0]
    patch(path, at, struct.pack(">q", old + rng.choice((1, 3, -1, 1 << 35))))
    return Expected(("IX06",), path.name, geometry.entry_position(number))


@kind
def index_entry_has_another_hash(rng, store):
    path, header, geometry = some_index(rng, store)
    number = rng.randrange(2, header.entries)
    at = geometry.entry_position(number)
    old = struct.unpack(">i", read(path, at, 4))[0]
    patch(path, at, struct.pack(">i", old ^ 1 << rng.randrange(24)))
    return Expected(("IX06",), path.name, at)


@kind
def index_file_cut_short(rng, store):
    path, _, geometry = some_index(rng, store)
    with path.open("r+b") as file:
        file.truncate(rng.randrange(20, geometry.file_size - 20) // 2)
    return Expected(("IX08",), path.name)


# -- around them


@kind
def checkpoint_ahead(rng, store):
    newest = max(u.store_timestamp for u in store.units)
    field = rng.randrange(2)
    patch(store.root / "checkpoint", 8 * field, struct.pack(">q", newest + rng.randrange(1, 10**7)))
    return Expected(("CK02",), "checkpoint", 8 * field)


@kind
def checkpoint_cut_short(rng, store):
    with (store.root / "checkpoint").open("r+b") as file:
        file.truncate(rng.randrange(0, 4095))
    return Expected(("CK05",), "checkpoint")


def some_table(rng, store):
    folder = store.root / "config"
    tables = [p for p in sorted(folder.glob("*.json")) if p.stat().st_size > 20] if folder.is_dir() else []
    if tables:
        return pick(rng, tables)
    folder.mkdir(exist_ok=True)
    table = folder / "topics.json"
    table.write_text('{\n\t"dataVersion":{"counter":1},\n\t"topicConfigTable":{}\n}')
    return table


@kind
def table_with_a_syntax_error(rng, store):
    table = some_table(rng, store)
    text = table.read_text()
    at = text.index("{", 1)
    table.write_text(text[:at] + rng.choice(("}", ":", "]]")) + text[at:])
    return Expected(("CF01", "CF04"), table.name)


@kind
def table_with_a_tail(rng, store):
    table = some_table(rng, store)
    size = len(table.read_bytes().rstrip())
    table.write_bytes(table.read_bytes().rstrip() + b'\n\t"left":{over}}')
    return Expected(("CF04",), table.name, size + 2)


@kind
def consumer_offset_beyond_the_queue(rng, store):
    folder = store.root / "config"
    folder.mkdir(exist_ok=True)
    topic, number = pick(rng, [key for key, q in store.queues.items() if q.kind == "simple" and "%" not in key[0]])
    beyond = store.queues[topic, number].max_offset + rng.randrange(1, 1000)
    (folder / "consumerOffset.json").write_text(f'{{"offsetTable":{{"{topic}@billing":{{{number}:{beyond}}}}}}}')
    return Expected(("CF02",), "consumerOffset.json")


@kind
def abort_left_behind(rng, store):
    (store.root / "abort").write_text(str(rng.randrange(2, 30000)))
    return Expected(("AB01",), "abort")
