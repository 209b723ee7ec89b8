"""A key's path through the index: every step with its verdict, and whether the path was followed to its end."""

from __future__ import annotations

import struct

import pytest
from handmade_stores import SLOTS, START, HandmadeStore, jhash
from planted_faults import patch

from engine.inspection import open_store
from engine.inspection.key_trace import Match, TraceEnd, TraceFile, TraceStep, indexed_keys, trace


@pytest.fixture
def root(tmp_path):
    store = HandmadeStore()
    for number in range(12):
        store.put(("Orders", "Paid")[number % 2], keys=f"K{number % 6} same", step=1000)
    return store.write(tmp_path / "store")


def traced(root, topic, key, **options):
    with open_store(root) as store:
        return list(trace(store, topic, key, **options))


def test_every_unit_of_the_key_is_found_newest_first(root):
    results = traced(root, "Orders", "K2")
    matches = [match.unit.queue_offset for match in results if isinstance(match, Match)]
    assert matches == [4, 1]
    assert isinstance(results[0], TraceFile)
    assert results[0].chosen
    slots = [step for step in results if isinstance(step, TraceStep) and step.kind == "slot"]
    assert [slot.slot for slot in slots] == [abs(jhash("Orders#K2")) % SLOTS]
    assert results[-1] == TraceEnd(2, sum(isinstance(item, TraceStep) for item in results), True)


def test_an_entry_of_another_key_in_the_chain_names_that_key(root):
    steps = [step for step in traced(root, "Orders", "same") if isinstance(step, TraceStep)]
    foreign_keys = {step.key for step in steps if step.verdict == "hashDiffers"}
    assert all(key is None or "#" in key for key in foreign_keys)
    assert traced(root, "Orders", "not there")[-1].matches == 0


def test_a_window_and_a_maximum_leave_matches_out(root):
    late = traced(root, "Orders", "K2", begin=START + 6_000)
    assert [match.unit.queue_offset for match in late if isinstance(match, Match)] == [4]
    few = traced(root, "Orders", "same", max_count=2)
    assert (few[-1].matches, few[-1].complete) == (2, False)
    none = traced(root, "Orders", "K2", begin=START + 100_000)
    assert (none[0].chosen, none[0].why) == (False, "ends before the window begins")


def test_a_looping_chain_is_reported_and_ends(root):
    """A loop kept an early reader in the chain forever."""
    with open_store(root) as store:
        (reader,) = store.index_files()
        number = reader.slot(abs(jhash("Orders#K2")) % SLOTS)
        position = reader.geometry.entry_position(number) + 16
    patch(min((root / "index").iterdir()), position, struct.pack(">i", number))
    results = traced(root, "Orders", "K2")
    assert [step.verdict for step in results if isinstance(step, TraceStep)][-1] == "loop"
    assert not results[-1].complete


def test_a_unit_s_keys_are_its_unique_one_and_those_of_its_text(root):
    with open_store(root) as store:
        unit = store.log.unit_at(0)
        assert indexed_keys(unit) == ["U00000", "K0", "same"]


@pytest.mark.parametrize(("asked_for", "index_type"), [("open", "T"), ("T#open", None), ("T#open", "K")])
def test_tags_lead_to_the_units_that_have_them(golden, asked_for, index_type):
    """A trace of tags found the chain and reported its entries as collisions."""
    with open_store(golden("broker-tags-5.5.1")) as store:
        results = list(trace(store, "TagTopic", asked_for, index_type=index_type, max_count=1000))
    matches = [match.unit for match in results if isinstance(match, Match)]
    verdicts = {step.verdict for step in results if isinstance(step, TraceStep) and step.kind == "entry"}
    if index_type == "K":
        assert matches == []
        assert "collision" in verdicts
        return
    assert len(matches) == 350
    assert {unit.tags for unit in matches} == {"open"}
    assert verdicts == {"match", "hashDiffers"}
