"""One queue read from its files: its entries, and the bounds that a broker would report
(docs/formats/consume-queue.md#bounds).
"""

from __future__ import annotations

import pytest
from handmade_stores import QUEUE_SIZE, HandmadeStore

from engine.inspection import open_store

PER_FILE = QUEUE_SIZE // 20


@pytest.fixture
def small_store():
    store = HandmadeStore()
    for number in range(50):
        store.put("Orders", tags=f"T{number % 3}")
    return store


def test_entries_by_number_over_all_files(small_store, tmp_path):
    with open_store(small_store.write(tmp_path / "s")) as store:
        queue = store.queue("Orders", 0)
        assert (queue.min_offset, queue.max_offset, queue.entries_per_file) == (0, 50, PER_FILE)
        entries = list(queue.entries(18, 23))
        assert [(item.queue_offset, item.physical_offset) for item in entries] == [
            (unit.queue_offset, unit.offset) for unit in small_store.units[18:23]
        ]
        assert queue.entry(50).state == "empty"
        assert queue.entry(10**6) is None
        assert queue.newest() == (small_store.units[-1].offset, small_store.units[-1].size)
        assert queue.array(18, 23)["physical_offset"].tolist() == [unit.offset for unit in small_store.units[18:23]]
        assert queue.spans() == [(0, 400), (400, 800), (800, 1000)]


def test_entries_after_the_end_of_the_log_do_not_count(small_store, tmp_path):
    root = small_store.write(tmp_path / "s")
    last_file = max((root / "commitlog").iterdir())
    lost = [unit for unit in small_store.units if unit.offset >= int(last_file.name)]
    last_file.write_bytes(bytes(last_file.stat().st_size))
    with open_store(root) as store:
        queue = store.queue("Orders", 0)
        assert queue.max_offset == 50 - len(lost)
        assert queue.raw_end == 1000
        assert queue.entry(49).physical_offset == small_store.units[49].offset


def test_a_queue_begins_later_after_the_logs_first_file_is_deleted(small_store, tmp_path):
    root = small_store.write(tmp_path / "s")
    first_file = min((root / "commitlog").iterdir())
    units = [unit for unit in small_store.units if unit.offset >= first_file.stat().st_size]
    first_file.unlink()
    with open_store(root) as store:
        queue = store.queue("Orders", 0)
        assert queue.first_in_log == units[0].queue_offset
        assert queue.min_offset in {units[0].queue_offset, 0}


def test_a_missing_file_is_a_gap(small_store, tmp_path):
    root = small_store.write(tmp_path / "s")
    (root / "consumequeue" / "Orders" / "0" / f"{QUEUE_SIZE:020d}").unlink()
    with open_store(root) as store:
        queue = store.queue("Orders", 0)
        numbers = [entry.queue_offset for entry in queue.entries()]
        assert numbers == [*range(PER_FILE), *range(2 * PER_FILE, 50)]
        assert [number for block, _ in queue.blocks() for number in block.tolist()] == numbers
        assert (queue.is_written(3), queue.is_written(PER_FILE), queue.is_written(49)) == (True, False, True)
