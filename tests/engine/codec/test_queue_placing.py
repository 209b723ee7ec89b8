"""The position of a queue's next entry: dropped, after the last entry, or in a new file after filler entries."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec.batch_consume_queue import BatchCqUnit
from engine.codec.consume_queue import PREFILLED_SIZE, decode
from engine.codec.dtypes import CQ_UNIT
from engine.codec.queue_placing import MAX_EXT_UNIT_BYTES, NO_ADDRESS, put, put_batch, put_ext, put_run


@dataclass
class MemoryQueueFiles:
    """A queue with its files in memory."""

    file_size: int = 60
    starts: tuple[int, ...] = ()
    end: int = 0
    flushed: int = 0
    first_created: int = -1
    max_physic_offset: int = -1
    min_logic_offset: int = 0
    data: dict[int, bytes] = field(default_factory=dict)
    gaps: list[int] = field(default_factory=list)

    @property
    def files(self):
        return self

    @property
    def last_is_full(self):
        return not self.starts or self.end >= self.starts[-1] + self.file_size

    def create(self, start):
        self.first_created = start if not self.starts else self.first_created
        self.starts, self.end = (*self.starts, start), start

    def append(self, data):
        raw = bytes(data)
        while raw:
            if self.last_is_full:
                self.create(self.starts[-1] + self.file_size)
            room = self.starts[-1] + self.file_size - self.end
            self.data[self.end] = raw[:room]
            self.end += len(raw[:room])
            raw = raw[room:]

    def write(self, offset, data):
        self.data[offset] = bytes(data)

    def note_gap(self, queue_offset):
        self.gaps.append(queue_offset)

    def entries(self):
        raw = b"".join(self.data[start] for start in sorted(self.data))
        return [
            (entry.physical_offset, entry.size) for entry in (decode(raw, offset) for offset in range(0, len(raw), 20))
        ]


def test_entries_follow_each_other_and_known_units_are_dropped():
    queue = MemoryQueueFiles()
    for number in (0, 1, 1, 2):
        put(queue, 100 * number, 90, 7, number)
    assert queue.entries() == [(0, 90), (100, 90), (200, 90)]
    put(queue, 150, 20, 7, 9)
    assert (len(queue.entries()), queue.gaps) == (3, [])


def test_a_queue_that_begins_above_0_is_filled_up_to_there():
    queue = MemoryQueueFiles()
    put(queue, 500, 90, 7, 4)
    assert queue.starts == (60,)
    assert queue.entries() == [(0, PREFILLED_SIZE), (500, 90)]
    assert (queue.min_logic_offset, queue.flushed) == (80, 80)


def test_a_run_equals_single_puts():
    for known_values in (-1, 190, 350):
        files, run = MemoryQueueFiles(max_physic_offset=known_values), MemoryQueueFiles(max_physic_offset=known_values)
        rows = np.array([(100 * n, 90, n) for n in range(5)], CQ_UNIT)
        for number in range(5):
            put(files, 100 * number, 90, number, number)
        put_run(run, np.arange(5) * 100 + 90, np.arange(5), rows)
        assert (run.entries(), run.max_physic_offset, run.gaps) == (
            files.entries(),
            files.max_physic_offset,
            files.gaps,
        )


@given(st.integers(-1, 8), st.integers(-1, 8), st.integers(0, 8), st.integers(1, 8), st.integers(-1, 900))
def test_a_run_after_any_queue_equals_single_puts(first_number, last_number, start, count, known_log_end):
    """The queue begins anywhere and may be full to the end of a file. The run may begin before, in or after it."""
    single_queue, run_queue = MemoryQueueFiles(), MemoryQueueFiles()
    for queue in (single_queue, run_queue):
        for number in range(first_number, last_number + 1) if first_number >= 0 else ():
            put(queue, 100 * number, 90, 7, number)
        queue.max_physic_offset = known_log_end
    offsets = np.arange(start, start + count)
    for number in offsets.tolist():
        put(single_queue, 100 * number, 90, number, number)
    put_run(run_queue, offsets * 100 + 90, offsets, np.array([(100 * n, 90, n) for n in offsets.tolist()], CQ_UNIT))
    assert run_queue.entries() == single_queue.entries()
    assert (run_queue.starts, run_queue.end, run_queue.flushed) == (
        single_queue.starts,
        single_queue.end,
        single_queue.flushed,
    )
    assert run_queue.gaps == single_queue.gaps[:1]  # after a gap every single entry reports it; a run reports it once
    assert (run_queue.max_physic_offset, run_queue.min_logic_offset) == (
        single_queue.max_physic_offset,
        single_queue.min_logic_offset,
    )


class FullDisk(MemoryQueueFiles):
    """A queue whose disk is full."""

    def append(self, data):
        raise OSError("no space left on the device")


def test_an_entry_that_could_not_be_written_can_be_put_again():
    """Otherwise the queue's known end in the log would include the entry, and the next attempt would be dropped."""
    queue = FullDisk()
    with pytest.raises(OSError, match="no space"):
        put(queue, 0, 90, 7, 0)
    assert queue.max_physic_offset == -1
    with pytest.raises(OSError, match="no space"):
        put_run(queue, np.array([90]), np.array([0]), np.array([(0, 90, 7)], CQ_UNIT))
    assert queue.max_physic_offset == -1


def test_a_batch_is_accepted_once_and_only_if_valid():
    queue = MemoryQueueFiles(file_size=92)
    assert put_batch(queue, BatchCqUnit(0, 90, 1, 2, 10, 3))
    assert not put_batch(queue, BatchCqUnit(0, 90, 1, 2, 10, 3))
    assert not put_batch(queue, BatchCqUnit(100, 90, 1, 2, -1, 3))
    assert (queue.end, queue.max_physic_offset) == (46, 0)


def test_an_ext_unit_has_an_address_and_one_that_is_too_long_none():
    queue = MemoryQueueFiles(file_size=100)
    first_address, second_address = put_ext(queue, 1, 2), put_ext(queue, 1, 2, b"bits")
    assert (first_address, second_address - first_address) == (-(1 << 63), 20)
    assert put_ext(queue, 1, 2, bytes(MAX_EXT_UNIT_BYTES)) == NO_ADDRESS
    third_address = put_ext(queue, 1, 2, bytes(40))  # the remaining room is marked as unused, and the next file begins
    assert third_address - first_address == 100
    assert queue.data[44] == b"\xff\xff"
