"""Small stores written by hand for tests: units, queue and index entries byte by byte, without the tested engine.

A store is healthy at first, then a test spoils one thing. File sizes are small so that every kind of file has several.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field
from pathlib import Path

LOG_SIZE = 4096
QUEUE_SIZE = 400
SLOTS, ENTRIES = 20, 60
START = 1_700_000_000_000
HOST = bytes((127, 0, 0, 1)) + (10911).to_bytes(4, "big")


def jhash(text: str) -> int:
    """Return Java's ``String.hashCode``."""
    h = 0
    for position in range(0, len(raw := text.encode("utf-16-be")), 2):
        h = (31 * h + int.from_bytes(raw[position : position + 2], "big")) & 0xFFFFFFFF
    return h - (1 << 32) if h >> 31 else h


def unit_bytes(
    topic: str,
    queue_id: int,
    queue_offset: int,
    physical_offset: int,
    store_timestamp: int,
    body: bytes = b"hello",
    properties: dict[str, str] | None = None,
    sys_flag: int = 0,
    magic: int = 0xDAA320A7,
) -> bytes:
    """Return one unit with IPv4 hosts."""
    text = "".join(f"{k}\x01{v}\x02" for k, v in (properties or {}).items()).encode()
    name = topic.encode()
    crc = zlib.crc32(body) & 0x7FFFFFFF
    length = len(name).to_bytes(1 if magic == 0xDAA320A7 else 2, "big")
    tail = struct.pack(">iqi", 0, 0, len(body)) + body + length + name + struct.pack(">h", len(text)) + text
    head = struct.pack(">Iiiiqqiq", magic, crc, queue_id, 0, queue_offset, physical_offset, sys_flag, START)
    remaining_head = head + HOST + struct.pack(">q", store_timestamp) + HOST + tail
    return struct.pack(">i", len(remaining_head) + 4) + remaining_head


@dataclass
class HandmadeUnit:
    """Place and content of a unit."""

    offset: int
    size: int
    topic: str
    queue_id: int
    queue_offset: int
    tags_code: int
    keys: list[str]
    store_timestamp: int
    dispatched: bool = True


@dataclass
class HandmadeStore:
    """A store that grows unit by unit in memory; :meth:`write` puts it on disk."""

    log_size: int = LOG_SIZE
    queue_size: int = QUEUE_SIZE
    first_offset: int = 0
    units: list[HandmadeUnit] = field(default_factory=list)
    log: bytearray = field(default_factory=bytearray)
    next_offsets: dict[tuple[str, int], int] = field(default_factory=dict)
    time: int = START
    tag_entries: bool = False
    """Whether the units that come next have tag entries in the index, as since RocketMQ 5.4."""

    def put(
        self,
        topic: str = "Orders",
        queue_id: int = 0,
        body: bytes = b"hello",
        tags: str | None = None,
        keys: str | None = None,
        sys_flag: int = 0,
        more: dict[str, str] | None = None,
        queue_offset: int | None = None,
        physical_offset: int | None = None,
        step: int = 10,
        magic: int = 0xDAA320A7,
        unique: str | None = None,
    ) -> HandmadeUnit:
        """Append one unit like a broker, after a blank if it does not fit."""
        self.time += step
        properties = dict(more or {})
        if keys:
            properties["KEYS"] = keys
        unique = unique or f"U{len(self.units):05d}"
        properties["UNIQ_KEY"] = unique
        if tags:
            properties["TAGS"] = tags
        number = self.next_offsets.get((topic, queue_id), 0) if queue_offset is None else queue_offset

        def made(at: int) -> bytes:
            stored = at if physical_offset is None else physical_offset
            return unit_bytes(topic, queue_id, number, stored, self.time, body, properties, sys_flag, magic)

        size = len(made(0))
        position = self.first_offset + len(self.log)
        room = self.log_size - len(self.log) % self.log_size
        if size + 8 > room:
            self.log += struct.pack(">iI", room, 0xCBD43194).ljust(room, b"\0")
            position += room
        self.log += made(position)
        if sys_flag & 0xC in (0, 8):
            self.next_offsets[topic, queue_id] = number + 1
        unit = HandmadeUnit(
            position,
            size,
            topic,
            queue_id,
            number,
            jhash(tags) if tags else 0,
            [unique, *(keys or "").split(), *([f"T#{tags}"] if tags and self.tag_entries else [])],
            self.time,
            sys_flag & 0xC in (0, 8),
        )
        self.units.append(unit)
        return unit

    @property
    def end(self) -> int:
        return self.first_offset + len(self.log)

    def write(
        self, root: Path, *, queues: bool = True, index: bool = True, checkpoint: bool = True, abort: bool = False
    ) -> Path:
        """Write the store's files below ``root``."""
        folder = root / "commitlog"
        folder.mkdir(parents=True)
        for position in range(0, max(len(self.log), 1), self.log_size):
            data = bytes(self.log[position : position + self.log_size])
            (folder / f"{self.first_offset + position:020d}").write_bytes(data.ljust(self.log_size, b"\0"))
        if queues:
            self._write_queues(root / "consumequeue")
        if index:
            self._write_index(root / "index")
        if checkpoint:
            self.write_checkpoint(root)
        if abort:
            (root / "abort").write_bytes(b"4711")
        return root

    def write_checkpoint(
        self, root: Path, physic: int | None = None, logics: int | None = None, index: int = 0
    ) -> None:
        """Write the checkpoint; times default to the newest unit's."""
        newest = self.units[-1].store_timestamp if self.units else 0
        times = (newest if physic is None else physic, newest if logics is None else logics, index)
        (root / "checkpoint").write_bytes(struct.pack(">5q", *times, 0, 0).ljust(4096, b"\0"))

    def queue_bytes(self, topic: str, queue_id: int) -> bytes:
        """Return all entries of one queue, from queue offset 0 on."""
        units = [u for u in self.units if (u.topic, u.queue_id) == (topic, queue_id) and u.dispatched]
        return b"".join(struct.pack(">qiq", u.offset, u.size, u.tags_code) for u in units)

    def _write_queues(self, folder: Path) -> None:
        for topic, queue_id in self.next_offsets:
            write_queue(folder / topic / str(queue_id), self.queue_bytes(topic, queue_id), self.queue_size)

    def _write_index(self, folder: Path) -> None:
        folder.mkdir()
        files: list[bytearray] = []
        name, begin, end_time, end_phy = 20240101000000000, 0, 0, 0
        for unit in self.units:
            for key in unit.keys:
                if not files or struct.unpack_from(">i", files[-1], 36)[0] >= ENTRIES:
                    files.append(bytearray(40 + 4 * SLOTS + 20 * ENTRIES))
                    struct.pack_into(">qqqqii", files[-1], 0, end_time, end_time, end_phy, end_phy, 0, 1)
                add_key(files[-1], f"{unit.topic}#{key}", unit.offset, unit.store_timestamp)
                end_time, end_phy = unit.store_timestamp, unit.offset
        for number, data in enumerate(files):
            (folder / str(name + number)).write_bytes(data)
        del begin


