"""The lanes of a trace, from the key to its units."""

from __future__ import annotations

import shutil
import struct

import pytest
from panes import on_store, wait_until_idle

from engine.codec.java import index_key_hash
from engine.codec.message import Unit
from engine.inspection import open_store
from viewer.index import trace_lanes
from viewer.index.pane import IndexPane
from viewer.index.trace_lanes import MAX_CARDS, ChainCard, ChainLane, fold, lanes, place_lanes
from viewer.runtime import places


def some_key(store) -> tuple[str, str]:
    units = (item for item in store.units() if isinstance(item, Unit) and item.keys)
    unit = [next(units) for _ in range(40)][-1]
    return unit.topic, unit.keys[0]


@pytest.mark.golden
def test_a_looping_chain_is_drawn_and_reported(qapp, golden, tmp_path) -> None:
    store = tmp_path / "store"
    shutil.copytree(golden("clean-5.3.3"), store)

    with open_store(store) as snapshot:
        topic, key = some_key(snapshot)
        for reader in snapshot.index_files():
            slot = index_key_hash(topic, key) % reader.slots
            chain, number = [], reader.slot(slot)
            while number > 0:
                chain.append(number)
                number = reader.entry(number).prev
            if len(chain) >= 3:
                break
        position = reader.geometry.entry_position(chain[-1]) + 16
        file = reader.path
    with open(file, "r+b") as handle:
        handle.seek(position)
        handle.write(struct.pack(">i", chain[0]))

    async def drive(pane, session) -> None:
        pane.show_place(places.trace(topic, key))
        await wait_until_idle(session.jobs)
        loops = [step for step in pane.model.answer.steps if step.verdict == "loop"]
        assert [step.entry for step in loops] == [chain[0]]
        lane = next(lane for lane in lanes(pane.model.answer) if lane.loop_to is not None)
        assert lane.loop_to == chain[0]
        assert "a loop" in pane.status()
        pane.canvas.grab()

    on_store(qapp, IndexPane, store, drive)


@pytest.mark.golden
def test_a_trace_from_an_old_unit_reaches_it_behind_newer_ones(qapp, golden, monkeypatch) -> None:
    """The result is limited to the newest matches, like a broker's, but the key's own unit is older than those."""
    monkeypatch.setattr(trace_lanes, "WINDOW_MS", 2_000)

    async def drive(pane, session) -> None:
        uses = [u for u in session.snapshot.units() if isinstance(u, Unit) and "AaAa" in u.keys]
        old, newest = uses[3], uses[-1]
        assert len(uses) > 40
        pane.show_place(places.trace(old.topic, "AaAa", old.offset, old.store_timestamp))
        await wait_until_idle(session.jobs)
        assert pane.steps.current_row().phy_offset == old.offset
        assert pane.form.begin.text() == str(old.store_timestamp - 2_000)
        pane.show_place(places.trace(newest.topic, "AaAa", newest.offset, newest.store_timestamp))
        await wait_until_idle(session.jobs)
        assert pane.steps.current_row().phy_offset == newest.offset
        assert pane.form.begin.text() == ""

    on_store(qapp, IndexPane, golden("broker-crash"), drive)


@pytest.mark.golden
def test_a_time_window_skips_files_and_an_invalid_time_is_marked(qapp, golden) -> None:
    async def drive(pane, session) -> None:
        topic, key = some_key(session.snapshot)
        oldest = session.snapshot.index_files()[0].header
        pane.form.show_question(topic, key)
        pane.form.begin.setText(str(oldest.begin_timestamp))
        pane.form.end.setText(str(oldest.begin_timestamp))
        pane.form.ask()
        await wait_until_idle(session.jobs)
        passed = [lane for lane in lanes(pane.model.answer) if not lane.chosen]
        assert passed
        assert all("skipped" in lane.why for lane in passed)
        pane.form.end.setText("soon")
        assert pane.form.question() is None
        assert "Expected a time" in pane.form.end.toolTip()

    on_store(qapp, IndexPane, golden("clean-5.3.3"), drive)


def card(step: int, verdict: str = "match") -> ChainCard:
    return ChainCard(step, 1000 - step, verdict)


def test_a_run_of_other_hashes_becomes_one_card() -> None:
    cards = [card(1), *(card(n, "hashDiffers") for n in range(2, 9)), card(9, "collision")]
    folded, left_out = fold(cards)
    assert [(c.verdict, c.folded) for c in folded] == [("match", 1), ("hashDiffers", 7), ("collision", 1)]
    assert left_out == 0


def test_two_other_hashes_in_a_row_stay_two_cards() -> None:
    folded, _ = fold([card(1, "hashDiffers"), card(2, "hashDiffers"), card(3)])
    assert [c.folded for c in folded] == [1, 1, 1]


def test_a_long_chain_is_cut_with_a_count() -> None:
    folded, left_out = fold([card(n) for n in range(MAX_CARDS + 7)])
    assert len(folded) == MAX_CARDS
    assert left_out == 7


def test_cards_stay_inside_their_lane_and_wrap_to_new_rows() -> None:
    lanes = [
        ChainLane("new", "", False, "passed over"),
        ChainLane("old", "", True, "", slot=5, cards=tuple(card(n) for n in range(11)), end_note=("loop", "why")),
    ]
    places, height = place_lanes(lanes, 1000)
    walked = places[1]
    assert len({box.y for box in walked.cards}) > 1
    for box in [*walked.cards, walked.note, walked.slot]:
        assert box is not None
        assert box.x >= walked.box.x
        assert box.x + box.width <= walked.box.x + walked.box.width
        assert box.y + box.height <= walked.box.y + walked.box.height
    assert places[0].box.y + places[0].box.height < walked.box.y
    assert height >= walked.box.y + walked.box.height
