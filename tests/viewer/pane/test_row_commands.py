"""Row menu commands of a view: link targets, and bytes saved outside of the store."""

from __future__ import annotations

import pytest
from handmade_stores import HandmadeStore
from panes import on_store, wait_until, wait_until_idle

from viewer.pane import Pane
from viewer.pane.edit_box import EditBox
from viewer.pane.row_commands import RowCommands
from viewer.runtime import places
from viewer.runtime.places import Place
from viewer.widgets.row_commands import Facts

FACTS = Facts("unit", offset=640, topic="T", queue_id=2, queue_offset=5, key="K1", term='topic = "T"')


@pytest.mark.parametrize(
    ("command", "place"),
    [
        ("go.log", places.log(640)),
        ("go.entry", places.queue("T", 2, 5)),
        ("follow.trace", places.trace("T", "K1")),
        ("keep.colour", places.filtered("colour", 'topic = "T"')),
    ],
)
def test_a_command_leads_to_its_place(qtbot, command, place):
    pane = Pane()
    qtbot.addWidget(pane)
    emitted = []
    pane.placeRequested.connect(emitted.append)
    RowCommands(pane).do(command, FACTS)
    assert emitted == [place]


def test_a_message_is_removed_from_the_menu_of_its_row(qapp, tmp_path):
    """A message could be removed only from the list of all changes by hand, not where its row is."""
    store = HandmadeStore()
    for _ in range(9):
        store.put("Orders", body=b"x" * 400)
    root = store.write(tmp_path / "s")
    unit = store.units[3]

    async def drive(pane, session):
        commands = RowCommands(pane)
        commands.do("edit.remove", Facts("waiting", offset=unit.offset, topic="Orders"))
        box = pane.window().findChild(EditBox)
        assert box.fields["offset"].text() == f"{unit.offset:,}"
        box.stage()
        await wait_until(lambda: session.bench.edits != ())
        assert {patch.costs for patch in session.bench.edits} == {"the message Orders/0/3 is lost"}

    on_store(qapp, Pane, root, drive)


def test_a_new_window_is_requested_for_the_link_or_the_unit(qtbot):
    pane = Pane()
    qtbot.addWidget(pane)
    emitted = []
    pane.placeRequested.connect(emitted.append)
    RowCommands(pane).do("go.own", FACTS)
    RowCommands(pane).do("go.own", Facts("row", link=Place("groups", name="g")))
    assert [(item.kind, item.new_window) for item in emitted] == [("log", True), ("groups", True)]


def test_bytes_are_written_outside_of_the_store_only(qapp, tmp_path):
    store = HandmadeStore()
    for _ in range(9):
        store.put("Orders")
    root = store.write(tmp_path / "s")
    unit = store.units[3]

    async def drive(pane, session):
        emitted = []
        pane.statusMessage.connect(emitted.append)
        commands = RowCommands(pane)
        facts = Facts("unit", offset=unit.offset)
        commands.export_bytes(facts, root / "inside.bin")
        commands.export_bytes(facts, tmp_path / "unit.bin")
        await wait_until_idle(session.jobs)
        assert emitted[0] == "Nothing is written into the store: choose another folder."
        assert (tmp_path / "unit.bin").read_bytes() == bytes(store.log[unit.offset : unit.offset + unit.size])
        assert not (root / "inside.bin").exists()

    on_store(qapp, Pane, root, drive)
