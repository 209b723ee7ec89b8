import errno

import numpy as np
import pytest
from dispatching import DispatchTarget, blocks
from hypothesis import given, settings
from hypothesis import strategies as st
from raw_units import raw_log
from simulated_disk import SimulatedDisk

from engine.codec.topic_table import TopicTable
from engine.config import from_mapping
from engine.store import pending_entries

CONFIG, _ = from_mapping({"mappedFileSizeConsumeQueue": 60, "maxHashSlotNum": 3, "maxIndexNum": 5})
T0 = 1_700_000_000_000


@pytest.fixture(autouse=True)
def _everything_waits(monkeypatch):
    monkeypatch.setattr(pending_entries, "MIN_QUEUES", 1)
    monkeypatch.setattr(pending_entries, "SPARSE_ROWS_PER_QUEUE", 1000)


def log_of(count: int, topics: int = 4) -> bytes:
    return raw_log(
        *(
            {
                "topic": b"T%d" % (number % topics),
                "queue_id": 0,
                "queue_offset": number // topics,
                "stored": T0 + number,
                "sys_flag": 4 if number % 13 == 12 else 0,
            }
            for number in range(count)
        )
    )


ways = st.lists(st.tuples(st.sampled_from(["block", "one", "ask", "settle", "piece"]), st.integers(0, 5)), max_size=30)


@settings(max_examples=60)
@given(ways, st.integers(1, 60))
def test_pending_entries_have_the_same_bytes_whatever_was_read_in_between(steps, count):
    log = log_of(count)
    place, plain, topics = DispatchTarget(CONFIG), DispatchTarget(CONFIG), TopicTable()
    plain.dispatch(log, "singly")
    column_blocks = [columns.copy() for columns in blocks(log, 64, topics)]
    columns, position = column_blocks[0], 0
    pieces = iter(())
    for action, number in [*steps, ("block", 60)]:
        if action == "block" and position < columns.count:
            stop = min(position + 1 + number, columns.count) if (action, number) != ("block", 60) else columns.count
            place.dispatcher.dispatch_block(columns, topics, np.arange(position, stop))
            position = stop
        elif action == "one" and position < columns.count:
            place.dispatcher.dispatch(place.dispatcher._request(columns, position))
            position += 1
        elif action == "ask":
            queue = place.queues.queue(f"T{number % 4}", 0)
            rows = [
                row for row in range(position) if columns.topic_id[row] == number % 4 and columns.sys_flag[row] == 0
            ]
            assert (queue.files.end // 20 if queue else 0) >= len(rows[:1])
            if rows:
                assert queue.read(queue.max_offset - 1, 1)["physical_offset"][0] == columns.physical_offset[rows[-1]]
        elif action == "settle":
            place.queues.pending.settle()
            assert place.queues.pending.count == 0
        elif action == "piece":
            pieces = place.queues.settle()
            next(pieces, None)
    assert place.queues.offsets() == plain.queues.offsets()
    assert place.files() == plain.files()


def test_the_checkpoint_never_includes_pending_entries():
    place = DispatchTarget(CONFIG)
    place.dispatch(log_of(6))
    assert place.dispatcher.last_store_timestamp == T0
    place.queues.pending.settle()
    assert place.dispatcher.last_store_timestamp == T0 + 5


def test_a_complete_flush_and_an_idle_flush_write_pending_entries():
    place = DispatchTarget(CONFIG)
    place.dispatch(log_of(6))
    assert place.queues.dirty() == []
    assert len(place.queues.dirty()) == 4
    place.dispatch(log_of(12))
    assert place.queues.pending.count
    assert place.queues.flush(0)
    assert not place.queues.pending.count


def test_entries_that_could_not_be_written_stay_pending():
    disk = SimulatedDisk()
    place = DispatchTarget(CONFIG, disk)
    place.dispatch(log_of(8))
    disk.fail(errno.ENOSPC, kind="write", path="*/T2/*", times=1)
    with pytest.raises(OSError, match="No space"):
        place.queues.pending.settle()
    assert place.queues.pending.count
    assert place.queues.offsets() == {(f"T{number}", 0): 2 for number in range(4)}


def test_rows_of_another_table_of_topics_find_their_own_queues():
    place = DispatchTarget(CONFIG)
    place.dispatch(log_of(4))
    log = log_of(8)[len(log_of(4)) :]
    place.dispatch(log, base=len(log_of(4)))
    assert place.queues.offsets() == {(f"T{number}", 0): 2 for number in range(4)}


def test_topics_that_no_folder_can_be_named_after_get_no_queue():
    place = DispatchTarget(CONFIG)
    place.dispatch(raw_log({"topic": b"../x", "queue_offset": 0}, {"topic": b"good", "queue_offset": 0}))
    assert list(place.queues.offsets()) == [("good", 3)]
