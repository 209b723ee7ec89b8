"""Checks index rows in a RocksDB against the newest messages of the log (IX12; docs/formats/index-file.md#rocksdb)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.codec import rocksdb_index_rows as codec
from engine.codec.index_keys import has_key, index_keys
from engine.codec.message import ROLLBACK, Unit
from engine.rules import catalogue_tables as rules
from engine.rules.findings import Finding
from engine.sentences import plural, sentence

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot
    from engine.rocksdb.database import RocksDatabase

MAX_UNITS = 20_000
"""Newest messages whose rows are compared."""
MAX_NAMED = 20


@dataclass(slots=True)
class IndexRowFaults:
    """Rows that lead to no message with their key, with the keys of the database; and the keys of messages that have no
    row.
    """

    wrong: list[tuple[bytes, codec.IndexKeyRow]] = field(default_factory=list)
    missing: list[tuple[Unit, codec.IndexKeyRow]] = field(default_factory=list)


def findings(store: StoreSnapshot) -> Iterator[Finding]:
    """IX12. Raises :class:`CannotRead`. Reports nothing while a broker is running."""
    folder = store.rocksdb_rows.folder("index")
    faults = find_faults(store)
    if faults.wrong:
        yield _leading_nowhere([row for _, row in faults.wrong], folder)
    if faults.missing:
        yield _without_row([(unit, row.text) for unit, row in faults.missing], folder)


def find_faults(store: StoreSnapshot) -> IndexRowFaults:
    """Compare the index rows in a RocksDB with the newest messages of the log.

    Raises :class:`CannotRead`. Finds nothing while a broker is running.
    """
    rows = store.rocksdb_rows
    faults = IndexRowFaults()
    if store.paths is None or store.lock_state == "held" or not rows.exist("index"):
        return faults
    if store.why_unknown("index") is not None:
        return faults
    items = store.log.items_before(store.log.max_offset, MAX_UNITS, crc=False)
    units = {item.offset: item for item in items if isinstance(item, Unit)}
    if not units:
        return faults
    with rows.open_database("index") as database:
        last_offset = codec.decode_offset(database.get(codec.FAMILY, codec.LAST_OFFSET_KEY) or b"")
        start = codec.hour_key(min(unit.store_timestamp for unit in units.values()))
        first_offset, faults.wrong = _wrong_rows(store, database, start, units)
        if first_offset is not None and last_offset is not None:
            indexed = [unit for offset, unit in units.items() if first_offset <= offset <= last_offset]
            faults.missing = [(unit, row) for unit in indexed for row in _missing_rows(database, unit)]
    return faults


def _wrong_rows(
    store: StoreSnapshot, database: RocksDatabase, start: bytes, units: dict[int, Unit]
) -> tuple[int | None, list[tuple[bytes, codec.IndexKeyRow]]]:
    """The smallest offset to which a row leads, and the rows that lead to no unit with their key."""
    first_offset: int | None = None
    wrong = []
    for key, _ in database.rows(codec.FAMILY, start, codec.END_OF_HOURS):
        row = codec.decode_key(key)
        if row is None or row.physical_offset < max(store.log.min_offset, 0):
            continue
        first_offset = row.physical_offset if first_offset is None else min(first_offset, row.physical_offset)
        unit = units.get(row.physical_offset) or store.log.seen_at(row.physical_offset, crc=False)
        if not isinstance(unit, Unit) or not leads_to(row, unit):
            wrong.append((key, row))
    return first_offset, wrong


def leads_to(row: codec.IndexKeyRow, unit: Unit) -> bool:
    """Return True if the unit has the key of the row."""
    is_same = unit.topic == row.topic and unit.unique_key == row.unique_key
    return is_same and has_key(unit.properties, row.text, row.index_type)


def _missing_rows(database: RocksDatabase, unit: Unit) -> Iterator[codec.IndexKeyRow]:
    """Rows that a unit lacks; a unit without a unique key has none, nor one that was rolled back."""
    if not unit.unique_key or unit.transaction_type == ROLLBACK:
        return
    for key in dict.fromkeys(index_keys(unit.properties)):
        row = codec.IndexKeyRow(unit.topic, key.index_type, key.text, unit.unique_key, unit.offset)
        if database.get(codec.FAMILY, codec.encode_key(row, unit.store_timestamp)) is None:
            yield row


def _leading_nowhere(wrong: list[codec.IndexKeyRow], folder: str | None) -> Finding:
    text = plural(
        "{n:,} row of the index leads to no message with its key: {topic}#{key} leads to {offset:,}",
        "{n:,} rows of the index lead to no message with their key: the first is {topic}#{key}, it leads to {offset:,}",
        n=len(wrong),
        topic=wrong[0].topic,
        key=wrong[0].text,
        offset=wrong[0].physical_offset,
    )
    evidence = {
        "rows": len(wrong),
        "offsets": sorted({row.physical_offset for row in wrong})[:MAX_NAMED],
        "expected": sentence("a unit with this key"),
        "looked": MAX_UNITS,
    }
    return rules.IX12.finding(text, folder, None, evidence)


def _without_row(missing: list[tuple[Unit, str]], folder: str | None) -> Finding:
    unit, key = missing[0]
    text = plural(
        "{n:,} key has no row in the index: {topic}#{key} of the message at {offset:,}",
        "{n:,} keys have no row in the index: the first is {topic}#{key} of the message at {offset:,}",
        n=len(missing),
        topic=unit.topic,
        key=key,
        offset=unit.offset,
    )
    evidence = {
        "keys": len(missing),
        "firstUnit": unit.offset,
        "lastUnit": missing[-1][0].offset,
        "looked": MAX_UNITS,
    }
    return rules.IX12.finding(text, folder, None, evidence, kind="key")
