"""What differs between two messages, as ranges of bytes and as texts."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from viewer.compare.pair_detail import MAX_SPANS, differing_spans, from_difference


@pytest.mark.parametrize("seed", range(20))
def test_ranges_are_those_of_a_plain_comparison(seed: int) -> None:
    rng = random.Random(seed)
    data = bytearray(rng.randbytes(rng.randrange(1, 700)))
    other_data = data[: rng.randrange(1, len(data) + 1)]
    for _ in range(rng.randrange(5)):
        other_data[rng.randrange(len(other_data))] ^= 1
    positions = {n for n in range(max(len(data), len(other_data))) if data[n : n + 1] != other_data[n : n + 1]}
    spans = list(differing_spans(bytes(data), bytes(other_data)))
    assert {n for start, stop in spans for n in range(start, stop)} == positions
    assert all(stop < following for (_, stop), (following, _) in pairwise(spans))


def test_there_are_not_too_many_ranges() -> None:
    data = bytes(4 * MAX_SPANS)
    other_data = b"\0\1" * (2 * MAX_SPANS)
    assert len(list(differing_spans(data, other_data))) == MAX_SPANS


def test_long_texts_are_shown_from_where_they_differ() -> None:
    text = "x" * 100
    assert from_difference(f"{text}a tail", f"{text}b tail") == ("…xxxxxxa tail", "…xxxxxxb tail")
    assert from_difference("8,192", "8,193") == ("8,192", "8,193")
    assert from_difference("", "added") == ("", "added")
