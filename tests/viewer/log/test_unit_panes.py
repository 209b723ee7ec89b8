"""Detail and bytes of the chosen row show the same unit, the newest requested one."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from handmade_stores import healthy
from panes import on_store, wait_until
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget

from engine.codec.message import Unit
from engine.inspection import open_store
from viewer.log.pane import UnitsPane
from viewer.log.rows import LogSource, UnitRow
from viewer.log.unit_fields import describe
from viewer.log.unit_panes import UnitPanes, load
from viewer.pane.edit_box import EditBox
from viewer.runtime import places


@pytest.fixture
def store(golden):
    with open_store(golden("broker-orders")) as opened:
        yield opened


@pytest.fixture
def panes(qtbot, themed_app, store):
    host = QWidget()
    panes = UnitPanes(host)
    for widget in (host, panes.build()):
        qtbot.addWidget(widget)
    waiting = []
    jobs = SimpleNamespace(read=lambda work, done, _failed: waiting.append((work, done)))
    panes.waiting, panes.file_saver = waiting, host
    panes.session = SimpleNamespace(
        patches=(), snapshot=store, jobs=jobs, later=lambda work: work(), decoding_rules=(), body_fields={}
    )
    return panes


def unit_rows(store, count):
    return [row for row in LogSource(store.log).read(0, 0, count).rows if isinstance(row, UnitRow)]


def test_an_answer_for_a_row_that_is_not_chosen_any_more_is_dropped(panes, store):
    first_row, second_row = unit_rows(store, 2)
    panes.show_row(first_row)
    assert panes.detail_head.note.text() == f"loading {first_row.offset:,}…"
    panes.show_row(second_row)
    for work, done in panes.waiting:
        done(work())
    assert panes.current.row is second_row


def test_without_a_row_nothing_is_shown(panes, store):
    (row,) = unit_rows(store, 1)
    panes.show_row(row)
    work, done = panes.waiting.pop()
    done(work())
    assert panes.current.row is row
    panes.show_row(None)
    assert panes.current is None
    assert panes.detail_head.note.text() == ""


def test_a_row_is_loaded_with_its_unit_and_the_fields_of_its_bytes(store):
    (row,) = unit_rows(store, 1)
    loaded = load(store, row)
    assert isinstance(loaded.decoded.unit, Unit)
    assert loaded.decoded.unit.offset == row.offset
    assert {"topic", "body"} <= {field.name for field in loaded.fields}


def test_a_unit_of_a_dledger_log_is_shown_with_the_header_of_its_entry(golden):
    """The Log view said of the whole log that it is not decoded."""
    with open_store(golden("broker-dledger-5.5.1")) as store:
        first, second = unit_rows(store, 2)
        loaded = load(store, second)
    assert (first.offset, second.offset) == (48, 944)
    entry, identity = describe(loaded.decoded)[:2]
    values = {line.name: line.value for line in entry.lines}
    assert (entry.title, identity.title) == ("DLedger entry", "Identity")
    assert (values["entryIndex"], values["entryTerm"], values["entryPosition"]) == ("1", "0", "896")
    painted = {field.name: field.position for field in loaded.fields}
    assert (painted["entryMagic"], painted["entryBodySize"], painted["totalSize"]) == (0, 44, 48)


def test_a_field_is_changed_from_its_menu_or_typed_over(qapp, tmp_path):
    """Other bytes could only be written into a list of patches by hand."""

    async def drive(pane, session):
        units, said = pane.unit, []
        pane.statusMessage.connect(said.append)
        pane.show_place(places.log(0))
        await wait_until(lambda: units.current is not None)
        units.detail.changeRequested.emit("queueId")
        await wait_until(lambda: pane.findChildren(EditBox) != [])
        (box,) = pane.findChildren(EditBox)
        assert box.values() == {"offset": "12", "bytes": "00 00 00 00", "unit": "0"}
        box.number.setText("5")
        box.number.textEdited.emit("5")
        box.stage()
        await wait_until(lambda: session.bench.edits != ())
        QTest.keyClick(units.hex, "f")
        await wait_until(lambda: any(box.isVisible() for box in pane.findChildren(EditBox)))
        box = pane.findChildren(EditBox)[-1]
        assert (box.fields["bytes"].text(), box.fields["bytes"].cursorPosition()) == ("F0", 1)
        box.reject()
        units.detail.changeRequested.emit("offsetMsgId")
        assert said[-1] == "This line has no bytes of its own that could be changed."
        await session.read_anew(session.bench.edits)
        pane.set_session(session)
        pane.show_place(places.log(0))
        await wait_until(lambda: units.hex._shown.changes == {15: 0})
        assert units.current.decoded.unit.queue_id == 5

    on_store(qapp, UnitsPane, healthy().write(tmp_path / "store"), drive)
