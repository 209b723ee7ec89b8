"""Stretches that the entries of other topics tile without a gap; nothing is concluded where one is missing or lies."""

from __future__ import annotations

import struct

import pytest
from made_stores import MadeStore
from planted_faults import patch

from engine.pipeline import tiling
from engine.pipeline.files import find_stores
from engine.pipeline.tiling import passed_over
from engine.pipeline.want import Want

WANTED = Want(topics=frozenset({"Paid"}))


@pytest.fixture
def made(monkeypatch):
    monkeypatch.setattr(tiling, "WORTH", 1000)
    monkeypatch.setattr(tiling, "LARGE", 1)
    made = MadeStore(log_size=1 << 16)
    for number in range(90):
        made.put("Paid" if number in {30, 31, 60} else "Orders")
    return made


@pytest.fixture
def root(made, tmp_path):
    return made.write(tmp_path / "store")


def spans(root, trust):
    (place,) = find_stores([str(root)])
    return passed_over(place, WANTED, trust)


@pytest.mark.parametrize("trust", [True, False])
def test_what_lies_between_units_of_the_topic_is_passed_over(made, root, trust):
    units = made.units
    assert spans(root, trust) == [
        (0, units[30].offset),
        (units[32].offset, units[60].offset),
        (units[61].offset, made.end),
    ]


def test_a_gap_between_entries_is_read(made, root):
    queue = root / "consumequeue" / "Orders" / "0" / f"{0:020d}"
    patch(queue, 20 * 10, bytes(20))
    found = spans(root, True)
    assert not any(low <= made.units[10].offset < high for low, high in found)


def test_an_entry_that_lies_over_another_topic_s_unit_is_found_out_only_by_asking_it(made, root):
    paid = root / "consumequeue" / "Paid" / "0" / f"{0:020d}"
    patch(paid, 0, bytes(60))  # the queue of the topic was lost …
    orders = root / "consumequeue" / "Orders" / "0" / f"{0:020d}"
    unit = made.units[30]
    patch(orders, 20 * 5, struct.pack(">qi", unit.offset, unit.size))  # … and another's entry lies over its unit
    assert not any(low <= unit.offset < high for low, high in spans(root, False))


def test_names_that_malformed_bytes_may_have_as_well_spare_nothing(root):
    (place,) = find_stores([str(root)])
    assert passed_over(place, Want(topics=frozenset({"a?"})), True) == []
