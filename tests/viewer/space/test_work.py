"""Worker functions of the Space view: account, forecast, map of a file."""

from __future__ import annotations

from typing import Any

import pytest
from handmade_stores import HandmadeStore

from viewer.space.work import Forecast, account, map_of, read_forecast


class RecordingControl:
    """Fake control of a worker that records what is emitted."""

    cancelled = False

    def __init__(self) -> None:
        self.emitted: list[Any] = []

    def check(self) -> None:
        """Never stopped."""

    def report(self, *_progress: object) -> None:
        """Progress is not recorded."""

    def emit(self, items: Any) -> None:
        self.emitted.append(items)


@pytest.fixture
def store(tmp_path):
    made_store = HandmadeStore()
    for number in range(60):
        made_store.put(topic=("Orders", "Paid")[number % 2])
    return made_store.write(tmp_path / "store")


def test_the_quick_account_comes_first_and_both_are_of_the_same_bytes(store, tmp_path):
    control = RecordingControl()
    exact = account(control, store, None, True, tmp_path / "cache")
    (quick,) = control.emitted
    assert type(quick) is type(exact)
    alone = RecordingControl()
    account(alone, store, None, False)
    assert alone.emitted == []


def test_the_forecast_comes_before_the_page_cache(store):
    control = RecordingControl()
    forecast = read_forecast(control, store, None)
    (emitted,) = control.emitted
    assert (emitted, emitted.cache) == (Forecast(forecast.retention, None), None)
    assert forecast.cache is not None


def test_a_file_has_a_map(store):
    name = min((store / "commitlog").iterdir()).name
    assert map_of(RecordingControl(), store, None, name, 16) is not None
