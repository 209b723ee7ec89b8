"""Rows of a queue at a broker: contiguous around any offset, with gaps, batches and deleted messages."""

from __future__ import annotations

import dataclasses

import pytest

from engine.client.routes import MessageQueue
from engine.client.topic_reader import PulledUnit, QueueRange, UnitPage
from engine.codec.encode import Message, encode_unit
from engine.codec.message import Unit, decode
from engine.query import parse
from viewer.remote.rows import MAX_CACHED_BYTES, RemoteSource, ScanProgress, scan

QUEUE = MessageQueue("Orders", "broker-a", 0)


def pulled(queue_offset: int, body: bytes = b"order") -> PulledUnit:
    """A unit of 1 KiB at a place that grows with its queue offset."""
    message = Message("Orders", body, queue_id=0)
    data = encode_unit(message, queue_offset=queue_offset, physical_offset=queue_offset * 1024, store_timestamp=1)
    return PulledUnit(queue_offset, decode(data, 0, base=queue_offset * 1024), data)


class Queue:
    """A queue of a broker: hands out at most 32 messages a pull, and notes each call."""

    def __init__(self, offsets: range | list[int], body: bytes = b"order") -> None:
        self.units = [pulled(offset, body) for offset in offsets]
        self.calls: list[tuple[int, int]] = []

    def read(self, _queue: MessageQueue, offset: int, count: int) -> UnitPage:
        self.calls.append((offset, count))
        start, end = self.units[0].queue_offset, self.units[-1].queue_offset + 1
        units = [item for item in self.units if item.queue_offset >= offset][: min(count, 32)]
        if offset < start:
            return UnitPage((), start, start, end)
        next_offset = units[-1].queue_offset + 1 if units else end
        return UnitPage(tuple(units), next_offset, start, end)


def source_of(queue: Queue) -> RemoteSource:
    return RemoteSource(
        queue, QueueRange(QUEUE, "127.0.0.1:1", queue.units[0].queue_offset, queue.units[-1].queue_offset + 1)
    )


@pytest.mark.parametrize("position", [0, 1, 40, 99, 100])
def test_rows_around_an_offset_have_no_gap_in_between(position: int) -> None:
    page = source_of(Queue(range(100))).read(position, 50, 20)
    offsets = [row.queue_offset for row in page.rows]
    assert offsets == list(range(offsets[0], offsets[-1] + 1))
    assert page.rows_before == position - offsets[0]
    assert page.is_first == (offsets[0] == 0)
    assert page.is_last == (position >= 80)


def test_a_gap_of_the_queue_is_skipped_both_ways() -> None:
    """A compacted topic has few messages in a long range of offsets. Rows before the gap took one pull for each 32
    offsets of it.
    """
    queue = Queue([*range(10), *range(5000, 5010)])
    source = source_of(queue)
    page = source.read(5000, 15, 5)
    assert [row.queue_offset for row in page.rows] == [*range(10), *range(5000, 5005)]
    assert page.is_first
    assert len(queue.calls) < 40


def test_messages_that_were_deleted_meanwhile_move_the_begin() -> None:
    queue = Queue(range(100))
    source = source_of(queue)
    del queue.units[:60]
    page = source.read(0, 0, 10)
    assert [row.queue_offset for row in page.rows] == list(range(60, 70))
    assert source.start == 60


def test_a_unit_that_is_not_kept_is_pulled_again() -> None:
    queue = Queue(range(40), bytes(MAX_CACHED_BYTES // 32))
    source = source_of(queue)
    source.read(0, 0, 32)
    source.read(32, 0, 8)
    calls = len(queue.calls)
    unit = source.log.unit_at(0)
    assert isinstance(unit, Unit)
    assert (unit.queue_offset, len(queue.calls)) == (0, calls + 1)
    assert source.log.read(0, unit.size) == queue.units[0].data
    assert source.log.read(2048 * 4096, 4) == b""


def test_a_scan_reports_matches_and_how_far_it_came_and_stops() -> None:
    queue = Queue(range(300))
    for number in (7, 250):
        unit = queue.units[number]
        queue.units[number] = dataclasses.replace(unit, unit=dataclasses.replace(unit.unit, properties={"TAGS": "hot"}))
    reports: list[ScanProgress] = []
    scan(source_of(queue), parse('tags = "hot"'), 0, reports.append, lambda: False)
    assert [row.queue_offset for report in reports for row in report.matches] == [7, 250]
    assert (reports[-1].read_count, reports[-1].next_offset) == (300, 300)
    scan(source_of(queue), parse('tags = "hot"'), 0, reports.clear, lambda: True)
    assert reports, "a scan that was stopped before reads nothing"
