"""A sample for the window: gaps where both ends are known, and none otherwise."""

from __future__ import annotations

from dataclasses import replace

from sample_position_looks import look

from engine.inspection.positions import Position
from viewer.runtime.position_reading import KEYS, Gaps, gaps_of, known_flushed


def test_gaps_are_the_distances_of_positions_and_never_below_zero():
    assert gaps_of(look(10)) == Gaps(commit=1000, flush=4000, dispatch=1000)
    assert gaps_of(look(10, wrote=8000)).commit == 0


def test_a_pool_is_unknown_from_outside():
    assert gaps_of(look(10, lab=False, live=True)).commit is None
    assert gaps_of(look(10, lab=False, live=False)).commit == 1000


def test_the_checkpoints_time_replaces_an_unknown_flush():
    item = look(10, flushed=None)
    assert known_flushed(item.positions) == 100
    assert gaps_of(item).flush == 8900
    none = replace(item.positions, checkpoint={})
    assert known_flushed(none) is None
    assert gaps_of(replace(item, positions=none)).flush is None


def test_every_position_has_an_offset_or_a_reason():
    item = look(3, index_end=None)
    assert len(item.offsets()) == len(KEYS)
    assert (item.offset("index_end"), item.position("index_end").why) == (None, "nobody tells")
    assert item.offset("checkpoint") == 100
    bare = replace(item, positions=replace(item.positions, checkpoint={}))
    assert bare.position("checkpoint") == Position(None, why="there is no checkpoint file")


def test_puts_are_those_stored_by_the_lab():
    reported = {"PUT_OK": 5, "FLUSH_DISK_TIMEOUT": 2, "MESSAGE_ILLEGAL": 9}
    assert look(3, statuses=reported).puts == 7
    assert look(3, lab=False, statuses=reported).puts == 30
