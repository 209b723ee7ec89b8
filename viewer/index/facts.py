"""Index files, one slot's chain and the slots' load, read off the loop; no Qt."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from engine.codec.index import IndexHeader, entry_time
from engine.codec.index_keys import find_key_of_hash
from engine.codec.message import Unit
from engine.errors import StoreError
from engine.inspection.index_reader import IndexReader, SlotLoad, count_slots
from engine.inspection.snapshot import StoreSnapshot
from engine.rules.findings import Finding

LOOP = "IX03"
"""The rule of chains that go round."""
MAX_CHAIN_ENTRIES = 5_000
"""Maximum entries of a chain that are listed; the last row says where the list was cut."""


@dataclass(frozen=True, slots=True)
class FileRow:
    """An index file with the fields of its header; None if it cannot be read, then ``trouble`` says why."""

    name: str
    size: int
    begin_timestamp: int | None = None
    end_timestamp: int | None = None
    begin_phy_offset: int | None = None
    end_phy_offset: int | None = None
    hash_slot_count: int | None = None
    index_count: int | None = None
    slots: int | None = None
    entries: int | None = None
    geometry: str = ""
    trouble: str = ""
    health: str = ""
    """Result of the check: loop, error, warn, or "" without a problem. ``messages`` describe it."""
    messages: tuple[str, ...] = ()

    @property
    def used(self) -> int | None:
        """Entries in the file by its own account."""
        return None if self.index_count is None else max(self.index_count, 1) - 1


@dataclass(frozen=True, slots=True)
class ChainRow:
    """An entry of a slot's chain, newest first.

    ``verdict``: ok, gone, loop, beyondCount or cut (the edge of the list).
    """

    file: str
    slot: int
    entry: int
    key_hash: int | None = None
    phy_offset: int | None = None
    time_diff: int | None = None
    store_timestamp: int | None = None
    prev: int | None = None
    verdict: str = "ok"
    key: str | None = None


def with_health(rows: Sequence[FileRow], findings: Iterable[Finding]) -> list[FileRow]:
    """Return the rows with the findings of a check about their files, the most serious first."""
    by_file: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.group == "index" and finding.file and finding.severity in {"error", "warn"}:
            by_file.setdefault(Path(finding.file).name, []).append(finding)
    return [_with_health(row, by_file.get(row.name, [])) for row in rows]


def _with_health(row: FileRow, findings: list[Finding]) -> FileRow:
    kinds = {"loop" if finding.id == LOOP else finding.severity for finding in findings} | (
        {"error"} if row.trouble else set()
    )
    health = next((kind for kind in ("loop", "error", "warn") if kind in kinds), "")
    return replace(row, health=health, messages=tuple(finding.message for finding in findings))


def file_rows(store: StoreSnapshot) -> list[FileRow]:
    """Every index file, newest first, as a query walks them."""
    return [_file_row(reader) for reader in reversed(store.index_files())]


def _file_row(reader: IndexReader) -> FileRow:
    geometry = reader.geometry
    slots, entries = (geometry.slots, geometry.entries) if geometry else (None, None)
    try:
        head = reader.header
    except StoreError as error:
        return FileRow(
            reader.name, reader.size, slots=slots, entries=entries, geometry=reader.geometry_source, trouble=str(error)
        )
    return FileRow(
        reader.name,
        reader.size,
        head.begin_timestamp,
        head.end_timestamp,
        head.begin_phy_offset,
        head.end_phy_offset,
        head.hash_slot_count,
        head.index_count,
        slots,
        entries,
        reader.geometry_source,
        "" if geometry else reader.geometry_source,
    )


def reader_of(store: StoreSnapshot, name: str) -> IndexReader | None:
    """The index file of that name."""
    return next((reader for reader in store.index_files() if reader.name == name), None)


def chain_rows(store: StoreSnapshot, name: str, slot: int) -> list[ChainRow]:
    """Return the chain of a slot, each entry with the key of the unit it leads to.

    Ends at loops and bad links, which are rows.
    """
    reader = reader_of(store, name)
    if reader is None or reader.geometry is None:
        return []
    header = reader.header
    rows: list[ChainRow] = []
    visited: set[int] = set()
    number = reader.slot(slot)
    while number > 0:
        if number in visited or number > reader.last_entry:
            verdict = "loop" if number in visited else "beyondCount"
            rows.append(ChainRow(name, slot, number, verdict=verdict))
            break
        if len(rows) >= MAX_CHAIN_ENTRIES:
            rows.append(ChainRow(name, slot, number, verdict="cut"))
            break
        visited.add(number)
        row = _chain_row(store, reader, header, slot, number)
        if row is None:
            break
        rows.append(row)
        number = row.prev or 0
    return rows


def _chain_row(
    store: StoreSnapshot, reader: IndexReader, header: IndexHeader, slot: int, number: int
) -> ChainRow | None:
    entry = reader.entry(number)
    if entry is None:
        return None
    unit = store.log.unit_at(entry.phy_offset, crc=False)
    key = None
    if isinstance(unit, Unit):
        indexed = find_key_of_hash(unit.topic, unit.properties, entry.key_hash)
        key = None if indexed is None else f"{unit.topic}#{indexed.text}"
    verdict = "ok" if key is not None else "gone"
    time = entry_time(header, entry)
    return ChainRow(
        reader.name, slot, number, entry.key_hash, entry.phy_offset, entry.time_diff, time, entry.prev, verdict, key
    )


def slot_of_entry(store: StoreSnapshot, name: str, number: int) -> int | None:
    """Return the slot of an entry by its hash."""
    reader = reader_of(store, name)
    entry = reader.entry(number) if reader is not None and reader.geometry is not None else None
    if reader is None or entry is None or entry.key_hash < 0:
        return None
    return entry.key_hash % reader.slots


def slot_load(
    store: StoreSnapshot, name: str, cells: int, cancelled: Callable[[], bool], report: Callable[[int, int], None]
) -> SlotLoad | None:
    """Return the load of all slots of a file; None if its geometry is unknown."""
    reader = reader_of(store, name)
    if reader is None or reader.geometry is None:
        return None
    return count_slots(reader.file.read, reader.header, reader.geometry, cells, cancelled, report)
