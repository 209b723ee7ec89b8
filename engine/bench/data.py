"""Stores for measurements: real unit bytes, created once in a folder of their own and reused.

A log has 1 GiB, 8 topics with 4 queues each, bodies of 150 to 250 or of 900 to 1,148 bytes, and UNIQ_KEY, KEYS,
TAGS and WAIT as properties. Queues and index are built from the log itself. The large store has 1,024 sparse
files of 1 GiB with real units only at their heads and tails.

"""

from __future__ import annotations

import random
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from engine import system
from engine.codec import index as index_codec
from engine.codec.checkpoint import Checkpoint, encode
from engine.codec.columns import BLANK, UnitColumns
from engine.codec.crc import crc31
from engine.codec.dtypes import CQ_UNIT, INDEX_ENTRY
from engine.codec.index_builder import key_hashes
from engine.codec.message import MAGIC_BLANK
from engine.codec.topic_table import TopicTable
from engine.codec.unit_flavours import BY_VERSION
from engine.files.atomic_file import atomic_file
from engine.files.layout import CONSUME_QUEUE_FILE_SIZE, INDEX_ENTRIES, INDEX_SLOTS, StorePaths, queue_file_name
from engine.inspection.block_scan import scan_log
from engine.inspection.log_reader import LogReader
from engine.mapped.read_only import DescriptorCache, FileSequence

GIB = 1 << 30
BODY_BYTES = {"200": (150, 250), "1k": (900, 1148)}
TOPICS, QUEUES = 8, 4
BEGIN_MS = 1_700_000_000_000
_FIXED = struct.Struct(">iIiiiqqiqIiqIiiqi")
_I16 = struct.Struct(">h")


def units(min_body: int, max_body: int, base: int, number: int = 0, seed: int = 7) -> Iterator[bytes]:
    """Yield units without end from offset ``base`` and unique key ``number`` on; bodies of ``min_body`` to
    ``max_body`` bytes.
    """
    rng = random.Random(seed)
    pool = rng.randbytes(1 << 20)
    queue_offsets = [0] * (TOPICS * QUEUES)
    while True:
        body_at, body_length = rng.randrange((1 << 20) - max_body), rng.randint(min_body, max_body)
        body = pool[body_at : body_at + body_length]
        topic, queue = rng.randrange(TOPICS), rng.randrange(QUEUES)
        name = b"TopicBench%d" % topic
        text = properties_of(number)
        size = 91 + len(body) + len(name) + len(text)
        place = topic * QUEUES + queue
        head = _FIXED.pack(
            size,
            BY_VERSION[1].magic,
            crc31(body),
            queue,
            0,
            queue_offsets[place],
            base,
            0,
            BEGIN_MS + number // 10,
            0x7F000001,
            50_000,
            BEGIN_MS + number // 10 + 1,
            0x7F000001,
            10_911,
            0,
            0,
            len(body),
        )
        yield b"".join((head, body, bytes((len(name),)), name, _I16.pack(len(text)), text))
        queue_offsets[place] += 1
        base += size
        number += 1


def properties_of(number: int) -> bytes:
    """Return the property text of the message with this number."""
    key, tag = order_key(number).encode(), b"ABCDE"[number % 5]
    return b"UNIQ_KEY\x01%s\x02KEYS\x01%s\x02TAGS\x01Tag%c\x02WAIT\x01true\x02" % (
        unique_key(number).encode(),
        key,
        tag,
    )


def unique_key(number: int) -> str:
    """Return the UNIQ_KEY of the message with this number."""
    return f"7F0000010B2C18B4AAC2{number:012X}"


def order_key(number: int) -> str:
    """Return the only key in KEYS of the message with this number."""
    return f"order-{number:08d}"


def log_store(folder: Path, bodies: str = "200", size: int = GIB) -> Path:
    """Return the directory of a store with a commit log of one full file of ``size`` bytes, created if missing."""
    root = folder / f"log-{bodies}-{size}"
    path = StorePaths(root).commitlog / queue_file_name(0)
    if not path.is_file():
        min_body, max_body = BODY_BYTES[bodies]
        with atomic_file(path) as file:
            position = 0
            for unit in units(min_body, max_body, 0):
                if position + len(unit) + 8 > size:
                    break
                file.write(unit)
                position += len(unit)
            file.write(struct.pack(">iI", size - position, MAGIC_BLANK))
            file.truncate(size)
    return root


