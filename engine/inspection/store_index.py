"""The index of a store: its files, or the RocksDB in which the broker keeps it (docs/formats/index-file.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.codec import index as codec
from engine.errors import CannotRead
from engine.inspection.index_reader import IndexReader, index_geometry, list_index, misnamed, stored_count
from engine.inspection.rocksdb_index import RocksIndex
from engine.mapped.read_only import ReadOnlyFile

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot

MAX_GEOMETRY_FILES = 16
"""Index files that are asked for the numbers of slots and entries, fullest first: the first ones may be damaged."""


class StoreIndex:
    """The index files of a store, or its index in a RocksDB. They are listed at the first question."""

    def __init__(self, store: StoreSnapshot) -> None:
        self._store = store
        self._files: list[IndexReader] | None = None
        self._unlisted: CannotRead | None = None
        self._rocksdb: RocksIndex | None = None

    def close(self) -> None:
        """Close the database if it is open."""
        if self._rocksdb is not None:
            self._rocksdb.close()

    def refresh(self) -> bool:
        """List the files again if they were listed; return True if they changed."""
        if self._rocksdb is not None:
            self._rocksdb.forget()
        old_files, self._files = self._files, None
        if old_files is None:
            return False
        listed = [(reader.path, reader.size, reader.file.identity) for reader in self.files()]
        for path in {reader.path for reader in old_files} - {path for path, _, _ in listed}:
            self._store.descriptors.forget(path)
        return listed != [(reader.path, reader.size, reader.file.identity) for reader in old_files]

    def files(self, *, note_undecoded: bool = True) -> list[IndexReader]:
        """The index files in the order of their names, oldest first.

        If there are none because the broker keeps its index in a RocksDB, the reading records that, if
        ``note_undecoded``.
        """
        files = self._files  # another thread may refresh meanwhile
        if files is None:
            files = self._files = self._list()
        if not files and note_undecoded:
            self._store.note_undecoded("index")
        return files

    def require_files(self) -> None:
        """Raise :class:`CannotRead` if not all index files could be examined: then none is known to be absent."""
        if not self.files():
            self._store.require("index")
        if self._unlisted is not None:
            raise self._unlisted

    def misnamed_files(self, size: int) -> list[str]:
        """Files with an index file's ``size`` (bytes) in the index folder whose name is not a number."""
        paths = self._store.paths
        return misnamed(paths.index, self._store.descriptors, size) if paths is not None and size else []

    @property
    def rocksdb(self) -> RocksIndex | None:
        """The index in a RocksDB, if the store has no index files and it can be read."""
        store = self._store
        part = store.undecoded_part("index")
        if (
            self.files(note_undecoded=False)
            or part is None
            or part.format != "RocksDB"
            or store.undecoded_part("log") is not None
        ):
            return None
        index = self._rocksdb  # another thread may set it meanwhile
        if index is None:
            index = self._rocksdb = RocksIndex(store.path / part.folder, store.reading, store.commit_log.reader)
        return index if index.can_be_read() else None

    def _list(self) -> list[IndexReader]:
        store = self._store
        if store.paths is None:
            return []
        files, self._unlisted = list_index(store.paths.index, store.descriptors)
        geometry, sources = self._geometry_of(files)
        size = geometry.file_size if geometry else -1
        readers = []
        for file in files:
            if file.size == size or geometry is None:
                readers.append(IndexReader(file, geometry, sources))
            else:
                readers.append(IndexReader(file, *index_geometry(file)))
        return readers

    def _geometry_of(self, files: list[ReadOnlyFile]) -> tuple[codec.Geometry | None, str]:
        store = self._store
        slots, entries = store.configured_size("maxHashSlotNum"), store.configured_size("maxIndexNum")
        if slots and entries:
            return codec.Geometry(slots, entries), "the configuration says so"
        slots = store.capsule.index_slots if store.capsule is not None and store.capsule.masks_units else 0
        if slots and files:  # nothing behind the headers is in a masked capsule
            return codec.geometry_of_slots(slots, max(files, key=stored_count).size), "the capsule says so"
        votes: dict[tuple[codec.Geometry | None, str], int] = {}
        for file in sorted(files, key=stored_count, reverse=True)[:MAX_GEOMETRY_FILES]:
            geometry_and_source = index_geometry(file)
            if geometry_and_source[0] is not None:
                return geometry_and_source
            votes[geometry_and_source] = votes.get(geometry_and_source, 0) + 1
        return max(votes, key=lambda key: votes[key]) if votes else (None, "there are no index files")
