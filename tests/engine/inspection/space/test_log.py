"""The log by topics, days and areas."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from handmade_stores import HandmadeStore

from engine.inspection import open_store
from engine.inspection.space.account import space_of

pytestmark = pytest.mark.golden


def _made(tmp_path: Path) -> tuple[HandmadeStore, Path]:
    made = HandmadeStore()
    for number in range(60):
        made.put(
            topic=("Orders", "Paid")[number % 2],
            queue_id=number % 3,
            tags=("Aa", "BB", None)[number % 3],
            body=b"x" * (number % 7),
            step=3_600_000,
        )
    return made, made.write(tmp_path / "store")


def test_days_are_those_of_the_store_times(tmp_path):
    made, root = _made(tmp_path)
    from engine.inspection.space.log import local_day

    with open_store(root) as store:
        space = space_of(store)
    expected: Counter[str | None] = Counter()
    for unit in made.units:
        expected[local_day(unit.store_timestamp)] += unit.size
    found: Counter[str | None] = Counter()
    for row in space.rows:
        if row.part == "units":
            found[row.day] += row.bytes
    assert found == expected
    assert len(found) >= 3


def test_what_a_broker_wrote_behind_the_walk_is_not_called_damage(tmp_path):
    from engine.inspection.space.log import walk_space

    made, root = _made(tmp_path)
    last = max((root / "commitlog").iterdir())
    at = made.end % 4096

    def write_on(done: int, _total: int) -> None:
        if done >= made.end - 1:
            with last.open("r+b") as file:
                file.seek(at + 100)
                file.write(b"new bytes")

    with open_store(root) as store:
        found = walk_space(store.log, progress=write_on, live=True)
    one = found.files[-1]
    assert one.unreadable == 0
    assert one.written + one.blank + one.zero == 4096 - 109
