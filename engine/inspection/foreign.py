"""Parts of a store that are recognised and sized, not decoded: RocksDB folders (spec 3.9), DLedger logs (spec 1).

Which release wrote a store last, by what only one of them leaves behind: a guess, and always said as one.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from engine.codec import foreign
from engine.codec.foreign import DLedgerLog, NamedFile, RocksFolder
from engine.errors import CannotRead, CorruptUnit
from engine.inspection.snapshot import StoreSnapshot
from engine.rules.unit_check import Release

CONSUME_QUEUE = "consumequeue"


def rocksdb_folders(store: StoreSnapshot) -> Iterator[RocksFolder]:
    """Every folder that RocksDB keeps for the broker."""
    if store.paths is None:
        return
    for folder in foreign.PURPOSES:
        files = _files(store, store.paths.root / folder)
        if files:
            try:
                current = store.small_file(store.paths.root / folder / "CURRENT")
            except (CannotRead, CorruptUnit):
                current = None
            found = foreign.rocks_folder(folder, files, current)
            if found is not None:
                yield found


def rocksdb_queues(store: StoreSnapshot) -> bool:
    """The consume queues are a RocksDB: which units are in them is not known here."""
    return any(found.folder == CONSUME_QUEUE for found in rocksdb_folders(store))


def dledger_logs(store: StoreSnapshot) -> Iterator[DLedgerLog]:
    """Every folder of a DLedger log: each message stands in an entry of that library's own."""
    if store.paths is None:
        return
    for folder in _folders(store, store.paths.root):
        if not folder.name.startswith(foreign.FOLDER_PREFIX):
            continue
        files = [
            NamedFile(f"{part}/{file.name}", file.size)
            for part in ("data", "index")
            for file in _files(store, folder / part)
        ]
        files += _files(store, folder)
        oldest = min((file.name for file in files if file.name.startswith("data/")), default=None)
        found = foreign.dledger_log(folder.name, files, _head(store, folder / oldest) if oldest else b"")
        if found is not None:
            yield found


def unknown_to_plans(store: StoreSnapshot) -> bool:
    """Messages or queues are in files that are not read here: what a start keeps and loses of them cannot be told."""
    return rocksdb_queues(store) or any(True for _ in dledger_logs(store))


def notes(store: StoreSnapshot) -> list[str]:
    """What is said of each such part, in sentences."""
    return [*(found.words for found in dledger_logs(store)), *(found.words for found in rocksdb_folders(store))]


def _files(store: StoreSnapshot, folder: Path) -> list[NamedFile]:
    """Files of one folder with their lengths; what the door could not list or look at is left out."""
    found = []
    with contextlib.suppress(CannotRead):
        for entry in store.reading.entries(folder):
            if entry.is_file(follow_symlinks=False):
                with contextlib.suppress(CannotRead):
                    found.append(NamedFile(entry.name, store.reading.look_at(entry, follow=False).st_size))
    return found


def _folders(store: StoreSnapshot, folder: Path) -> list[Path]:
    with contextlib.suppress(CannotRead):
        return store.reading.folders(folder)
    return []


def _head(store: StoreSnapshot, path: Path) -> bytes:
    with contextlib.suppress(CannotRead, CorruptUnit):
        descriptor = store.reading.open(path)
        try:
            length = os.fstat(descriptor).st_size
            return store.reading.read(str(path), descriptor, min(foreign.HEAD_BYTES, length), 0, length)
        finally:
            os.close(descriptor)
    return b""


_OF_5 = ("timerwheel", "timerlog", "compaction", "batchconsumequeue", "abort.bak")
_TABLES_OF_5 = ("topicQueueMapping.json", "consumerOrderInfo.json", "timercheck", "timermetrics")


def guess(store: StoreSnapshot) -> tuple[Release, str] | None:
    """The release, and what speaks for it; None where nothing does. Raises :class:`CannotRead`."""
    if store.paths is None:
        return None
    root, exists = store.paths.root, store.reading.exists
    seen = next((name for name in _OF_5 if exists(root / name)), None)
    seen = seen or next((f"config/{name}" for name in _TABLES_OF_5 if exists(store.paths.config / name)), None)
    if seen is not None:
        return "5.3", f"it has {seen}"
    try:
        checkpoint = store.checkpoint()
    except CorruptUnit:
        return None
    if checkpoint is None:
        return None
    if checkpoint.confirm_phy_offset or checkpoint.master_flushed_offset:
        return "5.3", "its checkpoint has a confirm offset"
    return "4.9", "it has no timerwheel and no confirm offset"
