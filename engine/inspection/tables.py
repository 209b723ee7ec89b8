"""The tables below ``config/`` of a store that is looked at: read as a broker loads them, ``.bak`` fall-back
included.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from engine.codec.tables import BACKUP, TABLES, Table, TableFile, load_table, look_at
from engine.errors import CannotRead, CorruptUnit

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot


def read_table(store: StoreSnapshot, name: str) -> Table | None:
    """One table by its file name; None where neither file nor ``.bak`` is there.

    Raises :class:`CannotRead` where what it holds hangs on a file that could not be read.
    """
    unread: list[CannotRead] = []
    table = _look_at_table(store, name, unread)
    if unread:
        raise unread[0]
    return table


def table_topics(store: StoreSnapshot) -> list[str]:
    """Topics that the topics table names; [] where there is none or a broker could not load it.

    Raises :class:`CannotRead` where the table could not be read.
    """
    found = read_table(store, "topics.json")
    table = found.value.get("topicConfigTable") if found else None
    return [str(name) for name in table] if isinstance(table, dict) else []


def light_offsets(store: StoreSnapshot) -> int:
    """How many offsets light groups have: the broker made light queues, even where all of them were lost.

    Raises :class:`CannotRead`.
    """
    table = read_table(store, "lmqConsumerOffset.json")
    offsets = table.value.get("lmqOffsetTable") if table is not None else None
    return len(offsets) if isinstance(offsets, dict) else 0


def _look_at_table(store: StoreSnapshot, name: str, unread: list[CannotRead] | None = None) -> Table | None:
    if store.paths is None:
        return None
    folder = store.paths.config
    table = load_table(name, lambda file: _read(store, folder / file, unread))
    absent = table.main.state == "missing" and (table.bak is None or table.bak.state == "missing")
    return None if absent else table


def read_tables(store: StoreSnapshot) -> Iterator[Table]:
    """Every table that is there, in the order of ``engine.codec.tables.TABLES``; one whose file could not be read says
    so itself.
    """
    for name in TABLES:
        table = _look_at_table(store, name)
        if table is not None:
            yield table


def look_at_tables(store: StoreSnapshot) -> Iterator[Table]:
    """Every table that a broker may have, those that are not there included; none of a folder that is no store."""
    if store.paths is not None:
        folder = store.paths.config
        for name in TABLES:
            yield load_table(name, lambda file: _read(store, folder / file))


def read_backup(store: StoreSnapshot, name: str) -> TableFile | None:
    """The ``.bak`` beside a table, whether a broker would look at it or not; None where there is none."""
    if store.paths is None:
        return None
    folder = store.paths.config
    found = look_at(name + BACKUP, lambda file: _read(store, folder / file))
    return None if found.state == "missing" else found


def _read(store: StoreSnapshot, file: Path, unread: list[CannotRead] | None = None) -> bytes | None:
    """The bytes of a table; what stands in the way comes as the ``OSError`` that the table loader tells, and is added
    to ``unread`` where the file is one.
    """
    try:
        return store.small_file(file)
    except (CannotRead, CorruptUnit) as error:
        if unread is not None and isinstance(error, CannotRead):
            unread.append(error)
        raise OSError(error.what) from error
