"""Random damage of a store and images of disks, the truth about each, and what ``salvage`` may not do: miss a unit
whose bytes are all there, or report one that was never written.
"""

from __future__ import annotations

import random
import shutil
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from handmade_stores import START, write_queue
from raw_units import raw_blank, raw_unit, with_property_crc

from engine.codec.crc import crc31
from engine.codec.encode import write_property_crc
from engine.codec.message import Unit, decode
from engine.inspection.salvage.salvage_search import COMPLETE, Salvaged, SalvageSearch
from engine.inspection.snapshot import open_store
from engine.mapped.image_file import ImageFile
from engine.mapped.reading import Reading

FILE_BYTES = 1 << 17
PAGE = 4096
SIZES = (10, 100, 300, 1000, 1000, 3000)
LARGE_SIZES = (300, 1000, 9000, 100_000, 200_000)
LARGE_FILE_BYTES, LARGEST = 1 << 21, 600_000
TOPICS = ("Orders", "Payments", "名", "T" * 200)
_MAGICS = (b"\xda\xa3\x20\xa7", b"\xda\xa3\x20\xab")
_WORDS = b"tea coffee order paid 4711 shipped customer O-1042 warehouse \n".split(b" ")


@dataclass
class WrittenStore:
    """A store below ``root`` whose bytes are known: ``log`` from offset 0 on, and each unit by its offset."""

    root: Path
    log: bytes
    units: dict[int, bytes]
    files: list[Path] = field(default_factory=list)
    file_bytes: int = FILE_BYTES


