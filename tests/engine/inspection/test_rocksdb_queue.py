"""Queues in a RocksDB: entries, gaps, and the bounds that a broker reports."""

from __future__ import annotations

import time
from dataclasses import dataclass

import made_rocksdb
import pytest

from engine.codec import rocksdb_queue_rows as codec
from engine.codec.rocksdb_queue_rows import BoundRow, QueueRow
from engine.inspection.rocksdb_queue import RocksQueueReader, RocksQueues, list_queues
from engine.mapped.reading import Reading
from engine.rocksdb.database import open_rocksdb

UNIT = 100
"""Bytes of each message of the made queues."""


@dataclass
class Log:
    """The bounds of a commit log."""

    min_offset: int
    max_offset: int


def rows_of(numbers, topic="Orders", queue_id=0):
    return {
        codec.entry_key(topic, queue_id, number): codec.encode_entry(
            QueueRow(number * UNIT, UNIT, number % 3, 1000 + number)
        )
        for number in numbers
    }


def bound(kind, number, topic="Orders", queue_id=0):
    row = BoundRow(topic, queue_id, kind, number * UNIT, number)
    return {codec.bound_key(topic, queue_id, kind): codec.encode_bound(row)}


@pytest.fixture
def opened(tmp_path):
    """``opened(entries, bounds, log)``: the reader of Orders/0."""
    databases = []

    def make(entries, bounds, log, dispatched=None):
        end = {} if dispatched is None else {codec.CHECKPOINT_KEY: dispatched.to_bytes(8, "big")}
        folder = made_rocksdb.make_database(tmp_path / "db", {"default": entries, "offset": bounds | end})
        databases.append(open_rocksdb(folder, Reading(), codec.FAMILIES))
        return RocksQueueReader("Orders", 0, databases[0], log)

    yield make
    for database in databases:
        database.close()


def test_entries_are_listed_and_read_as_from_a_file(opened):
    entries = rows_of(range(10)) | rows_of(range(3), queue_id=1) | rows_of(range(3), topic="Orders2")
    queue = opened(entries, bound("max", 9), Log(0, 1000), 1000)
    assert (queue.min_offset, queue.max_offset, queue.first_in_log) == (0, 10, 0)
    assert [entry.queue_offset for entry in queue.entries()] == list(range(10))
    assert [entry.physical_offset for entry in queue.entries(8, 99)] == [800, 900]
    assert queue.entry(4).tags_code == 1
    assert queue.entry(10) is None
    assert queue.entry(-1) is None
    assert queue.newest() == (900, UNIT)
    assert queue.spans() == [(0, 200)]
    assert queue.read_bytes(3 * 20, 20) == bytes.fromhex("000000000000012c 00000064 0000000000000000")
    assert queue.array(0, 10)["physical_offset"].tolist() == list(range(0, 1000, 100))


def test_reading_ends_at_a_gap_and_a_list_goes_over_it(opened):
    queue = opened(rows_of([0, 1, 2, 5, 6]), bound("max", 6), Log(0, 1000), 700)
    assert len(queue.read_bytes(0, 20 * 7)) == 3 * 20
    assert len(queue.array(0, 7)) == 3
    assert len(queue.array(3, 7)) == 0
    assert [entry.queue_offset for entry in queue.entries()] == [0, 1, 2, 5, 6]
    ((numbers, rows),) = queue.blocks()
    assert (numbers.tolist(), rows["tags_code"].tolist()) == ([0, 1, 2, 5, 6], [0, 1, 2, 2, 0])
    assert [part[0].tolist() for part in queue.blocks(1, 6)] == [[1, 2, 5]]


def test_blocks_leave_out_millions_of_lacking_rows_at_once(opened):
    far = 10**12
    queue = opened(rows_of([0, far, far + 1]), bound("max", far + 1), Log(0, (far + 2) * UNIT), (far + 2) * UNIT)
    assert [numbers.tolist() for numbers, _ in queue.blocks()] == [[0], [far, far + 1]]


