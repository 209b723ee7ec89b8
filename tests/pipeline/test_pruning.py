"""Stretches that the entries of other topics cover without a gap; a missing or wrong entry proves nothing."""

from __future__ import annotations

import random
import struct

import pytest
from handmade_stores import LOG_SIZE, HandmadeStore
from planted_faults import patch

from engine.pipeline import pruning
from engine.pipeline.files import find_stores
from engine.pipeline.filters import QueryLimits
from engine.pipeline.pruning import EXACT, SLACK_MS, TrustedFacts, needed_ranges, skippable_ranges

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
def test_parts_between_units_of_the_topic_are_skipped(small_store, root, trust):
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
    assert not any(begin <= small_store.units[10].offset < end for begin, end in actual_spans)


def test_an_entry_that_lies_over_another_topic_s_unit_is_found_out_only_by_asking_it(small_store, root):
    paid = root / "consumequeue" / "Paid" / "0" / f"{0:020d}"
    patch(paid, 0, bytes(60))  # the queue of the topic was lost …
    orders = root / "consumequeue" / "Orders" / "0" / f"{0:020d}"
    unit = small_store.units[30]
    patch(orders, 20 * 5, struct.pack(">qi", unit.offset, unit.size))  # … and another's entry lies over its unit
    assert not any(begin <= unit.offset < end for begin, end in spans(root, False))


def test_names_that_malformed_bytes_may_have_as_well_spare_nothing(root):
    (place,) = find_stores([str(root)])
    assert skippable_ranges(place, QueryLimits(topics=frozenset({"a?"})), True) == []


def stretches(claims, expected, starts, worth):
    """Return the stretches that may be skipped, entry by entry: those of other topics, joined within a file."""
    actual_places = []
    for place, size in sorted(set(claims)):
        if any(place < end and begin < place + size for begin, end in expected):
            continue
        if (
            actual_places
            and actual_places[-1][1] == place
            and place not in starts
            and not any(end == place for _, end in expected)
        ):
            actual_places[-1] = actual_places[-1][0], place + size
        else:
            actual_places.append((place, place + size))
    return [(begin, end) for begin, end in actual_places if end - begin >= worth]


@pytest.mark.parametrize("seed", range(12))
def test_sums_of_places_tell_what_entries_in_order_tell(tmp_path, monkeypatch, seed):
    """Missing, doubled, wrong and unordered entries give the same stretches as if all were sorted."""
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
        of_topic_ = claims[topic]
        number = chance.randrange(len(of_topic_) - 1)
        (place, size), following = of_topic_[number : number + 2]
        of_topic_[number] = chance.choice([(0, 0), (place, size - 1), (place, size + 1), following, of_topic_[0]])
        patch(root / "consumequeue" / topic / "0" / f"{0:020d}", 20 * number, struct.pack(">qi", *of_topic_[number]))
    (place_of_store,) = find_stores([str(root)])
    all_claims = [claim for of_topic in claims.values() for claim in of_topic if claim[1]]
    assert skippable_ranges(place_of_store, WANTED, True) == stretches(
        all_claims, expected, range(0, 1 << 20, 1 << 14), 1500
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
    last_unit = max(timed_store.units, key=lambda unit: unit.offset)
    wanted_ranges = QueryLimits(store_timestamps=(last_unit.store_timestamp, last_unit.store_timestamp))
    assert needed_spans(places, wanted_ranges) is None
    ((begin, _),) = needed_spans(places, wanted_ranges, TrustedFacts(times=True))
    assert (
        begin == last_unit.offset // LOG_SIZE * LOG_SIZE or begin == last_unit.offset // LOG_SIZE * LOG_SIZE - LOG_SIZE
    )


def test_a_topic_that_no_unit_has_is_read_nowhere_when_queues_are_off(places):
    assert needed_spans(places, QueryLimits(topics=frozenset({"Nobody"})), TrustedFacts(queues="off")) is None
