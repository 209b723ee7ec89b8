"""Build a RocksDB of queues again that cannot be read, or that is gone (docs/formats/repair.md#rocksdb).

A broker does not start with a damaged one. Its files are moved out of the way, and a new one takes their place:
without table files, with all rows that the log says in its write-ahead log. Where none is left a broker makes one, but
leaves the message at offset 0 of the log out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from engine.codec import rocksdb_queue_rows as codec
from engine.config import MessageStoreConfig
from engine.errors import DamagedDatabase
from engine.files.layout import MOVED_FOLDER
from engine.inspection.snapshot import StoreSnapshot, open_store
from engine.patching.patches import MoveFile, Patch, WriteFile
from engine.repair import queue_entries
from engine.repair.repair import Repair, sample_of
from engine.repair.rocksdb_queues import MAX_ROWS, differing_rows
from engine.rocksdb.added_rows import Row, new_database
from engine.rocksdb.database import LACKS_FAMILY
from engine.rules import mendable
from engine.sentences import Sentence, plural, sentence

NAME = "rocksdb"
_DATABASE_FILE = re.compile(
    r"CURRENT|IDENTITY|(?:MANIFEST|OPTIONS)-\d+(?:\.dbtmp)?|LOG(?:\.old\.\d+)?|\d+\.(?:sst|ldb|blob|log|dbtmp)|"
    r"rocksdict-config\.json",
    re.ASCII,
)


def find_damage(store: StoreSnapshot) -> DamagedDatabase | None:
    """Return why the RocksDB with the queues of a stopped broker cannot be read; None if it can, if it is one of
    another layout, or if the queues are in files.

    All of its rows are read. Raises :class:`engine.errors.CannotRead`, also :class:`engine.errors.MissingExtra`.
    """
    queues = store.queues.rocksdb
    if queues is None or store.lock_state == "held" or not queues.folder.is_relative_to(store.path):
        return None
    try:
        database = queues.database()
        for family in codec.FAMILIES:
            for _ in database.rows(family):
                pass
    except DamagedDatabase as error:
        return None if getattr(error.what, "id", "") == LACKS_FAMILY else error
    return None


def rebuild_database(store: StoreSnapshot, config: MessageStoreConfig | None, damage: DamagedDatabase) -> Repair:
    """Return the repair of a RocksDB of queues that cannot be read because of ``damage``.

    With more than :data:`MAX_ROWS` rows the new database has none: the next start writes them. Raises
    :class:`engine.errors.CannotRead` if the log cannot be read.
    """
    queues = store.queues.rocksdb
    assert queues is not None
    folder = queues.folder.relative_to(store.path).as_posix()
    moved = list(_moved_files(store, queues.folder, folder))
    title = sentence("Build the damaged RocksDB of queues again from the commit log")
    patches, gains = _new_database(store, config, folder, moved)
    gains = sentence("a broker starts again; {gains} (the damage: {damage})", gains=gains, damage=damage.what)
    return Repair(NAME, mendable.DATABASES, title, (*moved, *patches), gains, _COSTS)


def make_database(store: StoreSnapshot, config: MessageStoreConfig | None, patches: Sequence[Patch]) -> Repair:
    """Return the repair of a store whose RocksDB of queues is gone, as ``patches`` leave it.

    Raises :class:`engine.errors.CannotRead` if the log cannot be read.
    """
    separate = config is not None and config.use_separate_store_path_for_rocksdb_cq
    folder = "consumequeue_rocksdb" if separate else "consumequeue"
    title = sentence("Build the lost RocksDB of queues again from the commit log")
    new_patches, gains = _new_database(store, config, folder, patches)
    return Repair(queue_entries.NAME, mendable.QUEUES, title, tuple(new_patches), gains, _COSTS)


_COSTS = sentence("a queue whose messages have all expired begins at 0 again")


def _new_database(
    store: StoreSnapshot, config: MessageStoreConfig | None, folder: str, patches: Sequence[Patch]
) -> tuple[list[Patch], Sentence]:
    """Return the patches that make a database with the rows of the store's log, and what is gained by them."""
    empty = _new_files(folder, {name: [] for name in codec.FAMILIES})
    with open_store(store.path, config, [*patches, *empty]) as emptied:
        rows = differing_rows(emptied, None, frozenset(), behind_damage=True)
    if rows.count <= MAX_ROWS:
        reached = max((_end(value) for _, value in rows.entries), default=0)
        bounds: list[Row] = [*rows.bounds, _dispatched_row(reached)]
        gains = plural(
            "{n:,} queue has the rows that the messages of the log say",
            "{n:,} queues have the rows that the messages of the log say",
            n=rows.queues,
        )
        return [*_new_files(folder, {codec.ENTRY_FAMILY: rows.entries, codec.BOUND_FAMILY: bounds})], gains
    new_patches: list[Patch] = [
        *_new_files(folder, {codec.ENTRY_FAMILY: [], codec.BOUND_FAMILY: [_dispatched_row(-1)]})
    ]
    if not store.abort:
        why = sentence("a start takes its absence for a clean stop, and reads only the last files of the log")
        new_patches.append(WriteFile(file="abort", old=None, new=b"0", why=why, name=NAME))
    return new_patches, sentence("the next start fills the queues from the log")


def _dispatched_row(offset: int) -> Row:
    """Return the row with the end of dispatch: a start dispatches messages behind this offset, not the one at it."""
    return codec.CHECKPOINT_KEY, offset.to_bytes(8, "big", signed=True)


def forget_unread(store: StoreSnapshot) -> None:
    """Remove the files of the RocksDB from those that could not be read: nothing is concluded without them any more."""
    queues = store.queues.rocksdb
    assert queues is not None
    store.reading.drop_unread([item for item in store.reading.unread if Path(item.file).is_relative_to(queues.folder)])


def _end(value: bytes | None) -> int:
    row = codec.decode_entry(value or b"")
    return row.physical_offset + row.size


def _moved_files(store: StoreSnapshot, folder: Path, name: str) -> list[MoveFile]:
    """Return the patches that move the files of the database into a folder that does not exist yet."""
    target, number = f"{MOVED_FOLDER}/{name}", 1
    while store.reading.exists(store.path / target):
        number += 1
        target = f"{MOVED_FOLDER}/{name}-{number}"
    why = sentence("the database cannot be read, and a broker does not start with it")
    patches = []
    for entry in sorted(store.reading.entries(folder, listed=True), key=lambda entry: entry.name):
        if _DATABASE_FILE.fullmatch(entry.name):
            size, sample = sample_of(store, folder / entry.name)
            patches.append(
                MoveFile(
                    file=f"{name}/{entry.name}",
                    target=f"{target}/{entry.name}",
                    size=size,
                    sample=sample,
                    why=why,
                    name=NAME,
                )
            )
    return patches


def _new_files(folder: str, rows: dict[str, list[Row]]) -> list[WriteFile]:
    why = sentence("a new database, with the rows that the messages of the log say")
    return [
        WriteFile(file=f"{folder}/{name}", old=None, new=content, why=why, name=NAME)
        for name, content in new_database(rows).items()
    ]
