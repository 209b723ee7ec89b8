"""Samples on their way from the store to the views."""

from __future__ import annotations

from pathlib import Path

from sample_position_looks import look

from viewer.runtime.live_feed import HistoryFeed


def test_all_windows_of_a_store_show_one_series_from_its_start(tmp_path: Path) -> None:
    first_feed, second_feed = HistoryFeed(tmp_path), HistoryFeed(tmp_path)
    first_feed.add(look(0))
    assert second_feed.history is first_feed.history
    second_feed.add(look(0))
    assert len(second_feed.history) == 1
    first_feed.close()
    second_feed.add(look(1))
    assert len(second_feed.history) == 2
    assert HistoryFeed(tmp_path / "other").history is not second_feed.history