def add_key(data: bytearray, text: str, offset: int, store_time: int) -> None:
    """Insert one key into an index file's bytes (docs/formats/index-file.md#insert)."""
    begin, _, begin_phy, _, used, count = struct.unpack_from(">qqqqii", data, 0)
    key_hash = abs(jhash(text))
    slot = 40 + 4 * (key_hash % SLOTS)
    old = struct.unpack_from(">i", data, slot)[0]
    old = old if 0 < old <= count else 0
    diff = max((store_time - begin) // 1000, 0) if begin > 0 else 0
    struct.pack_into(">iqii", data, 40 + 4 * SLOTS + 20 * count, key_hash, offset, diff, old)
    struct.pack_into(">i", data, slot, count)
    if count <= 1:
        begin, begin_phy = store_time, offset
    struct.pack_into(">qqqqii", data, 0, begin, store_time, begin_phy, offset, used + (old == 0), count + 1)


def write_queue(folder: Path, data: bytes, file_size: int, start: int = 0) -> None:
    """Write the files of one queue from byte offset ``start`` on."""
    folder.mkdir(parents=True, exist_ok=True)
    for position in range(0, max(len(data), 1), file_size):
        (folder / f"{start + position:020d}").write_bytes(data[position : position + file_size].ljust(file_size, b"\0"))


def healthy(count: int = 60) -> HandmadeStore:
    """Return a store of several topics, queues, files and index files, with tags and keys."""
    store = HandmadeStore()
    for number in range(count):
        store.put(
            "Orders" if number % 3 else "Payments",
            number % 2,
            body=b"body %d " % number * (1 + number % 4),
            tags=f"Tag{number % 5}",
            keys=f"K{number} all",
        )
    return store


def into_dledger(root: Path, folder: str = "dledger-n0/data") -> int:
    """Move the newest file of the log into a DLedger log, as in a store that was classic before; return its offset.

    Each unit would be in an entry of its own; only the entry before the first unit is written.
    """
    newest = max((root / "commitlog").iterdir())
    data = newest.read_bytes()
    size = int.from_bytes(data[:4], "big")
    header = struct.pack(">iiqqqiiii", 1, 48 + size, 0, 0, int(newest.name), 0, 0, 0, size)
    newest.unlink()
    for copy in (root / folder, root / "dledger-n9" / "data"):
        copy.mkdir(parents=True, exist_ok=True)
        (copy / newest.name).write_bytes((header + data)[: len(data)])
    return int(newest.name)
