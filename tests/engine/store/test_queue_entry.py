"""Entries of simple and batch queues, from any source of bytes (docs/formats/consume-queue.md#entry, #ext,
#batch-queues).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import pytest

from engine.codec.batch_consume_queue import BatchCqUnit, encode
from engine.codec.consume_queue import CqUnit
from engine.codec.consume_queue import encode as encode_simple
from engine.codec.cq_ext import CqExtUnit
from engine.store.queue_entry import CqEntry, entries_of_file, find_batch, number_spans, unit_at


@dataclass
class BorrowedBytes:
    """Files of ``file_size`` bytes, one behind the other."""

    kind: str
    data: bytes
    file_size: int
    unit_size: int = 20
    min_offset: int = 0
    max_offset: int = 0

    def read_bytes(self, offset: int, size: int) -> bytes:
        stop = min(offset + size, offset - offset % self.file_size + self.file_size)
        return self.data[offset:stop]

    lend_bytes = read_bytes

    def spans(self):
        return [
            (position, min(position + self.file_size, len(self.data)))
            for position in range(0, len(self.data), self.file_size)
        ]

    def ext_unit(self, address: int):
        return CqExtUnit(0, 20, 77, 5, b"") if address == -(1 << 63) else None


def simple(count):
    return BorrowedBytes("simple", b"".join(encode_simple(CqUnit(100 * n, 90, n)) for n in range(count)), 60)


def batch(*units):
    entries = (
        BatchCqUnit(100 * n, 90, n, 1000 + n, first_offset, count) for n, (first_offset, count) in enumerate(units)
    )
    data = b"".join(map(encode, entries))
    return BorrowedBytes("batch", data, 92, 46)


def test_a_simple_entry_by_number_and_to_the_end_of_its_file():
    queue = simple(7)
    assert unit_at(queue, 4) == CqEntry(4, 400, 90, 4, "entry")
    assert (unit_at(queue, 7), unit_at(queue, -1)) == (None, None)
    assert [entry.queue_offset for entry in entries_of_file(queue, 4, 32)] == [4, 5]
    assert [item.queue_offset for item in entries_of_file(queue, 0, 2)] == [0, 1]
    assert entries_of_file(queue, 9, 2) is None
    assert number_spans(queue) == [(0, 2), (3, 5), (6, 6)]


def test_the_tag_of_an_ext_address_is_the_ext_unit_s():
    queue = BorrowedBytes(
        "simple", struct.pack(">qiq", 5, 90, -(1 << 63)) + struct.pack(">qiq", 6, 90, -(1 << 63) + 20), 40
    )
    assert unit_at(queue, 0).real_tags_code == 77
    assert unit_at(queue, 1).real_tags_code is None


@pytest.mark.parametrize(("queue_offset", "number"), [(9, None), (10, 0), (12, 0), (13, 1), (19, 2), (99, 3)])
def test_the_batch_that_holds_a_queue_offset(queue_offset, number):
    queue = batch((10, 3), (13, 4), (17, 3), (20, 1))
    assert find_batch(queue, queue_offset) == number


def test_batches_to_the_end_of_a_file_and_none_between_two():
    queue = batch((10, 3), (13, 4), (17, 3))
    assert [(entry.queue_offset, entry.next_offset) for entry in entries_of_file(queue, 11, 9)] == [(10, 13), (13, 17)]
    assert entries_of_file(queue, 20, 9) is None
    assert find_batch(BorrowedBytes("batch", b"", 92, 46), 0) is None
