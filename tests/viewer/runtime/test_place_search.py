"""Times, ids and keys are resolved to places."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest

from engine.codec.message import Unit
from engine.inspection import open_store
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.tables import offsets
from viewer.look.formats import clock, moment
from viewer.runtime import places
from viewer.runtime.place_search import NothingFound, checked, offset_at_time, resolve
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
        first_offset = next(u.offset for u in units if u.store_timestamp >= unit.store_timestamp)
        assert offset_at_time(store, unit.store_timestamp) == first_offset


def test_time_before_and_after_the_log_leads_to_its_ends(store: StoreSnapshot) -> None:
    units = [item for item in store.units() if isinstance(item, Unit)]
    assert offset_at_time(store, 0) == units[0].offset
    assert offset_at_time(store, 1 << 60) == units[-1].offset


def test_ids_and_keys_lead_to_their_unit(store: StoreSnapshot) -> None:
    unit = next(item for item in store.units() if isinstance(item, Unit) and item.keys and item.unique_key)
    assert resolve(store, Search("id", unit.offset_msg_id)).place == places.log(unit.offset)
    assert resolve(store, Search("id", unit.unique_key)).place == places.log(unit.offset)
    place = resolve(store, Search("key", unit.keys[0])).place
    assert place.offset is not None
    keyed_unit = store.log.unit_at(place.offset)
    assert isinstance(keyed_unit, Unit)
    assert unit.keys[0] in keyed_unit.keys


def test_topic_leads_to_its_queues(store: StoreSnapshot) -> None:
    assert resolve(store, Search("key", "OrderEvents")).place == places.queue("OrderEvents")


def test_a_failed_search_names_the_searched_parts(store: StoreSnapshot) -> None:
    with pytest.raises(NothingFound, match="16 index files"):
        resolve(store, Search("key", "no such key"))


def test_an_entry_that_is_only_in_tiered_storage_is_a_place(golden) -> None:
    with open_store(golden("tiered-5.5.1")) as tiered_store:
        assert tiered_store.topics()["Orders"][0].min_offset > 0
        assert checked(tiered_store, places.queue("Orders", 0, 0)).place.queue_offset == 0
        with pytest.raises(NothingFound, match="Orders/0 has no queue offset 99,999: it has 0 to "):
            checked(tiered_store, places.queue("Orders", 0, 99_999))


def test_a_missing_place_is_reported_with_the_existing_range(store: StoreSnapshot) -> None:
    """An offset after the end of a queue or the log became the last crumb. Nothing was chosen, and no message said that
    the entry or byte does not exist.
    """
    queue = store.topics()["OrderEvents"][0]
    last_offset = queue.max_offset - 1
    assert checked(store, places.queue("OrderEvents", 0, last_offset)).place.queue_offset == last_offset
    with pytest.raises(
        NothingFound, match=f"OrderEvents/0 has no queue offset {last_offset + 1:,}: it has 0 to {last_offset:,}"
    ):
        checked(store, places.queue("OrderEvents", 0, last_offset + 1))
    with pytest.raises(NothingFound, match="OrderEvents has no queue 77: it has 0, 1"):
        checked(store, places.queue("OrderEvents", 77, 0))
    with pytest.raises(NothingFound, match="There is no topic Nope"):
        checked(store, places.queue("Nope", 0, 0))
    with pytest.raises(NothingFound, match="The commit log has no byte 999,999,999: it has 0 to "):
        checked(store, places.log(999_999_999))


def test_a_time_without_a_date_means_the_days_of_the_store(store: StoreSnapshot) -> None:
    """08:20:48 in a store of last week was interpreted as today, and went to the last unit without a message."""
    units = [item for item in store.units() if isinstance(item, Unit)]
    middle = units[len(units) // 2].store_timestamp
    first_offset = next(unit.offset for unit in units if unit.store_timestamp >= middle)
    for text in (clock(middle), moment(middle)[5:]):
        search = places.parse(text)
        assert isinstance(search, Search)
        assert not search.dated
        assert resolve(store, search).place == places.log(first_offset), text
    with pytest.raises(NothingFound, match="No message was stored at 2099-01-01 00:00:00"):
        resolve(store, Search("time", "2099-01-01", 4_070_908_800_000 - _local_offset_ms()))


def _local_offset_ms() -> int:
    offset = datetime.fromtimestamp(4_070_908_800).astimezone().utcoffset()
    assert offset is not None
    return round(offset.total_seconds() * 1000)


def test_an_id_with_several_units_leads_to_the_consumers_copy(golden: Golden) -> None:
    """An id with several units went silently to the newest, a copy under one of the broker's own topics."""
    with open_store(golden("broker-transactions")) as store:
        units = [item for item in store.units() if isinstance(item, Unit) and item.unique_key]
        ids = Counter(unit.unique_key for unit in units)
        request = 0
        for text, count in ids.items():
            copies = [unit for unit in units if unit.unique_key == text]
            users = [unit for unit in copies if not unit.topic.startswith(("RMQ_SYS", "TRANS_CHECK"))]
            if count < 2 or len(users) != 1 or request > 8:
                continue
            request += 1
            results = resolve(store, Search("id", text or ""))
            assert results.place == places.log(users[0].offset)
            assert f"of {count} with this id or key" in results.note
    assert request


@pytest.mark.parametrize(
    "text", ["findings:ZZ99", "index:nope", "groups:nope", "config:nope", "queue:Nope", "index:nope/entry/5"]
)
def test_an_unknown_name_is_no_place(store: StoreSnapshot, text: str) -> None:
    """The picture of such a place showed the plain view, and the command exited with 0."""
    place = places.parse(text)
    assert isinstance(place, places.Place)
    assert place.may_be_missing
    with pytest.raises(NothingFound, match=r"ZZ99|nope|Nope"):
        checked(store, place)


def test_names_that_the_store_has_are_places(store: StoreSnapshot) -> None:
    file = store.index_files()[0].name
    topic = next(iter(store.topics()))
    group = next(iter(offsets(store))).group
    names = (f"index:{file}", f"queue:{topic}", f"groups:{group}", "config:topics", "config:topics.json")
    for text in ("findings:CQ03", "findings:recovery", "findings", *names):
        place = places.parse(text)
        assert isinstance(place, places.Place)
        assert checked(store, place).place == place
