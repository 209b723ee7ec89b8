"""Looks on their way from the store to the views."""

from __future__ import annotations

from pathlib import Path

from sample_position_looks import look

from viewer.runtime.live_feed import Feed


def test_all_windows_of_a_store_show_one_series_from_its_start(tmp_path: Path) -> None:
    first, second = Feed(tmp_path), Feed(tmp_path)
    first.add(look(0))
    assert second.history is first.history
    second.add(look(0))
    assert len(second.history) == 1
    first.close()
    second.add(look(1))
    assert len(second.history) == 2
    assert Feed(tmp_path / "other").history is not second.history
