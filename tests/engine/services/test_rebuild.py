import errno
import threading

import numpy as np
import pytest
from dispatching import DispatchTarget, blocks, requests
from raw_units import raw_log
from simulated_disk import SimulatedDisk

from engine.codec.topic_table import TopicTable
from engine.config import from_mapping
from engine.services import rebuild as subject
from engine.services.rebuild import Rebuild

CONFIG, _ = from_mapping({"mappedFileSizeConsumeQueue": 100, "maxHashSlotNum": 3, "maxIndexNum": 7})


def log_of(count: int) -> bytes:
    return raw_log(*({"queue_offset": number, "stored": 1_700_000_000_000 + number} for number in range(count)))


def rebuild_from_rows(place: DispatchTarget, log: bytes, rows: int = 4) -> Rebuild:
    topics = TopicTable()
    with Rebuild(place.queues, place.index, place.config) as rebuild:
        for columns in blocks(log, rows, topics):
            rebuild.take(columns, topics)
        rebuild.finish()
    return rebuild


def test_a_rebuild_counts_units_and_has_the_newest_time():
    place = DispatchTarget(CONFIG)
    rebuild = rebuild_from_rows(place, log_of(21))
    assert (rebuild.units, rebuild.last_store_timestamp) == (21, 1_700_000_000_020)
    assert place.queues.offsets() == {("TopicTest", 3): 21}


def test_single_units_and_blocks_keep_their_order():
    log, place, plain, topics = log_of(12), DispatchTarget(CONFIG), DispatchTarget(CONFIG), TopicTable()
    plain.dispatch(log, "singly")
    singles = list(requests(log, place.rules))
    with Rebuild(place.queues, place.index, place.config) as rebuild:
        for number, columns in enumerate(blocks(log, 4, topics)):
            if number == 1:
                for request in singles[4:8]:
                    rebuild.take_one(request)
            else:
                rebuild.take(columns, topics)
        rebuild.finish()
    assert place.files() == plain.files()


def test_bytes_that_may_change_are_not_read_later():
    log, place, plain, topics = log_of(40), DispatchTarget(CONFIG), DispatchTarget(CONFIG), TopicTable()
    plain.dispatch(log, "singly")
    memory = bytearray(log)
    with Rebuild(place.queues, place.index, place.config) as rebuild:
        for columns in blocks(memory, 4, topics):
            rebuild.take(columns, topics)
            end = int(columns.offset[columns.count - 1]) + int(columns.size[columns.count - 1])
            memory[:end] = bytes(end)
        rebuild.finish()
    assert place.files() == plain.files()


def test_keys_are_hashed_by_either_thread(monkeypatch):
    """The index is the same whichever thread computes the hashes. The other thread releases the log's bytes
    afterwards.
    """
    log, plain = log_of(40), DispatchTarget(CONFIG)
    plain.dispatch(log, "singly")
    for idle in (True, False):
        monkeypatch.setattr(subject._Writer, "idle", idle)
        place = DispatchTarget(CONFIG)
        rebuild = rebuild_from_rows(place, log)
        assert place.files() == plain.files()
        assert bool(rebuild._writer.spare_units) == idle
        assert not any(len(columns.buffer) for columns in rebuild._writer.spare_units)


def test_units_already_in_queues_go_into_the_index_only():
    log, place, topics = log_of(3), DispatchTarget(CONFIG), TopicTable()
    with Rebuild(place.queues, place.index, place.config) as rebuild:
        for columns in blocks(log, 8, topics):
            rebuild.take(columns, topics, np.arange(3), queued=True)
        rebuild.finish()
    assert place.queues.offsets() == {}
    assert place.index.files[-1].header.entries == 3


@pytest.mark.parametrize("where", ["*/consumequeue/*", "*/index/*"])
def test_an_error_of_the_other_thread_is_raised(where):
    disk = SimulatedDisk()
    place = DispatchTarget(CONFIG, disk)
    place.index._pause = lambda _seconds: None
    disk.fail(errno.EIO, kind="create", path=where)
    with pytest.raises(OSError, match="Input/output"):
        rebuild_from_rows(place, log_of(40))
    assert not [thread for thread in threading.enumerate() if "Rebuild" in thread.name]


def test_many_queues_are_written_for_more_rows_at_once(monkeypatch):
    monkeypatch.setattr(subject, "MIN_ROWS", 8)
    log = raw_log(*({"topic": b"T%d" % (number % 20), "queue_offset": number // 20} for number in range(200)))
    place, plain = DispatchTarget(CONFIG), DispatchTarget(CONFIG)
    plain.dispatch(log, "singly")
    rebuild_from_rows(place, log, rows=5)
    assert place.files() == plain.files()


def test_without_an_index_only_queues_are_built():
    place, topics = DispatchTarget(CONFIG), TopicTable()
    with Rebuild(place.queues, None, place.config) as rebuild:
        for columns in blocks(log_of(5), 8, topics):
            rebuild.take(columns, topics)
        rebuild.finish()
    assert place.queues.offsets() == {("TopicTest", 3): 5}
    assert place.index.files == ()
