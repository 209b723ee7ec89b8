"""Topics, groups and offsets of a store whose broker keeps them in a RocksDB (docs/formats/config-tables.md#rocksdb).

A table is read if it is certain that it counts: it is in a single RocksDB, and no JSON file of it is newer. Otherwise
nothing is told, because the settings of the broker decide, or the next start would merge both.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from engine.codec import rocksdb_tables as codec
from engine.codec.config_tables import BACKUP, Table, TableFile, load_table
from engine.errors import CannotRead, CorruptUnit, MissingExtra, Undecoded
from engine.inspection import undecoded
from engine.mapped.reading import Reading
from engine.rocksdb.database import RocksDatabase, open_rocksdb
from engine.rocksdb.private_copy import damaged
from engine.rules.undecoded import TABLE_SUBJECTS, UndecodedPart
from engine.sentences import sentence

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot

_VERSION_2, _SINGLE = "config/rdb", "config/metadata"
_SEPARATE = {
    codec.TOPICS: "config/topics",
    codec.GROUPS: "config/subscriptionGroups",
    codec.OFFSETS: "config/consumerOffsets",
}


class RocksTables:
    """The tables of a store that are in a RocksDB. What was read is kept until :meth:`forget`."""

    def __init__(self, store: StoreSnapshot) -> None:
        self._store = store
        self._tables: dict[str, Table | CannotRead] = {}

    def forget(self) -> None:
        """Read the tables again at the next question."""
        self._tables = {}

    def table(self, name: str) -> Table | None:
        """Return the table ``name``; None if the broker keeps it in files.

        Raises :class:`CannotRead` if it is in a RocksDB, and its content is unknown.
        """
        result = self._find(name)
        if isinstance(result, Undecoded):
            raise self._store.reading.note_undecoded(result.file or "", result.what)
        if isinstance(result, CannotRead):
            raise result
        return result

    def why_unknown(self, name: str) -> str | None:
        """Return why the content of the table is unknown; None if it is known. Nothing is recorded."""
        result = self._find(name)
        return result.what if isinstance(result, CannotRead) else None

    def _find(self, name: str) -> Table | CannotRead | None:
        part = self._store.undecoded_part(TABLE_SUBJECTS[name])
        if part is None:
            return None
        tables = self._tables  # another thread may forget them meanwhile
        if name not in tables:
            try:
                tables[name] = self._read(name, part)
            except CannotRead as error:
                tables[name] = error
        return tables[name]

    def _read(self, name: str, part: UndecodedPart) -> Table:
        subject = TABLE_SUBJECTS[name]
        parts = [part for part in self._store.undecoded if subject in part.subjects]
        if part.format != "RocksDB" or len(parts) > 1:
            raise self._cannot_tell(name, part)
        if name not in _SEPARATE:  # light offsets: a RocksDB has them among the others
            if self._file_exists(name):
                raise self._cannot_tell(name, part)
            return _table(name, {}, part)
        try:
            with self._open(part) as database:
                value = self._value(name, part, database)
        except MissingExtra as error:
            reason = part.reason_without(subject, error.what)
            raise Undecoded(reason, file=str(self._store.path / part.folder)) from error
        if self._file_exists(name) and not self._counts_beside_file(name, part, value):
            raise self._cannot_tell(name, part)
        return _table(name, value, part)

    def _value(self, name: str, part: UndecodedPart, database: RocksDatabase) -> codec.Value:
        try:
            value = _value_in(database, part.folder, name)
        except ValueError as error:
            raise damaged(self._store.reading, self._store.path / part.folder, str(error)) from error
        if value is None:
            raise self._cannot_tell(name, part)
        return value

    @contextmanager
    def _open(self, part: UndecodedPart) -> Iterator[RocksDatabase]:
        with open_rocksdb(self._store.path / part.folder, self._store.reading) as database:
            yield database

    def _file_exists(self, name: str) -> bool:
        if self._store.paths is None:
            return False
        folder = self._store.paths.config
        return any(self._store.reading.exists(folder / file) for file in (name, name + BACKUP))

    def _counts_beside_file(self, name: str, part: UndecodedPart, value: codec.Value) -> bool:
        """Return True if a broker uses the rows and leaves the file alone: it has RocksDB queues, so these tables too,
        and the file has no higher counter. Only layout v1 compares them.
        """
        if part.folder == _VERSION_2 or not undecoded.has_rocksdb_queues(self._store):
            return False
        return _counter(self._file_value(name)) <= _counter(value)

    def _file_value(self, name: str) -> codec.Value:
        store = self._store
        assert store.paths is not None
        folder = store.paths.config

        def read(file: str) -> bytes | None:
            try:
                return store.small_file(folder / file)
            except CorruptUnit as error:
                raise OSError(error.what) from error

        return dict(load_table(name, read).value)

    def _cannot_tell(self, name: str, part: UndecodedPart) -> CannotRead:
        return Undecoded(part.reason(TABLE_SUBJECTS[name]), file=str(self._store.path / part.folder))


def read_config_folder(config: Path, name: str, reading: Reading) -> dict[str, codec.Value]:
    """Return the table ``name`` of each RocksDB below ``config``, a broker's folder of tables, that has it.

    The key is the database's folder. The one that mqadmin reads is the first. Raises :class:`CannotRead`.
    """
    values = {}
    for folder in (_SEPARATE[name], _SINGLE, _VERSION_2):
        path = config / folder.removeprefix("config/")
        if not reading.exists(path / "CURRENT"):
            continue
        with open_rocksdb(path, reading) as database:
            try:
                value = _value_in(database, folder, name)
            except ValueError as error:
                raise damaged(reading, path, str(error)) from error
        if value is not None:
            values[str(path)] = value
    return values


def _value_in(database: RocksDatabase, folder: str, name: str) -> codec.Value | None:
    """Return the table ``name``; None if the database in ``folder`` is not one with that table.

    Raises ``ValueError`` for a row that cannot be decoded.
    """
    if folder == _VERSION_2:
        return codec.version_2_values(database.rows("default"))[name]
    families = codec.SINGLE[name] if folder == _SINGLE else codec.SEPARATE[name]
    if folder not in {_SINGLE, _SEPARATE[name]} or families.rows not in database.families:
        return None
    has_version = families.version in database.families
    version = database.get(families.version, codec.VERSION_KEY) if has_version else None
    forbidden = families.forbidden if families.forbidden in database.families else None
    rows = database.rows(families.rows)
    return codec.table_value(name, rows, version, database.rows(forbidden) if forbidden is not None else ())


def _counter(value: codec.Value) -> int:
    version = value.get("dataVersion")
    counter = version.get("counter") if isinstance(version, dict) else None
    return counter if isinstance(counter, int) else 0


def _table(name: str, value: codec.Value, part: UndecodedPart) -> Table:
    why = sentence("the rows of {folder}, a RocksDB", folder=part.folder)
    return Table(name, "rocksdb", why, value, TableFile(name, "missing", None, None), None, folder=part.folder)
