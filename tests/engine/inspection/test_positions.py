"""Every position that files tell, and why one is not known (docs/formats/checkpoint.md,
docs/formats/files.md#mapped-files).
"""

from __future__ import annotations

import shutil

import pytest
from handmade_stores import START, HandmadeStore

from engine.inspection import open_store
from engine.inspection.positions import Position, offset_at_time, positions, queue_position


@pytest.fixture
def small_store():
    store = HandmadeStore()
    for number in range(6):
        store.put("Orders", keys=f"K{number}")
    return store


def test_a_store_that_was_closed_tells_all(small_store, tmp_path):
    with open_store(small_store.write(tmp_path / "s")) as store:
        actual_positions = positions(store)
    end = small_store.end
    assert (
        actual_positions.min.offset,
        actual_positions.wrote.offset,
        actual_positions.committed.offset,
        actual_positions.flushed.offset,
    ) == (0, end, end, end)
    assert (actual_positions.confirm.offset, actual_positions.dispatched.offset, actual_positions.queue_max.offset) == (
        end,
        end,
        end,
    )
    assert actual_positions.checkpoint["physicMsgTimestamp"] == Position(
        end, "end of the last unit that was stored at or before this time", None, small_store.units[-1].store_timestamp
    )


def test_what_a_crash_leaves_open_is_not_known(small_store, tmp_path):
    with open_store(small_store.write(tmp_path / "s", abort=True)) as store:
        actual_positions = positions(store)
    assert actual_positions.flushed.offset is None
    assert "was not closed" in (actual_positions.flushed.why or "")


def test_half_messages_behind_the_newest_entry_count_as_dispatched(small_store, tmp_path):
    small_store.put("Orders", sys_flag=0x4)
    with open_store(small_store.write(tmp_path / "s")) as store:
        actual_positions = positions(store)
    assert (actual_positions.dispatched.offset, actual_positions.queue_max.offset) == (
        small_store.end,
        small_store.units[-1].offset,
    )


def test_without_queues_nobody_knows_how_far_dispatch_came(small_store, tmp_path):
    root = small_store.write(tmp_path / "s", checkpoint=False)
    shutil.rmtree(root / "consumequeue")
    shutil.rmtree(root / "index")
    with open_store(root) as store:
        actual_positions = positions(store)
    assert (actual_positions.dispatched.offset, actual_positions.queue_max, actual_positions.index_end.offset) == (
        None,
        queue_position(None),
        None,
    )
    assert actual_positions.checkpoint["physicMsgTimestamp"].why == "there is no checkpoint file"


def test_a_time_is_the_end_of_the_last_unit_that_is_as_old(small_store, tmp_path):
    with open_store(small_store.write(tmp_path / "s")) as store:
        assert offset_at_time(store, START + 35) == small_store.units[3].offset
        assert offset_at_time(store, START) is None
