"""Mend queues in a RocksDB: every row as the messages of the log say it (docs/formats/repair.md#rocksdb).

The files of the database stay as they are. The rows that differ come in a new write-ahead log: the next opening, by a
broker or by Storescope, puts them over the others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from engine.codec import rocksdb_queue_rows as codec
from engine.codec.dtypes import ROCKSDB_QUEUE_ROW
from engine.codec.message import DEFAULT_DELAY_LEVELS, Unit
from engine.codec.unit_scan import Damage, Stop
from engine.inspection.block_scan import scan_log
from engine.inspection.deleted_topics import deleted_topics
from engine.inspection.rocksdb_queue import RocksQueueReader, RocksQueues
from engine.inspection.rocksdb_unflushed import QueueKey, UnflushedEntries, find_unflushed
from engine.inspection.snapshot import StoreSnapshot
from engine.patching.patches import WriteFile
from engine.repair.queue_entries import NAME, queues_of
from engine.repair.repair import Repair
from engine.rocksdb.added_rows import Row, added_log
from engine.rules import mendable
from engine.rules.findings import Finding, at_least
from engine.sentences import plural, sentence
from engine.store import rocksdb_bounds
from engine.system_names import SCHEDULE_TOPIC

MAX_ROWS = 1_000_000
"""More rows are not written: they are held in memory."""


@dataclass(slots=True)
class QueueRows:
    """The rows that are written, by column family, and the queues that have any."""

    entries: list[Row] = field(default_factory=list)
    bounds: list[Row] = field(default_factory=list)
    queues: int = 0

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.entries) + len(self.bounds)

    @property
    def by_family(self) -> dict[str, list[Row]]:
        """The rows by the name of their column family."""
        return {codec.ENTRY_FAMILY: self.entries, codec.BOUND_FAMILY: self.bounds}


def repair_rocksdb_queues(store: StoreSnapshot, findings: Collection[Finding]) -> Repair | None:
    """Return the repair of the queues in the store's RocksDB that ``findings`` name; None if nothing of them can be
    mended.

    Raises :class:`engine.errors.CannotRead` if the log or the database cannot be read.
    """
    reported = [finding for finding in findings if finding.id in mendable.QUEUES and at_least(finding.severity, "warn")]
    queues = store.queues.rocksdb
    if store.kind != "store" or queues is None or not reported:
        return None
    names = {name for finding in reported for name in queues_of(store, finding)}
    names_of_tags = {name for finding in reported if finding.id == "CQ09" for name in queues_of(store, finding)}
    are_all = any(finding.id in ("CQ10", "RP01") for finding in reported)
    return _repair(store, queues, None if are_all else names, names_of_tags)


def repair_rows_beside(store: StoreSnapshot, findings: Collection[Finding]) -> Repair | None:
    """Return the repair of the queues in a RocksDB beside those in files, which a broker reads, if they differ (CQ19);
    None if there are none, or nothing of them can be mended.

    Raises :class:`engine.errors.CannotRead` if the log or the database cannot be read.
    """
    reported = [finding for finding in findings if finding.id == "CQ19" and at_least(finding.severity, "warn")]
    queues = store.queues.rocksdb_beside_files
    if store.kind != "store" or queues is None or store.queues.rocksdb is not None or not reported:
        return None
    names = {f"{topic}/{number}" for topic, by_id in queues.by_topic().items() for number in by_id}
    names_of_tags = {name for name in names if not name.startswith(f"{SCHEDULE_TOPIC}/")}  # theirs depend on the levels
    return _repair(store, queues, names, names_of_tags)


def _repair(
    store: StoreSnapshot, queues: RocksQueues, names: Collection[str] | None, names_of_tags: Collection[str]
) -> Repair | None:
    if not queues.folder.is_relative_to(store.path):
        return None
    rows = differing_rows(store, names, names_of_tags, queues=queues)
    if not rows.count or rows.count > MAX_ROWS:
        return None
    patch = _patch(store, queues, rows)
    if patch is None:
        return None
    gains = plural(
        "{n:,} queue has the rows that the messages of the log say; consumers get them at their queue offsets",
        "{n:,} queues have the rows that the messages of the log say; consumers get them at their queue offsets",
        n=rows.queues,
    )
    title = sentence("Mend the rows of the queues in the RocksDB from the commit log")
    return Repair(NAME, mendable.QUEUES, title, (patch,), gains)


def row_patches(store: StoreSnapshot) -> list[WriteFile]:
    """Return the patch of all rows that the log says otherwise, if there are any.

    Raises :class:`engine.errors.CannotRead` if the log or the database cannot be read.
    """
    queues = store.queues.rocksdb
    if queues is None or not queues.folder.is_relative_to(store.path):
        return []
    rows = differing_rows(store, None, frozenset())
    patch = _patch(store, queues, rows) if 0 < rows.count <= MAX_ROWS else None
    return [patch] if patch is not None else []


def _patch(store: StoreSnapshot, queues: RocksQueues, rows: QueueRows) -> WriteFile | None:
    log = added_log(queues.database(), store.reading, rows.by_family)
    if log is None:
        return None
    why = plural(
        "{n:,} row of the queues as the messages of the log say it, in a new write-ahead log",
        "{n:,} rows of the queues as the messages of the log say them, in a new write-ahead log",
        n=log.rows,
    )
    name = f"{queues.folder.relative_to(store.path).as_posix()}/{log.name}"
    return WriteFile(file=name, old=None, new=log.content, why=why, name=NAME)


def differing_rows(
    store: StoreSnapshot,
    names: Collection[str] | None,
    names_of_tags: Collection[str],
    *,
    behind_damage: bool = False,
    queues: RocksQueues | None = None,
) -> QueueRows:
    """Return the rows of the queues ``names`` (None: of all) that the log says otherwise; those of ``names_of_tags``
    get other tag codes, too. It stops behind :data:`MAX_ROWS`.

    With ``behind_damage`` messages count behind which a start would cut the log, if all of them go on numbering their
    queues: then they were not cut off before.

    Raises :class:`engine.errors.CannotRead` if the log or the database cannot be read.
    """
    database_queues = queues or store.queues.rocksdb
    assert database_queues is not None
    levels = store.config.delay_levels() if store.config is not None else DEFAULT_DELAY_LEVELS
    expected = find_unflushed(store.log, store.log.min_offset, levels)
    if behind_damage:
        expected = _with_entries_behind(store, expected, levels)
    readers = database_queues.by_topic()
    first_of: dict[str, int] = {}
    for (topic, _), entries in expected.items():
        first_offset = int(entries.rows["physical_offset"].min())
        first_of[topic] = min(first_offset, first_of.get(topic, first_offset))
    deleted = set(deleted_topics(store, first_of))
    is_whole = _is_whole(store)
    rows = QueueRows()
    for key, entries in sorted(expected.items()):
        topic, queue_id = key
        name = f"{topic}/{queue_id}"
        reader = readers.get(topic, {}).get(queue_id)
        if (names is not None and name not in names) or (reader is None and topic in deleted):
            continue
        count = rows.count
        written = list(_entry_rows(reader, entries, keeps_tags=name not in names_of_tags))
        rows.entries += [(codec.entry_key(topic, queue_id, number), value) for number, value in written]
        rows.bounds += _bound_rows(store, key, reader, entries, dict(written), is_whole=is_whole)
        rows.queues += rows.count > count
        if rows.count > MAX_ROWS:
            break
    return rows


def _with_entries_behind(
    store: StoreSnapshot, expected: Mapping[QueueKey, UnflushedEntries], levels: tuple[int, ...]
) -> dict[QueueKey, UnflushedEntries]:
    """Return ``expected`` with the entries of the messages behind the log's end, if they continue it."""
    unflushed = find_unflushed(store.log, store.log.max_offset, levels, behind_end=True)
    joined = dict(expected)
    for key, entries in unflushed.items():
        listed = expected.get(key)
        if listed is None:
            joined[key] = entries
        elif entries.first_offset <= listed.last_offset:
            return dict(expected)
        else:
            numbers = np.concatenate((listed.queue_offset, entries.queue_offset))
            joined[key] = UnflushedEntries(numbers, np.concatenate((listed.rows, entries.rows)))
    return joined


