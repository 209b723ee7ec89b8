"""Parts of a store that are recognised and sized, not decoded: RocksDB folders (spec 3.9), DLedger logs (spec 1)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from engine.codec import dledger, rocksdb
from engine.codec.dledger import DLedgerLog, NamedFile
from engine.codec.rocksdb import RocksFolder
from engine.errors import StoreError
from engine.inspection.snapshot import StoreSnapshot
from engine.mapped.read_only import open_read_only

CONSUME_QUEUE = "consumequeue"


def rocksdb_folders(store: StoreSnapshot) -> Iterator[RocksFolder]:
    """Every folder that RocksDB keeps for the broker."""
    if store.paths is None:
        return
    for folder in rocksdb.PURPOSES:
        files = [NamedFile(entry.name, size) for entry, size in _files(store.paths.root / folder)]
        if files:
            try:
                current = store.small_file(store.paths.root / folder / "CURRENT")
            except StoreError:
                current = None
            found = rocksdb.recognise(folder, files, current)
            if found is not None:
                yield found


def rocksdb_queues(store: StoreSnapshot) -> bool:
    """The consume queues are a RocksDB: which units are in them is not known here."""
    return any(found.folder == CONSUME_QUEUE for found in rocksdb_folders(store))


def dledger_logs(store: StoreSnapshot) -> Iterator[DLedgerLog]:
    """Every folder of a DLedger log: each message stands in an entry of that library's own."""
    if store.paths is None:
        return
    for folder in sorted(_folders(store.paths.root)):
        if not folder.name.startswith(dledger.FOLDER_PREFIX):
            continue
        files = [
            NamedFile(f"{part}/{entry.name}", size)
            for part in ("data", "index")
            for entry, size in _files(folder / part)
        ]
        files += [NamedFile(entry.name, size) for entry, size in _files(folder)]
        oldest = min((file.name for file in files if file.name.startswith("data/")), default=None)
        found = dledger.recognise(folder.name, files, _head(folder / oldest) if oldest else b"")
        if found is not None:
            yield found


def notes(store: StoreSnapshot) -> list[str]:
    """What is said of each such part, in sentences."""
    return [*(found.words for found in dledger_logs(store)), *(found.words for found in rocksdb_folders(store))]


def _files(folder: Path) -> Iterator[tuple[os.DirEntry[str], int]]:
    """Files of one folder with their lengths; nothing where it cannot be listed."""
    try:
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda e: e.name):
                if entry.is_file(follow_symlinks=False):
                    yield entry, entry.stat(follow_symlinks=False).st_size
    except OSError:
        return


def _folders(folder: Path) -> Iterator[Path]:
    try:
        with os.scandir(folder) as entries:
            yield from (Path(entry.path) for entry in entries if entry.is_dir())
    except OSError:
        return


def _head(path: Path) -> bytes:
    try:
        descriptor = open_read_only(str(path))
    except OSError:
        return b""
    try:
        return os.pread(descriptor, dledger.HEAD_BYTES, 0)
    finally:
        os.close(descriptor)
