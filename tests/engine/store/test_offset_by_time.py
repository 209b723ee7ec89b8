"""The queue offset for a time, by the rules of 5.x and of 4.9 (docs/formats/consume-queue.md#by-time,
docs/formats/reading.md#other-reads).
"""

from __future__ import annotations

import pytest
from handmade_stores import START, HandmadeStore

from engine.inspection import open_store
from engine.store.offset_by_time import offset_by_time, offset_by_time_49, store_time


@pytest.fixture(scope="module")
def queue(tmp_path_factory):
    handmade_store = HandmadeStore()
    for number in range(50):
        handmade_store.put("Orders", step=10 if number % 5 else 100)
    with open_store(handmade_store.write(tmp_path_factory.mktemp("time") / "s")) as store:
        yield store.queue("Orders", 0), store.log, [unit.store_timestamp for unit in handmade_store.units]


def test_every_time_is_its_own_entry(queue):
    entries, log, times = queue
    assert [offset_by_time(entries, log, time) for time in times] == list(range(50))
    assert [offset_by_time(entries, log, time, "upper") for time in times] == list(range(50))


def test_between_two_the_boundary_decides_and_outside_the_queue_s_ends(queue):
    entries, log, times = queue
    assert offset_by_time(entries, log, times[9] + 1) == 10
    assert offset_by_time(entries, log, times[9] + 1, "upper") == 9
    assert offset_by_time(entries, log, START) == 0
    assert offset_by_time(entries, log, times[-1] + 1) == 50
    assert offset_by_time(None, log, START) == 0


def test_4_9_takes_the_nearer_neighbour_or_the_older_of_two(queue):
    entries, log, times = queue
    modified = [times[-1]] * len(entries.spans())
    assert offset_by_time_49(entries, log, times[9] + 20, modified) == 9
    assert offset_by_time_49(entries, log, times[9] + 90, modified) == 10
    assert offset_by_time_49(entries, log, times[9] + 50, modified) == 9
    assert offset_by_time_49(entries, log, times[3], modified) == 3


def test_the_store_time_of_a_deleted_message_is_minus_one(queue):
    entries, log, times = queue
    entry = entries.entry(4)
    assert store_time(log, entry.physical_offset, entry.size) == times[4]
    assert store_time(log, log.max_offset, 100) == -1
    assert store_time(log, -5, 100) == -1
