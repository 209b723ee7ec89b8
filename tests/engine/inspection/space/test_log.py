"""The log by topics, days and areas."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from handmade_stores import HandmadeStore

from engine.inspection import open_store
from engine.inspection.space.account import space_of

pytestmark = pytest.mark.golden


def _written_store(tmp_path: Path) -> tuple[HandmadeStore, Path]:
    store = HandmadeStore()
    for number in range(60):
        store.put(
            topic=("Orders", "Paid")[number % 2],
            queue_id=number % 3,
            tags=("Aa", "BB", None)[number % 3],
            body=b"x" * (number % 7),
            step=3_600_000,
        )
    return store, store.write(tmp_path / "store")


def test_days_are_those_of_the_store_times(tmp_path):
    sample, root = _written_store(tmp_path)
    from engine.inspection.space.log import local_day

    with open_store(root) as store:
        space = space_of(store)
    expected: Counter[str | None] = Counter()
    for unit in sample.units:
        expected[local_day(unit.store_timestamp)] += unit.size
    counts: Counter[str | None] = Counter()
    for row in space.rows:
        if row.part == "units":
            counts[row.day] += row.bytes
    assert counts == expected
    assert len(counts) >= 3


def test_bytes_that_a_broker_wrote_during_the_walk_are_no_damage(tmp_path):
    from engine.inspection.space.log import walk_space

    handmade, root = _written_store(tmp_path)
    last_file = max((root / "commitlog").iterdir())
    position = handmade.end % 4096

    def write_on(done: int, _total: int) -> None:
        if done >= handmade.end - 1:
            with last_file.open("r+b") as file:
                file.seek(position + 100)
                file.write(b"new bytes")

    with open_store(root) as store:
        space = walk_space(store.log, progress=write_on, live=True)
    file_space = space.files[-1]
    assert file_space.unreadable == 0
    assert file_space.written + file_space.blank + file_space.zero == 4096 - 109
