"""Queue offsets that are missing around a damaged or missing part of the log.

A queue numbers its messages without gaps. If the last message of a queue in front of a damaged place has queue offset
7, and the first one behind it has 10, then 8 and 9 were there: also if no queue entry tells it any more. A queue
without a message in front began at 0, if the log does; else its entries of deleted messages tell where.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from engine.codec.columns import BLANK, UnitColumns
from engine.codec.consume_queue import PREFILLED_SIZE
from engine.codec.message import Unit
from engine.codec.queue_builder import EntryRows, build_runs
from engine.codec.topic_table import TopicTable
from engine.inspection.block_scan import scan_log
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.start_losses import batch_sizes
from engine.rules.dispatch_rules import light_entries, names_light_queues, units_of
from engine.system_names import LMQ_PREFIX

MAX_MESSAGES = 1_000_000
"""Maximum number of missing messages of one queue: a wider jump is no gap."""
MAX_FIRST_MESSAGES = 100_000
"""Maximum number of missing messages of a queue of which no message is in front of the gap."""
MAX_BATCH = 32_767
"""Maximum number of messages of one batch."""
MIN_UNIT_BYTES = 91
"""Bytes of the shortest message."""
Key = tuple[str, int]


class QueuePlace(NamedTuple):
    """The place of a message in a queue."""

    topic: str
    queue_id: int
    queue_offset: int
    batch_size: int = 0
    """Number of messages, if it is a batch of a batch queue, which counts each of them."""


@dataclass(slots=True)
class NumbersAround:
    """The queue offsets of the messages around bytes [start, end) of the log, by queue."""

    start: int
    end: int
    last_numbers: dict[Key, int] = field(default_factory=dict)
    next_numbers: dict[Key, int] = field(default_factory=dict)

    def missing_batches(self, known: Collection[QueuePlace]) -> Iterator[QueuePlace]:
        """Yield the places in batch queues that neither the messages around the bytes have nor ``known``: numbers that
        follow one another as one batch.
        """
        for key, last_number in sorted(self.last_numbers.items()):
            start, end = last_number + 1, self.next_numbers.get(key, last_number)
            if end - start > MAX_MESSAGES:
                continue
            batches = sorted(place for place in known if (place.topic, place.queue_id) == key and place.batch_size)
            for batch in [*batches, QueuePlace(*key, end)]:
                if 0 < min(batch.queue_offset, end) - start <= MAX_BATCH:
                    yield QueuePlace(*key, start, min(batch.queue_offset, end) - start)
                start = max(start, batch.queue_offset + batch.batch_size)

    def missing(self) -> Iterator[QueuePlace]:
        """Yield the places in queues that no message around the bytes has."""
        for key, last_number in sorted(self.last_numbers.items()):
            next_number = self.next_numbers.get(key, last_number)
            if next_number - last_number <= MAX_MESSAGES:
                for number in range(last_number + 1, next_number):
                    yield QueuePlace(*key, number)


def numbers_around(store: StoreSnapshot, places: Sequence[tuple[int, int]]) -> list[NumbersAround]:
    """Return the queue offsets around each of ``places``, spans (start, end) of the log in their order.

    Raises :class:`engine.errors.CannotRead` if the log cannot be read.
    """
    topics, numbers = TopicTable(), dict[Key, int]()
    waiting = [NumbersAround(start, end) for start, end in reversed(places)]
    around: list[NumbersAround] = []
    for block in scan_log(store.log, crc=False, topics=topics):
        if not isinstance(block, UnitColumns):
            continue
        units = block.count - int(block.count > 0 and block.kind[block.count - 1] == BLANK)
        row = 0
        while row < units:
            while waiting and waiting[-1].start <= int(block.offset[row]):
                around.append(waiting.pop())
                around[-1].last_numbers = dict(numbers)
            stop = units if not waiting else int(block.offset[:units].searchsorted(waiting[-1].start))
            for key, first, last in _numbers(block, row, stop, topics):
                for place in around:
                    place.next_numbers.setdefault(key, first)
                numbers[key] = last
            row = stop
    while waiting:
        around.append(waiting.pop())
        around[-1].last_numbers = dict(numbers)
    for place in around:
        _add_first_numbers(store, place)
    return around


def light_numbers_around(store: StoreSnapshot, places: Sequence[tuple[int, int]]) -> list[dict[str, list[int]]]:
    """Return the numbers that light queues lack at each of ``places``, spans (start, end) of the log in their order.

    Only of light queues that number their messages without gaps elsewhere, as far as no entry leads to the message.
    Raises :class:`engine.errors.CannotRead` if the log cannot be read.
    """
    missing: list[dict[str, list[int]]] = [{} for _ in places]
    numbers: dict[str, list[tuple[int, int]]] = {}
    for block in scan_log(store.log, crc=False):
        if not isinstance(block, UnitColumns):
            continue
        rows = units_of(block)
        if not len(rows) or not names_light_queues(block, rows):
            continue
        for offset in block.offset[rows].tolist():
            unit = store.log.unit_at(offset, crc=False)
            if isinstance(unit, Unit) and not unit.stale:
                for name, _, number in light_entries(unit.properties, unit.topic, unit.queue_id):
                    numbers.setdefault(name, []).append((offset, number))
    for name, entries in numbers.items():
        if not name.startswith(LMQ_PREFIX):
            continue
        gaps: list[tuple[int, range]] = []
        before = -1 if store.log.min_offset == 0 and entries[0][1] <= MAX_FIRST_MESSAGES else entries[0][1] - 1
        last_offset = -1
        for offset, number in entries:
            if number != before + 1:
                place = _place_between(places, last_offset, offset)
                gaps.append((place, range(before + 1, number)))
            before, last_offset = number, offset
        if any(place < 0 or not gap for place, gap in gaps):
            continue
        for place, gap in gaps:
            lost = [number for number in gap if not _has_entry(store, name, number)]
            if lost:
                missing[place][name] = lost
    return missing


def _place_between(places: Sequence[tuple[int, int]], start: int, end: int) -> int:
    """Return the number of the first place between two offsets of the log; -1 if there is none."""
    return next((number for number, place in enumerate(places) if start < place[0] and place[1] <= end), -1)


def _has_entry(store: StoreSnapshot, name: str, number: int) -> bool:
    queue = store.queues.by_topic().get(name, {}).get(0)
    entry = queue.entry(number) if queue is not None else None
    return entry is not None and entry.state == "entry"


def _add_first_numbers(store: StoreSnapshot, around: NumbersAround) -> None:
    """Tell where the queues began that have a message behind ``around``, and none in front of it."""
    room = (around.end - around.start) // MIN_UNIT_BYTES
    for (topic, queue_id), next_number in around.next_numbers.items():
        if (topic, queue_id) in around.last_numbers or next_number == 0:
            continue
        last_number = _number_before(store, topic, queue_id, next_number, around.start)
        if last_number is not None and next_number - last_number - 1 <= room:
            around.last_numbers[topic, queue_id] = last_number


def _number_before(store: StoreSnapshot, topic: str, queue_id: int, number: int, start: int) -> int | None:
    """Return the number in front of ``number`` that a message before ``start`` had, −1 if there was none; None if that
    cannot be told.
    """
    queue = store.queues.by_topic().get(topic, {}).get(queue_id)
    if queue is not None and queue.kind == "simple":
        lowest = max(number - MAX_FIRST_MESSAGES, 0)
        for entry in reversed(list(queue.entries(lowest, number))):
            if entry.size == PREFILLED_SIZE:
                return entry.queue_offset  # a broker that made the queue at this number left these out
            if entry.state == "entry" and entry.physical_offset < start:
                return entry.queue_offset
    return -1 if store.log.min_offset == 0 and number <= MAX_FIRST_MESSAGES else None


def _numbers(block: UnitColumns, start: int, stop: int, topics: TopicTable) -> Iterator[tuple[Key, int, int]]:
    """Yield each queue of the units [start, stop) of a block, and its first and last queue offset there."""
    rows = EntryRows(stop - start)
    rows.add(block, start, stop)
    in_place = np.flatnonzero(block.physical_offset[start:stop] == block.offset[start:stop])
    rows = rows.select(in_place)
    runs = build_runs(rows, 0, rows.count)
    for group in range(len(runs)):
        key = (topics.names[int(runs.topic_id[group])], int(runs.queue_id[group]))
        first_row, last_row = runs.row[int(runs.start[group])], runs.row[int(runs.start[group + 1]) - 1]
        messages = int(batch_sizes(block, in_place[last_row : last_row + 1] + start)[0])
        yield key, int(rows.queue_offset[first_row]), int(rows.queue_offset[last_row]) + messages - 1


def has_message(store: StoreSnapshot, place: QueuePlace) -> bool:
    """Return True if the entry at ``place`` leads to a unit of the log: then the message is not lost, whatever queue
    offset it says itself. Shifted entries do not count: that at the unit's own queue offset leads to another unit.
    """
    unit = _unit_at(store, place)
    if unit is None or unit.queue_offset == place.queue_offset:
        return unit is not None
    if (unit.topic, unit.queue_id) != (place.topic, place.queue_id):
        return True
    own = _unit_at(store, place._replace(queue_offset=unit.queue_offset))
    return own is None or own.queue_offset == unit.queue_offset


def _unit_at(store: StoreSnapshot, place: QueuePlace) -> Unit | None:
    """Return the unit that the entry at ``place`` leads to."""
    queue = store.queues.by_topic().get(place.topic, {}).get(place.queue_id)
    entry = queue.entry(place.queue_offset) if queue is not None else None
    if entry is None or entry.state != "entry":
        return None
    unit = store.log.unit_at(entry.physical_offset, crc=False)
    return unit if isinstance(unit, Unit) else None


def has_batch_queues(store: StoreSnapshot, topic: str) -> bool:
    """Return True if the queues of ``topic`` count the messages of each batch, as their folders show it."""
    return any(queue.kind == "batch" for queue in store.queues.by_topic().get(topic, {}).values())


def has_plain_queues(store: StoreSnapshot, topic: str) -> bool:
    """Return True if the queues of ``topic`` number its messages one by one, as far as their folders show it."""
    by_id = store.queues.by_topic().get(topic, {})
    return not topic.startswith(LMQ_PREFIX) and all(queue.kind == "simple" for queue in by_id.values())
