"""Finds messages by key in an index that a broker keeps in a RocksDB (docs/formats/index-file.md#rocksdb)."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

from engine.codec import rocksdb_index_rows as codec
from engine.codec.index_keys import INDEX_TYPES, TAG_PREFIX, IndexType, has_key
from engine.codec.message import Unit
from engine.errors import CannotRead
from engine.inspection.log_reader import LogReader
from engine.mapped.reading import Reading
from engine.rocksdb.database import RocksDatabase, open_rocksdb


class RocksIndex:
    """The index rows of the database in ``folder``, which is opened at the first need."""

    def __init__(self, folder: Path, reading: Reading, log: LogReader) -> None:
        self.folder = folder
        self._reading = reading
        self._log = log
        self._database: RocksDatabase | None = None
        self._opening = threading.Lock()

    def close(self) -> None:
        """Close the database; a later question opens it again."""
        with self._opening:
            if self._database is not None:
                self._database.close()
            self._database = None

    def forget(self) -> None:
        """Close the database; the next read opens it again. Threads that still read the old one may go on."""
        with self._opening:
            self._database = None

    def can_be_read(self) -> bool:
        """Return True if the database can be opened and has an index. What prevents it is recorded."""
        with contextlib.suppress(CannotRead):
            return bool(self._open().families)
        return False

    def units(
        self, topic: str, text: str, index_type: IndexType | None, begin: int, end: int
    ) -> Iterator[tuple[int, Unit | None]]:
        """Offset and unit of each row of the key in [begin, end] ms, newest first; None for a row without its unit.

        Raises :class:`CannotRead`.
        """
        offsets = sorted(self._offsets(topic, text, index_type, begin, end), reverse=True)
        for offset in offsets:
            unit = self._log.seen_at(offset, crc=False)
            is_match = isinstance(unit, Unit) and unit.topic == topic and has_key(unit.properties, text, index_type)
            yield offset, unit if isinstance(unit, Unit) and is_match else None

    def is_complete(self) -> bool:
        """Return True if every unit with a unique key is indexed; a running broker has the newest rows in memory."""
        value = self._open().get(codec.FAMILY, codec.LAST_OFFSET_KEY)
        offset = codec.decode_offset(value) if value is not None else None
        newest_unit = self._log.seen_at(offset, crc=False) if offset is not None else None
        start = newest_unit.end if isinstance(newest_unit, Unit) else max(self._log.min_offset, 0)
        units_behind = self._log.walk(start, None, crc=False, resync=False)
        return not any(isinstance(item, Unit) and item.unique_key for item in units_behind)

    def _offsets(self, topic: str, text: str, index_type: IndexType | None, begin: int, end: int) -> set[int]:
        database = self._open()
        is_tag = text.startswith(TAG_PREFIX)
        types = [index_type] if index_type is not None else [item for item in INDEX_TYPES if item != "T" or is_tag]
        offsets: set[int] = set()
        position = codec.hour_key(begin)
        while (key := database.first_key(codec.FAMILY, position, codec.END_OF_HOURS)) is not None:
            hour = codec.hour_of(key)
            if hour > end:
                break
            for name in types:
                for row_key, value in database.rows(codec.FAMILY, *codec.key_range(hour, topic, name, text)):
                    row = codec.decode(row_key, value)
                    if row is not None and begin <= row.store_timestamp <= end:
                        offsets.add(row.physical_offset)
            position = codec.hour_key(hour + codec.HOUR_MS)
        return offsets

    def _open(self) -> RocksDatabase:
        with self._opening:
            if self._database is None:
                self._database = open_rocksdb(self.folder, self._reading, (codec.FAMILY,))
            return self._database