def _is_whole(store: StoreSnapshot) -> bool:
    """Return True if all of the log could be read."""
    return not any(
        isinstance(block, Damage) or (isinstance(block, Stop) and block.kind not in ("zero", "end", "limit"))
        for block in scan_log(store.log, crc=False, with_tags=False)
    )


def _entry_rows(
    reader: RocksQueueReader | None, expected: UnflushedEntries, *, keeps_tags: bool
) -> Iterator[tuple[int, bytes]]:
    """Yield queue offset and value of each entry that the database has otherwise, or not."""
    numbers, fresh = expected.queue_offset, expected.rows.copy()
    differs: NDArray[np.bool_] = np.ones(len(numbers), np.bool_)
    if reader is not None:
        known_numbers, known_rows = reader.numbered_rows(int(numbers[0]), int(numbers[-1]) + 1)
        known_rows = known_rows.astype(ROCKSDB_QUEUE_ROW)
        places = np.searchsorted(known_numbers, numbers)
        is_known = np.zeros(len(numbers), np.bool_)
        in_range = places < len(known_numbers)
        is_known[in_range] = known_numbers[places[in_range]] == numbers[in_range]
        old = known_rows[places[is_known]]
        new = fresh[is_known]
        if keeps_tags:
            same = (old["physical_offset"] == new["physical_offset"]) & (old["size"] == new["size"])
            new["tags_code"][same] = old["tags_code"][same]
        fresh[is_known] = new
        differs[is_known] = old != new
    for row in np.flatnonzero(differs).tolist():
        yield int(numbers[row]), bytes(fresh[row].tobytes())


