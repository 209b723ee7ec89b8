"""Steps from one difference of two logs to the next, and the place of a message in the other log."""

from __future__ import annotations

import shutil
from pathlib import Path

from controls import FakeControl
from handmade_stores import healthy

from engine.inspection.difference_rows import Differences, Row
from engine.inspection.snapshot import open_store
from viewer.compare.difference_steps import DifferenceSteps, find_counterpart, read_steps, steps_at_opening


def steps() -> DifferenceSteps:
    differences = Differences(apart=[(500, 900)])
    for side, offset, beyond in (("there", 100, True), ("differs", 700, False), ("here", 300, True)):
        differences.add(Row("unit", side, f"T/0/{offset}", offset=offset, is_beyond=beyond))  # type: ignore[arg-type]
    differences.add(Row("queue", "here", "T/0"))
    return DifferenceSteps.of(differences)


def test_differences_come_in_the_order_of_this_log() -> None:
    chosen = steps()
    assert [row.offset for row in chosen.rows] == [300, 700, 100]
    first = chosen.step(1, None)
    assert first is not None
    assert first.offset == 300
    assert chosen.words() == "Difference 1 of 3: only in this store · T/0/300"
    second = chosen.step(1, 300)
    assert second is not None
    assert second.offset == 700
    from_elsewhere = chosen.step(-1, 650)
    assert from_elsewhere is not None
    assert from_elsewhere.offset == 300
    assert chosen.step(-1, 300) is None


def test_ranges_in_which_offsets_do_not_agree() -> None:
    assert [steps().is_apart(offset) for offset in (499, 500, 899, 900)] == [False, True, True, False]


def test_the_counterpart_of_a_message(tmp_path: Path) -> None:
    made = healthy()
    path = made.write(tmp_path / "one")
    other_path = Path(shutil.copytree(path, tmp_path / "other"))
    with open_store(path) as store, open_store(other_path) as other_store:
        offset = made.units[3].offset
        assert find_counterpart(store, other_store, offset) == offset
        assert find_counterpart(store, other_store, offset + 1) is None
        assert steps_at_opening(store, other_store).apart == []
        control = FakeControl()
        assert read_steps(control, store, other_store).rows == []  # type: ignore[arg-type]
