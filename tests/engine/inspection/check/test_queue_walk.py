"""One queue in a check: entries by number across files and gaps, and the record of wrong entries."""

from __future__ import annotations

import pytest
from handmade_stores import QUEUE_SIZE, HandmadeStore

from engine.inspection import open_store
from engine.inspection.check.queue_walk import MAX_RANGES, MAX_SUSPECTS, NOWHERE, QueueWalk
from engine.rules.queue_rules import ComparedEntry

PER_FILE = QUEUE_SIZE // 20


@pytest.fixture
def small_store():
    store = HandmadeStore()
    for number in range(50):
        store.put("Orders", tags=f"T{number % 2}")
    return store


def test_entries_by_number_with_a_missing_file(small_store, tmp_path):
    root = small_store.write(tmp_path / "s")
    (root / "consumequeue" / "Orders" / "0" / f"{QUEUE_SIZE:020d}").unlink()
    with open_store(root) as store:
        walk = QueueWalk(store.queue("Orders", 0))
        assert (walk.name, walk.first_number, walk.end_number, walk.is_orderly) == ("Orders/0", 0, 50, True)
        rows = walk.raw(PER_FILE - 1, PER_FILE + 2)["physical_offset"].tolist()
        assert rows == [
            small_store.units[PER_FILE - 1].offset,
            *[-1] * PER_FILE,
            small_store.units[2 * PER_FILE].offset,
        ]
        unit = small_store.units[3]
        assert walk.entry(3) == ComparedEntry(unit.offset, unit.size, unit.tags_code)
        assert [(position, len(part.physical)) for position, part in walk.chunks(0, 50, 15)] == [
            (0, 15),
            (15, 15),
            (40, 10),
        ]
        assert walk.messages(0, rows=walk.raw(0, 7)["size"]) == 7


def test_wrong_entries_are_bounded_and_reset_for_each_topic(small_store, tmp_path):
    with open_store(small_store.write(tmp_path / "s")) as store:
        walk = QueueWalk(store.queue("Orders", 0))
    assert walk.first_lacking_offset == NOWHERE
    for number in range(MAX_SUSPECTS + 5):
        walk.suspect(number, ComparedEntry(100 + number, 10, 0), ComparedEntry(7, 10, 0), "otherUnit")
    assert (walk.wrong_count, len(walk.suspects)) == (37, MAX_SUSPECTS)
    assert (walk.first_lacking_offset, walk.last_wrong) == (100, 36)
    walk.skip(0, 3)
    walk.skip(3, 5)
    walk.skip(9, 9)
    assert walk.skipped == [(0, 5)]
    for number in range(10, 10 + 3 * MAX_RANGES, 2):
        walk.skip(number, number + 1)
    assert len(walk.skipped) == MAX_RANGES
    walk.begin_again(30, 8)
    assert ([suspect.number for suspect in walk.suspects], walk.skipped[0]) == ([30, 31], (0, 5))
