"""Faults planted in the commit log."""

from __future__ import annotations

import struct

from planted_faults import Expected, FaultKinds, NothingToSpoil, patch, pick, read, some_unit

KINDS = FaultKinds()
kind = KINDS.add


@kind
def body_byte_flipped(rng, store):
    unit = some_unit(rng, store, body=1)
    offset = unit.offset + unit.size - len(unit.properties_raw) - 2 - len(unit.topic.encode()) - unit.version
    offset = offset - len(unit.body) + rng.randrange(len(unit.body))
    path, position = store.place(offset)
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
    offset = unit.offset + 84 + (12 if unit.sys_flag & 16 else 0) + (12 if unit.sys_flag & 32 else 0)
    store.write(offset, struct.pack(">i", len(unit.body) + rng.choice((1, 7, 1000, 1 << 28))))
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
    first_unit = next(u for u in store.units if u.end > page)
    if first_unit.offset >= page + 4096 or first_unit.offset < store.units[1].offset:
        raise NothingToSpoil
    patch(path, position, bytes(4096))
    return Expected(("CL01", "CL03", "CL04"), None, first_unit.offset)


@kind
def foreign_unit_copied_over(rng, store):
    unit = some_unit(rng, store)
    candidates = [u for u in store.units if u.offset != unit.offset]
    foreign_unit = min(candidates, key=lambda u: (abs(u.size - unit.size), rng.random()))
    path, position = store.place(foreign_unit.offset)
    store.write(unit.offset, read(path, position, min(foreign_unit.size, unit.size)))
    return Expected(("CL05",) if foreign_unit.size <= unit.size else ("CL05", "CL01"), None, unit.offset)


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
        raise NothingToSpoil
    store.write(unit.offset + 36, struct.pack(">i", unit.sys_flag | rng.choice((4, 12))))
    return Expected(("CL09",), None, unit.offset)


@kind
def topic_letter_changed(rng, store):
    unit = some_unit(rng, store)
    topic = unit.topic.encode()
    offset = unit.end - len(unit.properties_raw) - 2 - len(topic) + rng.randrange(len(topic))
    path, position = store.place(offset)
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
    offset = unit.offset + (68 if unit.sys_flag & 16 else 56)
    store.write(offset, struct.pack(">q", unit.store_timestamp - rng.randrange(3_600_000, 7_200_000)))
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
    last_file, start, size = store.log_files[-1]
    path = last_file.parent / f"{start + size:020d}"
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
    """A clean exit hides a power loss: queues, index and checkpoint reach past the end of the log."""
    last_file, start, _ = store.log_files[-1]
    unit = pick(rng, [u for u in store.dispatched[-30:-3] if u.offset >= start])
    patch(last_file, unit.offset - start, bytes(store.end - unit.offset))
    return Expected(("CL11", "CL06"), None, unit.offset)


@kind
def last_log_file_deleted(rng, store):
    path, start, _ = store.log_files[-1]
    if len(store.log_files) < 2 or start >= store.end:
        raise NothingToSpoil
    path.unlink()
    return Expected(("CL07",), None, start)


@kind
def stray_file_in_the_log(rng, store):
    path = store.log_files[0][0].parent / rng.choice(("notes.txt", "core.4711", "00000000000000000000.bak"))
    path.write_bytes(b"x" * 100)
    return Expected(("DK01",), path.name)
