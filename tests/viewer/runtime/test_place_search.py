"""Times, ids and keys become places."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.codec.message import Unit
from engine.inspection import open_store
from engine.inspection.snapshot import StoreSnapshot
from viewer.runtime import places
from viewer.runtime.place_search import NothingFound, offset_at_time, resolve
from viewer.runtime.places import (
    Search,
)

Golden = Callable[..., Path]


@pytest.fixture
def store(golden: Golden) -> Iterator[StoreSnapshot]:
    with open_store(golden("broker-orders")) as opened:
        yield opened


def test_time_leads_to_the_first_unit_stored_then_or_later(store: StoreSnapshot) -> None:
    units = [item for item in store.units() if isinstance(item, Unit)]
    for unit in units[:: len(units) // 40]:
        first = next(u.offset for u in units if u.store_timestamp >= unit.store_timestamp)
        assert offset_at_time(store, unit.store_timestamp) == first


def test_time_before_and_behind_the_log_leads_to_its_ends(store: StoreSnapshot) -> None:
    units = [item for item in store.units() if isinstance(item, Unit)]
    assert offset_at_time(store, 0) == units[0].offset
    assert offset_at_time(store, 1 << 60) == units[-1].offset


def test_ids_and_keys_lead_to_their_unit(store: StoreSnapshot) -> None:
    unit = next(item for item in store.units() if isinstance(item, Unit) and item.keys and item.unique_key)
    assert resolve(store, Search("id", unit.offset_msg_id)) == places.log(unit.offset)
    assert resolve(store, Search("id", unit.unique_key)) == places.log(unit.offset)
    found = resolve(store, Search("key", unit.keys[0]))
    assert found.offset is not None
    other = store.log.unit_at(found.offset)
    assert isinstance(other, Unit)
    assert unit.keys[0] in other.keys


def test_topic_leads_to_its_queues(store: StoreSnapshot) -> None:
    assert resolve(store, Search("key", "OrderEvents")) == places.queue("OrderEvents")


def test_nothing_found_says_where_was_looked(store: StoreSnapshot) -> None:
    with pytest.raises(NothingFound, match="16 index files"):
        resolve(store, Search("key", "no such key"))