def text(rng: random.Random, size: int) -> bytes:
    """Return ``size`` bytes of words."""
    return b" ".join(rng.choices(_WORDS, k=size // 4 + 1))[:size]


def write_store(
    rng: random.Random,
    root: Path,
    file_count: int = 4,
    *,
    host: int = 1,
    largest: int = 9000,
    topics: Sequence[str] = TOPICS,
    crc_zero: float = 0.01,
    file_bytes: int = FILE_BYTES,
    sizes: Sequence[int] = SIZES,
    write_body: Callable[[random.Random, dict[int, bytes], Sequence[int]], bytes] | None = None,
) -> WrittenStore:
    """Write a store with units of every kind: both magics, IPv6 hosts, no body, magics and units in bodies, property
    CRCs, bodies without a CRC.
    """
    log = bytearray()
    units: dict[int, bytes] = {}
    queues: dict[tuple[str, int], list[bytes]] = {}
    time = START
    while len(log) < file_bytes * file_count - 2 * largest - 2000:
        time += rng.randrange(50)
        topic = rng.choice(topics)
        queue = queues.setdefault((topic, rng.randrange(2)), [])
        fields: dict[str, object] = {
            "topic": topic.encode(),
            "version": 2 if len(topic) > 127 else 1,
            "body": (write_body or _body)(rng, units, (*sizes, largest)),
            "queue_id": next(key[1] for key, entries in queues.items() if entries is queue),
            "queue_offset": len(queue),
            "sys_flag": rng.choice((0, 0, 0, 16, 32, 48)),
            "stored": time + host * 1000,
            "born": time,
            "properties": b"UNIQ_KEY\x01%032X\x02KEYS\x01k%d\x02" % (rng.getrandbits(120), len(units)),
            "body_crc": 0 if rng.random() < crc_zero else None,
        }
        offset = len(log)
        unit = _unit(rng, offset, fields)
        room = file_bytes - offset % file_bytes
        if len(unit) + 8 > room:
            log += raw_blank(room).ljust(room, b"\0")
            offset = len(log)
            unit = _unit(rng, offset, fields)
        units[offset] = unit
        log += unit
        queue.append(struct.pack(">qiq", offset, len(unit), 0))
    (root / "commitlog").mkdir(parents=True)
    store = WrittenStore(root, bytes(log).ljust(file_bytes * file_count, b"\0"), units, file_bytes=file_bytes)
    for start in range(0, len(store.log), file_bytes):
        path = root / "commitlog" / f"{start:020d}"
        path.write_bytes(store.log[start : start + file_bytes])
        store.files.append(path)
    for (topic, queue_id), entries in queues.items():
        write_queue(root / "consumequeue" / topic / str(queue_id), b"".join(entries), 20_000)
    return store


def _unit(rng: random.Random, offset: int, fields: dict[str, object]) -> bytes:
    unit = raw_unit(offset, **fields)  # type: ignore[arg-type]
    return with_property_crc(unit) if len(fields["body"]) % 5 == 0 else unit  # type: ignore[arg-type]


def _body(rng: random.Random, units: dict[int, bytes], sizes: Sequence[int]) -> bytes:
    size = rng.choice(sizes)
    size = rng.randrange(size // 2, size)
    kind = rng.random()
    if kind < 0.03:
        return b""
    if kind < 0.08:
        return text(rng, size) + rng.choice(_MAGICS) + text(rng, 100)
    if kind < 0.11 and units:
        return text(rng, size) + rng.choice(list(units.values())) + text(rng, 30)
    if kind < 0.14:
        return b"".join(raw_unit(rng.randrange(1 << 30), body=text(rng, 50)) for _ in range(3))
    return rng.randbytes(size) if kind < 0.4 else text(rng, size)


def deceptive_body(rng: random.Random, units: dict[int, bytes], _sizes: Sequence[int]) -> bytes:
    """Return a body that looks like parts of a store: a unit of another store at an offset near its own, a unit of the
    same log, entries of queues that lead into the log, or entries of an index.
    """
    size, offset = rng.randrange(200, 1500), max(units, default=0)
    match rng.randrange(5):
        case 0:
            near = max(offset + rng.choice((0, rng.randrange(-9000, 9000), rng.randrange(1 << 21))), 0)
            stored = START + rng.randrange(1 << 20)
            queue_id, queue_offset = rng.randrange(2), rng.randrange(900)
            inner = raw_unit(
                near, topic=b"Orders", body=text(rng, size), queue_id=queue_id, queue_offset=queue_offset, stored=stored
            )
            return text(rng, rng.randrange(400)) + inner + text(rng, 50)
        case 1:
            return text(rng, 99) + rng.choice(list(units.values())[-50:] or [b""]) + text(rng, 9)
        case 2:
            entries = (
                struct.pack(">qiq", rng.randrange(1 << 21), rng.randrange(100, 3000), 0) for _ in range(size // 20)
            )
            return b"".join(entries)
        case 3:
            return b"".join(struct.pack(">iqii", 7, rng.randrange(1 << 21), 9, number) for number in range(size // 20))
    return text(rng, size)


def damage_at_random(rng: random.Random, store: WrittenStore, count: int) -> None:
    """Invert, zero or overwrite up to 6,000 bytes at ``count`` places."""
    for _ in range(count):
        path, size = rng.choice(store.files), rng.randrange(1, 6001)
        position = rng.randrange(store.file_bytes - size)
        inverted = bytes(byte ^ 255 for byte in path.read_bytes()[position : position + size])
        _patch(path, position, rng.choice((inverted, bytes(size), rng.randbytes(size))))


@dataclass
class Round:
    """One damage: the units that must be found, and the images to search."""

    kind: str
    wanted: set[int] = field(default_factory=set)
    images: list[Path] = field(default_factory=list)


def _still_live(store: WrittenStore, offset: int) -> bool:
    path, position = store.files[offset // store.file_bytes], offset % store.file_bytes
    unit = store.units[offset]
    return path.exists() and path.read_bytes()[position : position + len(unit)] == unit


def _wanted(store: WrittenStore, offsets: Iterable[int], images: list[Path]) -> set[int]:
    """Return those of ``offsets`` that must be found: not live, not copied into another message, and back to back
    somewhere; a unit in pieces only if it has a body CRC, for without one nobody can tell which pieces belong together.
    """
    contents = [path.read_bytes() for path in [*store.files, *images] if path.exists()]
    wanted = set()
    for offset in offsets:
        unit = store.units[offset]
        if _still_live(store, offset) or store.log.count(unit) > 1:
            continue
        if unit[8:12] != bytes(4) or any(unit in content for content in contents):
            wanted.add(offset)
    return wanted


def _somewhere(store: WrittenStore, images: list[Path]) -> set[int]:
    """Return the units whose bytes are back to back in a file that is there, and no longer at their place."""
    contents = [path.read_bytes() for path in [*store.files, *images] if path.exists()]
    there = [offset for offset, unit in store.units.items() if any(unit in content for content in contents)]
    return _wanted(store, there, images)


def _patch(path: Path, position: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)


def _place(rng: random.Random, store: WrittenStore) -> tuple[Path, int]:
    return rng.choice(store.files), rng.randrange(FILE_BYTES - 20_000)


def _replica(rng: random.Random, store: WrittenStore, folder: Path) -> list[Path]:
    """Write a part of the undamaged log, as a replica has it, between other bytes; or nothing."""
    if rng.random() < 0.3:
        return []
    image = folder / "replica"
    start = rng.randrange(len(store.log) // 2)
    image.write_bytes(_foreign(rng, folder, 3) + store.log[start:] + text(rng, 300))
    return [image]


def overwritten(rng: random.Random, store: WrittenStore, folder: Path) -> Round:
    for _number in range(rng.choice((1, 3))):
        path, position = _place(rng, store)
        size = rng.choice((3, 40, 500, 6000))
        _patch(path, position, rng.choice((rng.randbytes, lambda count: text(rng, count), bytes))(size))
    images = _replica(rng, store, folder)
    return Round("overwritten or zeroed", _somewhere(store, images), images)


def bits(rng: random.Random, store: WrittenStore, folder: Path) -> Round:
    for _number in range(rng.choice((1, 5))):
        path, position = _place(rng, store)
        _patch(path, position, bytes([path.read_bytes()[position] ^ 1 << rng.randrange(8)]))
    images = _replica(rng, store, folder)
    return Round("bits inverted", _somewhere(store, images), images)


def cut(rng: random.Random, store: WrittenStore, folder: Path) -> Round:
    """The last file is cut; the image holds the bytes that were behind it."""
    path = store.files[-1]
    data = path.read_bytes()
    size = rng.randrange(FILE_BYTES // 2)
    path.write_bytes(data[:size])
    image = folder / "image"
    image.write_bytes(rng.randbytes(rng.randrange(5000)) + data[size:] + text(rng, 700))
    return Round("cut", _somewhere(store, [image]), [image])


def shifted(rng: random.Random, store: WrittenStore, _: Path) -> Round:
    """Bytes are inserted or left out: what follows is moved, up to the end of a range."""
    path, position = _place(rng, store)
    data = path.read_bytes()
    size, by = rng.choice((3000, 15_000)), rng.choice((-700, -13, 1, 8, 91, 512, 4096))
    moved = data[position - min(by, 0) : position + size] if by < 0 else data[position : position + size]
    new = text(rng, by) + moved if by > 0 else moved
    _patch(path, position, new[:size])
    return Round("shifted", _somewhere(store, []))


def swapped(rng: random.Random, store: WrittenStore, _: Path) -> Round:
    """Two pages have each other's places: the bytes of every unit are there."""
    path = rng.choice(store.files[:-1])
    for _number in range(rng.choice((1, 1, 2))):
        data = path.read_bytes()
        first, second = rng.sample(range(FILE_BYTES // PAGE - 6), 2)
        pages = data[first * PAGE : (first + 1) * PAGE], data[second * PAGE : (second + 1) * PAGE]
        _patch(path, first * PAGE, pages[1])
        _patch(path, second * PAGE, pages[0])
    return Round("pages swapped", _wanted(store, store.units, []))


def _foreign(rng: random.Random, folder: Path, pages: int) -> bytes:
    size = pages * PAGE
    kind = rng.random()
    if kind < 0.3:
        return rng.randbytes(size)
    if kind < 0.6:
        return text(rng, size)
    if kind < 0.7:
        return bytes(size)
    other = folder / "other"
    if not other.exists():
        write_store(random.Random(rng.random()), other, 1, host=2)
    data = next((other / "commitlog").iterdir()).read_bytes()
    start = rng.randrange(len(data) // PAGE - pages) * PAGE
    return data[start : start + size]


def deleted(rng: random.Random, store: WrittenStore, folder: Path) -> Round:
    """A middle file is deleted; its bytes are in one piece in an image of the disk."""
    path = store.files[rng.choice((1, 2))]
    data = path.read_bytes()
    path.unlink()
    image = folder / "image"
    image.write_bytes(rng.randbytes(rng.choice((0, 512, 4096))) + _foreign(rng, folder, 5) + data + text(rng, 3000))
    return Round("a middle file deleted, one piece", _somewhere(store, [image]), [image])


def fragmented(rng: random.Random, store: WrittenStore, folder: Path) -> Round:
    """A middle file is deleted; an image has its pages in order, with pages of other files between."""
    number = rng.choice((1, 2))
    path = store.files[number]
    data = path.read_bytes()
    path.unlink()
    longest = rng.choice((3, 8, 20))
    pieces, position = [_foreign(rng, folder, 2)], 0
    while position < len(data):
        count = rng.randrange(1, longest + 1) * PAGE
        pieces += [data[position : position + count], _foreign(rng, folder, rng.choice((1, 1, 2, 5)))]
        position += count
    image = folder / "image"
    image.write_bytes(b"".join(pieces))
    start = number * FILE_BYTES
    offsets = [offset for offset in store.units if start <= offset < start + FILE_BYTES]
    return Round("a middle file deleted, fragmented", _wanted(store, offsets, [image]), [image])


def interleaved(rng: random.Random, store: WrittenStore, folder: Path) -> Round:
    """A middle file is deleted; an image has its pages between those of another store's log, holes and zeros."""
    number = rng.choice((1, 2))
    path = store.files[number]
    data = path.read_bytes()
    path.unlink()
    other = write_store(random.Random(rng.random()), folder / "beside", 2, host=rng.choice((1, 2))).log
    longest, kinds = (
        rng.choice((1, 3, 12)),
        rng.choice(("other", "other hole", "hole zeros", "other zeros hole")).split(),
    )
    image, position, other_position = folder / "image", 0, 0
    with image.open("wb") as target:
        while position < len(data):
            count = rng.randrange(1, longest + 1) * PAGE
            target.write(data[position : position + count])
            position += count
            kind, count = rng.choice(kinds), rng.randrange(1, 4) * PAGE
            if kind == "hole":
                target.seek(count, 1)
            elif kind == "zeros":
                target.write(bytes(count))
            else:
                target.write(other[other_position : other_position + count])
                other_position += count
        target.truncate()
    start = number * FILE_BYTES
    offsets = [offset for offset in store.units if start <= offset < start + FILE_BYTES]
    return Round("pages between those of another log", _wanted(store, offsets, [image]), [image])


def other_generation(rng: random.Random, store: WrittenStore, folder: Path) -> Round:
    """Damage, and an image with a store of another time at the same offsets beside the bytes that are gone."""
    damage = overwritten(rng, store, folder)
    older = write_store(random.Random(rng.random()), folder / "older", 2, host=3)
    image = folder / "image"
    replica = store.log if rng.random() < 0.5 else b""
    image.write_bytes(older.log + _foreign(rng, folder, 2) + replica)
    return Round("other generation", _somewhere(store, [image]) | damage.wanted, [image, *damage.images])


def in_pieces(rng: random.Random, store: WrittenStore, folder: Path) -> Round:
    """A middle file with large messages is deleted; an image has its pages in order, in pieces of a few blocks, or all
    of 16, with blocks of one kind between: random bytes, text, zeros, or another log.
    """
    number, path = 1, store.files[1]
    data = path.read_bytes()
    path.unlink()
    other = write_store(random.Random(rng.random()), folder / "other", 2, host=2, file_bytes=1 << 20).log

    def of_other_log(size: int) -> bytes:
        start = rng.randrange(len(other) // PAGE // 2) * PAGE
        return other[start : start + size]

    is_even = rng.random() < 0.4
    kind: Callable[[int], bytes] = rng.choice((rng.randbytes, lambda size: text(rng, size), bytes, of_other_log))
    gap = rng.randrange(1, 4)
    pieces, position = [kind(2 * PAGE)], 0
    while position < len(data):
        count = (16 if is_even else rng.randrange(10, 60)) * PAGE
        pieces += [data[position : position + count], kind((gap if is_even else rng.randrange(1, 4)) * PAGE)]
        position += count
    image = folder / "image"
    image.write_bytes(b"".join(pieces))
    start = number * store.file_bytes
    offsets = [offset for offset in store.units if start <= offset < start + store.file_bytes]
    return Round(f"large messages in {'even' if is_even else 'any'} pieces", _wanted(store, offsets, [image]), [image])


def out_of_order(rng: random.Random, store: WrittenStore, folder: Path) -> Round:
    """A middle file is deleted; an image has its extents in any order, with pages of other files between."""
    number = rng.choice((1, 2))
    path = store.files[number]
    data = path.read_bytes()
    path.unlink()
    extents, position = [], 0
    while position < len(data):
        count = rng.choice((1, 2, 4, 8, 16)) * PAGE
        extents.append(data[position : position + count])
        position += count
    rng.shuffle(extents)
    image = folder / "image"
    image.write_bytes(b"".join(part for extent in extents for part in (extent, _foreign(rng, folder, 1))))
    start = number * FILE_BYTES
    offsets = [offset for offset in store.units if start <= offset < start + FILE_BYTES]
    return Round("extents out of order", _wanted(store, offsets, [image]), [image])


def twin_logs(rng: random.Random, store: WrittenStore, folder: Path) -> Round:
    """The logs of two brokers have messages of the same sizes at the same offsets; an image has pages of both."""
    number = rng.choice((1, 2))
    path = store.files[number]
    data = path.read_bytes()
    path.unlink()
    other = bytearray(data)
    for offset, unit in store.units.items():
        if number * FILE_BYTES <= offset < (number + 1) * FILE_BYTES:
            start = offset - number * FILE_BYTES
            other[start : start + len(unit)] = _of_other_broker(rng, unit)
    image, position, pieces = folder / "image", 0, []
    while position < len(data):
        count = rng.randrange(1, 9) * PAGE
        pair = [data[position : position + count], bytes(other[position : position + count])]
        rng.shuffle(pair)
        pieces += pair
        position += count
    image.write_bytes(b"".join(pieces))
    start = number * FILE_BYTES
    offsets = [offset for offset in store.units if start <= offset < start + FILE_BYTES]
    wanted = {
        offset for offset in _wanted(store, offsets, [image]) if _is_proven_to_its_end(offset, store.units[offset])
    }
    return Round("pages of two brokers' logs of equal sizes", wanted, [image])


def _is_proven_to_its_end(offset: int, unit: bytes) -> bool:
    """Return True if no page of the unit holds only topic and properties: no CRC covers them, so either log's fit."""
    tail_size = len(unit) - 88 - len(decode(unit).body)
    return (offset + len(unit) - tail_size - 1) // PAGE == (offset + len(unit) - 1) // PAGE


def _of_other_broker(rng: random.Random, unit: bytes) -> bytes:
    """Return a unit of the same size with another body, store time, host and key."""
    decoded = decode(unit)
    other = bytearray(unit)
    body = unit.find(decoded.body, 88) if decoded.body else 0
    if decoded.body:
        other[body : body + len(decoded.body)] = rng.randbytes(len(decoded.body))
        if unit[8:12] != bytes(4):
            other[8:12] = crc31(bytes(other[body : body + len(decoded.body)])).to_bytes(4, "big")
    key = unit.rfind(b"UNIQ_KEY\x01") + 9
    other[key : key + 32] = b"%032X" % rng.getrandbits(120)
    stored = 48 + (20 if unit[39] & 16 else 8)
    other[stored + 7] ^= 1
    other[stored + 8] ^= 1
    return bytes(other[:-20]) + _property_crc(bytes(other)) if b"__CRC32#\x01" in unit[-20:] else bytes(other)


def _property_crc(unit: bytes) -> bytes:
    again = bytearray(unit)
    write_property_crc(again)
    return bytes(again[-20:])


def holes(rng: random.Random, store: WrittenStore, folder: Path) -> Round:
    """Sectors of 512 bytes of a file are zeros, as a disk that lost them says; an image has them, cut anywhere."""
    path = rng.choice(store.files[:-1])
    data = path.read_bytes()
    for _number in range(rng.choice((1, 3, 9))):
        sector = rng.randrange(len(data) // 512 - 40)
        _patch(path, sector * 512, bytes(512 * rng.choice((1, 2, 8, 30))))
    image = folder / "image"
    start, end = sorted(rng.sample(range(len(data)), 2))
    image.write_bytes(rng.randbytes(512 * rng.randrange(20)) + data[start:end])
    return Round("sectors of zeros", _somewhere(store, [image]), [image])


def cut_in_properties(rng: random.Random, store: WrittenStore, folder: Path) -> Round:
    """A file ends within the properties of a message; the image has the next bytes, or those of another file."""
    path = store.files[-1]
    data = path.read_bytes()
    start = len(store.log) - FILE_BYTES
    offset = rng.choice([offset for offset in store.units if offset >= start])
    end = offset - start + len(store.units[offset]) - rng.randrange(1, 40)
    path.write_bytes(data[:end])
    image = folder / "image"
    behind = data[end:] if rng.random() < 0.6 else text(rng, 3000)
    image.write_bytes(rng.choice((b"", bytes(700))) + behind)
    return Round("cut in the properties", _somewhere(store, [image]), [image])


KINDS: tuple[Callable[[random.Random, WrittenStore, Path], Round], ...] = (
    overwritten,
    bits,
    cut,
    shifted,
    swapped,
    deleted,
    fragmented,
    fragmented,
    interleaved,
    other_generation,
    out_of_order,
    twin_logs,
    holes,
    cut_in_properties,
)


LARGE_KINDS = (in_pieces,)
"""Kinds with messages of up to 600 KB."""


@dataclass
class Result:
    """What a round gave: units that had to be found, those that were missed, and rows that are no unit of the store."""

    kind: str
    wanted: int
    missed: list[int]
    invented: list[Salvaged]


def play(seed: int, folder: Path, *, file_count: int = 4, kind: int | None = None, is_large: bool = False) -> Result:
    """Write a store, damage it, search it, and compare the rows with the truth."""
    rng = random.Random(seed)
    kinds: Sequence[Callable[[random.Random, WrittenStore, Path], Round]] = KINDS
    shape: dict[str, Any] = {}
    if is_large:
        kinds, file_count = LARGE_KINDS, 3
        shape = {"file_bytes": LARGE_FILE_BYTES, "sizes": LARGE_SIZES, "largest": LARGEST}
    store = write_store(rng, folder / "store", file_count, **shape)
    played = kinds[seed % len(kinds) if kind is None else kind](rng, store, folder)
    rows = salvage(store.root, played.images)
    right, invented = set(), []
    for row in rows:
        is_right = row.physical_offset is not None and store.units.get(row.physical_offset) == row.data
        is_altered = (
            row.verdict == "conflict" and row.physical_offset is not None and _is_altered(store, row.physical_offset)
        )
        if row.verdict in COMPLETE or is_altered:
            right |= {row.physical_offset} if is_right else set()
            invented += [row] if row.verdict in COMPLETE and not is_right else []
    shutil.rmtree(folder)
    return Result(played.kind, len(played.wanted), sorted(played.wanted - right), invented)


def _is_altered(store: WrittenStore, offset: int) -> bool:
    """Return True if the store has a unit there still, changed in bytes that no CRC covers."""
    with open_store(store.root) as snapshot:
        item = snapshot.log.unit_at(offset)
        return isinstance(item, Unit) and (item.crc == "ok" or item.body_crc == 0)


def salvage(root: Path, images: list[Path]) -> list[Salvaged]:
    """Return the rows of a search."""
    reading = Reading(alone=True)
    opened = [ImageFile(image, reading) for image in images]
    try:
        with open_store(root) as store:
            search = SalvageSearch(store, opened)
            search.run(lambda _: None)
            return list(search.rows())
    finally:
        for image in opened:
            image.close()
