"""Commands of every table: the equal command line of a row, and its cell as a condition."""

from __future__ import annotations

from functools import partial

from viewer.pane import Pane
from viewer.pane.table_commands import command_copier, table_commands, use_cell
from viewer.runtime.command_line import command_line
from viewer.widgets.columns import RecordKind, number_column, text_column
from viewer.widgets.record_view import RecordView

KIND = RecordKind(
    "unit",
    (
        text_column("topic", "Topic", 90),
        number_column("queueId", "Queue", 90),
        text_column("odd", "Odd", 90, filterable=False),
    ),
    command=lambda row: ["storescope", "queue", "STORE", row["topic"]],
)


def table(qtbot) -> RecordView:
    view = RecordView("some.table", KIND)
    qtbot.addWidget(view)
    view.set_rows([{"topic": "A b", "queueId": 3, "odd": "x"}])
    view.go_to_row(0)
    return view


def test_a_row_s_command_has_the_store_s_path(qtbot):
    text = command_copier(table(qtbot), partial(command_line, path="/my store"))
    assert text("cli", {"topic": "A b"}) == "storescope queue '/my store' 'A b'"
    assert text("json", {"topic": "A b"}) is None


def test_every_table_has_the_same_commands(qtbot):
    view, pane = table(qtbot), Pane()
    qtbot.addWidget(pane)
    results = table_commands(pane, lambda: view, "x.jsonl")
    assert {"copy.cell", "copy.cli", "export.table", "frequency.open"} <= set(results)
    assert {"find.open", "list.next", "go.last"} <= set(results)


def test_a_cell_without_a_condition_is_reported(qtbot):
    view, pane = table(qtbot), Pane()
    qtbot.addWidget(pane)
    emitted = []
    pane.statusMessage.connect(emitted.append)
    view.setCurrentIndex(view.model().index(0, 2))
    use_cell(pane, lambda: view, "and")
    assert emitted == ["A filter cannot search for this value."]
