"""Marks over a table, without its view: messages, undo, and requests to other parts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from PySide6.QtCore import QObject, Signal

from viewer.log.colour_rules import Rule
from viewer.log.columns import unit_kind
from viewer.log.log_model import LogModel
from viewer.log.marks import LogMarks
from viewer.log.row_markings import RowMarks
from viewer.log.rows import UnitRow
from viewer.runtime import places
from viewer.runtime.edit import Edit
from viewer.widgets.record_view import RecordView


def row(offset: int, time: int = 1_700_000_000_000) -> UnitRow:
    return UnitRow(offset, 100, "Orders", 0, 0, time, None, [], "ok", "", False, 0, b"")


@pytest.fixture
def marks(qtbot: Any, themed_app: object) -> LogMarks:
    """Marks over a table of three rows, of which the second is chosen. Messages and requests are recorded."""
    table = RecordView("units.table", unit_kind(places.queue))
    qtbot.addWidget(table)
    table.set_rows([row(100), row(200), row(300)])
    table.go_to(1)
    log_marks = LogMarks(LogModel(), table, table)
    reported: dict[str, list[Any]] = {"status": [], "edits": [], "offsets": [], "filters": []}
    log_marks.statusText.connect(reported["status"].append)
    log_marks.edited.connect(reported["edits"].append)
    log_marks.offsetRequested.connect(reported["offsets"].append)
    log_marks.filterRequested.connect(reported["filters"].append)
    cast("Any", log_marks).kept = reported
    return log_marks


def saved_marks(marks: LogMarks, kind: str) -> list[Any]:
    return cast("list[Any]", cast("Any", marks).kept[kind])


def test_a_mark_is_put_reported_and_undone(marks: LogMarks) -> None:
    marks.toggle_mark()
    assert marks._model.markings.marked == {200}
    assert saved_marks(marks, "status") == ["Marked rows: 1"]
    (edit,) = saved_marks(marks, "edits")
    assert isinstance(edit, Edit)
    edit.put(edit.old_value)
    assert marks._model.markings.marked == set()
    edit.put(edit.new_value)
    assert marks._model.markings.marked == {200}


def test_without_marks_there_is_a_message_and_no_request(marks: LogMarks) -> None:
    marks.next_mark(1)
    marks.only_marked()
    assert saved_marks(marks, "status") == ["No row is marked."] * 2
    assert (saved_marks(marks, "offsets"), saved_marks(marks, "filters")) == ([], [])


def test_the_next_mark_and_the_filter_are_requested(marks: LogMarks) -> None:
    marks._model.put_marks(RowMarks(frozenset({100, 300})))
    marks.next_mark(1)
    marks.next_mark(-1)
    marks.only_marked()
    assert saved_marks(marks, "offsets") == [300, 100]
    assert saved_marks(marks, "filters") == ["physicalOffset in (100, 300)"]


def test_times_count_from_a_row_and_back_to_clock_times(marks: LogMarks) -> None:
    marks.toggle_reference()
    assert marks._model.markings.reference == (200, 1_700_000_000_000)
    marks.toggle_reference()
    assert marks._model.markings.reference is None
    assert saved_marks(marks, "status") == ["Times count from 200 on", "Times are times of day again"]


def test_rules_are_saved_in_the_settings_and_undone(marks: LogMarks) -> None:
    settings = SimpleNamespace(colour_rules=[])
    marks.use(cast("Any", settings))
    marks.set_rules([Rule("mine", "queueId = 3", "red")])
    assert [record["name"] for record in settings.colour_rules] == ["mine"]
    edit = saved_marks(marks, "edits")[-1]
    edit.put(edit.old_value)
    assert settings.colour_rules == []
    assert marks._model.rules == []


def test_a_store_with_priority_topics_has_a_column_of_priorities(marks: LogMarks) -> None:
    session = FakeSession(SimpleNamespace(has_priorities=False))
    marks.set_session(cast("Any", session))
    assert "priority" not in [column.key for column in marks._table.kind.columns]
    session.survey.has_priorities = True
    session.surveyed.emit()
    assert "priority" in [column.key for column in marks._table.kind.columns]
    marks.set_session(None)
    assert "priority" not in [column.key for column in marks._table.kind.columns]


class FakeSession(QObject):
    """A session with a survey, and without files."""

    surveyed = Signal()

    def __init__(self, survey: Any) -> None:
        super().__init__()
        self.survey = survey
        self.snapshot = SimpleNamespace(log=SimpleNamespace(file_name=lambda _offset: None))
