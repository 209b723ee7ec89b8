"""Detail and bytes of the chosen row show the same unit, the newest requested one."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from PySide6.QtWidgets import QWidget

from engine.codec.message import Unit
from engine.inspection import open_store
from viewer.log.rows import LogSource, UnitRow
from viewer.log.unit_fields import describe
from viewer.log.unit_panes import UnitPanes, load


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
    panes.session = SimpleNamespace(patches=(), snapshot=store, jobs=jobs, later=lambda work: work())
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
