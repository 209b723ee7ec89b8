"""Rows of messages that a broker keeps in a RocksDB: waiting timers, open transactions, popped messages; each with its
unit (docs/formats/delays.md#rocksdb, docs/formats/transactions.md#rocksdb, #pop-rocksdb).

A row of a timer or of a transaction has the offset of its unit in the log; that of a popped message a place in a queue.
Rows of popped messages are in the files at once. Of the others a running broker keeps the newest in its memory; they
are made from the log then (:mod:`engine.inspection.rocksdb_unflushed_rows`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Literal, TypeGuard

from engine.callbacks import system_clock
from engine.codec import properties as props
from engine.codec import rocksdb_index_rows as index_codec
from engine.codec import rocksdb_pop_rows as pop_codec
from engine.codec import rocksdb_timer_rows as timer_codec
from engine.codec import rocksdb_transaction_rows as transaction_codec
from engine.codec.index_keys import has_key
from engine.codec.message import Unit
from engine.errors import CannotRead, MissingExtra, Undecoded
from engine.inspection.rocksdb_unflushed_rows import are_timers_in_memory, find_halves, find_timers
from engine.rocksdb.database import RocksDatabase, open_rocksdb
from engine.rules.undecoded import Subject, UndecodedPart
from engine.system_names import ROCKSDB_HALF_TOPIC, TIMER_TOPIC

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot

RowSubject = Literal["timer", "transactions", "pop", "index"]
SUBJECTS: tuple[RowSubject, ...] = ("timer", "transactions", "pop")
"""Subjects whose rows are open work of a broker; those of the index are as many as the log has keys."""
FAMILIES: dict[RowSubject, str] = {
    "timer": timer_codec.FAMILY,
    "transactions": transaction_codec.FAMILY,
    "pop": pop_codec.FAMILY,
    "index": index_codec.FAMILY,
}
RowState = Literal["waiting", "delivered", "open", "popped", "indexed", "unreadable"]
"""``waiting``: a timer that is not due; ``delivered``: its row is deleted later; ``open``: a half message without an
outcome; ``popped``: not acknowledged; ``indexed``: a key of a message; ``unreadable``: a row that no broker can read.
"""
RowVerdict = Literal["match", "deleted", "missing", "other", "unknown"]
"""``deleted``: the log or the queue begins behind the unit; ``missing``: no unit is there; ``other``: another message;
``unknown``: the queue cannot be read, or the row.
"""


@dataclass(frozen=True, slots=True)
class MessageRow:
    """A row and its unit. ``time`` (ms) is when a timer is due, a popped message is visible again, or an indexed one
    was stored; ``since`` when a message was popped; ``key_text`` is the key of an index row, ``T#`` in front of tags;
    ``count`` the checks of a transaction, or the failed revives of a popped message. ``topic`` and ``queue_id`` are the
    real ones.
    """

    subject: RowSubject
    state: RowState
    verdict: RowVerdict
    topic: str | None = None
    queue_id: int | None = None
    queue_offset: int | None = None
    group: str | None = None
    unique_key: str | None = None
    key_text: str | None = None
    time: int | None = None
    since: int | None = None
    count: int | None = None
    physical_offset: int | None = None
    size: int | None = None
    unit: Unit | None = None
    key: bytes = b""
    is_in_files: bool = True
    """False for a row that only the running broker has, or that the next start makes: it is made from the log."""


@dataclass(frozen=True, slots=True)
class TimerProgress:
    """How far the timer service has come: the queue offset behind the last message with a row, and the time (ms) up
    to which messages were delivered; None if the row does not exist.
    """

    scanned: int | None
    timeline: int | None


class RocksRows:
    """The rows of one store. Databases are opened for each question."""

    def __init__(self, store: StoreSnapshot) -> None:
        self._store = store
        self._why: dict[RowSubject, CannotRead | None] = {}
        self._lock = threading.Lock()

    def forget(self) -> None:
        """Look at the databases again at the next question."""
        with self._lock:
            self._why.clear()

    def exist(self, subject: RowSubject) -> bool:
        """Return True if the broker keeps messages of the subject in a RocksDB."""
        if self._store.undecoded_part(subject) is not None:
            return True
        if subject in {"pop", "index"} or not self._may_lag or self._part(subject) is None:
            return False
        if subject == "timer":
            return are_timers_in_memory(self._store, self._now)
        return bool(find_halves(self._store, None).units)

    @property
    def _may_lag(self) -> bool:
        """True if a broker runs, or crashed: the files may lack the newest rows."""
        return self._store.lock_state == "held" or self._store.abort

    @property
    def _now(self) -> int:
        """Time (ms) to which the rows refer: the clock beside a running broker, else the newest store time."""
        if self._store.lock_state == "held":
            return system_clock()
        last_items = self._store.log.items_before(self._store.log.max_offset, 1, crc=False)
        return last_items[-1].store_timestamp if last_items and isinstance(last_items[-1], Unit) else 0

    def _part(self, subject: RowSubject) -> UndecodedPart | None:
        """The RocksDB of the subject, also if its files hold no row yet."""
        parts = (part for part in self._store.undecoded if subject in part.subjects and part.format == "RocksDB")
        return self._store.undecoded_part(subject) or next(parts, None)

    def folder(self, subject: RowSubject) -> str | None:
        """The folder of the subject's RocksDB; None if there is none."""
        part = self._part(subject)
        return None if part is None else str(self._store.path / part.folder)

    def why_unknown(self, subject: RowSubject) -> str | None:
        """Return why the rows cannot be read; None if they can, or if there are none. Nothing is recorded."""
        with self._lock:
            if subject not in self._why:
                self._why[subject] = self._find_error(subject)
            error = self._why[subject]
        return None if error is None else error.what

    def require(self, subject: RowSubject) -> None:
        """Raise :class:`CannotRead` if the rows of the subject cannot be read."""
        if self.why_unknown(subject) is None:
            return
        error = self._why[subject]
        assert error is not None
        if isinstance(error, Undecoded):
            raise self._store.reading.note_undecoded(error.file or "", error.what)
        raise error

    def rows(self, subject: RowSubject) -> Iterator[MessageRow]:
        """Every row of the subject in the order of the keys, with its unit. Raises :class:`CannotRead`."""
        if not self.exist(subject):
            return
        self.require(subject)
        with self._open(subject) as database:
            if subject == "timer":
                rows = self._timers(database)
                yield from self._with_unflushed_timers(rows, _progress(database)) if self._may_lag else rows
            elif subject == "transactions":
                rows = self._transactions(database)
                yield from self._with_unflushed_halves(rows, _last_offset(database)) if self._may_lag else rows
            elif subject == "index":
                yield from self._index(database)
            else:
                yield from self._pops(database)

    @property
    def has_timers(self) -> bool:
        """Return True if the timer service puts messages into the RocksDB, and not into the wheel; False if that
        cannot be told.
        """
        if not self.exist("timer") or self.why_unknown("timer") is not None:
            return False
        return self._store.undecoded_part("timer") is None or self.timer_progress().scanned is not None

    def timer_progress(self) -> TimerProgress:
        """How far the timer service has come. Raises :class:`CannotRead`."""
        self.require("timer")
        with self._open("timer") as database:
            return _progress(database)

    def last_transaction_offset(self) -> int | None:
        """Offset (bytes of the log) of the last half message that got a row. Raises :class:`CannotRead`."""
        self.require("transactions")
        with self._open("transactions") as database:
            return _last_offset(database)

    def open_transaction(self, unit: Unit) -> MessageRow | None:
        """The row of a half message; None if it has none. Raises :class:`CannotRead`."""
        return next((row for row in self.rows("transactions") if row.physical_offset == unit.offset), None)

    # -- rows that are not in the files

    def _with_unflushed_timers(self, rows: Iterator[MessageRow], progress: TimerProgress) -> Iterator[MessageRow]:
        now = self._now
        changes = find_timers(self._store, progress.scanned or 0, now)
        merged = []
        for row in rows:
            key = row.time or 0, row.unique_key or ""
            if key in changes.recalled or key in changes.units:
                continue
            is_due = row.state == "waiting" and row.time is not None and row.time <= now
            merged.append(replace(row, state="delivered") if is_due and self._store.lock_state == "held" else row)
        for (due, unique_key), unit in changes.units.items():
            timer_row = timer_codec.TimerRow(due, unique_key, unit.size, unit.offset)
            merged.append(self._timer_row(timer_row, timer_codec.encode(timer_row)[0], None, is_in_files=False))
        yield from sorted(merged, key=attrgetter("key"))

    def _with_unflushed_halves(self, rows: Iterator[MessageRow], last_offset: int | None) -> Iterator[MessageRow]:
        changes = find_halves(self._store, last_offset)
        merged = [row for row in rows if row.physical_offset not in changes.settled]
        for offset, unit in changes.units.items():
            topic, unique_key = unit.properties.get(props.REAL_TOPIC), unit.unique_key
            if topic and unique_key:
                row = transaction_codec.TransactionRow(offset, topic, unique_key, 0, unit.size)
                dispatched_row = self._transaction_row(row, transaction_codec.encode(row)[0], is_in_files=False)
                merged.append(replace(dispatched_row, count=None))
        yield from sorted(merged, key=attrgetter("key"))

    # -- rows and their units

    def _timers(self, database: RocksDatabase) -> Iterator[MessageRow]:
        timeline = _progress(database).timeline
        for key, value in database.rows(timer_codec.FAMILY):
            if timer_codec.is_named(key):
                continue
            row = timer_codec.decode(key, value)
            if row is None:
                yield MessageRow("timer", "unreadable", "unknown", key=key)
                continue
            yield self._timer_row(row, key, timeline)

    def _timer_row(
        self, row: timer_codec.TimerRow, key: bytes, timeline: int | None, *, is_in_files: bool = True
    ) -> MessageRow:
        verdict, unit = self._unit_at(row.physical_offset)
        if unit is not None and not _is_timer(unit, row):
            verdict = "other"
        return MessageRow(
            "timer",
            "delivered" if timeline is not None and row.due_time < timeline else "waiting",
            verdict,
            topic=unit.properties.get(props.REAL_TOPIC) if unit is not None and verdict == "match" else None,
            queue_id=_real_queue(unit) if verdict == "match" else None,
            unique_key=row.unique_key,
            time=row.due_time,
            physical_offset=row.physical_offset,
            size=row.size,
            unit=unit,
            key=key,
            is_in_files=is_in_files,
        )

    def _transactions(self, database: RocksDatabase) -> Iterator[MessageRow]:
        for key, value in database.rows(transaction_codec.FAMILY):
            if key == transaction_codec.LAST_OFFSET_KEY:
                continue
            row = transaction_codec.decode(key, value)
            if row is None:
                yield MessageRow("transactions", "unreadable", "unknown", key=key)
                continue
            yield self._transaction_row(row, key)

    def _transaction_row(
        self, row: transaction_codec.TransactionRow, key: bytes, *, is_in_files: bool = True
    ) -> MessageRow:
        verdict, unit = self._unit_at(row.physical_offset)
        if unit is not None and not _is_half(unit, row):
            verdict = "other"
        return MessageRow(
            "transactions",
            "open",
            verdict,
            topic=row.topic,
            queue_id=_real_queue(unit) if verdict == "match" else None,
            group=unit.properties.get(props.PRODUCER_GROUP) if unit is not None and verdict == "match" else None,
            unique_key=row.unique_key,
            count=row.check_count,
            physical_offset=row.physical_offset,
            size=row.size,
            unit=unit,
            key=key,
            is_in_files=is_in_files,
        )

    def _pops(self, database: RocksDatabase) -> Iterator[MessageRow]:
        for key, value in database.rows(pop_codec.FAMILY):
            row = pop_codec.decode(value)
            if row is None:
                yield MessageRow("pop", "unreadable", "unknown", time=pop_codec.visible_time_of(key), key=key)
                continue
            verdict, unit = self._unit_in_queue(row)
            yield MessageRow(
                "pop",
                "popped",
                verdict,
                topic=row.topic,
                queue_id=row.queue_id,
                queue_offset=row.queue_offset,
                group=row.group,
                unique_key=unit.unique_key if unit is not None else None,
                time=row.visible_time,
                since=row.pop_time,
                count=row.attempt_count,
                physical_offset=unit.offset if unit is not None else None,
                size=unit.size if unit is not None else None,
                unit=unit,
                key=key,
            )

    def _index(self, database: RocksDatabase) -> Iterator[MessageRow]:
        for key, value in database.rows(index_codec.FAMILY, b"", index_codec.END_OF_HOURS):
            row, place = index_codec.decode_key(key), index_codec.decode(key, value)
            if row is None or place is None:
                yield MessageRow("index", "unreadable", "unknown", key=key)
                continue
            verdict, unit = self._unit_at(row.physical_offset)
            is_same = unit is not None and unit.topic == row.topic and unit.unique_key == row.unique_key
            if unit is not None and not (is_same and has_key(unit.properties, row.text, row.index_type)):
                verdict = "other"
            yield MessageRow(
                "index",
                "indexed",
                verdict,
                topic=row.topic,
                queue_id=unit.queue_id if unit is not None and verdict == "match" else None,
                queue_offset=unit.queue_offset if unit is not None and verdict == "match" else None,
                unique_key=row.unique_key,
                key_text=row.text,
                time=place.store_timestamp,
                physical_offset=row.physical_offset,
                size=unit.size if unit is not None else None,
                unit=unit,
                key=key,
            )

    def _unit_at(self, offset: int) -> tuple[RowVerdict, Unit | None]:
        if offset < max(self._store.log.min_offset, 0):
            return "deleted", None
        item = self._store.log.seen_at(offset, crc=False) if offset < self._store.log.max_offset else None
        return ("match", item) if isinstance(item, Unit) else ("missing", None)

    def _unit_in_queue(self, row: pop_codec.PopRow) -> tuple[RowVerdict, Unit | None]:
        try:
            queue = self._store.queues.find(row.topic, row.queue_id)
        except CannotRead:
            return "unknown", None
        if queue is None:
            return "missing", None
        if row.queue_offset < queue.min_offset:
            return "deleted", None
        entry = queue.entry(row.queue_offset) if row.queue_offset < queue.max_offset else None
        if entry is None or entry.state != "entry":
            return "missing", None
        verdict, unit = self._unit_at(entry.physical_offset)
        if unit is not None and unit.topic != row.topic:
            verdict = "other"
        return verdict, unit

    # -- databases

    def open_database(self, subject: RowSubject) -> AbstractContextManager[RocksDatabase]:
        """The database of the subject, for a block. Raises :class:`CannotRead`."""
        return self._open(subject)

    @contextmanager
    def _open(self, subject: RowSubject) -> Iterator[RocksDatabase]:
        part = self._part(subject)
        assert part is not None
        folder = self._store.path / part.folder
        with open_rocksdb(folder, self._store.reading, (FAMILIES[subject],)) as database:
            yield database

    def _find_error(self, subject: RowSubject) -> CannotRead | None:
        part = self._store.undecoded_part(subject)
        if part is None:
            return None
        folder = str(self._store.path / part.folder)
        if part.format != "RocksDB" or self._store.undecoded_part("log") is not None:
            return Undecoded(part.reason(subject), file=folder)
        try:
            with self._open(subject):
                return None
        except MissingExtra as error:
            return Undecoded(part.reason_without(subject, error.what), file=folder)
        except CannotRead as error:
            return error