def _bound_rows(
    store: StoreSnapshot,
    key: QueueKey,
    reader: RocksQueueReader | None,
    expected: UnflushedEntries,
    written: Mapping[int, bytes],
    *,
    is_whole: bool,
) -> Iterator[Row]:
    """Yield the rows ``max`` and ``min`` of a queue where they differ, so that a broker serves its messages."""

    def row_at(number: int) -> codec.QueueRow | None:
        if number in written:
            return codec.decode_entry(written[number])
        return reader.row(number) if reader is not None else None

    oldest = reader.bound("min") if reader is not None else None
    newest = reader.bound("max") if reader is not None else None
    min_offset, max_offset = expected.first_offset, expected.last_offset
    max_row = codec.BoundRow(*key, "max", int(expected.rows["physical_offset"][-1]), max_offset)
    if newest is None or newest.queue_offset <= max_offset or (is_whole and not _is_true(store, newest, row_at)):
        if newest != max_row:
            yield codec.bound_key(*key, "max"), codec.encode_bound(max_row)
        newest = max_row
    if is_whole and rocksdb_bounds.minimum(row_at, oldest, newest, max(store.log.min_offset, 0)) > min_offset:
        bound = codec.BoundRow(*key, "min", int(expected.rows["physical_offset"][0]), min_offset)
        yield codec.bound_key(*key, "min"), codec.encode_bound(bound)


def _is_true(store: StoreSnapshot, newest: codec.BoundRow, row_at: rocksdb_bounds.RowAt) -> bool:
    """Return True if a row ``max`` leads to an entry that says the same, of a message that may have been there."""
    row = row_at(newest.queue_offset)
    if row is None or row.physical_offset != newest.physical_offset:
        return False
    is_behind = row.physical_offset >= store.log.max_offset  # a start cuts it
    return is_behind or isinstance(store.log.unit_at(row.physical_offset, crc=False), Unit)
