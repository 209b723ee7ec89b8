"""Checks rows of messages in a RocksDB against the log: waiting timers, open transactions, popped messages (TM06, CF17,
CF18; docs/formats/delays.md#rocksdb, docs/formats/transactions.md#rocksdb, #pop-rocksdb).

A broker never looks for what has no row. A row that leads nowhere is passed over or deleted without a word.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from engine.codec import properties as props
from engine.codec.message import Unit
from engine.inspection.check.timer import offsets_in_timer_log
from engine.inspection.check.timer_deliveries import TimerDeliveries
from engine.inspection.rocksdb_rows import SUBJECTS, MessageRow, RowSubject, TimerProgress
from engine.inspection.snapshot import StoreSnapshot
from engine.rules import catalogue_tables as rules
from engine.rules.findings import Finding
from engine.sentences import plural, sentence
from engine.system_names import ROCKSDB_HALF_TOPIC, ROCKSDB_OP_TOPIC, TIMER_TOPIC
from engine.times import time_text

MAX_UNITS = 20_000
"""Newest messages of a topic that are looked up one by one."""
MAX_NAMED = 20
SETTLE_MS = 5_000
"""Time by which a service may be behind, and a delivery early."""
IMMUNE_MS = 6_000
"""``transactionTimeOut``: a half message is not checked while it is younger than this."""


def findings(store: StoreSnapshot, newest: int, deliveries: TimerDeliveries | None = None) -> Iterator[Finding]:
    """TM06, CF17, CF18; ``newest`` is the latest store time of the log (ms; 0 if there is none).

    Raises :class:`CannotRead`. Reports nothing while a broker is running.
    """
    if store.paths is None or store.lock_state == "held":
        return
    known_subjects = [subject for subject in SUBJECTS if store.rocksdb_rows.why_unknown(subject) is None]
    if "timer" in known_subjects and store.rocksdb_rows.has_timers:
        yield from _Timers(store, newest, deliveries).findings()
    if "transactions" in known_subjects and store.rocksdb_rows.exist("transactions"):
        yield from _Transactions(store, newest).findings()
    if "pop" in known_subjects and store.rocksdb_rows.exist("pop"):
        yield from _pops(store)


@dataclass
class _Rows:
    """Rows of one subject that lead to no message, by verdict."""

    store: StoreSnapshot
    subject: RowSubject

    @property
    def folder(self) -> str:
        return self.store.rocksdb_rows.folder(self.subject) or ""

    def place(self, row: MessageRow) -> str:
        """Words for what is at the place to which a row leads."""
        if row.unit is not None:
            return sentence("a unit of {topic}", topic=row.unit.topic)
        return sentence("no unit")


class _Timers(_Rows):
    """TM06."""

    def __init__(self, store: StoreSnapshot, newest: int, deliveries: TimerDeliveries | None) -> None:
        super().__init__(store, "timer")
        self.newest = newest
        self.deliveries = deliveries

    @cached_property
    def progress(self) -> TimerProgress:
        return self.store.rocksdb_rows.timer_progress()

    @cached_property
    def rows(self) -> list[MessageRow]:
        return [row for row in self.store.rocksdb_rows.rows("timer") if row.state != "delivered"]

    def findings(self) -> Iterator[Finding]:
        yield from self._leading_nowhere()
        yield from self._deleted()
        yield from self._without_row()
        yield from self._passed_over()
        yield from self._before_the_first_delivery()

    def _leading_nowhere(self) -> Iterator[Finding]:
        rows = [row for row in self.rows if row.verdict in {"missing", "other"}]
        if not rows:
            return
        text = plural(
            "{n:,} message that waits for its time cannot be delivered: its row leads to {offset:,}, where {there} is "
            "(due {due})",
            "{n:,} messages that wait for their time cannot be delivered: the first row leads to {offset:,}, where "
            "{there} is (due {due})",
            n=len(rows),
            offset=rows[0].physical_offset,
            there=self.place(rows[0]),
            due=time_text(rows[0].time or 0),
        )
        evidence = {
            "messages": len(rows),
            "expected": sentence("a unit of {topic}", topic=TIMER_TOPIC),
            "found": self.place(rows[0]),
            "uniqueKeys": [row.unique_key for row in rows[:MAX_NAMED]],
        }
        yield rules.TM06.finding(text, self.folder, None, evidence)

    def _deleted(self) -> Iterator[Finding]:
        rows = [row for row in self.rows if row.verdict == "deleted"]
        if rows:
            text = plural(
                "The log has deleted {n:,} message that waits for its time: it is never delivered",
                "The log has deleted {n:,} messages that wait for their time: they are never delivered",
                n=len(rows),
            )
            evidence = {"messages": len(rows), "uniqueKeys": [row.unique_key for row in rows[:MAX_NAMED]]}
            yield rules.TM06.finding(text, self.folder, None, evidence, kind="expired")

    def _without_row(self) -> Iterator[Finding]:
        """Messages that are not due, were read, and have no row: neither recalled nor in the timer log."""
        scanned = self.progress.scanned
        queue = self.store.queues.by_topic().get(TIMER_TOPIC, {}).get(0)
        if scanned is None or queue is None:
            return
        with_row = {(row.time, row.unique_key) for row in self.rows}
        waiting: dict[tuple[int, str | None], Unit] = {}
        stop = min(scanned, queue.max_offset)
        for entry in queue.entries(max(queue.first_in_log, stop - MAX_UNITS), stop):
            unit = self.store.log.seen_at(entry.physical_offset, crc=False)
            due = unit.properties.get(props.TIMER_OUT_MS, "") if isinstance(unit, Unit) else ""
            if not isinstance(unit, Unit) or not due.isdecimal():
                continue
            recalled = unit.properties.get(props.TIMER_DEL_UNIQUE_KEY)
            if recalled is not None:
                waiting.pop((int(due), recalled.rpartition("+")[2]), None)
            elif int(due) > self.newest + SETTLE_MS and unit.unique_key:
                waiting[int(due), unit.unique_key] = unit
        units = [unit for key, unit in waiting.items() if key not in with_row]
        if units:
            in_timer_log = offsets_in_timer_log(self.store)
            units = [unit for unit in units if unit.offset not in in_timer_log]
        if units:
            text = plural(
                "{n:,} message that waits for its time has no row: it is never delivered. It is {key}, at {offset:,} "
                "of the log",
                "{n:,} messages that wait for their time have no row: they are never delivered. The first is {key}, at "
                "{offset:,} of the log",
                n=len(units),
                key=units[0].unique_key,
                offset=units[0].offset,
            )
            evidence = {
                "messages": len(units),
                "queueOffset": units[0].queue_offset,
                "queueOffsets": [unit.queue_offset for unit in units[:MAX_NAMED]],
                "found": None,
            }
            yield rules.TM06.finding(text, self.folder, None, evidence, kind="unit")

    def _passed_over(self) -> Iterator[Finding]:
        if self.deliveries is None or not self.deliveries.is_active:
            return
        rows = self.deliveries.passed_over(self.newest - SETTLE_MS)
        if len(rows):
            first_offset = int(rows["offset"][0])
            text = plural(
                "{n:,} timer message was due and was passed over: it was not delivered. It is at {offset:,} of the log "
                "(due {due})",
                "{n:,} timer messages were due and were passed over: they were not delivered. The first is at "
                "{offset:,} of the log (due {due})",
                n=len(rows),
                offset=first_offset,
                due=time_text(int(rows["due"][0])),
            )
            evidence = {"messages": len(rows), "offsets": rows["offset"][:MAX_NAMED].tolist()}
            yield rules.TM06.finding(text, self.folder, None, evidence, kind="passed")

    def _before_the_first_delivery(self) -> Iterator[Finding]:
        rows = [row for row in self.rows if row.verdict == "match" and row.is_in_files]  # others are read again
        if self.progress.timeline is not None or not rows:
            return
        due = time_text(rows[0].time or 0)
        text = plural(
            "{n:,} message waits for its time and the broker has not delivered any so far: a start later than 10 "
            "seconds after {due} never delivers it",
            "{n:,} messages wait for their time and the broker has not delivered any so far: a start later than 10 "
            "seconds after {due} never delivers what was due before",
            n=len(rows),
            due=due,
        )
        yield rules.TM06.finding(text, self.folder, None, {"messages": len(rows), "due": due}, kind="start")


class _Transactions(_Rows):
    """CF17."""

    def __init__(self, store: StoreSnapshot, newest: int) -> None:
        super().__init__(store, "transactions")
        self.newest = newest

    def findings(self) -> Iterator[Finding]:
        rows = list(self.store.rocksdb_rows.rows("transactions"))
        bad = [row for row in rows if row.verdict != "match"]
        if bad:
            text = plural(
                "The row of {n:,} open transaction leads to no half message: its producer is never asked. The row "
                "leads to {offset}, where {there} is",
                "The rows of {n:,} open transactions lead to no half message: their producers are never asked. The "
                "first leads to {offset}, where {there} is",
                n=len(bad),
                offset=bad[0].physical_offset,
                there=self.place(bad[0]),
            )
            evidence = {
                "messages": len(bad),
                "expected": sentence("a unit of {topic}", topic=ROCKSDB_HALF_TOPIC),
                "found": self.place(bad[0]),
                "uniqueKeys": [row.unique_key for row in bad[:MAX_NAMED]],
            }
            kind = "expired" if all(row.verdict == "deleted" for row in bad) else ""
            yield rules.CF17.finding(text, self.folder, None, evidence, kind=kind)
        yield from self._without_row({row.physical_offset for row in rows})

    def _without_row(self, with_row: set[int | None]) -> Iterator[Finding]:
        """Half messages that no op message settles, that have no row, and that were never checked."""
        if self.store.abort:  # a start gives them rows again
            return
        last_offset = self.store.rocksdb_rows.last_transaction_offset()
        settled = set(self._settled())
        units = [
            unit
            for unit in _newest_units(self.store, ROCKSDB_HALF_TOPIC)
            if unit.offset not in with_row
            and unit.offset not in settled
            and (
                last_offset is None or unit.offset > last_offset or self.newest < unit.born_timestamp + _immune_ms(unit)
            )
        ]
        if units:
            text = plural(
                "{n:,} half message without an outcome has no row: its producer is never asked. It is {key} for "
                "{topic}, at {offset:,} of the log",
                "{n:,} half messages without an outcome have no row: their producers are never asked. The first is "
                "{key} for {topic}, at {offset:,} of the log",
                n=len(units),
                key=units[0].unique_key,
                topic=units[0].properties.get(props.REAL_TOPIC, ""),
                offset=units[0].offset,
            )
            evidence = {"messages": len(units), "offsets": [unit.offset for unit in units[:MAX_NAMED]], "found": None}
            yield rules.CF17.finding(text, self.folder, None, evidence, kind="unit")

    def _settled(self) -> Iterator[int]:
        for unit in _newest_units(self.store, ROCKSDB_OP_TOPIC):
            text = unit.properties.get(props.TRANSACTION_OFFSET, "")
            if text.isdecimal():
                yield int(text)


def _immune_ms(unit: Unit) -> int:
    text = unit.properties.get(props.CHECK_IMMUNITY_SECONDS, "")
    return int(text) * 1000 if text.isdecimal() else IMMUNE_MS


def _newest_units(store: StoreSnapshot, topic: str) -> Iterator[Unit]:
    """The newest units of a topic that has only queue 0."""
    queue = store.queues.by_topic().get(topic, {}).get(0)
    if queue is None:
        return
    for entry in queue.entries(max(queue.first_in_log, queue.max_offset - MAX_UNITS)):
        unit = store.log.seen_at(entry.physical_offset, crc=False)
        if isinstance(unit, Unit) and unit.topic == topic:
            yield unit


def _pops(store: StoreSnapshot) -> Iterator[Finding]:
    """CF18."""
    where = _Rows(store, "pop")
    rows = [row for row in store.rocksdb_rows.rows("pop") if row.verdict != "match"]
    unreadable = [row for row in rows if row.state == "unreadable"]
    if unreadable:
        text = plural(
            "{n:,} row of a popped message is not of the broker's form: from {time} on no popped message is delivered "
            "again",
            "{n:,} rows of popped messages are not of the broker's form: from {time} on no popped message is delivered "
            "again",
            n=len(unreadable),
            time=time_text(unreadable[0].time or 0),
        )
        keys = [row.key.hex() for row in unreadable[:MAX_NAMED]]
        yield rules.CF18.finding(text, where.folder, None, {"rows": len(unreadable), "keys": keys})
    lost = [row for row in rows if row.state != "unreadable" and row.verdict in {"missing", "other", "deleted"}]
    if lost:
        text = plural(
            "The row of {n:,} popped message leads to no message: the broker drops it. It is of {group}, "
            "{queue} offset {offset:,}",
            "The rows of {n:,} popped messages lead to no message: the broker drops them. The first is of {group}, "
            "{queue} offset {offset:,}",
            n=len(lost),
            group=lost[0].group,
            queue=f"{lost[0].topic}/{lost[0].queue_id}",
            offset=lost[0].queue_offset,
        )
        evidence: dict[str, Any] = {
            "messages": len(lost),
            "group": lost[0].group,
            "queue": f"{lost[0].topic}/{lost[0].queue_id}",
            "queueOffset": lost[0].queue_offset,
            "found": where.place(lost[0]),
        }
        kind = "expired" if all(row.verdict == "deleted" for row in lost) else "lost"
        yield rules.CF18.finding(text, where.folder, None, evidence, kind=kind)
