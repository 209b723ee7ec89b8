"""A time histogram counted unit by unit, in plain Python, to compare with the engine's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from engine.codec.message import Unit
from engine.codec.unit_scan import Item, Stop
from engine.inspection.histogram.time_bins import BinTable
from engine.inspection.timeline.clocks import MAX_SKEW_MS
from engine.system_names import DLQ_PREFIX, RETRY_PREFIX, SCHEDULE_TOPIC, TRACE_TOPIC, is_system_topic


@dataclass
class CountedBin:
    messages: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    bytes: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    first: int = -1
    end: int = 0
    delays: list[int] = field(default_factory=list)


def was_stored_at_once(unit: Unit) -> bool:
    """Return True if a producer sent the unit, and no delay, retry or transaction came in between."""
    if unit.topic in {SCHEDULE_TOPIC, TRACE_TOPIC} or unit.topic.startswith((RETRY_PREFIX, DLQ_PREFIX)):
        return False
    if is_system_topic(unit.topic) or unit.reconsume_times or unit.prepared_transaction_offset or unit.sys_flag & 12:
        return False
    if abs(unit.store_timestamp - unit.born_timestamp) > MAX_SKEW_MS:
        return False
    if unit.store_timestamp - unit.born_timestamp < 500:
        return True
    return not any(name == "REAL_TOPIC" or name.startswith("TIMER_") for name in unit.properties)


def counted(
    items: Iterable[Item | Stop], width: int, test: Callable[[Unit], bool] = lambda _: True
) -> dict[int, CountedBin]:
    """Count the units that ``test`` takes by bins of ``width`` ms."""
    bins: dict[int, CountedBin] = defaultdict(CountedBin)
    for item in items:
        if isinstance(item, Unit) and test(item):
            counted_bin = bins[item.store_timestamp // width * width]
            counted_bin.messages[item.topic] += 1
            counted_bin.bytes[item.topic] += item.size
            if counted_bin.first < 0:
                counted_bin.first = item.offset
            counted_bin.end = item.offset + item.size
            if was_stored_at_once(item):
                counted_bin.delays.append(max(item.store_timestamp - item.born_timestamp, 0))
    return bins


def compare(table: BinTable, bins: dict[int, CountedBin]) -> None:
    """Assert that a table has the same bins."""
    assert table.starts == sorted(bins)
    for place, start in enumerate(table.starts):
        expected = bins[start]
        messages = {topic: counts[place] for topic, counts in zip(table.topics, table.messages, strict=True)}
        sizes = {topic: counts[place] for topic, counts in zip(table.topics, table.bytes, strict=True)}
        assert {topic: count for topic, count in messages.items() if count} == dict(expected.messages)
        assert {topic: size for topic, size in sizes.items() if size} == dict(expected.bytes)
        assert (table.first[place], table.end[place]) == (expected.first, expected.end)
        for percent, value in ((50, table.p50[place]), (99, table.p99[place])):
            assert is_near(value, expected.delays, percent), (start, percent, value)


def is_near(value: int, delays: list[int], percent: int) -> bool:
    """Return whether ``value`` is the percentile of ``delays``, as exactly as the buckets are."""
    if not delays:
        return value == -1
    exact = sorted(delays)[-(-len(delays) * percent // 100) - 1]
    return abs(value - exact) <= exact / 31 if exact >= 32 else value == exact