def whole_store(folder: Path, size: int = GIB, slots: int = INDEX_SLOTS, entries: int = INDEX_ENTRIES) -> Path:
    """:func:`log_store` with 200-byte bodies, its queues, one full index file and a checkpoint."""
    root = log_store(folder, "200", size)
    paths = StorePaths(root)
    if not paths.checkpoint.is_file():
        unit_facts, hashes, topics = _dispatch(root)
        for topic in range(len(topics)):
            for queue in range(QUEUES):
                queue_units = unit_facts[(unit_facts["topic"] == topic) & (unit_facts["queue"] == queue)]
                _write_queue(paths.queue_folder(topics.names[topic], queue), queue_units)
        geometry = index_codec.Geometry(slots, entries)
        rows, filled = _pad_keys(len(unit_facts), hashes, entries - 1)
        _write_index(paths, unit_facts, rows, filled, geometry)
        end_time = int(unit_facts["stored"][-1])
        paths.checkpoint.write_bytes(encode(Checkpoint(end_time, end_time, end_time)))
    return root


def healthy_store(folder: Path, size: int = GIB) -> Path:
    """The store of :func:`whole_store` as a broker would leave it.

    Its index holds the log's own keys and no others, and the next log file is there.
    """
    store_root = StorePaths(whole_store(folder, size))
    paths = StorePaths(folder / f"healthy-{size}")
    if not paths.checkpoint.is_file():
        for source in sorted((*store_root.commitlog.rglob("*"), *store_root.consumequeue.rglob("*"))):
            target = paths.root / source.relative_to(store_root.root)
            if source.is_file() and not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                target.hardlink_to(source)
        with (paths.commitlog / queue_file_name(size)).open("wb") as file:
            file.truncate(size)
        unit_facts, keys, _ = _dispatch(store_root.root)
        _write_index(paths, unit_facts, keys[0], keys[1], index_codec.Geometry(INDEX_SLOTS, INDEX_ENTRIES))
        paths.checkpoint.write_bytes(store_root.checkpoint.read_bytes())
    return paths.root


_UNIT_FACTS = np.dtype(
    [("offset", "i8"), ("size", "i4"), ("topic", "i4"), ("queue", "i4"), ("tags", "i8"), ("stored", "i8")]
)


def _dispatch(root: Path) -> tuple[np.ndarray, np.ndarray, TopicTable]:
    """Return the facts about every unit that queues and index need, and (row of its unit, hash) of every key."""
    log = LogReader(FileSequence([StorePaths(root).commitlog], DescriptorCache()))
    topics = TopicTable()
    parts, keys, unit_count = [], [], 0
    for block in scan_log(log, crc=False, topics=topics):
        if not isinstance(block, UnitColumns):
            continue
        block_keys = key_hashes(block, topics)
        keys.append(
            np.stack([block_keys.row.astype(np.int64) + unit_count, block_keys.key_hash])[:, ~block_keys.is_tag]
        )
        is_unit = block["kind"] != BLANK
        part = np.empty(int(is_unit.sum()), _UNIT_FACTS)
        for name, column in (
            ("offset", "offset"),
            ("size", "size"),
            ("topic", "topic_id"),
            ("queue", "queue_id"),
            ("tags", "tags_code"),
            ("stored", "store_timestamp"),
        ):
            part[name] = block[column][is_unit]
        parts.append(part)
        unit_count += len(part)
    return np.concatenate(parts), np.concatenate(keys, axis=1), topics


def _write_queue(folder: Path, queue_units: np.ndarray) -> None:
    entries = np.empty(len(queue_units), CQ_UNIT)
    entries["physical_offset"], entries["size"], entries["tags_code"] = (
        queue_units["offset"],
        queue_units["size"],
        queue_units["tags"],
    )
    data = entries.tobytes()
    folder.mkdir(parents=True, exist_ok=True)
    for start in range(0, len(data), CONSUME_QUEUE_FILE_SIZE):
        with (folder / queue_file_name(start)).open("wb") as file:
            file.write(data[start : start + CONSUME_QUEUE_FILE_SIZE])
            file.truncate(CONSUME_QUEUE_FILE_SIZE)


