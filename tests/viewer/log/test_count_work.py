"""The side index of a log is built, or left where it was stopped."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_stores import healthy

from engine.inspection import open_store
from engine.inspection.side_index import SideIndex
from viewer.log.count_work import count


class Told:
    """A control that stops the work at once, or never."""

    def __init__(self, *, cancelled: bool) -> None:
        self.cancelled = cancelled
        self.reported: list[float] = []

    def check(self) -> None:
        """Never raises."""

    def report(self, done: float, _total: float | None = None, _note: str = "") -> None:
        self.reported.append(done)


@pytest.mark.parametrize("cancelled", [False, True])
def test_it_counts_to_the_end_or_says_that_it_did_not(tmp_path: Path, cancelled: bool) -> None:
    made = healthy(60)
    store = made.write(tmp_path / "store")
    assert count(Told(cancelled=cancelled), store, None, tmp_path / "cache") is not cancelled
    with open_store(store) as opened:
        index = SideIndex(opened.log, tmp_path / "cache")
        index.load()
        counted = index.total if index.segments else 0
    assert counted == 0 if cancelled else counted >= len(made.units)
