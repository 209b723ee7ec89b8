"""The minimum of a queue: the first entry whose unit is still in the log (docs/formats/consume-queue.md#bounds)."""

from __future__ import annotations

import numpy as np
import pytest
from dispatching import DispatchTarget
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.codec.batch_consume_queue import BatchCqUnit, decode
from engine.codec.consume_queue import PREFILLED_SIZE
from engine.codec.dtypes import CQ_UNIT
from engine.codec.queue_placing import NO_ADDRESS
from engine.config import from_mapping
from engine.store.consume_queue import BatchConsumeQueue, ConsumeQueue, ConsumeQueueExt, Span, corrected_minimum
from engine.store.recovery.plan import QueueState

FILE = Span(100, 200)  # five entries that point to 500, 600, …
CASES = [
    pytest.param(0, 0, 100, id="all are there: a remembered 0 becomes the file's begin"),
    pytest.param(120, 600, 120, id="the remembered one is still there"),
    pytest.param(120, 650, 140, id="the first that is there"),
    pytest.param(100, 700, 140, id="found exactly"),
    pytest.param(100, 901, 200, id="nothing is there: a future entry"),
    pytest.param(200, 0, 200, id="already at the end"),
]


@pytest.mark.parametrize(("minimum", "log_min", "expected_minimum"), CASES)
def test_the_minimum_is_the_first_entry_whose_unit_the_log_holds(minimum, log_min, expected_minimum):
    assert corrected_minimum(minimum, FILE, FILE, log_min, lambda position: position * 5) == expected_minimum


def test_entries_that_point_to_0_make_a_restart_forget_the_minimum():
    """A peculiarity of RocketMQ: while the log begins at 0, filler entries at the front count as existing
    (docs/formats/consume-queue.md#bounds).
    """
    assert corrected_minimum(0, Span(0, 100), Span(0, 100), 0, lambda position: 0 if position < 60 else 900) == 0
    assert corrected_minimum(60, Span(0, 100), Span(0, 100), 0, lambda position: 0 if position < 60 else 900) == 60


def test_an_empty_last_file_leaves_everything():
    assert corrected_minimum(40, Span(0, 100), Span(100, 100), 500, lambda _position: 0) == 40


CONFIG, _ = from_mapping({"mappedFileSizeConsumeQueue": 100})  # five entries a file


def queue(place: DispatchTarget | None = None) -> ConsumeQueue:
    actual_queue = (place or DispatchTarget(CONFIG)).queues.find_or_create("T", 0)
    assert isinstance(actual_queue, ConsumeQueue)
    return actual_queue


def filled(count: int, first_offset: int = 0) -> ConsumeQueue:
    consume_queue = queue()
    for number in range(first_offset, first_offset + count):
        consume_queue.put(number * 100, 100, number, number)
    return consume_queue


def physical(consume_queue: ConsumeQueue) -> list[int]:
    return consume_queue.read(0, 1000)["physical_offset"].tolist()


def test_entry_n_lies_at_byte_20_n_and_files_follow_each_other():
    results = filled(12)
    assert results.files.starts == (0, 100, 200)
    assert (results.min_offset, results.max_offset, results.max_physic_offset) == (0, 12, 1200)
    assert results.read(4, 3).tolist() == [(400, 100, 4), (500, 100, 5), (600, 100, 6)]
    assert results.spans() == [(0, 100), (100, 200), (200, 240)]


def test_a_known_unit_is_skipped():
    results = filled(3)
    results.put(200, 100, 2, 2)
    results.put(150, 100, 9, 9)
    assert physical(results) == [0, 100, 200]


def test_a_queue_that_begins_above_0_is_filled_up_before():
    results = filled(1, first_offset=7)
    assert results.files.starts == (100,)
    assert results.read(5, 3).tolist() == [(0, PREFILLED_SIZE, 0), (0, PREFILLED_SIZE, 0), (700, 100, 7)]
    assert (results.min_offset, results.max_offset) == (7, 8)


def test_a_gap_shifts_later_entries_and_a_used_offset_is_skipped():
    results = filled(2)
    results.put(500, 100, 5, 5)
    results.put(600, 100, 6, 1)
    results.put(700, 100, 7, 0)  # an entry for offset 0 is appended at the queue's end
    assert physical(results) == [0, 100, 500, 700]


