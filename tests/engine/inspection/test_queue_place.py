"""Finding a unit in the log by topic, queue and queue offset."""

from __future__ import annotations

import struct

import pytest
from handmade_stores import HandmadeStore
from planted_faults import patch

from engine.inspection import open_store, queue_place
from engine.inspection.queue_place import bounds_around, bounds_by_queue, units_at


@pytest.fixture
def small_store():
    store = HandmadeStore()
    for number in range(30):
        store.put(("Orders", "Paid")[number % 2])
    store.put("Orders", queue_offset=7)  # after a recovery an offset may be used twice
    store.put("Orders", queue_offset=7, sys_flag=0x4)  # a half message is in no queue
    return store


@pytest.mark.parametrize("bulk", [1 << 40, 0])
def test_every_unit_of_that_offset_is_found_singly_and_by_columns(small_store, tmp_path, monkeypatch, bulk):
    monkeypatch.setattr(queue_place, "BULK", bulk)
    done = []
    with open_store(small_store.write(tmp_path / "s")) as store:
        units = list(units_at(store.log, "Orders", 0, 7, 0, small_store.end, done.append))
        assert [unit.offset for unit in units] == [
            small_store.units[14].offset,
            small_store.units[30].offset,
        ]
        assert list(units_at(store.log, "Orders", 1, 7, 0, small_store.end)) == []
    assert bool(done) == (bulk == 0)


def test_a_wrong_entry_is_searched_between_its_good_neighbours(small_store, tmp_path):
    root = small_store.write(tmp_path / "s")
    patch(root / "consumequeue" / "Orders" / "0" / f"{0:020d}", 20 * 5, struct.pack(">q", 1))
    with open_store(root) as store:
        queue = store.queue("Orders", 0)
        assert bounds_around(store.log, queue, 5) == (
            small_store.units[8].offset,
            small_store.units[12].offset,
        )
        assert bounds_by_queue(queue, queue.max_offset + 3)[0] == queue.entry(queue.max_offset - 1).physical_offset
        assert bounds_by_queue(queue, 3) == (0, 1 << 62)
