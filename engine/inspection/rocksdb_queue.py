"""Reads the consume queues of a RocksDB: their entries, and the bounds that a broker would give them after a start.

The queue looks like a queue of files of 20-byte entries, so what reads queues reads both
(docs/formats/consume-queue.md#rocksdb, #rocksdb-bounds). There are no files: :attr:`RocksQueueReader.files` is empty,
and the entries have no bytes of their own on the disk.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from engine.codec import consume_queue as cq
from engine.codec import rocksdb_queue_rows as codec
from engine.codec.lite_topics import listing_key
from engine.codec.message import DEFAULT_DELAY_LEVELS
from engine.errors import CannotRead
from engine.inspection.log_reader import LogReader
from engine.mapped.reading import Reading
from engine.rocksdb.database import RocksDatabase, open_rocksdb
from engine.sentences import sentence
from engine.store import rocksdb_bounds
from engine.store.queue_entry import CqEntry

if TYPE_CHECKING:
    import numpy as np

    from engine.inspection.rocksdb_unflushed import UnflushedEntries

MAX_UNFLUSHED_BYTES = 8 << 30
"""Most bytes of the log from which entries are made that a running broker has not written."""

_NONE = -1
_BLOCK = 65_536


class RocksQueueReader:
    """Reading face of one queue in a RocksDB; ``log`` gives the commit log's bounds, ``unflushed`` the entries that
    only the running broker has.

    It has what :class:`engine.inspection.queue_reader.QueueReader` has for readers that need no files.
    """

    kind: Literal["simple", "batch"] = "simple"
    unit_size = cq.CQ_UNIT_SIZE
    ext = None
    files = ()
    in_rocksdb = True
    free_slots = 0
    """There are no files with room for entries."""

    def __init__(
        self,
        topic: str,
        queue_id: int,
        database: RocksDatabase,
        log: LogReader,
        unflushed: UnflushedEntries | None = None,
    ) -> None:
        self.topic = topic
        self.queue_id = queue_id
        self._database = database
        self._log = log
        self._unflushed = unflushed
        self._bounds: tuple[int, int] | None = None

    # -- bounds

    @property
    def min_offset(self) -> int:
        """Smallest queue offset as a broker corrects it when it is asked for the first time."""
        return self._find_bounds()[0]

    @property
    def first_in_log(self) -> int:
        """Queue offset of the first entry whose unit is still in the log; :attr:`max_offset` if there is none."""
        return min(self.min_offset, self.max_offset)

    @property
    def max_offset(self) -> int:
        """Next queue offset: entries behind the end of the log do not count."""
        return self._find_bounds()[1]

    def forget_bounds(self) -> None:
        """Compute the bounds again at the next request, because the log's end has changed."""
        self._bounds = None

    @property
    def file_size(self) -> int:
        """Bytes of one file: the queue is a single one."""
        return max(self.max_offset, 1) * self.unit_size

    def spans(self) -> list[tuple[int, int]]:
        """(first byte, end) of the entries, as if they were in one file."""
        start, end = self._find_bounds()
        return [(start * self.unit_size, end * self.unit_size)] if end > start else []

    @property
    def folder(self) -> Path:
        """The folder of the database."""
        return self._database.folder

    entries_per_file = 300_000
    """As many as a file of a queue usually has: what bounds how far behind the end an offset may have been used."""

    def entry_position(self, queue_offset: int) -> None:
        """None: a row has no place of its own."""
        del queue_offset

    @property
    def raw_end(self) -> int:
        """End (bytes, as in a file) behind the newest entry, whatever the log says."""
        newest = self.bound("max")
        return (newest.queue_offset + 1) * self.unit_size if newest is not None else 0

    @property
    def valid_end(self) -> int:
        """End (bytes, as in a file) behind the last entry that counts."""
        return self.max_offset * self.unit_size

    def newest(self) -> tuple[int, int] | None:
        """(physical offset, size) of the newest entry, whatever the log says; None in an empty queue."""
        bound = self.bound("max")
        row = self.row(bound.queue_offset) if bound is not None else None
        return (row.physical_offset, row.size) if row is not None else None

    # -- entries

    def entry(self, queue_offset: int) -> CqEntry | None:
        """The entry at ``queue_offset``, or None if there is none."""
        row = self.row(queue_offset)
        return None if row is None else _entry(queue_offset, row)

    def entries(self, start: int | None = None, stop: int | None = None) -> Iterator[CqEntry]:
        """Entries from queue offset ``start`` (default: the first) to ``stop`` (exclusive, default: the end)."""
        begin = max(start or 0, 0)
        end = self.max_offset if stop is None else min(stop, self.max_offset)
        if begin >= end:
            return
        in_files = self._end_in_files(end)
        if begin < in_files:
            keys = (codec.entry_key(self.topic, self.queue_id, number) for number in (begin, in_files))
            for key, value in self._database.rows(codec.ENTRY_FAMILY, *keys):
                yield _entry(codec.queue_offset_of(key), codec.decode_entry(value))
        if self._unflushed is not None:
            for number, value in self._unflushed.values(begin, end):
                yield _entry(number, codec.decode_entry(value))

    def blocks(self, start: int | None = None, stop: int | None = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The entries that :meth:`entries` yields, many at once: queue offsets, and rows of
        ``dtypes.ROCKSDB_QUEUE_ROW``.
        """
        number = max(start or 0, 0)
        end = self.max_offset if stop is None else min(stop, self.max_offset)
        while number < end:
            numbers, rows = self.numbered_rows(number, min(number + _BLOCK, end))
            if len(numbers):
                yield numbers, rows
                number += _BLOCK
                continue
            next_number = self._first_row(number)
            if next_number is None:
                return
            number = next_number

    def array(self, start: int, stop: int) -> np.ndarray:
        """Entries [start, stop) as rows of ``dtypes.CQ_UNIT``; shorter at a gap."""
        import numpy as np

        from engine.codec.dtypes import CQ_UNIT, ROCKSDB_QUEUE_ROW

        rows = np.frombuffer(b"".join(self._values(start, stop)), ROCKSDB_QUEUE_ROW)
        entries = np.empty(len(rows), CQ_UNIT)
        for name in CQ_UNIT.names or ():
            entries[name] = rows[name]
        return entries

    def numbered_rows(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Queue offsets and rows (``dtypes.ROCKSDB_QUEUE_ROW``) of all entries of [start, stop), over gaps as well and
        whatever the bounds say.
        """
        import numpy as np

        from engine.codec.dtypes import ROCKSDB_QUEUE_ROW

        values = self._values(start, stop)
        if len(values) == stop - start:
            return np.arange(start, stop), np.frombuffer(b"".join(values), ROCKSDB_QUEUE_ROW)
        rows = dict(self._numbered_values(max(start, 0), stop))
        numbers = np.array(sorted(rows), np.int64)
        return numbers, np.frombuffer(b"".join(rows[number] for number in numbers.tolist()), ROCKSDB_QUEUE_ROW)

    def raw_entries(self, start: int, count: int) -> np.ndarray:
        """``count`` entries from ``start`` on as rows of ``dtypes.CQ_UNIT``, whatever the bounds say; the offset is −1
        where there is no row.
        """
        import numpy as np

        from engine.codec.dtypes import CQ_UNIT

        numbers, rows = self.numbered_rows(start, start + count)
        entries = np.zeros(count, CQ_UNIT)
        entries["physical_offset"] = -1
        for name in CQ_UNIT.names or ():
            entries[name][numbers - start] = rows[name]
        return entries

    @property
    def first_number(self) -> int:
        """Queue offset of the first row, whether a broker serves it or not; that of the end without one."""
        row = self.first_row
        return self.raw_end // self.unit_size if row is None else row

    def stored_entries(self, start: int, stop: int) -> Iterator[CqEntry]:
        """Entries [start, stop), over gaps, also those that do not count."""
        for number, value in self._numbered_values(max(start, 0), stop):
            yield _entry(number, codec.decode_entry(value))

    def stored_bytes(self, number: int) -> tuple[bytes, str, int]:
        """(value of the row, "", 0) of the entry at queue offset ``number``; no bytes without a row."""
        return self._value(number) or b"", "", 0

    def _numbered_values(self, start: int, stop: int) -> Iterator[tuple[int, bytes]]:
        keys = (codec.entry_key(self.topic, self.queue_id, number) for number in (start, stop))
        for key, value in self._database.rows(codec.ENTRY_FAMILY, *keys) if start < stop else ():
            yield codec.queue_offset_of(key), value
        if self._unflushed is not None:
            yield from self._unflushed.values(start, stop)

    @property
    def first_row(self) -> int | None:
        """Queue offset of the first row in the RocksDB, whether a broker uses it or not; None without one."""
        return self._first_row(0)

    def _first_row(self, start: int) -> int | None:
        """Queue offset of the first row from ``start`` on."""
        keys = codec.entry_key(self.topic, self.queue_id, start), codec.end_of_entries(self.topic, self.queue_id)
        key = self._database.first_key(codec.ENTRY_FAMILY, *keys)
        number = codec.queue_offset_of(key) if key is not None else None
        if self._unflushed is None or self._unflushed.last_offset < start:
            return number
        first_unflushed = max(self._unflushed.first_offset, start)
        return first_unflushed if number is None else min(number, first_unflushed)

    def read_bytes(self, offset: int, size: int) -> bytes:
        """Entries as a queue file holds them: up to ``size`` bytes from byte ``offset`` on, up to a gap or the end."""
        start = offset // self.unit_size
        stop = min(start + size // self.unit_size, self.max_offset)
        return b"".join(value[: self.unit_size] for value in self._values(start, stop))

    lend_bytes = read_bytes

    def ext_unit(self, address: int) -> None:
        """None: there are no ext units."""
        del address

    def store_time(self, queue_offset: int) -> int | None:
        """Store time (ms) in the entry itself, or None if there is no entry."""
        row = self.row(queue_offset)
        return None if row is None else row.store_timestamp

    def offset_by_time(self, timestamp: int, *, lower: bool) -> int:
        """``binarySearchInCQByTime``: queue offset of the first entry stored at or after ``timestamp`` ms (``lower``),
        or of the last at or before it, held within the queue. Times are those in the entries.
        """
        newest = self.bound("max")
        if newest is None:
            return 0
        queue_offset = self._search_time(timestamp, self.min_offset, self.max_offset - 1, lower=lower)
        return min(max(queue_offset, self.min_offset), self.max_offset)

    def _search_time(self, timestamp: int, floor: int, ceiling: int, *, lower: bool) -> int:
        newest_time, oldest_time = self.store_time(ceiling), self.store_time(floor)
        if newest_time is not None and newest_time < timestamp:
            return ceiling + 1 if lower else ceiling
        if oldest_time is not None and oldest_time > timestamp:
            return floor if lower else 0
        least = self._log.min_offset
        lower_bound, upper_bound, nearest_before, nearest_after = floor, ceiling, _NONE, _NONE
        while upper_bound >= lower_bound:
            middle = lower_bound + (upper_bound - lower_bound) // 2
            row = self.row(middle)
            if row is None:
                lower_bound = middle + 1
            elif row.physical_offset < least or row.store_timestamp < timestamp:
                lower_bound, nearest_before = middle + 1, middle
            elif row.store_timestamp == timestamp:
                return self._same_time(middle, timestamp, floor, ceiling, step=-1 if lower else 1)
            else:
                upper_bound, nearest_after = middle - 1, middle
        return nearest_after if lower else nearest_before

    def _same_time(self, number: int, timestamp: int, floor: int, ceiling: int, *, step: int) -> int:
        while floor <= number + step <= ceiling and self.store_time(number + step) == timestamp:
            number += step
        return number

    def _values(self, start: int, stop: int) -> list[bytes]:
        """Values of the entries from ``start`` on up to the first gap."""
        start = max(start, 0)
        if stop - start == 1:
            value = self._value(start)
            return [value] if value is not None else []
        in_files = self._end_in_files(stop)
        values = self._values_in_files(start, in_files)
        if self._unflushed is not None and len(values) == max(in_files - start, 0):
            for number, value in self._unflushed.values(start + len(values), stop):
                if number != start + len(values):
                    break
                values.append(value)
        return values

    def _end_in_files(self, stop: int) -> int:
        """``stop``, or where the entries begin that only the broker has."""
        return stop if self._unflushed is None else min(stop, self._unflushed.first_offset)

    def _values_in_files(self, start: int, stop: int) -> list[bytes]:
        if stop <= start:
            return []
        keys = [codec.entry_key(self.topic, self.queue_id, number) for number in (start, stop)]
        values = self._database.values(codec.ENTRY_FAMILY, *keys)
        if len(values) == stop - start:
            return values
        until_gap: list[bytes] = []
        for key, value in self._database.rows(codec.ENTRY_FAMILY, *keys):
            if codec.queue_offset_of(key) != start + len(until_gap):
                break
            until_gap.append(value)
        return until_gap

    def row(self, queue_offset: int) -> codec.QueueRow | None:
        """Return the row of one entry; None without one."""
        value = self._value(queue_offset) if queue_offset >= 0 else None
        return None if value is None else codec.decode_entry(value)

    def _value(self, queue_offset: int) -> bytes | None:
        value = self._unflushed.find(queue_offset) if self._unflushed is not None else None
        if value is not None:
            return value
        return self._database.get(codec.ENTRY_FAMILY, codec.entry_key(self.topic, self.queue_id, queue_offset))

    # -- bounds as RocksDBConsumeQueueOffsetTable corrects them

    def bound(self, bound: codec.Bound) -> codec.BoundRow | None:
        """Return the row ``min`` or ``max``, for a running broker with what it has in memory; None without one."""
        key = codec.bound_key(self.topic, self.queue_id, bound)
        value = self._database.get(codec.BOUND_FAMILY, key)
        row = None if value is None else codec.decode_bound(key, value)
        if bound == "max" and self._unflushed is not None:
            number = self._unflushed.last_offset
            newest = self.row(number)
            if newest is not None and (row is None or row.queue_offset < number):
                return codec.BoundRow(self.topic, self.queue_id, bound, newest.physical_offset, number)
        return row

    def _find_bounds(self) -> tuple[int, int]:
        bounds = self._bounds  # another thread may refresh meanwhile
        if bounds is None:
            newest = self.bound("max")
            minimum = rocksdb_bounds.minimum(self.row, self.bound("min"), newest, max(self._log.min_offset, 0))
            bounds = self._bounds = minimum, self._maximum(newest)
        return bounds

    def _maximum(self, newest: codec.BoundRow | None) -> int:
        """A start cuts the queue's end only if dispatch was further than the log now is."""
        if newest is None:
            return 0
        log_end = self._log.max_offset
        if log_end >= dispatched_offset(self._database) or newest.physical_offset < log_end:
            return newest.queue_offset + 1
        return rocksdb_bounds.cut(self.row, self.bound("min"), newest, max(self._log.min_offset, 0), log_end)


def _entry(number: int, row: codec.QueueRow) -> CqEntry:
    state = cq.CqUnit(row.physical_offset, row.size, row.tags_code).state
    return CqEntry(number, row.physical_offset, row.size, row.tags_code, state, store_timestamp=row.store_timestamp)


class RocksQueues:
    """The queues of the database in ``folder``, which is opened at the first need.

    Where ``is_running`` returns True a broker has it open: it keeps the newest entries in memory, and they are made
    from the log. ``levels``: its delay levels in ms.
    """

    def __init__(
        self,
        folder: Path,
        reading: Reading,
        log: LogReader,
        is_running: Callable[[], bool] = lambda: False,
        levels: tuple[int, ...] = DEFAULT_DELAY_LEVELS,
    ) -> None:
        self.folder = folder
        self._reading = reading
        self._log = log
        self._is_running = is_running
        self._levels = levels
        self.unflushed_bytes = 0
        """Bytes of the log whose entries only the running broker has."""
        self._database: RocksDatabase | None = None
        self._error: CannotRead | None = None
        self._topics: dict[str, dict[int, RocksQueueReader]] | None = None
        self._opening = threading.Lock()

    def close(self) -> None:
        """Close the database; a later question opens it again."""
        with self._opening:
            if self._database is not None:
                self._database.close()
        self._forget()

    def _forget(self) -> None:
        """Close the database; the next read opens it again. Threads that still read the old one may go on."""
        with self._opening:
            self._database = self._topics = self._error = None
            self.unflushed_bytes = 0

    def database(self) -> RocksDatabase:
        """Return the opened database.

        Raises :class:`CannotRead`, also :class:`MissingExtra` and :class:`DamagedDatabase`.
        """
        with self._opening:
            if self._error is not None:
                raise self._error
            if self._database is None:
                try:
                    self._database = open_rocksdb(self.folder, self._reading, codec.FAMILIES)
                except CannotRead as error:
                    self._error = error
                    raise
            return self._database

    def by_topic(self) -> dict[str, dict[int, RocksQueueReader]]:
        """Topic → queue id → queue; topics by name, queues by number. Raises :class:`CannotRead`."""
        database = self.database()
        topics = self._topics
        if topics is None:
            topics = {}
            unflushed = self._find_unflushed(database)
            for topic, queue_id in sorted(
                {*list_queues(database), *unflushed}, key=lambda queue: (*listing_key(queue[0]), queue[1])
            ):
                entries = unflushed.get((topic, queue_id))
                reader = RocksQueueReader(topic, queue_id, database, self._log, entries)
                topics.setdefault(topic, {})[queue_id] = reader
            if self._database is database:  # else another thread has refreshed meanwhile
                self._topics = topics
        return topics

    def written_offset(self) -> int:
        """The end of dispatch in the files (bytes of the log): a start dispatches from here on."""
        return dispatched_offset(self.database())

    def dispatched_offset(self) -> int:
        """The end of dispatch (bytes of the log), for a running broker with what it has in memory."""
        self.by_topic()
        return self.written_offset() + self.unflushed_bytes

    def _find_unflushed(self, database: RocksDatabase) -> dict[tuple[str, int], UnflushedEntries]:
        start = max(dispatched_offset(database), self._log.min_offset)
        if not self._is_running() or start >= self._log.max_offset:
            return {}
        size = self._log.max_offset - start
        if size > MAX_UNFLUSHED_BYTES:
            reason = sentence(
                "a running broker has the queue entries of {n:,} bytes of the log only in its memory", n=size
            )
            raise self._reading.note(self.folder, reason, "read")
        from engine.inspection.rocksdb_unflushed import find_unflushed

        entries = find_unflushed(self._log, start, self._levels)
        self.unflushed_bytes = self._log.max_offset - dispatched_offset(database)
        return entries

    def forget_bounds(self) -> None:
        """Compute the bounds of all queues again, because the log's end has changed."""
        for queues in (self._topics or {}).values():
            for queue in queues.values():
                queue.forget_bounds()

    def has_changed(self) -> bool:
        """Return True if files of the opened database changed. Raises :class:`CannotRead`."""
        database = self._database
        return database is None or database.has_changed()

    def refresh(self) -> bool:
        """Close the database if its files changed, so that the next read opens it again; return True then."""
        if self._database is None:
            self._error = None
            return False
        if not self._is_running() and not self.unflushed_bytes and not self._database.has_changed():
            self.forget_bounds()
            return False
        self._forget()
        return True


def dispatched_offset(database: RocksDatabase) -> int:
    """The end of dispatch (bytes of the log): a start dispatches from here on. 0 if it was never written."""
    value = database.get(codec.BOUND_FAMILY, codec.CHECKPOINT_KEY)
    return (codec.decode_dispatched(value) or 0) if value is not None else 0


def list_queues(database: RocksDatabase) -> list[tuple[str, int]]:
    """Topic and queue id of every queue with an end, by topic and queue id."""
    bounds = (codec.decode_bound(key, value) for key, value in database.rows(codec.BOUND_FAMILY))
    return sorted({(row.topic, row.queue_id) for row in bounds if row is not None and row.bound == "max"})
