"""Rows of what a search found."""

from __future__ import annotations

import numpy as np

from engine.codec.unit_search import UnitHead
from engine.inspection.salvage.unit_tables import HeadFragment, HeadTable, RunTable, UnitRun


def test_a_run_that_goes_on_in_the_next_block_is_one_row() -> None:
    runs = RunTable()
    rows = [(0, 8192, 100, 2), (100, 8292, 50, 1), (300, 8342, 10, 1)]
    for position, offset, size, count in rows:
        runs.append_runs(1, 7, position, offset, size, count, False, False, False)
    assert list(runs) == [UnitRun(7, 0, 8192, 150, 3, False), UnitRun(7, 300, 8342, 10, 1, False)]


def test_many_runs_are_appended_at_once() -> None:
    runs, numbers = RunTable(), np.arange(1000)
    runs.append_runs(1000, 1, numbers * 100, numbers * 200, 50, 1, numbers % 2 == 0, False, False)
    runs.append_runs(1, 1, 99_950, 199_850, 9, 1, False, False, False)
    assert (len(runs), runs[999]) == (1000, UnitRun(1, 99_900, 199_800, 59, 2, False))
    runs.reorder(np.argsort(-runs.rows[:, 1]))
    assert runs[0].position == 99_900


def test_heads_come_back_as_they_were() -> None:
    heads = HeadTable()
    fragment = HeadFragment(2, 500, UnitHead(300, 8192, 1, 7, 1_700_000_000_000), is_bad_body=True)
    heads.append_head(fragment)
    assert list(heads) == [fragment]
