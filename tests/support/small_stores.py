"""Golden stores made small: a few dozen of their units in files of a few KiB, so that a command answers at once.

The units are those that real brokers wrote, spread over the whole store and every queue of it; they are laid out anew,
one after another, and queues and index files are made to fit them. Everything else is copied unchanged.
"""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

from handmade_stores import HandmadeStore, HandmadeUnit, write_queue

from engine.codec import properties
from engine.codec.crc import crc31
from engine.codec.message import Unit
from engine.inspection.snapshot import StoreSnapshot, open_store

LOG_SIZE = 16_384
QUEUE_SIZE = 400
BATCH_QUEUE_SIZE = 460
SPARSE_FROM = 1 << 16
"""Bytes from which on it pays to ask for the holes of a file."""
LEFT_OUT = {"commitlog", "consumequeue", "batchconsumequeue", "index"}
_CRC_TAIL = 20
_QUEUE_OFFSET, _PHYSICAL_OFFSET = 20, 28


def make_small(source: Path, target: Path, count: int = 32) -> Path:
    """Make a small store of about ``count`` units of ``source`` in ``target``, which must not exist."""
    with open_store(source) as store:
        handmade_store = HandmadeStore(log_size=LOG_SIZE, queue_size=QUEUE_SIZE)
        entries = _entries(store)
        kinds = {topic: next(iter(queues.values())).kind for topic, queues in store.topics().items()}
        places: dict[int, int] = {}
        batches: dict[tuple[str, int], bytearray] = {}
        for unit in _spread(store, count):
            batch = kinds.get(unit.topic) == "batch"
            _lay(handmade_store, store.log.read(unit.offset, unit.size), unit, places, entries, simple=not batch)
            if batch and unit.offset in entries:
                raw, _ = entries[unit.offset][0]
                batches.setdefault((unit.topic, unit.queue_id), bytearray()).extend(
                    struct.pack(">q", places[unit.offset]) + raw[8:]
                )
        further = list(_light_queues(entries, places))
        handmade_store.write(target, checkpoint=False)
    for (topic, queue_id), entries_of_queue in batches.items():
        write_queue(target / "batchconsumequeue" / topic / str(queue_id), bytes(entries_of_queue), BATCH_QUEUE_SIZE)
    for (topic, queue_id), data in further:
        if not (target / "consumequeue" / topic / str(queue_id)).exists():
            write_queue(target / "consumequeue" / topic / str(queue_id), data, QUEUE_SIZE)
    for path in sorted(source.iterdir()):
        if path.name not in LEFT_OUT:
            copy_sparse(path, target / path.name)
    for folder in sorted(target.glob("consumequeue_ext/*/*")):
        if not (target / "consumequeue" / folder.relative_to(target / "consumequeue_ext")).exists():
            shutil.rmtree(folder)
    return target


Entries = dict[int, list[tuple[bytes, tuple[str, int]]]]


def _entries(store: StoreSnapshot) -> Entries:
    """Return every entry's bytes and queue by its physical offset; a unit's own queue first."""
    results: Entries = {}
    for topic, queues in store.topics().items():
        for queue_id, queue in queues.items():
            size = 46 if queue.kind == "batch" else 20
            for file in queue.files:
                data = file.read(0, file.size)
                for position in range(0, len(data) - size + 1, size):
                    offset, length = struct.unpack_from(">qi", data, position)
                    if offset >= 0 and 0 < length < 1 << 30:
                        results.setdefault(offset, []).append((data[position : position + size], (topic, queue_id)))
    return results