@pytest.mark.parametrize(
    ("entries", "bounds", "log", "expected"),
    [
        (range(10), bound("max", 9), Log(0, 1000), (0, 10)),
        (range(10), bound("max", 9), Log(350, 1000), (4, 10)),
        (range(10), bound("max", 9) | bound("min", 2), Log(0, 1000), (2, 10)),
        (range(10), bound("max", 9) | bound("min", 2), Log(350, 1000), (4, 10)),
        (range(10), bound("max", 9), Log(5000, 6000), (10, 10)),
        (range(4, 10), bound("max", 9), Log(0, 1000), (4, 10)),
        ([], {}, Log(0, 1000), (0, 0)),
    ],
)
def test_the_minimum_is_that_of_a_broker_asked_for_it(opened, entries, bounds, log, expected):
    queue = opened(rows_of(entries), bounds, log, log.max_offset)
    assert (queue.min_offset, queue.max_offset) == expected


@pytest.mark.parametrize(
    ("log_end", "dispatched", "expected"),
    [
        (1000, 1000, 10),
        (550, 1000, 6),  # the entries below 500 remain
        (550, 550, 10),  # dispatch was not beyond the log's end: a start cuts nothing
        (400, 1000, 1),  # the search reaches the entry exactly at the end of the log, and stops as Java's does
        (300, 1000, 3),
    ],
)
def test_a_start_cuts_entries_behind_the_end_of_the_log(opened, log_end, dispatched, expected):
    queue = opened(rows_of(range(10)), bound("max", 9), Log(0, log_end), dispatched)
    assert queue.max_offset == expected


@pytest.mark.parametrize(
    ("timestamp", "lower", "upper"),
    [(0, 0, 0), (1000, 0, 0), (1004, 4, 4), (1009, 9, 9), (1010, 10, 9)],
)
def test_offsets_by_time_come_from_the_times_in_the_entries(opened, timestamp, lower, upper):
    queue = opened(rows_of(range(10)), bound("max", 9), Log(0, 1000), 1000)
    assert queue.offset_by_time(timestamp, lower=True) == lower
    assert queue.offset_by_time(timestamp, lower=False) == upper


def test_queues_are_those_with_an_end(opened, tmp_path):
    ends = bound("max", 1) | bound("max", 1, queue_id=10) | bound("max", 1, queue_id=2) | bound("min", 0, "Gone")
    queue = opened(rows_of(range(2)), ends, Log(0, 200), 200)
    assert list_queues(queue._database) == [("Orders", 0), ("Orders", 2), ("Orders", 10)]


def test_queues_are_opened_once_and_again_after_a_change(tmp_path):
    folder = made_rocksdb.make_database(tmp_path / "db", {"default": rows_of(range(2)), "offset": bound("max", 1)})
    queues = RocksQueues(folder, Reading(), Log(0, 1000))
    assert queues.by_topic()["Orders"][0].max_offset == 2
    assert queues.database() is queues.database()
    assert not queues.refresh()
    made_rocksdb.make_database(folder, {"default": rows_of(range(3)), "offset": bound("max", 2)})
    assert queues.refresh()
    assert queues.by_topic()["Orders"][0].max_offset == 3
    queues.close()


def test_many_entries_are_read_at_once(tmp_path):
    """An idle machine reads a million entries per second. The bound here leaves room for a slow one."""
    count = 50_000
    folder = made_rocksdb.make_database(
        tmp_path / "db", {"default": rows_of(range(count)), "offset": bound("max", count - 1)}
    )
    with open_rocksdb(folder, Reading(), codec.FAMILIES) as database:
        queue = RocksQueueReader("Orders", 0, database, Log(0, count * UNIT))
        begin = time.process_time()
        assert len(queue.array(0, count)) == count
        assert count / (time.process_time() - begin) > 100_000
