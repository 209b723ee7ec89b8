"""The tables below ``config/`` of an opened store, read as a broker loads them, including the ``.bak`` fall-back; their
rows as after loading, and differences between two versions of a table.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.codec import bloom, config_tables
from engine.codec.config_tables import (
    BACKUP,
    TABLES,
    ConsumerOffset,
    Table,
    TableFile,
    TopicConfig,
    load_table,
    read_table_file,
)
from engine.errors import CannotRead, CorruptUnit
from engine.inspection.written_release import release_of
from engine.rules.undecoded import TABLE_SUBJECTS
from engine.sentences import sentence

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot


def read_table(store: StoreSnapshot, name: str) -> Table | None:
    """Read a table by its file name; None if neither the file nor its ``.bak`` exists.

    Raises :class:`CannotRead` if its content depends on an unreadable file, or if the broker keeps it in a RocksDB that
    cannot be read: a file next to that may be outdated.
    """
    if name in TABLE_SUBJECTS:
        table = store.rocksdb_tables.table(name)
        if table is not None:
            return table
    unread: list[CannotRead] = []
    table = _load_table(store, name, unread)
    if unread:
        raise unread[0]
    return table


def note_broken_table(store: StoreSnapshot, table: Table) -> CannotRead | None:
    """Record a table with rows that no broker can load, and return the error; None if ``table`` is none.

    Its rows are unknown: that is not the same as no rows.
    """
    if store.paths is None or not (table.used == "nothing" or (table.used == "defaults" and table.main.state == "bad")):
        return None
    reason = sentence("unknown: {what}", what=table.why)
    return store.reading.note_undecoded(store.paths.config / table.name, reason)


def table_topics(store: StoreSnapshot) -> list[str]:
    """Topics that the topics table names; [] if there is none or a broker could not load it.

    Raises :class:`CannotRead` if the table could not be read.
    """
    table_file = read_table(store, "topics.json")
    table = table_file.value.get("topicConfigTable") if table_file else None
    return [str(name) for name in table] if isinstance(table, dict) else []


def light_offsets(store: StoreSnapshot) -> int:
    """Count the offsets of light groups: they show that the broker made light queues, even if all of those are lost.

    Raises :class:`CannotRead`.
    """
    table = read_table(store, "lmqConsumerOffset.json")
    offsets = table.value.get("lmqOffsetTable") if table is not None else None
    return len(offsets) if isinstance(offsets, dict) else 0


def fills_light_queues(store: StoreSnapshot) -> bool:
    """Return True if the broker made light queues, even if all of those are lost: its configuration turns them on, or
    groups have offsets in them.

    Raises :class:`CannotRead`.
    """
    if store.config is not None and store.config.enable_lmq and store.config.enable_multi_dispatch:
        return True
    return light_offsets(store) > 0


def _load_table(store: StoreSnapshot, name: str, unread: list[CannotRead] | None = None) -> Table | None:
    if store.paths is None:
        return None
    folder = store.paths.config
    table = load_table(name, lambda file: _read(store, folder / file, unread), release_of(store))
    absent = table.main.state == "missing" and (table.bak is None or table.bak.state == "missing")
    return None if absent else table


def read_tables(store: StoreSnapshot) -> Iterator[Table]:
    """Every existing table, in the order of :data:`~engine.codec.config_tables.TABLES`; an unreadable one says so
    itself.
    """
    for name in TABLES:
        table = _load_table(store, name)
        if name in TABLE_SUBJECTS:
            with contextlib.suppress(CannotRead):
                rows = store.rocksdb_tables.table(name)
                if rows is not None:
                    if rows.value:
                        yield rows
                    continue
        part = store.undecoded_part(TABLE_SUBJECTS[name]) if name in TABLE_SUBJECTS else None
        if table is not None and part is not None:
            table = replace(
                table,
                why=sentence(
                    "{file} may be an old one: {folder} beside it is a RocksDB of this table",
                    file=name,
                    folder=part.folder,
                ),
            )
        if table is not None:
            yield table


def table_place(store: StoreSnapshot, name: str) -> str:
    """Path of a table: the file, or the folder of the RocksDB whose rows a broker reads."""
    assert store.paths is not None
    part = store.undecoded_part(TABLE_SUBJECTS[name]) if name in TABLE_SUBJECTS else None
    is_in_rocksdb = part is not None and store.rocksdb_tables.why_unknown(name) is None
    return str(store.path / part.folder if part is not None and is_in_rocksdb else store.paths.config / name)


def undecoded_tables(store: StoreSnapshot) -> Iterator[tuple[str, str]]:
    """Tables that the broker keeps in a RocksDB and that cannot be read there, and why.

    A file of the same name next to it may be outdated.
    """
    for name, subject in TABLE_SUBJECTS.items():
        reason = store.why_unknown(subject)
        if reason is not None and name != "lmqConsumerOffset.json":
            store.note_undecoded(subject)
            yield name, reason


def iter_tables(store: StoreSnapshot) -> Iterator[Table]:
    """Yield every table that a broker may have, absent ones included; none for a folder that is no store."""
    if store.paths is not None:
        folder, release = store.paths.config, release_of(store)
        for name in TABLES:
            yield load_table(name, lambda file: _read(store, folder / file), release)


def read_backup(store: StoreSnapshot, name: str) -> TableFile | None:
    """The ``.bak`` of a table, whether a broker would read it or not; None if there is none."""
    if store.paths is None:
        return None
    folder = store.paths.config
    backup = read_table_file(name + BACKUP, lambda file: _read(store, folder / file), release_of(store))
    return None if backup.state == "missing" else backup


def _read(store: StoreSnapshot, file: Path, unread: list[CannotRead] | None = None) -> bytes | None:
    """The bytes of a table; errors are raised as the ``OSError`` that the table loader expects, and unreadable files
    are added to ``unread``.
    """
    try:
        return store.small_file(file)
    except (CannotRead, CorruptUnit) as error:
        if unread is not None and isinstance(error, CannotRead):
            unread.append(error)
        raise OSError(error.what) from error


OFFSET_TABLES = ("consumerOffset.json", "lmqConsumerOffset.json")


def broken_offsets(store: StoreSnapshot) -> CannotRead | None:
    """The error for a table of offsets that no broker can load: nobody knows what the groups have read then.

    Raises :class:`CannotRead` for an unreadable file.
    """
    offset_tables = (read_table(store, name) for name in OFFSET_TABLES)
    errors = (note_broken_table(store, table) for table in offset_tables if table is not None)
    return next((error for error in errors if error is not None), None)


_VERSIONS = {"dataVersion", "groupTopicMap"}


def loaded(store: StoreSnapshot, name: str) -> dict[str | int, Any] | None:
    """The table that a broker would load; None if it would use defaults or not start.

    Raises :class:`CannotRead`.
    """
    table = read_table(store, name)
    return table.value if table is not None and table.used in ("main", "bak", "rocksdb") else None


def offsets(store: StoreSnapshot) -> list[ConsumerOffset]:
    """Every group's offsets. Raises :class:`CannotRead`."""
    tables = (loaded(store, name) for name in OFFSET_TABLES)
    return [row for table in tables if table is not None for row in config_tables.consumer_offsets(table).rows]


