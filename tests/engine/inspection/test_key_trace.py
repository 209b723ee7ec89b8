"""A key's way through the index: every step with its verdict, and whether the way was seen to its end."""

from __future__ import annotations

import struct

import pytest
from handmade_stores import SLOTS, START, HandmadeStore, jhash
from planted_faults import patch

from engine.inspection import open_store
from engine.inspection.key_trace import Match, TraceEnd, TraceFile, TraceStep, indexed_keys, trace


@pytest.fixture
def root(tmp_path):
    made = HandmadeStore()
    for number in range(12):
        made.put(("Orders", "Paid")[number % 2], keys=f"K{number % 6} same", step=1000)
    return made.write(tmp_path / "store")


def asked(root, topic, key, **more):
    with open_store(root) as store:
        return list(trace(store, topic, key, **more))


def test_every_unit_of_the_key_is_found_newest_first(root):
    found = asked(root, "Orders", "K2")
    matches = [one.unit.queue_offset for one in found if isinstance(one, Match)]
    assert matches == [4, 1]
    assert isinstance(found[0], TraceFile)
    assert found[0].chosen
    slots = [one for one in found if isinstance(one, TraceStep) and one.kind == "slot"]
    assert [one.slot for one in slots] == [abs(jhash("Orders#K2")) % SLOTS]
    assert found[-1] == TraceEnd(2, sum(isinstance(one, TraceStep) for one in found), True)


def test_an_entry_of_another_key_in_the_chain_says_whose_it_is(root):
    steps = [one for one in asked(root, "Orders", "same") if isinstance(one, TraceStep)]
    others = {one.key for one in steps if one.verdict == "hashDiffers"}
    assert all(key is None or "#" in key for key in others)
    assert asked(root, "Orders", "not there")[-1].matches == 0


def test_a_window_and_a_maximum_leave_matches_out(root):
    late = asked(root, "Orders", "K2", begin=START + 6_000)
    assert [one.unit.queue_offset for one in late if isinstance(one, Match)] == [4]
    few = asked(root, "Orders", "same", max_count=2)
    assert (few[-1].matches, few[-1].complete) == (2, False)
    none = asked(root, "Orders", "K2", begin=START + 100_000)
    assert (none[0].chosen, none[0].why) == (False, "ends before the window begins")


def test_a_chain_that_goes_round_is_told_and_ends(root):
    """Such a link kept an early reader in the chain for ever."""
    with open_store(root) as store:
        (reader,) = store.index_files()
        number = reader.slot(abs(jhash("Orders#K2")) % SLOTS)
        at = reader.geometry.entry_position(number) + 16
    patch(min((root / "index").iterdir()), at, struct.pack(">i", number))
    found = asked(root, "Orders", "K2")
    assert [one.verdict for one in found if isinstance(one, TraceStep)][-1] == "loop"
    assert not found[-1].complete


def test_a_unit_s_keys_are_its_unique_one_and_those_of_its_text(root):
    with open_store(root) as store:
        unit = store.log.unit_at(0)
        assert indexed_keys(unit) == ["U00000", "K0", "same"]


@pytest.mark.parametrize(("asked_for", "index_type"), [("open", "T"), ("T#open", None), ("T#open", "K")])
def test_tags_lead_to_the_units_that_have_them(golden, asked_for, index_type):
    """A trace of tags found the chain and called its entries collisions."""
    with open_store(golden("broker-tags-5.5.1")) as store:
        found = list(trace(store, "TagTopic", asked_for, index_type=index_type, max_count=1000))
    matches = [one.unit for one in found if isinstance(one, Match)]
    verdicts = {one.verdict for one in found if isinstance(one, TraceStep) and one.kind == "entry"}
    if index_type == "K":
        assert matches == []
        assert "collision" in verdicts
        return
    assert len(matches) == 350
    assert {unit.tags for unit in matches} == {"open"}
    assert verdicts == {"match", "hashDiffers"}
