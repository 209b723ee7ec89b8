"""Queues in a RocksDB on their way through recovery."""

from __future__ import annotations

import numpy as np
import pytest

from engine.codec.dtypes import ROCKSDB_QUEUE_ROW
from engine.codec.rocksdb_queue_rows import BoundRow, QueueRow
from engine.rules.unit_check import Rules
from engine.store.recovery.rocksdb_queues import RocksdbQueue, RocksdbTable
from engine.store.recovery.source import RocksdbQueues

UNIT = 100


class Rows:
    """Rows of Orders/0, one for each of ``numbers``."""

    topic, queue_id = "Orders", 0

    def __init__(self, numbers, newest):
        self.held = {number: QueueRow(number * UNIT, UNIT, 0, 0) for number in numbers}
        self.newest = newest

    def bound(self, bound):
        number = self.newest if bound == "max" else None
        return None if number is None else BoundRow(self.topic, self.queue_id, bound, number * UNIT, number)

    def row(self, queue_offset):
        return self.held.get(queue_offset)

    def numbered_rows(self, start, stop):
        numbers = [number for number in range(start, stop) if number in self.held]
        rows = [(row.physical_offset, row.size, 0, 0) for row in (self.held[number] for number in numbers)]
        return np.array(numbers, np.int64), np.array(rows, ROCKSDB_QUEUE_ROW)


def queue_of(numbers, newest):
    return RocksdbQueue("Orders", 0, Rows(numbers, newest), 0)


def put(queue, *numbers):
    for number in numbers:
        queue.put(number * UNIT, number * UNIT, UNIT, number)


def test_the_end_is_that_of_the_row_written_last_even_if_it_was_further():
    queue = queue_of(range(10), 9)
    assert queue.max_offset == 10
    put(queue, 2, 3)
    assert (queue.max_offset, queue.added) == (4, 0)


def test_a_missing_row_that_is_dispatched_counts_as_added():
    queue = queue_of([0, 1, 4], 4)
    numbers = np.arange(1, 7)
    queue.put_rows(numbers, numbers * UNIT, np.full(6, UNIT))
    assert (queue.max_offset, queue.added) == (7, 4)
    assert queue.row(2) == QueueRow(200, UNIT, 0, 0)


def test_rows_far_apart_are_looked_up_one_by_one():
    queue = queue_of([0, 1_000_000], 1_000_000)
    numbers = np.array([0, 1_000_000, 1_000_001])
    queue.put_rows(numbers, numbers * UNIT, np.full(3, UNIT))
    assert queue.added == 1


def test_the_minimum_is_searched_with_the_rows_that_the_start_wrote():
    queue = queue_of([], None)
    put(queue, 5, 6, 7)
    queue.correct_min(600, "5.5")
    assert (queue.min_offset, queue.max_offset) == (6, 8)


def test_without_a_log_the_database_is_deleted():
    queue = queue_of(range(10), 9)
    queue.as_destroyed()
    assert (queue.min_offset, queue.max_offset, queue.dropped) == (0, 0, 10)


@pytest.fixture
def table():
    return RocksdbTable(RocksdbQueues(1_000, (Rows(range(10), 9),)), 0, Rules("5.5", True, False, False, ()))


def test_ends_are_cut_only_if_dispatch_was_further_than_the_log_now_is(table):
    assert table.max_physic == 1_000
    assert not table.is_cut(1_000, 1_000)
    assert table.is_cut(1_000, 450)
    (queue,) = table
    queue.truncate(450)
    assert (queue.max_offset, queue.dropped) == (5, 5)
    assert queue.cut is not None
    assert queue.cut.max_physic == 500


def test_ends_are_not_cut_where_rows_were_written_again(table):
    table.dispatched = 1
    assert not table.is_cut(1_000, 450)


def test_a_queue_that_is_not_there_is_made(table):
    assert not table.queue("Other", 1).existed
    assert table.queue("Orders", 0).existed
