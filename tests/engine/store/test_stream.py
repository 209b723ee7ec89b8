"""A queue streamed in blocks gives every message once, across all files."""

import numpy as np
import pytest
from memory_logs import MemoryLog, MemoryQueue

from engine.codec.consume_queue import PREFILLED_SIZE
from engine.store.stream import stream


def queue_and_log(count, per_file=1000, size=100):
    entries = [(n * size, size, n) for n in range(count)]
    return MemoryQueue(entries, per_file=per_file), MemoryLog(
        np.arange(count * size, dtype="u4").astype("u1").tobytes()
    )


@pytest.mark.parametrize("start", [0, 17, 99, 100])
def test_every_message_comes_once_and_in_order(start):
    queue, log = queue_and_log(100, per_file=30)
    log.file_size = 1700
    observed = []
    for block in stream(queue, log, start):
        assert block.number == start + len(observed)
        for row, message in zip(block.entries, block.messages(), strict=True):
            assert bytes(message) == log.read(int(row["physical_offset"]), 100)
            observed.append(int(row["tags_code"]))
    assert observed == list(range(start, 100))
    assert log.lent == 0


def test_deleted_messages_and_prefilled_slots_are_left_out():
    queue, log = queue_and_log(50)
    log.file_size = 1000
    log.gone = {1000, 2000}
    assert [int(n) for block in stream(queue, log) for n in block.entries["tags_code"]] == [*range(10), *range(30, 50)]
    filled = MemoryQueue([(0, PREFILLED_SIZE, 0)] * 3 + [(0, 100, 7)], min_offset=0)
    assert [int(n) for block in stream(filled, log) for n in block.entries["tags_code"]] == [7]


def test_a_batch_queue_begins_with_the_batch_that_holds_the_offset():
    entries = [(1000 * n, 1000, 0, 1, 10 * n, 10, -1, 0) for n in range(5)]
    blocks = list(stream(MemoryQueue(entries, kind="batch"), MemoryLog(bytes(5000)), 14))
    assert [int(base) for block in blocks for base in block.entries["msg_base_offset"]] == [10, 20, 30, 40]


def test_a_missing_queue_streams_nothing():
    assert list(stream(None, MemoryLog(b""))) == []
