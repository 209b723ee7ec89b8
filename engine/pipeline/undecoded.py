"""Parts of a store that no job reads: queues and index entries in a RocksDB.

A source that would need such a part reports it as :class:`CannotRead`: no row must not look like "no messages".
"""

from __future__ import annotations

from engine.codec.dledger import NamedFile
from engine.codec.rocksdb import RocksFolder, rocks_folder
from engine.errors import CannotRead
from engine.pipeline.files import StorePlace
from engine.pipeline.storage import FolderEntry, join, storage_of
from engine.sentences import sentence

QUEUE_FOLDERS = ("consumequeue", "consumequeue_rocksdb")
"""Where a broker keeps its RocksDB of queues (``useSeparateStorePathForRocksdbCQ`` chooses the second)."""
INDEX_FOLDER = "rocksdbstore"
"""Every store of 5.4 and later has it; it holds index entries only with ``indexRocksDBEnable``."""


def rocksdb_queues(store: StorePlace) -> CannotRead | None:
    """Return an error that names the RocksDB of the store's queues; None if files hold them.

    Files beside a RocksDB count: a broker reads them unless its storeType says otherwise. Raises :class:`CannotRead`
    where a folder cannot be listed.
    """
    folders = [join(store.path, name) for name in QUEUE_FOLDERS]
    databases = [folder for folder in folders if _database(folder) is not None]
    if not databases or _has_folders(folders[0]) or _has_folders(join(store.path, "batchconsumequeue")):
        return None
    return CannotRead(
        sentence(
            "cannot be read: the consume queues are in a RocksDB, which pipeline jobs do not read; the commands queue "
            "and check do"
        ),
        file=databases[0],
    )


def rocksdb_index(store: StorePlace) -> CannotRead | None:
    """Return an error where a RocksDB with rows stands in the place of index files; None if files hold the index."""
    folder = join(store.path, INDEX_FOLDER)
    database = _database(folder)
    rows = database is not None and (database.tables > 0 or database.write_ahead_bytes > 0)
    if not rows or _listing(join(store.path, "index")):
        return None
    return CannotRead(
        sentence(
            "cannot be read: the index is in a RocksDB, which pipeline jobs do not read; the commands trace and rows do"
        ),
        file=folder,
    )


def _database(folder: str) -> RocksFolder | None:
    return rocks_folder(
        folder, [NamedFile(entry.name, entry.length) for entry in _listing(folder) if entry.length >= 0]
    )


def _has_folders(folder: str) -> bool:
    return any(entry.may_be_folder for entry in _listing(folder))


def _listing(folder: str) -> list[FolderEntry]:
    storage, path = storage_of(folder)
    return storage.listing(path)