def test_a_queue_offset_beyond_64_bits_wraps_as_in_java():
    """A damaged unit had a queue offset far below zero. Times 20 this is positive in Java, which appends the unit at
    the queue's end. We skipped it. (Observed with RocketMQ 5.5.1.)
    """
    wrapping = -0x7A789510_FFFFFED0
    results = filled(2)
    results.put(500, 100, 5, wrapping)
    results.put_run(np.array([700]), np.array([wrapping]), np.array([(600, 100, 6)], CQ_UNIT))
    results.put(700, 100, 7, -1)
    assert physical(results) == [0, 100, 500, 600]


runs = st.lists(
    st.tuples(st.integers(0, 8), st.integers(1, 7), st.integers(-3, 3)), min_size=1, max_size=8
)  # first queue offset, entries, step of the log


@settings(max_examples=80)
@given(runs)
def test_a_run_writes_the_bytes_of_single_puts(runs):
    run_queue, single_queue, log_position = queue(), queue(), 0
    for first_offset, count, step in runs:
        log_position = max(log_position + step * 100, 0)
        ends = np.arange(1, count + 1) * 100 + log_position
        entries = np.zeros(count, CQ_UNIT)
        entries["physical_offset"], entries["size"] = ends - 100, 100
        run_queue.put_run(ends, np.arange(first_offset, first_offset + count), entries)
        for number in range(count):
            single_queue.put(int(ends[number]) - 100, 100, 0, first_offset + number)
        log_position = int(ends[-1])
    assert run_queue.files.starts == single_queue.files.starts
    assert run_queue.read(0, 1000).tolist() == single_queue.read(0, 1000).tolist()
    assert run_queue.state() == single_queue.state()


MINIMA = [(0, 0), (250, 3), (600, 6), (1100, 11), (1150, 12), (5000, 12)]


@pytest.mark.parametrize(("log_min", "minimum"), MINIMA)
@pytest.mark.parametrize("release", ["5.3", "4.9"])
def test_the_minimum_follows_the_log(log_min, minimum, release):
    results = filled(12)
    results.delete_expired(log_min, release)
    if release == "4.9" and minimum == 12:
        return  # its linear search finds no entry and leaves the minimum
    assert results.min_offset == minimum
    assert results.files.starts[-1] == 200, "the last file is never deleted"


def test_files_that_point_below_the_log_are_deleted():
    results = filled(12)
    assert [path[-3:] for path in results.delete_expired(700)] == ["000"]
    assert results.files.starts == (100, 200)
    assert results.read_bytes(40, 20) == b""


def test_a_queue_continues_where_recovery_ended():
    results = filled(12)
    results.restore(QueueState(100, 140, 700, 40))
    assert (results.max_offset, results.min_offset, results.files.starts) == (7, 2, (0, 100))
    assert results.state() == QueueState(100, 140, 700, 40)
    results.clear(200)
    assert results.files.read(140, 60) == bytes(60)
    results.restore(QueueState(None, 0, -1, 0))
    assert results.files.starts == ()


def test_a_flush_waits_for_full_pages_unless_everything_is_asked_for():
    config, _ = from_mapping({"mappedFileSizeConsumeQueue": 6_000_000})
    actual_queue = queue(DispatchTarget(config))
    for number in range(300):
        actual_queue.put(number * 100, 100, 0, number)
    assert not actual_queue.flush(2)
    assert actual_queue.files.flushed == 0
    assert actual_queue.flush(0)
    assert actual_queue.files.flushed == 6000


def test_a_destroyed_queue_begins_again():
    place = DispatchTarget(CONFIG)
    actual_queue = queue(place)
    actual_queue.put(0, 100, 0, 0)
    actual_queue.destroy()
    assert place.files() == {}
    actual_queue.put(500, 100, 0, 3)
    assert (actual_queue.min_offset, actual_queue.max_offset) == (3, 4)


BATCH_CONFIG, _ = from_mapping({"mapperFileSizeBatchConsumeQueue": 92})


