"""``salvage`` on stores with random damage and on images of disks: every unit whose bytes are all there, and no other.

``STORESCOPE_SALVAGE`` is the number of rounds; each seed is another store, and the kinds of damage take turns.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from salvage_rounds import KINDS, play

ROUNDS = int(os.environ.get("STORESCOPE_SALVAGE", str(len(KINDS))))
pytestmark = pytest.mark.timeout(60 + ROUNDS)


def test_units_whose_bytes_are_all_there_are_found_and_none_is_invented(tmp_path: Path) -> None:
    """At least 999 of 1,000; in the short form all."""
    wanted: Counter[str] = Counter()
    missed: list[tuple[int, str, int]] = []
    for seed in range(ROUNDS):
        result = play(seed, tmp_path / "round", file_count=3 if len(KINDS) == ROUNDS else 4)
        assert result.invented == [], seed
        wanted[result.kind] += result.wanted
        missed += [(seed, result.kind, offset) for offset in result.missed]
    print(f"{ROUNDS} rounds: {dict(wanted)}, missed: {missed}")
    assert len(missed) <= sum(wanted.values()) // 1000, missed
    assert sum(wanted.values()) > 20 * ROUNDS
