"""``salvage`` on stores with random damage and on images of disks: every unit whose bytes are all there, and no other.

``STORESCOPE_SALVAGE`` is the number of rounds, ``STORESCOPE_SALVAGE_FIRST`` the first seed. Each seed is another store,
and the kinds of damage take turns. A test has 50 rounds, so a long campaign can be spread over processes.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path

import pytest
from salvage_rounds import KINDS, damage_at_random, deceptive_body, play, salvage, write_store

from engine.codec.message import Unit
from engine.inspection.salvage.salvage_search import COMPLETE
from engine.inspection.snapshot import open_store

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


@pytest.mark.parametrize("seed", range(FIRST, FIRST + max(ROUNDS // 50, 1)))
def test_each_intact_message_of_a_store_with_many_damages_is_read_or_reported_and_none_is_invented(
    tmp_path: Path, seed: int
) -> None:
    """A count of what is found took the last messages in front of damage for lost. The store reads them, but salvage's
    live ranges do not hold them, because nothing proves their ends.
    """
    rng = random.Random(seed)
    store = write_store(rng, tmp_path, 4, file_bytes=1 << 19, write_body=deceptive_body)
    damage_at_random(rng, store, 150)
    log = b"".join(path.read_bytes() for path in store.files)
    intact = {offset for offset, unit in store.units.items() if log[offset : offset + len(unit)] == unit}
    with open_store(tmp_path) as snapshot:
        items = [item for item in snapshot.log.walk(0) if isinstance(item, Unit)]
    read = {item.offset for item in items if item.crc == "ok" or item.body_crc == 0}
    rows = [row for row in salvage(tmp_path, []) if row.physical_offset is not None and row.data]
    reported = {row.physical_offset for row in rows if store.units.get(row.physical_offset or 0) == row.data}
    assert intact - read - reported == set()
    assert [row for row in rows if row.verdict in COMPLETE and row.physical_offset not in reported] == []
    assert any(row.verdict not in COMPLETE and row.physical_offset not in reported for row in rows)  # it was possible
    assert len(intact) < len(store.units)