def is_row_subject(subject: Subject) -> TypeGuard[RowSubject]:
    """Return True for a subject whose messages have rows."""
    return subject in FAMILIES


def _last_offset(database: RocksDatabase) -> int | None:
    value = database.get(transaction_codec.FAMILY, transaction_codec.LAST_OFFSET_KEY)
    return transaction_codec.decode_offset(value)


def _progress(database: RocksDatabase) -> TimerProgress:
    scanned, timeline = (
        timer_codec.decode_number(database.get(timer_codec.FAMILY, key))
        for key in (timer_codec.SCAN_KEY, timer_codec.TIMELINE_KEY)
    )
    return TimerProgress(scanned, timeline)


def _is_timer(unit: Unit, row: timer_codec.TimerRow) -> bool:
    is_due = unit.properties.get(props.TIMER_OUT_MS) == str(row.due_time)
    return unit.topic == TIMER_TOPIC and unit.size == row.size and unit.unique_key == row.unique_key and is_due


def _is_half(unit: Unit, row: transaction_codec.TransactionRow) -> bool:
    is_same = unit.properties.get(props.REAL_TOPIC) == row.topic and unit.unique_key == row.unique_key
    return unit.topic == ROCKSDB_HALF_TOPIC and unit.size == row.size and is_same


def _real_queue(unit: Unit | None) -> int | None:
    text = unit.properties.get(props.REAL_QUEUE_ID, "") if unit is not None else ""
    return int(text) if text.isdecimal() else None
