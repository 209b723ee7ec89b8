"""Equal bytes of two files, counted by machine code."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from engine.codec import byte_compare
from engine.codec.byte_compare import CHUNK_BYTES, count_equal

SIZE = 3 * CHUNK_BYTES
RANGES = (
    (0, 0, SIZE),
    (5, 5, 1000),
    (CHUNK_BYTES - 3, CHUNK_BYTES - 3, 7),
    (SIZE - 10, SIZE - 10, 10),
    (SIZE - 10, SIZE - 10, 40),  # behind the end of both
    (0, 1, 100),
    (7, 7, 0),
)


@pytest.fixture
def files(tmp_path: Path) -> Iterator[tuple[bytes, int, int]]:
    data = np.random.default_rng(1).bytes(SIZE)
    other = bytearray(data)
    other[2 * CHUNK_BYTES + 77] ^= 1
    descriptors: list[int] = []
    for name, content in (("first", data), ("other", bytes(other))):
        (tmp_path / name).write_bytes(content)
        descriptors.append(os.open(tmp_path / name, os.O_RDONLY))
    yield data, descriptors[0], descriptors[1]
    for descriptor in descriptors:
        os.close(descriptor)


def test_equal_bytes_are_counted_up_to_the_first_difference(files: tuple[bytes, int, int]) -> None:
    data, first, other = files
    buffer = np.empty(2 * CHUNK_BYTES, np.uint8)
    positions, other_positions, sizes = (np.array(column, np.int64) for column in zip(*RANGES, strict=True))
    equal = count_equal(first, other, positions, other_positions, sizes, buffer)
    assert equal is not None
    assert equal.tolist() == [2 * CHUNK_BYTES + 77, 1000, 7, 10, 10, 0, 0]
    inside = [number for number in range(len(RANGES)) if number != 4]
    ranges = positions[inside], other_positions[inside], sizes[inside]
    in_memory = count_equal(np.frombuffer(data, np.uint8), other, *ranges, buffer)
    assert in_memory is not None
    assert in_memory.tolist() == [2 * CHUNK_BYTES + 77, 1000, 7, 10, 0, 0]


def test_without_machine_code_nothing_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_compare, "twin", lambda: None)
    column = np.zeros(1, np.int64)
    assert count_equal(0, 0, column, column, column, np.empty(2 * CHUNK_BYTES, np.uint8)) is None