def _spread(store: StoreSnapshot, count: int) -> Iterator[Unit]:
    """Return the first unit of every queue (at most half of ``count``), and others evenly from the whole log, in
    order.
    """
    units = [unit for unit in store.log.walk(crc=False) if isinstance(unit, Unit) and unit.size < LOG_SIZE // 4]
    chosen: dict[int, Unit] = {}
    observed: set[tuple[str, int]] = set()
    for unit in units:
        if (unit.topic, unit.queue_id) not in observed and len(chosen) < count // 2:
            observed.add((unit.topic, unit.queue_id))
            chosen[unit.offset] = unit
    step = max(len(units) // max(count - len(chosen), 1), 1)
    chosen |= {unit.offset: unit for unit in units[::step]}
    return (chosen[offset] for offset in sorted(chosen))


def _lay(
    handmade: HandmadeStore, raw: bytes, unit: Unit, places: dict[int, int], entries: Entries, *, simple: bool
) -> None:
    """Append the unit's bytes with its new place in them, and remember the data for queues and index."""
    room = handmade.log_size - len(handmade.log) % handmade.log_size
    if len(raw) + 8 > room:
        handmade.log += struct.pack(">iI", room, 0xCBD43194).ljust(room, b"\0")
    position = places[unit.offset] = len(handmade.log)
    queue = unit.topic, unit.queue_id
    own_entry = next((entry for entry, where in entries.get(unit.offset, ()) if where == queue), None)
    data = bytearray(raw)
    dispatched = simple and own_entry is not None
    number = handmade.next_offsets.get(queue, 0)
    struct.pack_into(">q", data, _PHYSICAL_OFFSET, position)
    if dispatched:
        struct.pack_into(">q", data, _QUEUE_OFFSET, number)
        handmade.next_offsets[queue] = number + 1
    if unit.properties_raw[-_CRC_TAIL:].startswith(b"__CRC32#\x01"):
        data[-11:-1] = properties.crc_digits(crc31(bytes(data[:-_CRC_TAIL])))
    handmade.log += data
    tags = struct.unpack_from(">q", own_entry, 12)[0] if own_entry is not None else 0
    keys = [*([unit.unique_key] if unit.unique_key else []), *unit.keys]
    handmade.units.append(
        HandmadeUnit(position, len(raw), *queue, number, tags, keys, unit.store_timestamp, dispatched)
    )


def _light_queues(entries: Entries, places: dict[int, int]) -> Iterator[tuple[tuple[str, int], bytes]]:
    """Return queues whose entries point at units of other topics: light queues, multi dispatch."""
    results: dict[tuple[str, int], bytearray] = {}
    for offset in sorted(places):
        for entry, queue in entries.get(offset, ()):
            if len(entry) == 20:
                results.setdefault(queue, bytearray()).extend(struct.pack(">q", places[offset]) + entry[8:])
    return ((queue, bytes(data)) for queue, data in results.items())


def spans(path: Path) -> list[tuple[int, bytes]]:
    """Return (position, bytes) of every stretch of a file that has data on the file system."""
    results = []
    with path.open("rb", buffering=0) as file:
        descriptor, position = file.fileno(), 0
        size = os.fstat(descriptor).st_size
        if size <= SPARSE_FROM:
            return [(0, file.read())] if size else []
        while position < size:
            try:
                start = os.lseek(descriptor, position, os.SEEK_DATA)
            except OSError:  # nothing but a hole to the end
                break
            position = min(os.lseek(descriptor, start, os.SEEK_HOLE), size)
            results.append((start, os.pread(descriptor, position - start, start)))
    return results


def write_spans(path: Path, size: int, data_spans: list[tuple[int, bytes]]) -> None:
    """Write the file anew: ``size`` bytes, with holes between the spans."""
    with path.open("wb", buffering=0) as file:
        for position, data in data_spans:
            file.seek(position)
            file.write(data)
        file.truncate(size)


def copy_sparse(source: Path, target: Path) -> None:
    """Copy a file or folder with times and holes: a timer wheel of 38 MB holds a few KB."""
    if source.is_dir():
        target.mkdir(exist_ok=True)
        for path in source.iterdir():
            copy_sparse(path, target / path.name)
    elif source.is_symlink():
        target.symlink_to(source.readlink())
    else:
        write_spans(target, source.stat().st_size, spans(source))
    shutil.copystat(source, target, follow_symlinks=False)
