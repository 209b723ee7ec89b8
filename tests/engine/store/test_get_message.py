"""getMessage: statuses, corrected offsets and limits; the fast path answers like the general one
(docs/formats/reading.md#get-message).
"""

from __future__ import annotations

import gc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_logs import BATCH, MemoryLog, MemoryQueue

from engine.codec.consume_queue import PREFILLED_SIZE
from engine.codec.java import jhash
from engine.config import MessageStoreConfig
from engine.store import get_message as module
from engine.store.get_message import GetMessageStatus, Limits, get_message
from engine.store.message_filter import TagFilter

WIDE = Limits(memory=1 << 40)


class AcceptAllFilter:
    """A filter that accepts all messages, so the scan goes entry by entry."""

    def matches_entry(self, tags_code, ext):
        return True

    def matches_unit(self, unit):
        return True


def queue_and_log(sizes, tags=None, **options):
    """Make a log of messages of ``sizes`` and a queue with an entry for each."""
    entries, position = [], 0
    for number, size in enumerate(sizes):
        entries.append((position, size, jhash(tags[number]) if tags else 0))
        position += size
    return MemoryQueue(entries, **options), MemoryLog(bytes(range(256)) * (position // 256 + 1))


def summary_of(result):
    return result.status, result.next_begin_offset, [bytes(m) for m in result.messages], list(result.offsets)


@pytest.mark.parametrize(
    ("min_offset", "max_offset", "offset", "status", "following"),
    [
        (0, 0, 0, "NO_MESSAGE_IN_QUEUE", 0),
        (0, 0, 9, "NO_MESSAGE_IN_QUEUE", 0),
        (5, 10, 4, "OFFSET_TOO_SMALL", 5),
        (5, 10, 10, "OFFSET_OVERFLOW_ONE", 10),
        (5, 10, 11, "OFFSET_OVERFLOW_BADLY", 10),
        (5, 10, 9, "FOUND", 10),
    ],
)
def test_status_and_next_offset_are_rocketmqs(min_offset, max_offset, offset, status, following):
    queue, log = queue_and_log([100] * max_offset, min_offset=min_offset)
    result = get_message(queue, log, offset, limits=WIDE)
    assert (result.status, result.next_begin_offset) == (status, following)
    assert (result.min_offset, result.max_offset) == (min_offset, max_offset)


def test_a_slave_corrects_no_offset():
    queue, log = queue_and_log([100] * 10, min_offset=5)
    slave = Limits.of(MessageStoreConfig(broker_role="SLAVE"))
    assert get_message(queue, log, 2, limits=slave).next_begin_offset == 2
    assert get_message(queue, log, 20, limits=slave).next_begin_offset == 20


def test_a_missing_queue_has_its_own_status():
    assert get_message(None, MemoryLog(b""), 3).status == GetMessageStatus.NO_MATCHED_LOGIC_QUEUE


def test_the_first_message_is_returned_whatever_its_size():
    queue, log = queue_and_log([300_000, 10])
    result = get_message(queue, log, 0, limits=WIDE)
    assert result.total_size == 300_000
    assert result.count == 1
    assert result.next_begin_offset == 1


def test_messages_on_disk_are_returned_eight_at_a_time():
    queue, log = queue_and_log([100] * 50)
    assert get_message(queue, log, 0, limits=Limits(memory=10)).count == 8
    assert get_message(queue, log, 0, limits=WIDE).count == 32


def test_a_pull_takes_as_many_as_the_configuration_allows():
    """With maxTransferCountOnMessageInMemory=1024, a pull of 100 messages got 64: the fast path had a table for 64."""
    queue, log = queue_and_log([100] * 200)
    limits = Limits.of(MessageStoreConfig(max_transfer_count_on_message_in_memory=1024))
    for count in (63, 64, 65, 100, 200):
        result = get_message(queue, log, 0, count, limits=limits)
        assert (result.count, result.next_begin_offset) == (count, count)


def test_entries_before_a_hole_in_the_files_are_not_found():
    queue, log = queue_and_log([100] * 30, per_file=10)
    queue.read_bytes = queue.lend_bytes = lambda offset, size: b""
    result = get_message(queue, log, 13, limits=WIDE)
    assert (result.status, result.next_begin_offset) == ("OFFSET_FOUND_NULL", 20)


def test_messages_of_a_missing_file_are_skipped_to_the_next_file():
    queue, log = queue_and_log([100] * 30)
    log.file_size = 1000
    log.gone = {0}
    result = get_message(queue, log, 3, limits=WIDE)
    assert result.status == "FOUND"
    assert result.offsets[0] == 1000
    log.gone = {0, 1000, 2000}
    result = get_message(queue, log, 3, limits=WIDE)
    assert (result.status, result.next_begin_offset) == ("MESSAGE_WAS_REMOVING", 30)


def test_a_prefilled_slot_names_more_bytes_than_there_are():
    queue = MemoryQueue([(0, PREFILLED_SIZE, 0), (0, 100, 0)])
    result = get_message(queue, MemoryLog(bytes(100)), 0, limits=WIDE)
    assert result.status == "MESSAGE_WAS_REMOVING" or result.offsets == [0]


def test_a_batch_counts_its_messages():
    log = MemoryLog(bytes(3000))
    entries = [(1000 * n, 1000, 0, 1, 10 * n, 10, -1, 0) for n in range(3)]
    queue = MemoryQueue(entries, kind="batch")
    assert queue.unit_size == BATCH.size
    result = get_message(queue, log, 14, 32, None, WIDE)
    assert (result.status, result.count, result.next_begin_offset, list(result.offsets)) == (
        "FOUND",
        20,
        30,
        [1000, 2000],
    )
    assert get_message(queue, log, 14, 5, None, WIDE).next_begin_offset == 20


@given(
    st.lists(st.integers(1, 40_000), min_size=1, max_size=150),
    st.integers(0, 80),
    st.integers(0, 140),
    st.sampled_from([0, 5000, 200_000, 1 << 40]),
    st.sampled_from([1000, 65_536, 1 << 30]),
    st.sampled_from([(32, 30, 262_144), (100, 200, 1 << 30), (1024, 200, 1 << 30)]),
)
def test_the_fast_path_answers_like_the_general_one(sizes, offset, count, memory, file_size, bounds):
    memory_count, per_file, memory_bytes = bounds
    queue, log = queue_and_log(sizes, per_file=per_file)
    log.file_size = max(file_size, *sizes)
    limits = Limits(memory=memory, memory_count=memory_count, memory_bytes=memory_bytes)
    fast_result = get_message(queue, log, offset, count, None, limits)
    general_result = get_message(queue, log, offset, count, AcceptAllFilter(), limits)
    assert summary_of(fast_result) == summary_of(general_result)
    assert (fast_result.count, fast_result.total_size) == (general_result.count, general_result.total_size)
    assert fast_result.suggest_pulling_from_slave == general_result.suggest_pulling_from_slave


def test_all_lent_files_are_released():
    queue, log = queue_and_log([100] * 50)
    with get_message(queue, log, 0, limits=WIDE) as result:
        assert log.lent == 1
        assert len(result) == 32
    result.release()
    assert log.lent == 0
    get_message(queue, log, 0, 5, TagFilter("Z"), WIDE)
    message = get_message(queue, log, 0, limits=WIDE)
    del message
    gc.collect()
    assert log.lent == 0


def test_memory_of_the_machine_is_known():
    assert module.physical_memory() > 1 << 20
