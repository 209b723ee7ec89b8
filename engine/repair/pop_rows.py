"""Delete rows of popped messages that no broker can read (docs/formats/repair.md#rocksdb).

A broker reads the rows whose time is over, stops at one that is not of its form, and tries again forever: no popped
message comes again. The rows are deleted in a new write-ahead log; no file of the database changes.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from engine.codec import rocksdb_pop_rows
from engine.inspection.snapshot import StoreSnapshot
from engine.patching.patches import WriteFile
from engine.repair.repair import Repair
from engine.rocksdb.added_rows import Row, added_log
from engine.rocksdb.database import open_rocksdb
from engine.rules import mendable
from engine.rules.findings import Finding, at_least
from engine.sentences import join, plural, sentence

NAME = "pops"
MAX_ROWS = 100_000
"""More rows are left: then the form is not the one that is known here."""
_MAX_NAMED = 5


def repair_pops(store: StoreSnapshot, findings: Collection[Finding]) -> Repair | None:
    """Return the repair that deletes rows of popped messages that no broker can read; None if there are none.

    Raises :class:`engine.errors.CannotRead` if the database cannot be read.
    """
    is_reported = any(finding.id in mendable.POPS and at_least(finding.severity, "warn") for finding in findings)
    folder = store.rocksdb_rows.folder("pop")
    if not is_reported or folder is None or not Path(folder).is_relative_to(store.path):
        return None
    keys = [row.key for row in store.rocksdb_rows.rows("pop") if row.state == "unreadable"]
    if not 0 < len(keys) <= MAX_ROWS:
        return None
    rows: list[Row] = [(key, None) for key in keys]
    with open_rocksdb(Path(folder), store.reading) as database:
        log = added_log(database, store.reading, {rocksdb_pop_rows.FAMILY: rows})
    if log is None:
        return None
    why = plural(
        "{n:,} row that no broker can read is deleted, in a new write-ahead log",
        "{n:,} rows that no broker can read are deleted, in a new write-ahead log",
        n=len(keys),
    )
    name = f"{Path(folder).relative_to(store.path).as_posix()}/{log.name}"
    patch = WriteFile(file=name, old=None, new=log.content, why=why, name=NAME)
    gains = sentence("groups that pop get again what they did not acknowledge")
    names = [*(key.hex() for key in keys[:_MAX_NAMED]), *(["…"] if len(keys) > _MAX_NAMED else [])]
    costs = sentence("these rows are lost, whatever they meant (keys in hex: {keys})", keys=join(", ", names))
    title = sentence("Delete rows of popped messages that no broker can read")
    return Repair(NAME, mendable.POPS, title, (patch,), gains, costs, "likely")
