"""RocksDB folders that a test writes with the binding itself."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from handmade_stores import HandmadeStore

from engine.codec import rocksdb_queue_rows as codec
from engine.mapped.reading import Reading
from engine.rocksdb.added_rows import added_log
from engine.rocksdb.database import open_rocksdb


def binding():
    """Return the binding; skip the test if the extra is not installed."""
    return pytest.importorskip("rocksdict")


def make_database(folder: Path, families: dict[str, dict[bytes, bytes]], *, flush: bool = True) -> Path:
    """Write a database with the given rows; with ``flush`` into table files, else into the write-ahead log. A database
    that is already in ``folder`` is replaced.
    """
    rocks = binding()
    shutil.rmtree(folder, ignore_errors=True)
    options = rocks.Options(raw_mode=True)
    options.create_if_missing(True)
    database = rocks.Rdict(str(folder), options)
    for name, rows in families.items():
        handle = database
        if name != "default":
            handle = database.create_column_family(name, rocks.Options(raw_mode=True))
        for key, value in rows.items():
            handle[key] = value
        if flush:
            handle.flush()
    if flush:
        database.close()
        return folder
    copy = folder.with_name(folder.name + "-copy")  # closing would flush: the files are taken as a crash leaves them
    shutil.copytree(folder, copy)
    database.close()
    shutil.rmtree(folder)
    copy.rename(folder)
    return folder


def read_rows(folder: Path) -> dict[str, dict[bytes, bytes]]:
    """All rows of a database, by column family."""
    binding()
    with open_rocksdb(folder, Reading()) as database:
        return {family: dict(database.rows(family)) for family in database.families}


def rows_of_store(made: HandmadeStore) -> dict[str, dict[bytes, bytes]]:
    """The rows that a broker with its queues in a RocksDB would have written for the units of ``made``."""
    entries: dict[bytes, bytes] = {}
    bounds: dict[bytes, bytes] = {}
    for unit in made.units:
        if unit.dispatched:
            place = unit.topic, unit.queue_id
            row = codec.QueueRow(unit.offset, unit.size, unit.tags_code, unit.store_timestamp)
            entries[codec.entry_key(*place, unit.queue_offset)] = codec.encode_entry(row)
            bound = codec.BoundRow(*place, "max", unit.offset, unit.queue_offset)
            bounds[codec.bound_key(*place, "max")] = codec.encode_bound(bound)
    bounds[codec.CHECKPOINT_KEY] = made.end.to_bytes(8, "big")
    return {codec.ENTRY_FAMILY: entries, codec.BOUND_FAMILY: bounds}


def spoil_queues(folder: Path, kind: str, topic: str, queue_id: int) -> None:
    """Spoil the rows of a queue, or of all queues, of a database that a broker made: one of :data:`SPOILED`."""
    queues = QueueRows(folder)
    match kind:
        case "wrong offsets":
            for number in (10, 11, 12):
                queues.change_entry(topic, queue_id, number, physical_offset=number)
        case "missing rows":
            queues.delete_entries(topic, queue_id, range(20, 40))
        case "early end":
            queues.set_bound(topic, queue_id, "max", 30)
        case "no end":
            del queues.bounds[codec.bound_key(topic, queue_id, "max")]
        case "late start":
            queues.set_bound(topic, queue_id, "min", 30)
        case "wrong tag":
            queues.change_entry(topic, queue_id, 5, tags_code=77)
        case "no rows":
            queues.entries.clear()
        case "empty":
            queues.entries.clear()
            queues.bounds.clear()
    queues.append()


SPOILED = (
    "wrong offsets",
    "missing rows",
    "early end",
    "no end",
    "late start",
    "wrong tag",
    "no rows",
    "empty",
)


class QueueRows:
    """The rows of a store's queues, to be changed and written again: entries and bounds by topic, queue and offset."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.rows = read_rows(folder)
        self.entries, self.bounds = self.rows[codec.ENTRY_FAMILY], self.rows[codec.BOUND_FAMILY]

    def entry(self, topic: str, queue_id: int, queue_offset: int) -> codec.QueueRow:
        return codec.decode_entry(self.entries[codec.entry_key(topic, queue_id, queue_offset)])

    def change_entry(self, topic: str, queue_id: int, queue_offset: int, **fields: int) -> None:
        row = replace(self.entry(topic, queue_id, queue_offset), **fields)
        self.entries[codec.entry_key(topic, queue_id, queue_offset)] = codec.encode_entry(row)

    def delete_entries(self, topic: str, queue_id: int, numbers: Iterable[int]) -> None:
        for number in numbers:
            del self.entries[codec.entry_key(topic, queue_id, number)]

    def set_bound(self, topic: str, queue_id: int, bound: codec.Bound, queue_offset: int) -> None:
        """Let a bound be at an entry, which must be there."""
        physical_offset = self.entry(topic, queue_id, queue_offset).physical_offset
        row = codec.BoundRow(topic, queue_id, bound, physical_offset, queue_offset)
        self.bounds[codec.bound_key(topic, queue_id, bound)] = codec.encode_bound(row)

    def set_dispatched(self, offset: int) -> None:
        """Set the end of dispatch (bytes of the log)."""
        self.bounds[codec.CHECKPOINT_KEY] = offset.to_bytes(8, "big")

    def forget_from(self, offset: int) -> None:
        """Leave the rows as they were when dispatch was at ``offset`` (bytes of the log), the start of a unit."""
        kept = {key: value for key, value in self.entries.items() if codec.decode_entry(value).physical_offset < offset}
        self.entries.clear()
        self.entries.update(kept)
        self.bounds.clear()
        for key, value in sorted(kept.items()):  # of a queue the last one stays
            topic_end = 5 + int.from_bytes(key[:4], "big")
            topic, queue_id = key[5:topic_end].decode(), int.from_bytes(key[topic_end + 1 : topic_end + 5], "big")
            row = codec.BoundRow(
                topic, queue_id, "max", codec.decode_entry(value).physical_offset, codec.queue_offset_of(key)
            )
            self.bounds[codec.bound_key(topic, queue_id, "max")] = codec.encode_bound(row)
        self.set_dispatched(offset)

    def write(self) -> None:
        make_database(self._folder, self.rows)

    def append(self) -> None:
        """Write only what changed, into a write-ahead log beside the files. RocketMQ can open such a database, but not
        the table files of a newer RocksDB that :meth:`write` makes.
        """
        old = read_rows(self._folder)
        changes = {
            family: [
                (key, self.rows[family].get(key))
                for key in sorted(old[family].keys() | self.rows[family].keys())
                if old[family].get(key) != self.rows[family].get(key)
            ]
            for family in old
        }
        with open_rocksdb(self._folder, Reading()) as database:
            log = added_log(database, Reading(), changes)
        assert log is not None
        (self._folder / log.name).write_bytes(log.content)
