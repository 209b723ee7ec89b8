"""Rows of timers and half messages that only a broker's memory has, or that a start after a crash makes again
(docs/formats/delays.md#rocksdb-memory).

RocketMQ opens its RocksDB with ``manualWalFlush`` and flushes it every five minutes and when it stops: files lack the
rows of the time since. They follow from the log: from the messages of the timer queue behind the last one with a row,
and from half messages and op messages.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.codec import properties as props
from engine.codec import timer
from engine.codec.message import Unit
from engine.errors import CorruptUnit
from engine.system_names import ROCKSDB_HALF_TOPIC, ROCKSDB_OP_TOPIC, TIMER_TOPIC

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.inspection.snapshot import StoreSnapshot

MAX_ENTRIES = 200_000
"""Newest queue entries of which rows are made."""
SETTLE_MS = 10_000
"""Time within which a timer wheel has certainly taken a message in."""

TimerKey = tuple[int, str]
"""Due time (ms) and unique key."""


@dataclass(slots=True)
class UnflushedTimers:
    """Pending changes in the rows of timers: units whose rows are new, and rows that a recall deletes."""

    units: dict[TimerKey, Unit] = field(default_factory=dict)
    recalled: set[TimerKey] = field(default_factory=set)


@dataclass(slots=True)
class UnflushedHalves:
    """Pending changes in the rows of transactions: half messages by offset, and offsets that an op message settles."""

    units: dict[int, Unit] = field(default_factory=dict)
    settled: set[int] = field(default_factory=set)


def find_timers(store: StoreSnapshot, scanned: int, now: int) -> UnflushedTimers:
    """The changes of all messages of the timer queue from offset ``scanned`` on that are due after ``now`` (ms)."""
    changes = UnflushedTimers()
    for unit in _units(store, TIMER_TOPIC, scanned):
        due = unit.properties.get(props.TIMER_OUT_MS, "")
        recalled = unit.properties.get(props.TIMER_DEL_UNIQUE_KEY)
        key = unit.unique_key if recalled is None else recalled.rpartition("+")[2]
        if not due.isdecimal() or key is None or int(due) <= now:
            continue
        if recalled is None:
            changes.units[int(due), key] = unit
        else:
            changes.units.pop((int(due), key), None)
            changes.recalled.add((int(due), key))
    return changes


def find_halves(store: StoreSnapshot, last_offset: int | None) -> UnflushedHalves:
    """The changes of all half messages behind ``last_offset`` (bytes of the log; None: of all) and of op messages."""
    changes = UnflushedHalves()
    for unit in _units(store, ROCKSDB_OP_TOPIC, 0):
        text = unit.properties.get(props.TRANSACTION_OFFSET, "")
        if text.isdecimal():
            changes.settled.add(int(text))
    for unit in _units(store, ROCKSDB_HALF_TOPIC, 0):
        if (last_offset is None or unit.offset > last_offset) and unit.offset not in changes.settled:
            changes.units[unit.offset] = unit
    return changes


def are_timers_in_memory(store: StoreSnapshot, now: int) -> bool:
    """Return True if messages wait in the timer queue that the timer wheel has not taken in for a while: then a
    broker whose RocksDB has no row yet keeps them there.
    """
    data = store.small_file(store.paths.timercheck) if store.paths is not None else None
    try:
        next_offset = timer.decode_check(data).queue_offset if data else 0
    except CorruptUnit:
        return False
    unit = next(_units(store, TIMER_TOPIC, next_offset), None)
    return unit is not None and unit.store_timestamp <= now - SETTLE_MS


def _units(store: StoreSnapshot, topic: str, start: int) -> Iterator[Unit]:
    """Units of a topic that has only queue 0, from queue offset ``start`` on."""
    queue = store.queues.by_topic().get(topic, {}).get(0)
    if queue is None:
        return
    for entry in queue.entries(max(start, queue.first_in_log, queue.max_offset - MAX_ENTRIES)):
        unit = store.log.seen_at(entry.physical_offset, crc=False)
        if isinstance(unit, Unit) and unit.topic == topic:
            yield unit
