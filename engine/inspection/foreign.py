"""Parts of a store that are recognised and not decoded: RocksDB queues (spec 3.9), DLedger logs."""

from __future__ import annotations

from engine.inspection.snapshot import StoreSnapshot

_ROCKSDB_MARK = "CURRENT"
_DLEDGER_PREFIX = "dledger-"


def rocksdb_queues(store: StoreSnapshot) -> bool:
    """The consume queues are a RocksDB: which units are in them is not known here."""
    return store.paths is not None and (store.paths.consumequeue / _ROCKSDB_MARK).is_file()


def dledger_log(store: StoreSnapshot) -> bool:
    """The commit log is DLedger's: each message stands in an entry of that library's own."""
    if store.paths is None:
        return False
    try:
        return any(path.name.startswith(_DLEDGER_PREFIX) and path.is_dir() for path in store.path.iterdir())
    except OSError:
        return False


def notes(store: StoreSnapshot) -> list[str]:
    """One sentence for each such part."""
    found = []
    if rocksdb_queues(store):
        found.append("The consume queues are a RocksDB (storeType=defaultRocksDB), which is not decoded")
    if dledger_log(store):
        found.append("The commit log is DLedger's, which is not decoded")
    return found
