"""The export of the log, without its view: the exported rows, protection of the store, and the final message."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from viewer.log.columns import unit_kind
from viewer.log.export import Choice, LogExport
from viewer.log.export_work import ExportResult
from viewer.log.log_model import LogModel
from viewer.log.row_markings import RowMarks
from viewer.log.rows import LogSource, UnitRow
from viewer.runtime import places
from viewer.runtime.command_line import command_line
from viewer.widgets.record_view import RecordView


@pytest.fixture
def exports(qtbot: Any, themed_app: object, tmp_path: Path) -> LogExport:
    """Export with two rows, of which the second is chosen, of a store in a folder of the test."""
    table = RecordView("units.table", unit_kind(places.queue))
    qtbot.addWidget(table)
    table.set_rows([UnitRow(n, 100, "Orders", 0, 0, 0, None, [], "ok", "", False, 0, b"") for n in (100, 200)])
    table.go_to(1)
    model = LogModel()
    model.log = LogSource(cast("Any", SimpleNamespace(min_offset=0, end_offset=900, known_end=900)))
    export = LogExport(model, table, table)
    (tmp_path / "store").mkdir()
    begun: list[object] = []
    jobs = SimpleNamespace(start=lambda work: (work.close(), begun.append(work)))
    unread = SimpleNamespace(edge="complete")
    store = tmp_path / "store"
    line = partial(command_line, path=store)
    export.session = cast("Any", SimpleNamespace(path=store, jobs=jobs, unread=unread, command_line=line))
    cast("Any", export).begun = begun
    return export


def choice(target: Path, scope: str = "all", **options: Any) -> Choice:
    return Choice(scope, "jsonl", target, False, (), **options)


def test_rows_are_those_of_the_scope_without_the_ignored(exports: LogExport, tmp_path: Path) -> None:
    exports._model.put_marks(RowMarks(frozenset({100, 200}), frozenset({100})))
    assert exports.plan(choice(tmp_path / "a", "row")).offsets == (200,)
    assert exports.plan(choice(tmp_path / "a", "marked")).offsets == (200,)
    plan = exports.plan(choice(tmp_path / "a"))
    assert (plan.offsets, plan.where) == (None, "not physicalOffset in (100)")


def test_nothing_is_written_into_the_store(exports: LogExport, tmp_path: Path) -> None:
    emitted: list[str] = []
    exports.statusText.connect(emitted.append)
    exports.begin(choice(tmp_path / "store" / "rows.jsonl"))
    assert (emitted, cast("Any", exports).begun) == (["Nothing is written into the store: choose another folder."], [])
    exports.begin(choice(tmp_path / "rows.jsonl"))
    assert len(cast("Any", exports).begun) == 1


def test_the_result_is_one_line(exports: LogExport, tmp_path: Path) -> None:
    plan = exports.plan(choice(tmp_path / "rows.jsonl"))
    done = cast("ExportResult", SimpleNamespace(rows=12, looked=900, complete=True, reason="", odd=2, cut=0))
    result_text = exports.result_text(done, plan)
    assert result_text.startswith("12 rows written to ")
    assert "complete" in result_text
    assert "with blanks and spans of damage: 2" in result_text
    cut = cast("ExportResult", SimpleNamespace(rows=1, looked=900, complete=False, reason="stopped", odd=0, cut=3))
    assert "not complete: stopped" in exports.result_text(cut, plan)
    assert exports.result_text(cut, plan).count("·") >= 2


def test_the_operation_log_gets_the_command_that_gives_the_same(exports: LogExport, tmp_path: Path) -> None:
    noted: list[tuple[Any, ...]] = []
    exports.operationDone.connect(lambda *reported: noted.append(reported))
    item = choice(tmp_path / "rows.jsonl", "row")
    done = cast("ExportResult", SimpleNamespace(rows=1))
    exports._note(item, exports.plan(item), done)
    command, _words, parameters, equal = noted[0]
    assert (command, parameters["rows"], parameters["written"]) == ("export.table", "row", 1)
    assert "storescope units" in equal
    assert "'physicalOffset in (200)'" in equal
    assert equal.endswith("rows.jsonl")
