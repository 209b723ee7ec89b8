"""A RocksDB of a store, opened for reading only: rows of its column families by key.

Nothing is written in or beside the store: what is opened is a private view of the folder
(:mod:`engine.rocksdb.private_copy`). A broker may have the same database open. The binding is ``rocksdict``, the extra
``storescope[rocksdb]``; it is imported when the first database is opened.

The binding's own iterators (``items``, ``values``) end at a damaged block without an error. Only ``RdictIter`` has a
status, so every walk here uses it and asks for the status at its end.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from engine.errors import DamagedDatabase, MissingExtra, StoreClosed
from engine.mapped.reading import Reading
from engine.rocksdb.private_copy import PrivateCopy, damaged, fingerprint, make_private_copy
from engine.sentences import msgid, sentence

if TYPE_CHECKING:
    import rocksdict

_CACHE_BYTES = 64 << 20


def is_available() -> bool:
    """Return True if the binding is installed."""
    try:
        _binding()
    except MissingExtra:
        return False
    return True


def _binding() -> Any:
    try:
        import rocksdict as binding
    except ImportError as error:
        raise MissingExtra(
            sentence("RocksDB is read with the package rocksdict: pip install 'storescope[rocksdb]'")
        ) from error
    return binding


def open_rocksdb(folder: Path, reading: Reading, families: Iterable[str] = ()) -> RocksDatabase:
    """Open the database in ``folder``, which must have the column families ``families``.

    Raises:
        MissingExtra: the binding is not installed.
        DamagedDatabase: files or families are missing, of another time, or damaged.
        CannotRead: a file cannot be read.
    """
    binding = _binding()
    copy = make_private_copy(folder, reading)
    try:
        return RocksDatabase(copy, binding, reading, tuple(families))
    except BaseException:
        copy.remove()
        raise


LACKS_FAMILY = msgid("expected a RocksDB with the column family {name}, found {families}")
"""The reason why a whole RocksDB of another layout is not read."""


class RocksDatabase:
    """Rows of one database. Safe to use from several threads.

    Its temporary folder is removed by :meth:`close`, or when nobody refers to the object any more: a refreshed snapshot
    drops a database that has changed while another thread may still read it.
    """

    def __init__(self, copy: PrivateCopy, binding: Any, reading: Reading, needed: tuple[str, ...]) -> None:
        self._copy = copy
        self._binding = binding
        self._reading = reading
        with self._errors():
            names: list[str] = binding.Rdict.list_cf(str(copy.path), binding.Options(raw_mode=True))
        self.families = frozenset(names)
        """Names of the column families."""
        for name in needed:
            if name not in self.families:
                raise damaged(
                    reading,
                    copy.source,
                    sentence(LACKS_FAMILY, name=name, families=", ".join(sorted(names))),
                    is_whole=True,
                )
        self._handles: dict[str, rocksdict.Rdict] = {}
        with self._errors():
            options = {name: self._options() for name in names}
            access = binding.AccessType.read_only(False)
            self._database = binding.Rdict(str(copy.path), self._options(), options, access)
            for name in names:
                self._handles[name] = self._database.get_column_family(name)
        self._close = weakref.finalize(self, _close, self._handles, self._database, copy)

    def _options(self) -> Any:
        """Options for reading. All table files are opened at once and stay open, whatever a broker deletes."""
        options = self._binding.Options(raw_mode=True)
        options.set_max_open_files(-1)
        options.set_wal_recovery_mode(self._binding.DBRecoveryMode.tolerate_corrupted_tail_records())
        blocks = self._binding.BlockBasedOptions()
        blocks.set_block_cache(self._binding.Cache(_CACHE_BYTES))
        options.set_block_based_table_factory(blocks)
        return options

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the database and remove its temporary folder; a second time does nothing."""
        self._close()

    @property
    def folder(self) -> Path:
        """The folder in the store."""
        return self._copy.source

    def has_changed(self) -> bool:
        """Return True if files of the folder changed since it was opened. Raises :class:`CannotRead`."""
        return fingerprint(self.folder, self._reading) != self._copy.fingerprint

    def latest_sequence(self) -> int:
        """Return the number of the newest write."""
        if not self._close.alive:
            raise StoreClosed(sentence("the RocksDB was closed"), file=str(self.folder))
        with self._errors():
            sequence: int = self._database.latest_sequence_number()
        return sequence

    def get(self, family: str, key: bytes) -> bytes | None:
        """Return the value of one row, or None."""
        with self._errors():
            value: bytes | None = self._handle(family).get(key)
        return value

    def rows(self, family: str, start: bytes = b"", stop: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Keys and values from ``start`` to ``stop`` (exclusive; None: all), in the order of the keys."""
        with self._errors():
            iterator = self._seek(family, start, stop)
            valid, key, value, advance = iterator.valid, iterator.key, iterator.value, iterator.next
            while valid():
                yield key(), value()
                advance()
            iterator.status()

    def values(self, family: str, start: bytes, stop: bytes) -> list[bytes]:
        """The values of all rows from ``start`` to ``stop`` (exclusive), in the order of their keys."""
        values: list[bytes] = []
        add = values.append
        with self._errors():
            iterator = self._seek(family, start, stop)
            valid, value, advance = iterator.valid, iterator.value, iterator.next
            while valid():
                add(value())
                advance()
            iterator.status()
        return values

    def first_key(self, family: str, start: bytes, stop: bytes) -> bytes | None:
        """Return the first key from ``start`` to ``stop`` (exclusive), or None."""
        with self._errors():
            iterator = self._seek(family, start, stop)
            key: bytes | None = iterator.key() if iterator.valid() else None
            iterator.status()
        return key

    def _handle(self, family: str) -> Any:
        if not self._close.alive:
            raise StoreClosed(sentence("the RocksDB was closed"), file=str(self.folder))
        return self._handles[family]

    def _seek(self, family: str, start: bytes, stop: bytes | None) -> Any:
        options = self._binding.ReadOptions()
        if stop is not None:
            options.set_iterate_upper_bound(stop)
        iterator = self._handle(family).iter(options)
        if start:
            iterator.seek(start)
        else:
            iterator.seek_to_first()
        return iterator

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn errors of the binding, which have no class of their own, into those of a store."""
        try:
            yield
        except DamagedDatabase:
            raise
        except Exception as error:
            if type(error) is not Exception:
                raise
            words = str(error).replace(str(self._copy.path), str(self.folder))
            raise damaged(
                self._reading, self.folder, sentence("RocksDB cannot read it: {error}", error=words)
            ) from error


def _close(handles: dict[str, Any], database: Any, copy: PrivateCopy) -> None:
    for handle in handles.values():
        handle.close()
    handles.clear()
    database.close()
    copy.remove()