def topics(store: StoreSnapshot) -> dict[str, TopicConfig] | None:
    """Topics by name; None if no table was loaded. Raises :class:`CannotRead`."""
    table = loaded(store, "topics.json")
    return None if table is None else {row.name: row for row in config_tables.topics(table).rows}


def priority_topics(store: StoreSnapshot) -> list[str]:
    """Topics of type PRIORITY. Raises :class:`CannotRead`."""
    return [name for name, row in (topics(store) or {}).items() if row.attributes.get("message.type") == "PRIORITY"]


def group_rows(store: StoreSnapshot) -> list[config_tables.SubscriptionGroup] | None:
    """Declared groups; None if no table was loaded. Raises :class:`CannotRead`."""
    table = loaded(store, "subscriptionGroup.json")
    return None if table is None else list(config_tables.subscription_groups(table).rows)


def groups(store: StoreSnapshot) -> set[str] | None:
    """Names of the declared groups; None if no table was loaded. Raises :class:`CannotRead`."""
    rows = group_rows(store)
    return None if rows is None else {row.name for row in rows}


class DiscardedFilters(NamedTuple):
    """Filters by expression that a broker throws away when it starts, and the one because of which it does."""

    topic: str
    group: str
    why: str
    filters: int
    groups: tuple[str, ...]

    @property
    def words(self) -> str:
        return sentence(
            "The filter of group {group} on {topic} in consumerFilter.json {why}: a broker that starts discards all "
            "{n:,} filters of the table",
            group=self.group,
            topic=self.topic,
            why=self.why,
            n=self.filters,
        )


