"""``salvage`` on stores with random damage and on images of disks: every unit whose bytes are all there, and no other.

``STORESCOPE_SALVAGE`` is the number of rounds, ``STORESCOPE_SALVAGE_FIRST`` the first seed. Each seed is another store,
and the kinds of damage take turns. A test has 50 rounds, so a long campaign can be spread over processes.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from salvage_rounds import KINDS, play

ROUNDS = int(os.environ.get("STORESCOPE_SALVAGE", str(len(KINDS))))
FIRST = int(os.environ.get("STORESCOPE_SALVAGE_FIRST", "0"))
PART_ROUNDS = 50
pytestmark = pytest.mark.timeout(600)


@pytest.mark.parametrize("first", range(FIRST, FIRST + ROUNDS, PART_ROUNDS))
def test_units_whose_bytes_are_all_there_are_found_and_none_is_invented(tmp_path: Path, first: int) -> None:
    """At least 999 of 1,000."""
    wanted: Counter[str] = Counter()
    missed: list[tuple[int, str, int]] = []
    seeds = range(first, min(first + PART_ROUNDS, FIRST + ROUNDS))
    for seed in seeds:
        result = play(seed, tmp_path / "round", file_count=3 if len(KINDS) == ROUNDS else 4)
        assert result.invented == [], seed
        wanted[result.kind] += result.wanted
        missed += [(seed, result.kind, offset) for offset in result.missed]
    print(f"seeds {seeds.start} to {seeds.stop - 1}: {dict(wanted)}, missed: {missed}")
    assert len(missed) <= sum(wanted.values()) // 1000, missed
    assert len(seeds) < len(KINDS) or sum(wanted.values()) > 20 * len(seeds) // 2


LARGE_ROUNDS = ROUNDS if len(KINDS) < ROUNDS else 4


@pytest.mark.parametrize("first", range(FIRST, FIRST + LARGE_ROUNDS, PART_ROUNDS))
def test_large_messages_in_many_pieces_are_found_and_none_is_invented(tmp_path: Path, first: int) -> None:
    """At least 97 of 100: in bytes that look like the message's, four gaps at any places are too many combinations."""
    wanted = 0
    missed: list[tuple[int, int]] = []
    seeds = range(first, min(first + PART_ROUNDS, FIRST + LARGE_ROUNDS))
    for seed in seeds:
        result = play(seed, tmp_path / "round", is_large=True)
        assert result.invented == [], seed
        wanted += result.wanted
        missed += [(seed, offset) for offset in result.missed]
    print(f"large messages, seeds {seeds.start} to {seeds.stop - 1}: {wanted}, missed: {missed}")
    assert len(missed) <= max(wanted * 3 // 100, 1), missed
