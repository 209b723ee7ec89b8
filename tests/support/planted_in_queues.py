"""Faults planted in consume queues, batch queues and their ext files."""

from __future__ import annotations

import struct

from planted_faults import Expected, FaultKinds, patch, pick, read

KINDS = FaultKinds()
kind = KINDS.add


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
    """All later entries of the file are one place too far."""
    entry = pick(rng, [e for e in store.entries if e.position >= 20])
    data = entry.path.read_bytes()
    position = entry.position
    entry.path.write_bytes((data[:position] + data[position - 20 : position] + data[position:])[: len(data)])
    return Expected(("CQ05",), entry.path.name, position)


@kind
def entry_left_out(rng, store):
    """All later entries of the file are one place too early."""
    entry = pick(rng, store.entries)
    data = entry.path.read_bytes()
    position = entry.position
    entry.path.write_bytes(data[:position] + data[position + 20 :] + bytes(20))
    return Expected(("CQ04",), entry.path.name, position)


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
    several = [(topic, n) for topic, actual_number in numbers.items() if len(actual_number) > 1 for n in actual_number]
    topic, number = pick(rng, several)
    for path in store.queue_files[topic, number]:
        path.unlink()
    (store.root / "consumequeue" / topic / str(number)).rmdir()
    first_unit = next(u for u in store.dispatched if (u.topic, u.queue_id) == (topic, number))
    return Expected(("CQ10",), None, first_unit.offset)


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
    return Expected(("CQ15", "CQ09"))
