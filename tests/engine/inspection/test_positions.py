"""Every position that the files contain, and the reason if one is unknown (docs/formats/checkpoint.md,
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


def test_a_closed_store_has_all_positions(small_store, tmp_path):
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


def test_positions_after_a_crash_are_unknown(small_store, tmp_path):
    with open_store(small_store.write(tmp_path / "s", abort=True)) as store:
        actual_positions = positions(store)
    assert actual_positions.flushed.offset is None
    assert "was not closed" in (actual_positions.flushed.why or "")


def test_half_messages_after_the_newest_entry_count_as_dispatched(small_store, tmp_path):
    small_store.put("Orders", sys_flag=0x4)
    with open_store(small_store.write(tmp_path / "s")) as store:
        actual_positions = positions(store)
    assert (actual_positions.dispatched.offset, actual_positions.queue_max.offset) == (
        small_store.end,
        small_store.units[-1].offset,
    )


def test_without_queues_the_dispatched_position_is_unknown(small_store, tmp_path):
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


def test_a_checkpoint_time_gives_the_end_of_the_last_unit_of_that_age(small_store, tmp_path):
    with open_store(small_store.write(tmp_path / "s")) as store:
        assert offset_at_time(store, START + 35) == small_store.units[3].offset
        assert offset_at_time(store, START) is None
