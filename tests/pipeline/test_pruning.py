"""Which parts of a log can be left unread, and that nothing is left out for what cannot be proven.

Stretches that the entries of other topics tile without a gap; nothing is concluded where one is missing or lies.
"""

from __future__ import annotations

import struct

import pytest
from made_stores import LOG_SIZE, MadeStore
from planted_faults import patch

from engine.pipeline import pruning
from engine.pipeline.files import find_stores
from engine.pipeline.filters import Want
from engine.pipeline.pruning import EXACT, SLACK_MS, Trust, needed, passed_over


@pytest.fixture
def made():
    made = MadeStore()
    for _ in range(120):
        made.put(step=SLACK_MS)
    return made


@pytest.fixture
def places(made, tmp_path):
    return find_stores([str(made.write(tmp_path / "store"))])


def spans(places, want, trust=EXACT):
    found = needed(places, want, trust)
    return list(found[places[0].path].spans) if found else None


def test_offsets_say_it_themselves(places):
    assert spans(places, Want(physical_offsets=(100, 5_000))) == [(100, 5_001)]
    assert spans(places, Want()) is None


def test_times_spare_a_file_only_where_they_are_trusted(places, made):
    last = max(made.units, key=lambda unit: unit.offset)
    want = Want(store_timestamps=(last.store_timestamp, last.store_timestamp))
    assert spans(places, want) is None
    ((low, _),) = spans(places, want, Trust(times=True))
    assert low == last.offset // LOG_SIZE * LOG_SIZE or low == last.offset // LOG_SIZE * LOG_SIZE - LOG_SIZE


def test_a_topic_that_no_unit_has_is_read_nowhere_when_queues_are_off(places):
    assert spans(places, Want(topics=frozenset({"Nobody"})), Trust(queues="off")) is None


WANTED = Want(topics=frozenset({"Paid"}))


@pytest.fixture
def made_of_tiling(monkeypatch):
    monkeypatch.setattr(pruning, "WORTH", 1000)
    monkeypatch.setattr(pruning, "LARGE", 1)
    made = MadeStore(log_size=1 << 16)
    for number in range(90):
        made.put("Paid" if number in {30, 31, 60} else "Orders")
    return made


@pytest.fixture
def root(made_of_tiling, tmp_path):
    return made_of_tiling.write(tmp_path / "store")


def spans_of_tiling(root, trust):
    (place,) = find_stores([str(root)])
    return passed_over(place, WANTED, trust)


@pytest.mark.parametrize("trust", [True, False])
def test_what_lies_between_units_of_the_topic_is_passed_over(made_of_tiling, root, trust):
    units = made_of_tiling.units
    assert spans_of_tiling(root, trust) == [
        (0, units[30].offset),
        (units[32].offset, units[60].offset),
        (units[61].offset, made_of_tiling.end),
    ]


def test_a_gap_between_entries_is_read(made_of_tiling, root):
    queue = root / "consumequeue" / "Orders" / "0" / f"{0:020d}"
    patch(queue, 20 * 10, bytes(20))
    found = spans_of_tiling(root, True)
    assert not any(low <= made_of_tiling.units[10].offset < high for low, high in found)


def test_an_entry_that_lies_over_another_topic_s_unit_is_found_out_only_by_asking_it(made_of_tiling, root):
    paid = root / "consumequeue" / "Paid" / "0" / f"{0:020d}"
    patch(paid, 0, bytes(60))  # the queue of the topic was lost …
    orders = root / "consumequeue" / "Orders" / "0" / f"{0:020d}"
    unit = made_of_tiling.units[30]
    patch(orders, 20 * 5, struct.pack(">qi", unit.offset, unit.size))  # … and another's entry lies over its unit
    assert not any(low <= unit.offset < high for low, high in spans_of_tiling(root, False))


def test_names_that_malformed_bytes_may_have_as_well_spare_nothing(root):
    (place,) = find_stores([str(root)])
    assert passed_over(place, Want(topics=frozenset({"a?"})), True) == []
