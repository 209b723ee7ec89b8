"""Bounds of RocksDB queues, by rows that are given."""

from __future__ import annotations

import pytest

from engine.codec.rocksdb_queue_rows import BoundRow, QueueRow
from engine.store.rocksdb_bounds import cut, minimum, search

UNIT = 100


def rows(numbers):
    held = {number: QueueRow(number * UNIT, UNIT, 0, 0) for number in numbers}
    return held.get


def bound(kind, number):
    return BoundRow("Orders", 0, kind, number * UNIT, number)


@pytest.mark.parametrize("target", range(0, 1_100, 50))
def test_a_search_over_whole_rows_finds_the_neighbours_of_its_target(target):
    first_behind = next((number for number in range(10) if number * UNIT >= target), -1)
    assert search(rows(range(10)), 0, 9, target, is_minimum=True) == first_behind
    last_before = max((number for number in range(10) if number * UNIT < target), default=-1)
    found = search(rows(range(10)), 0, 9, target, is_minimum=False)
    assert found == last_before or target % UNIT == 0  # right at a row Java gives up


def test_a_minimum_is_the_row_min_while_the_log_has_it():
    row_at = rows(range(10))
    assert minimum(row_at, bound("min", 3), bound("max", 9), 300) == 3
    assert minimum(row_at, bound("min", 3), bound("max", 9), 450) == 5
    assert minimum(row_at, None, bound("max", 9), 10_000) == 10
    assert minimum(row_at, None, None, 10_000) == 0


def test_a_cut_is_behind_the_last_row_in_front_of_the_log_end():
    assert cut(rows(range(10)), None, bound("max", 9), 0, 450) == 5


def test_a_cut_right_at_a_row_keeps_what_the_search_had_by_then():
    """The search looks at 4 first: with an end of 400 it stops there and has no row before it."""
    assert cut(rows(range(10)), None, bound("max", 9), 0, 400) == 1


def test_a_queue_that_is_wholly_behind_the_log_end_is_left_alone():
    assert cut(rows(range(5, 10)), bound("min", 5), bound("max", 9), 0, 450) == 10
    assert cut(rows([]), None, bound("max", 9), 0, 450) == 10