def thrown_filters(store: StoreSnapshot) -> DiscardedFilters | None:
    """The filters that a start loses; None if it keeps them (Java: ``ConsumerFilterManager.decode``).

    None also if all filters have data of the same other size: the broker's configuration may differ
    (expectConsumerNumUseFilter, maxErrorRateOfBloomFilter). Raises :class:`CannotRead`.
    """
    table = loaded(store, "consumerFilter.json")
    rows = config_tables.consumer_filters(table).rows if table is not None else ()
    sizes = {(row.bit_num, len(row.bit_positions)) for row in rows}
    if not rows or sizes == {(bloom.BITS, bloom.HASHES)} or (len(sizes) == 1 and (0, 0) not in sizes):
        return None
    for row in rows:
        if (row.bit_num, len(row.bit_positions)) == (bloom.BITS, bloom.HASHES):
            continue
        why = sentence(
            "has {bits} bits of {size:,}, not {own} of {all}",
            bits=len(row.bit_positions),
            size=row.bit_num,
            own=bloom.HASHES,
            all=bloom.BITS,
        )
        if not row.bit_positions:
            why = sentence("has no bloom filter data")
        groups = dict.fromkeys(filter_row.group for filter_row in rows)
        return DiscardedFilters(row.topic, row.group, why, len(rows), tuple(groups))
    return None


class OffsetDecrease(NamedTuple):
    """An offset that is lower than it was."""

    group: str
    place: str
    before: int
    now: int

    @property
    def words(self) -> str:
        return f"{self.place} {self.before:,} → {self.now:,}"


def stepped_back(now: Mapping[str | int, Any], previous: Mapping[str | int, Any]) -> list[OffsetDecrease]:
    """Offsets of ``now`` that are lower than in ``previous``, by queue and group."""
    older = {row.key: row for row in config_tables.consumer_offsets(previous).rows}
    steps = []
    for row in config_tables.consumer_offsets(now).rows:
        was = older[row.key].offsets if row.key in older else {}
        for queue_id, offset in sorted(row.offsets.items()):
            if queue_id in was and offset < was[queue_id]:
                steps.append(OffsetDecrease(row.group, f"{row.topic}/{queue_id}@{row.group}", was[queue_id], offset))
    return steps


def differences(main: Mapping[str | int, Any], backup: Mapping[str | int, Any], max_lines: int) -> list[str]:
    """Differences of ``backup`` from ``main``, field by field as ``place: main → backup``; at most ``max_lines``."""
    lines = []
    for place, main_value, backup_value in _differing(main, backup, ""):
        lines.append(f"{place}: {_short(main_value)} → {_short(backup_value)}")
        if len(lines) >= max_lines:
            break
    return lines


class _Nothing:
    """A field that is not there."""


_NOTHING = _Nothing()


def _differing(
    main: Mapping[str | int, Any], backup: Mapping[str | int, Any], above: str
) -> Iterator[tuple[str, Any, Any]]:
    for key in dict.fromkeys([*main, *backup]):
        if not above and key in _VERSIONS:
            continue
        main_value, backup_value = main.get(key, _NOTHING), backup.get(key, _NOTHING)
        place = f"{above}.{key}" if above else str(key)
        if isinstance(main_value, dict) and isinstance(backup_value, dict):
            yield from _differing(main_value, backup_value, place)
        elif main_value != backup_value:
            yield place, main_value, backup_value


def _short(value: object) -> str:
    if isinstance(value, _Nothing):
        return "not there"
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
