"""The index view: files, slots and the trace of a key, step by step."""

from __future__ import annotations

import shutil
import struct

import pytest
from panes import on_store, wait_until_idle
from PySide6.QtCore import Qt

from engine.codec.java import index_key_hash
from engine.codec.message import Unit
from engine.inspection import open_store
from engine.inspection.findings import check
from engine.rules.findings import Finding
from viewer.index.pane import IndexPane
from viewer.index.trace_lanes import TraceQuery, lanes
from viewer.runtime import places
from viewer.widgets.basics import Link


def some_key(store) -> tuple[str, str]:
    units = (item for item in store.units() if isinstance(item, Unit) and item.keys)
    unit = [next(units) for _ in range(40)][-1]
    return unit.topic, unit.keys[0]


@pytest.mark.golden
def test_files_are_listed_newest_first_with_the_load_of_their_slots(qapp, golden) -> None:
    async def drive(pane, session) -> None:
        readers = session.snapshot.index_files()
        assert pane.files.total_rows() == len(readers)
        newest = pane.files.current_row()
        assert newest.name == readers[-1].name
        assert pane.slots.map._load.used == readers[-1].header.hash_slot_count
        await wait_until_idle(session.jobs)

    on_store(qapp, IndexPane, golden("clean-5.3.3"), drive)


@pytest.mark.golden
def test_a_key_is_traced_to_its_units_and_every_step_is_a_row(qapp, golden, qtbot) -> None:
    async def drive(pane, session) -> None:
        topic, key = some_key(session.snapshot)
        truth = {
            u.offset for u in session.snapshot.units() if isinstance(u, Unit) and u.topic == topic and key in u.keys
        }
        pane.form.topic.setText(topic)
        pane.form.key.setText(key)
        qtbot.keyClick(pane.form.key, Qt.Key.Key_Return)
        await wait_until_idle(session.jobs)
        answer = pane.model.answer
        assert {match.unit.offset for match in answer.matches} <= truth
        assert len(answer.matches) == min(32, len(truth))
        assert pane.steps.total_rows() == len(answer.steps)
        assert f"{index_key_hash(topic, key):,}" in pane.strip.accessibleDescription()
        assert pane.steps.current_row().verdict == "match"
        emitted = []
        pane.placeRequested.connect(emitted.append)
        qtbot.keyClick(pane.canvas, Qt.Key.Key_Return)
        assert emitted == [places.log(pane.steps.current_row().phy_offset)]
        assert pane.steps.follow()
        assert emitted[0] == emitted[1]
        assert "match" in pane.status()

    on_store(qapp, IndexPane, golden("clean-5.3.3"), drive)


@pytest.mark.golden
def test_a_slot_shows_its_chain_with_the_keys_of_its_units(qapp, golden) -> None:
    async def drive(pane, session) -> None:
        reader = session.snapshot.index_files()[0]
        pane.show_place(places.index(reader.name, "entry", 5))
        await wait_until_idle(session.jobs)
        row = pane.chain.current_row()
        assert row.entry == 5
        assert row.key is not None
        assert index_key_hash(*row.key.split("#", 1)) == reader.entry(5).key_hash
        pane.slots.slotChosen.emit(row.slot)
        await wait_until_idle(session.jobs)
        assert [r.entry for r in pane.chain.source.rows][0] == reader.slot(row.slot)

    on_store(qapp, IndexPane, golden("clean-5.3.3"), drive)


@pytest.mark.golden
def test_a_store_without_an_index_has_a_message(qapp, golden) -> None:
    async def drive(pane, session) -> None:
        assert "no index files" in pane.files.note.state.text
        pane.show_place(places.trace("A", "b"))
        await wait_until_idle(session.jobs)
        assert "no index files" in pane.steps.note.state.text

    on_store(qapp, IndexPane, golden("queues-gone-5.3.3"), drive)


@pytest.mark.golden
def test_a_looping_and_a_cut_file_are_marked_and_the_loop_is_a_link(qapp, golden, tmp_path, qtbot) -> None:
    """Both looked like the others; only a collapsed node of the tree was red. In a trace, the cut file was grey like
    one outside the window, and the loop was the thirteenth card, below the visible area.
    """
    path = tmp_path / "store"
    shutil.copytree(golden("broker-transactions"), path)
    with open_store(path) as store:
        looped, cut = store.index_files()[1], store.index_files()[0]
        topic, key = next(
            (unit.topic, unit.keys[0])
            for _, entry in looped.entries(40, 60)
            if isinstance(unit := store.log.unit_at(entry.phy_offset), Unit) and unit.keys
        )
        slot = looped.geometry.slot_position(index_key_hash(topic, key) % looped.slots)
        position = looped.geometry.entry_position(5) + 16
    with open(looped.path, "r+b") as file:
        file.seek(position)
        file.write(struct.pack(">i", 5))
        file.seek(slot)
        file.write(struct.pack(">i", 5))
    with open(cut.path, "r+b") as file:
        file.truncate(1000)

    async def drive(pane, session) -> None:
        with open_store(path) as store:
            session.set_findings([finding for finding in check(store) if isinstance(finding, Finding)], complete=True)
        rows = {row.name: row for row in pane.files.table.rows}
        assert {name: row.health for name, row in rows.items() if row.health} == {
            looped.name: "loop",
            cut.name: "error",
        }
        assert pane.files.table.kind.columns[1].text(rows[looped.name]) == "loop"
        pane.trace(TraceQuery(topic, key))
        await wait_until_idle(session.jobs)
        lane = next(candidate for candidate in lanes(pane.model.answer) if candidate.name == cut.name)
        assert (lane.chosen, lane.damaged) == (False, True)
        assert lane.why.startswith("damaged, not walked: ")
        link = next(widget for widget in pane.findChildren(Link) if widget.text() == "1 loop")
        link.clicked.emit()
        assert pane.steps.current_row().verdict == "loop"

    on_store(qapp, IndexPane, path, drive)
