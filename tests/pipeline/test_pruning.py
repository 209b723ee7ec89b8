"""Stretches that the entries of other topics tile without a gap; nothing is concluded where one is missing or lies."""

from __future__ import annotations

import random
import struct

import pytest
from handmade_stores import LOG_SIZE, HandmadeStore
from planted_faults import patch

from engine.pipeline import pruning
from engine.pipeline.files import find_stores
from engine.pipeline.filters import QueryLimits
from engine.pipeline.pruning import EXACT, SLACK_MS, Trust, needed_ranges, skippable_ranges

WANTED = QueryLimits(topics=frozenset({"Paid"}))


@pytest.fixture
def small_store(monkeypatch):
    monkeypatch.setattr(pruning, "MIN_STRETCH_BYTES", 1000)
    monkeypatch.setattr(pruning, "LARGE_UNIT_BYTES", 1)
    store = HandmadeStore(log_size=1 << 16)
    for number in range(90):
        store.put("Paid" if number in {30, 31, 60} else "Orders")
    return store


@pytest.fixture
def root(small_store, tmp_path):
    return small_store.write(tmp_path / "store")


def spans(root, trust):
    (place,) = find_stores([str(root)])
    return skippable_ranges(place, WANTED, trust)


@pytest.mark.parametrize("trust", [True, False])
def test_what_lies_between_units_of_the_topic_is_passed_over(small_store, root, trust):
    units = small_store.units
    assert spans(root, trust) == [
        (0, units[30].offset),
        (units[32].offset, units[60].offset),
        (units[61].offset, small_store.end),
    ]


def test_a_gap_between_entries_is_read(small_store, root):
    queue = root / "consumequeue" / "Orders" / "0" / f"{0:020d}"
    patch(queue, 20 * 10, bytes(20))
    actual_spans = spans(root, True)
    assert not any(low <= small_store.units[10].offset < high for low, high in actual_spans)


def test_an_entry_that_lies_over_another_topic_s_unit_is_found_out_only_by_asking_it(small_store, root):
    paid = root / "consumequeue" / "Paid" / "0" / f"{0:020d}"
    patch(paid, 0, bytes(60))  # the queue of the topic was lost …
    orders = root / "consumequeue" / "Orders" / "0" / f"{0:020d}"
    unit = small_store.units[30]
    patch(orders, 20 * 5, struct.pack(">qi", unit.offset, unit.size))  # … and another's entry lies over its unit
    assert not any(low <= unit.offset < high for low, high in spans(root, False))


def test_names_that_malformed_bytes_may_have_as_well_spare_nothing(root):
    (place,) = find_stores([str(root)])
    assert skippable_ranges(place, QueryLimits(topics=frozenset({"a?"})), True) == []


def stretches(claims, expected, starts, worth):
    """What may be passed over, entry by entry: those of other topics in order, one behind the other in one file."""
    actual_places = []
    for place, size in sorted(set(claims)):
        if any(place < high and low < place + size for low, high in expected):
            continue
        if (
            actual_places
            and actual_places[-1][1] == place
            and place not in starts
            and not any(high == place for _, high in expected)
        ):
            actual_places[-1] = actual_places[-1][0], place + size
        else:
            actual_places.append((place, place + size))
    return [(low, high) for low, high in actual_places if high - low >= worth]


@pytest.mark.parametrize("seed", range(12))
def test_sums_of_places_tell_what_entries_in_order_tell(tmp_path, monkeypatch, seed):
    """Entries gone, twice there, of a wrong size, out of order: each as if all were put in order."""
    chance = random.Random(seed)
    monkeypatch.setattr(pruning, "MIN_STRETCH_BYTES", 1500)
    store = HandmadeStore(log_size=1 << 14, queue_size=20 * 400)
    while store.end < 60_000:
        store.put(chance.choices(["Paid", "Orders", "Bills"], [1, 20, 20])[0])
    root = store.write(tmp_path / "store")
    expected = [(unit.offset, unit.offset + unit.size) for unit in store.units if unit.topic == "Paid"]
    claims = {
        topic: [(unit.offset, unit.size) for unit in store.units if unit.topic == topic]
        for topic in ("Orders", "Bills")
    }
    for _ in range(seed // 2):
        topic = chance.choice(["Orders", "Bills"])
        ours = claims[topic]
        number = chance.randrange(len(ours) - 1)
        (place, size), following = ours[number : number + 2]
        ours[number] = chance.choice([(0, 0), (place, size - 1), (place, size + 1), following, ours[0]])
        patch(root / "consumequeue" / topic / "0" / f"{0:020d}", 20 * number, struct.pack(">qi", *ours[number]))
    (place_of_store,) = find_stores([str(root)])
    reported = [claim for mine in claims.values() for claim in mine if claim[1]]
    assert skippable_ranges(place_of_store, WANTED, True) == stretches(
        reported, expected, range(0, 1 << 20, 1 << 14), 1500
    )


@pytest.fixture
def timed_store():
    store = HandmadeStore()
    for _ in range(120):
        store.put(step=SLACK_MS)
    return store


@pytest.fixture
def places(timed_store, tmp_path):
    return find_stores([str(timed_store.write(tmp_path / "store"))])


def needed_spans(places, wanted_ranges, trust=EXACT):
    actual_needed_ranges = needed_ranges(places, wanted_ranges, trust)
    return list(actual_needed_ranges[places[0].path].spans) if actual_needed_ranges else None


def test_offsets_say_it_themselves(places):
    assert needed_spans(places, QueryLimits(physical_offsets=(100, 5_000))) == [(100, 5_001)]
    assert needed_spans(places, QueryLimits()) is None


def test_times_spare_a_file_only_where_they_are_trusted(places, timed_store):
    last = max(timed_store.units, key=lambda unit: unit.offset)
    wanted_ranges = QueryLimits(store_timestamps=(last.store_timestamp, last.store_timestamp))
    assert needed_spans(places, wanted_ranges) is None
    ((low, _),) = needed_spans(places, wanted_ranges, Trust(times=True))
    assert low == last.offset // LOG_SIZE * LOG_SIZE or low == last.offset // LOG_SIZE * LOG_SIZE - LOG_SIZE


def test_a_topic_that_no_unit_has_is_read_nowhere_when_queues_are_off(places):
    assert needed_spans(places, QueryLimits(topics=frozenset({"Nobody"})), Trust(queues="off")) is None
