"""Digests of the log's pages, and the rows of a walk that are whole units."""

from __future__ import annotations

import random

import numpy as np
import pytest
from raw_units import raw_log

from engine.codec.columns import UnitColumns, scan_block
from engine.codec.log_copies import PAGE_BYTES, PageDigests, count_whole_rows
from engine.codec.topic_table import TopicTable

pytestmark = pytest.mark.machine_code


def walked(log: bytes, base: int) -> UnitColumns:
    """Return the rows of a walk of ``log``."""
    columns = UnitColumns(100)
    scan_block(np.frombuffer(log, np.uint8), len(log), base, 0, columns, TopicTable())
    columns.buffer, columns.base = np.frombuffer(log, np.uint8), base
    return columns


def digests(data: bytes) -> list[int]:
    pages = PageDigests(0, len(data))
    pages.add(walked(data, 0), 0, len(data))
    return pages.digests.tolist()


def test_each_bit_of_a_page_and_the_order_of_its_words_change_its_digest() -> None:
    rng = random.Random(1)
    for page in (rng.randbytes(PAGE_BYTES), bytes(PAGE_BYTES)):
        pages = [page]
        for position in (0, 7, 8, 63, 64, 255, 256, 2000, PAGE_BYTES - 1):
            for bit in range(8):
                changed = bytearray(page)
                changed[position] ^= 1 << bit
                pages.append(bytes(changed))
        for first, second in ((0, 8), (0, 64), (8, 256), (16, 24), (0, 2048)):
            swapped = bytearray(b"\1" * 8 + bytes(PAGE_BYTES - 8) if not any(page) else page)
            swapped[first : first + 8], swapped[second : second + 8] = (
                swapped[second : second + 8],
                swapped[first : first + 8],
            )
            pages.append(bytes(swapped))
        values = [digest for content in pages for digest in digests(content)]
        assert len(set(values)) == len(set(pages))
        assert 0 not in values


def test_only_pages_that_lie_in_the_walked_range_as_a_whole_have_a_digest() -> None:
    log = random.Random(1).randbytes(5 * PAGE_BYTES)
    pages = PageDigests(PAGE_BYTES, 9 * PAGE_BYTES)
    pages.add(walked(log, 2 * PAGE_BYTES), 3 * PAGE_BYTES - 1, 6 * PAGE_BYTES + 5)
    assert [digest != 0 for digest in pages.digests.tolist()] == [False, False, True, True, True, False, False, False]
    assert pages.digests.tolist()[2] == digests(log[PAGE_BYTES : 2 * PAGE_BYTES])[0]


@pytest.mark.parametrize("changed", ["nothing", "body", "physical offset"])
def test_rows_are_counted_up_to_the_first_that_is_no_whole_unit(changed: str) -> None:
    log = bytearray(raw_log(*({"body": b"tea"} for _ in range(9)), base=8192))
    size = len(log) // 9
    if changed == "body":
        log[5 * size + log[:size].index(b"tea")] ^= 1
    if changed == "physical offset":
        log[5 * size + 35] ^= 1
    columns = walked(bytes(log), 8192)
    assert count_whole_rows(columns, columns.count, 0) == (9 if changed == "nothing" else 5)
