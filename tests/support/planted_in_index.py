"""Faults planted in index files, and in files beside log and queues: checkpoint, tables, abort."""

from __future__ import annotations

import struct

from planted_faults import Expected, FaultKinds, patch, pick, read

KINDS = FaultKinds()
kind = KINDS.add


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
def index_file_with_an_older_name(rng, store):
    files = sorted((i[0] for i in store.index if i[1].entries > 20), key=lambda path: path.name)
    assert len(files) > 2
    path = rng.choice(files[1:])
    older = path.with_name(str(int(files[0].name) - rng.randrange(1, 10**9)))
    path.rename(older)
    return Expected(("IX11",), older.name)


@kind
def index_entry_points_nowhere(rng, store):
    path, header, geometry = some_index(rng, store)
    number = rng.randrange(2, header.entries)
    position = geometry.entry_position(number) + 4
    old = struct.unpack(">q", read(path, position, 8))[0]
    patch(path, position, struct.pack(">q", old + rng.choice((1, 3, -1, 1 << 35))))
    return Expected(("IX06",), path.name, geometry.entry_position(number))


@kind
def index_entry_has_another_hash(rng, store):
    path, header, geometry = some_index(rng, store)
    number = rng.randrange(2, header.entries)
    position = geometry.entry_position(number)
    old = struct.unpack(">i", read(path, position, 4))[0]
    patch(path, position, struct.pack(">i", old ^ 1 << rng.randrange(24)))
    return Expected(("IX06",), path.name, position)


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
    position = text.index("{", 1)
    table.write_text(text[:position] + rng.choice(("}", ":", "]]")) + text[position:])
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
