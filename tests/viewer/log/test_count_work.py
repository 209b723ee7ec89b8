"""The side index of a log is built, or kept up to the point where it was stopped.

Frequencies equal those of a plain walk, for columns, texts, lists and properties. Omitted values are counted.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from handmade_stores import healthy

from engine.codec.message import Unit
from engine.inspection import open_store
from engine.inspection.samples import sample
from engine.inspection.side_index import SideIndex
from engine.query import FIELDS, parse
from tests.support.controls import FakeControl
from viewer.log import count_work
from viewer.log.count_work import Frequencies, count, count_values


class CancellingControl:
    """A control that stops the work at once, or never."""

    def __init__(self, *, cancelled: bool) -> None:
        self.cancelled = cancelled
        self.reported: list[float] = []

    def check(self) -> None:
        """Do not raise."""

    def report(self, done: float, _total: float | None = None, _note: str = "") -> None:
        self.reported.append(done)


@pytest.mark.parametrize("cancelled", [False, True])
def test_a_count_reaches_the_end_or_is_marked_incomplete(tmp_path: Path, cancelled: bool) -> None:
    new_store = healthy(60)
    store = new_store.write(tmp_path / "store")
    assert count(CancellingControl(cancelled=cancelled), store, None, tmp_path / "cache") is not cancelled
    with open_store(store) as opened:
        index = SideIndex(opened.log, tmp_path / "cache")
        index.load()
        counted = index.total if index.segments else 0
    assert counted == 0 if cancelled else counted >= len(new_store.units)


@pytest.fixture(scope="module")
def units() -> list[Unit]:
    with open_store(sample("orders")) as store:
        return [item for item in store.log.walk() if isinstance(item, Unit)]


def count_field(field: str, where: str = "") -> Frequencies:
    return count_values(FakeControl(), sample("orders"), None, field, where, 0, 0, 1 << 21)


@pytest.mark.parametrize("field", ["queueId", "topic", "tags", "storeTimestamp", "crc"])
@pytest.mark.parametrize("where", ["", 'tags = "card" or size > 400'])
def test_counts_are_those_of_a_plain_walk(units: list[Unit], field: str, where: str) -> None:
    condition = parse(where)
    expected = Counter(FIELDS[field].unit(unit) for unit in units if condition.matches(unit))
    response = count_field(field, where)
    assert dict(response.values) == dict(expected)
    assert response.units == sum(expected.values())
    assert response.complete
    assert [n for _, n in response.values] == sorted(expected.values(), reverse=True)


def test_lists_count_their_items_and_properties_are_fields(units: list[Unit]) -> None:
    keys = Counter(key for unit in units for key in unit.keys)
    results = dict(count_field("keys").values)
    assert {key: n for key, n in results.items() if key is not None} == dict(keys)
    regions = Counter(unit.properties.get("region") for unit in units)
    assert dict(count_field("properties.region").values) == dict(regions)


def test_too_many_values_are_reported(units: list[Unit], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(count_work, "MAX_VALUES", 10)
    response = count_field("physicalOffset")
    assert len(response.values) == 10
    assert response.other_units == len(units) - 10
    assert response.units == len(units)