def filled_with_batches(count: int) -> BatchConsumeQueue:
    actual_queue = DispatchTarget(BATCH_CONFIG, batch_topics=frozenset({"B"})).queues.find_or_create("B", 1)
    assert isinstance(actual_queue, BatchConsumeQueue)
    for number in range(count):
        actual_queue.put(BatchCqUnit(number * 100, 100, 7, 1_700_000_000_000, 10 + 3 * number, 3))
    return actual_queue


def test_batch_entries_are_contiguous_and_have_their_offsets():
    results = filled_with_batches(5)
    assert results.files.starts == (0, 92, 184)
    assert (results.min_offset, results.max_offset, results.max_physic_offset) == (10, 25, 400)
    assert decode(results.read_bytes(46, 46)) == BatchCqUnit(100, 100, 7, 1_700_000_000_000, 13, 3)


def test_an_empty_queue_begins_at_minus_one():
    results = filled_with_batches(0)
    assert (results.min_offset, results.max_offset) == (-1, 0)


def test_known_units_and_impossible_batches_are_skipped():
    results = filled_with_batches(2)
    results.put(BatchCqUnit(100, 100, 0, 0, 99, 1))
    results.put(BatchCqUnit(900, 100, 0, 0, -1, 1))
    results.put(BatchCqUnit(900, 100, 0, 0, 1, -1))
    assert results.max_offset == 16


def test_the_minimum_of_a_batch_queue_follows_the_log():
    results = filled_with_batches(5)
    results.delete_expired(150)
    assert (results.min_offset, results.files.starts) == (16, (92, 184))
    results.delete_expired(350)
    assert (results.min_offset, results.files.starts) == (22, (184,))


def test_a_batch_queue_continues_where_recovery_ended():
    results = filled_with_batches(5)
    results.restore(QueueState(92, 138, 200, 0, 10, 19))
    assert results.state() == QueueState(92, 138, 200, 0, 10, 19)
    results.destroy()
    assert results.state() == QueueState(None, 0, -1, 0, -1, 0)


EXT_CONFIG, _ = from_mapping({"enableConsumeQueueExt": True, "mappedFileSizeConsumeQueueExt": 100})


def new_ext() -> ConsumeQueueExt:
    queue = DispatchTarget(EXT_CONFIG).queues.find_or_create("T", 0)
    assert isinstance(queue, ConsumeQueue)
    assert queue.ext is not None
    return queue.ext


def test_a_unit_is_found_at_its_address():
    ext = new_ext()
    addresses = [ext.put(tag, 1_700_000_000_000 + tag, bytes([tag]) * 3) for tag in range(6)]
    assert addresses[0] == -(1 << 63)
    for tag, address in enumerate(addresses):
        unit = ext.unit(address)
        assert unit is not None
        assert (unit.tags_code, unit.store_timestamp, unit.bit_map) == (tag, 1_700_000_000_000 + tag, bytes([tag]) * 3)
    assert ext.unit(addresses[-1] + 23) is None
    assert ext.unit(5) is None


def test_a_unit_never_crosses_a_file_and_a_mark_ends_the_file():
    ext = new_ext()
    for tag in range(5):
        ext.put(tag, 0, b"x" * 10)
    assert ext.files.starts == (0, 100)
    assert ext.files.read(90, 2) == b"\xff\xff"
    assert ext.files.end == 160


def test_four_bytes_of_an_ext_file_stay_free():
    ext = new_ext()
    ext.put(1, 0, b"x" * 57)
    assert ext.put(2, 0) == 100 - (1 << 63)


def test_a_too_long_ext_unit_has_no_address():
    ext = new_ext()
    assert ext.put(1, 0, b"x" * 77) == NO_ADDRESS
    assert ext.files.starts == ()


def test_ext_files_are_cut_and_recovered():
    ext = new_ext()
    for tag in range(5):
        ext.put(tag, 0, b"x" * 10)
    ext.cut(60)
    assert (ext.files.starts, ext.files.end) == ((0,), 60)
    ext.files.write(60, b"\xff\xff")
    ext.files.end = 100
    ext.recover()
    assert ext.files.end == 60


def test_files_before_an_address_are_deleted():
    ext = new_ext()
    for tag in range(9):
        ext.put(tag, 0, b"x" * 10)
    assert ext.files.starts == (0, 100, 200)
    ext.forget_before(150 - (1 << 63))
    assert ext.files.starts == (100, 200)
