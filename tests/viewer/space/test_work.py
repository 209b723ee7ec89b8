"""What the worker does for Space: the account, the forecast, the map of a file."""

from __future__ import annotations

from typing import Any

import pytest
from made_stores import MadeStore

from viewer.space.work import Forecast, account, map_of, read_forecast


class Told:
    """What a worker is given, and has told."""

    cancelled = False

    def __init__(self) -> None:
        self.emitted: list[Any] = []

    def check(self) -> None:
        """Never stopped."""

    def report(self, *_told: object) -> None:
        """Nobody looks."""

    def emit(self, items: Any) -> None:
        self.emitted.append(items)


@pytest.fixture
def store(tmp_path):
    made = MadeStore()
    for number in range(60):
        made.put(topic=("Orders", "Paid")[number % 2])
    return made.write(tmp_path / "store")


def test_the_quick_account_comes_first_and_both_are_of_the_same_bytes(store, tmp_path):
    told = Told()
    whole = account(told, store, None, True, tmp_path / "cache")
    (quick,) = told.emitted
    assert type(quick) is type(whole)
    alone = Told()
    account(alone, store, None, False)
    assert alone.emitted == []


def test_the_forecast_comes_before_the_page_cache(store):
    told = Told()
    found = read_forecast(told, store, None)
    (first,) = told.emitted
    assert (first, first.cache) == (Forecast(found.retention, None), None)
    assert found.cache is not None


def test_a_file_has_a_map(store):
    name = min((store / "commitlog").iterdir()).name
    assert map_of(Told(), store, None, name, 16) is not None
