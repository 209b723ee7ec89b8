"""Write rows of the index in a RocksDB again from the commit log (docs/formats/repair.md#rocksdb).

No start makes rows for messages that the broker has indexed once. The rows are in a new write-ahead log; no file of the
database changes.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from engine.codec import rocksdb_index_rows as codec
from engine.inspection.check.rocksdb_index_rows import find_faults
from engine.inspection.snapshot import StoreSnapshot
from engine.patching.patches import WriteFile
from engine.repair.repair import Repair
from engine.rocksdb.added_rows import Row, added_log
from engine.rocksdb.database import open_rocksdb
from engine.rules import mendable
from engine.rules.findings import Finding
from engine.sentences import plural, sentence

NAME = "index-rows"


def repair_index_rows(store: StoreSnapshot, findings: Collection[Finding]) -> Repair | None:
    """Return the repair of index rows that do not fit the messages of the log; None without any.

    Raises :class:`engine.errors.CannotRead` if the log or the database cannot be read.
    """
    folder = store.rocksdb_rows.folder("index")
    is_reported = any(finding.id in mendable.INDEX_ROWS for finding in findings)
    if not is_reported or folder is None or not Path(folder).is_relative_to(store.path):
        return None
    faults = find_faults(store)
    rows: list[Row] = [(key, None) for key, _ in faults.wrong]
    for unit, row in faults.missing:
        time = unit.store_timestamp
        rows.append((codec.encode_key(row, time), codec.encode_value(time)))
    if not rows:
        return None
    with open_rocksdb(Path(folder), store.reading) as database:
        log = added_log(database, store.reading, {codec.FAMILY: rows})
    if log is None:
        return None
    why = plural(
        "{n:,} row of the index becomes what the log says, in a new write-ahead log",
        "{n:,} rows of the index become what the log says, in a new write-ahead log",
        n=len(rows),
    )
    name = f"{Path(folder).relative_to(store.path).as_posix()}/{log.name}"
    patch = WriteFile(file=name, old=None, new=log.content, why=why, name=NAME)
    gains = sentence(
        "{missing:,} keys are found again, {wrong:,} rows lead to no other message any more",
        missing=len(faults.missing),
        wrong=len(faults.wrong),
    )
    title = sentence("Write the index rows in a RocksDB again from the commit log")
    return Repair(NAME, mendable.INDEX_ROWS, title, (patch,), gains)