def _pad_keys(units: int, keys: np.ndarray, total: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (row of its unit, hash) of ``total`` keys: the log's own in their order, and other keys between them
    that no message has.
    """
    rng = np.random.default_rng(7)
    own_count = min(keys.shape[1], total)
    rows = np.sort(rng.integers(0, units, total))
    hashes = rng.integers(0, 1 << 31, total, dtype=np.int64)
    places = np.sort(rng.choice(total, own_count, replace=False))
    rows[places], hashes[places] = keys[0, :own_count], keys[1, :own_count]
    order = np.argsort(rows, kind="stable")
    return rows[order], hashes[order]


def _write_index(
    paths: StorePaths, unit_facts: np.ndarray, rows: np.ndarray, hashes: np.ndarray, geometry: index_codec.Geometry
) -> None:
    """Write one file with these keys in their order."""
    total = len(rows)
    slots = hashes % geometry.slots
    by_slot = np.argsort(slots, kind="stable")
    previous = np.zeros(total, np.int32)
    same_slot = slots[by_slot[1:]] == slots[by_slot[:-1]]
    previous[by_slot[1:][same_slot]] = by_slot[:-1][same_slot] + 1
    newest = np.zeros(geometry.slots, ">i4")
    newest[slots] = np.arange(1, total + 1)
    entries = np.empty(total, INDEX_ENTRY)
    begin_time = int(unit_facts["stored"][rows[0]])
    entries["key_hash"], entries["phy_offset"], entries["prev"] = hashes, unit_facts["offset"][rows], previous
    entries["time_diff"] = (unit_facts["stored"][rows] - begin_time) // 1000
    end_time = int(unit_facts["stored"][rows[-1]])
    offsets = int(unit_facts["offset"][rows[0]]), int(unit_facts["offset"][rows[-1]])
    header = index_codec.IndexHeader(begin_time, end_time, *offsets, int(np.count_nonzero(newest)), total + 1)
    paths.index.mkdir(parents=True, exist_ok=True)
    with (paths.index / "20231114221320000").open("wb") as file:
        file.write(index_codec.encode_header(header))
        file.write(newest.tobytes())
        file.write(bytes(index_codec.ENTRY_SIZE))
        file.write(entries.tobytes())
        file.truncate(geometry.file_size)


def sparse_store(folder: Path, files: int = 1024, file_size: int = GIB) -> Path:
    """Return a store of ``files`` sparse log files: real units at the head and the tail of each, with matching
    queues and index.

    The last log file is half full. A queue has one file for every 300,000 messages that the log would hold.

    """
    root = folder / f"sparse-{files}-{file_size}"
    paths = StorePaths(root)
    if paths.checkpoint.is_file():
        return root
    paths.commitlog.mkdir(parents=True, exist_ok=True)
    tails: list[tuple[int, bytes]] = []
    for number in range(files):
        start = number * file_size
        with (paths.commitlog / queue_file_name(start)).open("wb") as file:
            file.truncate(file_size)
            head = _some_units(start, number)
            end = file_size // 2 if number == files - 1 else file_size - 8
            tail = _some_units(start + end - len(b"".join(head)), number)
            file.write(b"".join(head))
            file.seek(end - len(b"".join(tail)))
            file.write(b"".join(tail))
            if number < files - 1:
                file.write(struct.pack(">iI", 8, MAGIC_BLANK))
        place = start + end - len(b"".join(tail))
        tails = [(place + len(b"".join(tail[:i])), unit) for i, unit in enumerate(tail)]
    _sparse_queues(paths, files * file_size // 384 // (TOPICS * QUEUES), tails)
    _sparse_index(paths, files * file_size)
    paths.checkpoint.write_bytes(encode(Checkpoint(BEGIN_MS, BEGIN_MS, BEGIN_MS)))
    return root


def _some_units(base: int, number: int) -> list[bytes]:
    source = units(150, 250, base, number * 100)
    return [next(source) for _ in range(64)]


def _sparse_queues(paths: StorePaths, messages: int, tails: list[tuple[int, bytes]]) -> None:
    """Write queues whose first entry is the log's first unit and whose last entry is its last."""
    last_start = messages * 20 // CONSUME_QUEUE_FILE_SIZE * CONSUME_QUEUE_FILE_SIZE
    for topic in range(TOPICS):
        for queue in range(QUEUES):
            folder = paths.queue_folder(f"TopicBench{topic}", queue)
            folder.mkdir(parents=True, exist_ok=True)
            for start in range(0, last_start + 1, CONSUME_QUEUE_FILE_SIZE):
                with (folder / queue_file_name(start)).open("wb") as file:
                    file.truncate(CONSUME_QUEUE_FILE_SIZE)
            with (folder / queue_file_name(0)).open("r+b") as file:
                file.write(struct.pack(">qiq", 0, 91, 0))
            offset, unit = tails[(topic * QUEUES + queue) % len(tails)]
            with (folder / queue_file_name(last_start)).open("r+b") as file:
                for entry in range(10):
                    file.seek(entry * 20)
                    file.write(struct.pack(">qiq", offset, len(unit), 0))


def _sparse_index(paths: StorePaths, end: int) -> None:
    paths.index.mkdir(parents=True, exist_ok=True)
    geometry = index_codec.Geometry(INDEX_SLOTS, INDEX_ENTRIES)
    header = index_codec.IndexHeader(BEGIN_MS, BEGIN_MS + 1, 0, end, 1, 2)
    with (paths.index / "20231114221320000").open("wb") as file:
        file.truncate(geometry.file_size)
        file.write(index_codec.encode_header(header))
        file.seek(geometry.slot_position(7))
        file.write(struct.pack(">i", 1))
        file.seek(geometry.entry_position(1))
        file.write(index_codec.encode_entry(index_codec.IndexEntry(7, 0, 0, 0)))


def default_folder() -> Path:
    """Return the folder for measured stores: in the system's temporary folder, owned by this user."""
    folder = Path(tempfile.gettempdir()) / f"storescope-bench-{'user' if (user := system.user_id()) is None else user}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if user is not None and folder.stat().st_uid != user:
        raise PermissionError(13, "belongs to another user", str(folder))
    return folder
