"""The view SQL on a store: questions, answers, mistakes, stops, places, chart and export."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import golden_stores
import pytest
from handmade_stores import healthy
from panes import on_store, wait_until, wait_until_idle
from PySide6.QtWidgets import QMenu

from viewer.runtime import places
from viewer.runtime.places import Place
from viewer.runtime.settings import Settings
from viewer.sql import sql_work
from viewer.sql.answers import Vocabulary
from viewer.sql.examples import EXAMPLES
from viewer.sql.pane import SqlPane
from viewer.widgets.record_state import State
from viewer.widgets.row_window import ListSource

PLACES = "SELECT topic, queueId, queueOffset, physicalOffset FROM units ORDER BY physicalOffset"
LONG = "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range % 7 = b.range % 11"


async def answered(pane: SqlPane) -> None:
    await wait_until(lambda: not pane.model.is_running, "the question is answered")


async def ask(pane: SqlPane, text: str) -> None:
    pane.editor.set_text(text)
    pane.run()
    await answered(pane)


def state_of(pane: SqlPane) -> State | None:
    return pane.table.note.state or pane.table.strip.state


def state_text(pane: SqlPane) -> str:
    state = state_of(pane)
    return state.text if state is not None else ""


def test_an_answer_leads_back_to_the_places_in_the_store(qapp: Any, tmp_path: Path) -> None:
    store = healthy()
    root = store.write(tmp_path / "store")
    before = golden_stores.fingerprint(root)
    settings = Settings(tmp_path / "settings")

    async def drive(pane: SqlPane, session: Any) -> None:
        pane.use(settings)
        await wait_until(lambda: pane.model.vocabulary is not None, "the words are read")
        assert pane.relations.topLevelItemCount() == 10
        assert "count" in pane.editor.words.functions
        assert state_text(pane).startswith("Ctrl+Enter asks.")
        done: list[Any] = []
        pane.operationDone.connect(lambda *values: done.append(values))
        await ask(pane, PLACES)
        assert pane.table.total_rows() == len(store.units)
        assert pane.status() == f"{len(store.units)} rows"
        assert done[0][0] == "sql.run"
        assert "storescope sql" in done[0][3]
        emitted: list[Place] = []
        pane.placeRequested.connect(emitted.append)
        unit = store.units[2]
        pane.table.go_to_row(2)
        columns = [column.key for column in pane.table.kind.columns]
        for name in ("physicalOffset", "queueOffset"):
            pane.table.setCurrentIndex(pane.table.table.index(2, columns.index(name)))
            assert pane.table.follow()
        assert emitted == [places.log(unit.offset), places.queue(unit.topic, unit.queue_id, unit.queue_offset)]
        assert isinstance(pane.table.source, ListSource)
        assert settings.questions == [PLACES]
        await ask(pane, "SELECT 1 AS n WHERE false")
        assert state_text(pane) == "No row answers this question."
        assert settings.questions == ["SELECT 1 AS n WHERE false", PLACES]
        pane.show_older(1)
        assert pane.editor.toPlainText() == PLACES
        pane.show_older(-1)
        assert pane.editor.toPlainText() == "SELECT 1 AS n WHERE false"
        assert len(pane.history_menu().actions()) == 2
        pane.show_place(Place("sql", name="SELECT 7 AS n"))
        await answered(pane)
        assert pane.table.kind.as_text(pane.table.current_row()) == "7"

    on_store(qapp, SqlPane, root, drive)
    assert golden_stores.changes(before, golden_stores.fingerprint(root)) == []


def test_a_mistake_is_one_line_and_marked_and_the_answer_before_it_stays(qapp: Any, tmp_path: Path) -> None:
    root = healthy().write(tmp_path / "store")

    async def drive(pane: SqlPane, _session: Any) -> None:
        await ask(pane, "SELECT 7 AS n")
        await ask(pane, "SELECT topic,\n nothing FROM units")
        assert pane.fault.state is not None
        assert 'column "nothing" not found' in pane.fault.state.text
        assert "\n" not in pane.fault.state.text
        (mark,) = pane.editor.extraSelections()
        assert mark.cursor.selectedText() == "nothing"
        assert pane.table.total_rows() == 1
        pane.explain()
        await answered(pane)
        (mark,) = pane.editor.extraSelections()
        assert mark.cursor.selectedText() == "nothing"
        pane.editor.insert("x")
        assert pane.fault.state is None
        assert pane.editor.extraSelections() == []
        await ask(pane, "DELETE FROM units")
        assert pane.fault.state is not None
        assert "a store is only read" in pane.fault.state.text

    on_store(qapp, SqlPane, root, drive)


def test_a_long_question_is_stopped_with_esc_or_from_the_list_of_jobs(qapp: Any, tmp_path: Path) -> None:
    root = healthy().write(tmp_path / "store")

    async def drive(pane: SqlPane, session: Any) -> None:
        await wait_until(lambda: pane.model.vocabulary is not None, "the words are read")
        pane.editor.set_text(LONG)
        pane.run()
        await wait_until(lambda: bool(session.jobs.list))
        assert pane.run_button.text() == "Stop"
        pane.editor.stopRequested.emit()
        await answered(pane)
        assert pane.run_button.text() == "Ask"
        assert state_text(pane) == "The question was stopped."
        pane.run()
        await wait_until(lambda: bool(session.jobs.list))
        session.jobs.list[0].cancel()
        await answered(pane)
        assert state_text(pane) == "The question was stopped."
        await ask(pane, "SELECT 7 AS n")
        assert pane.table.total_rows() == 1

    on_store(qapp, SqlPane, root, drive)


def test_a_cut_answer_shows_more_and_a_long_one_is_read_in_pages(qapp: Any, tmp_path: Path) -> None:
    root = healthy().write(tmp_path / "store")

    async def drive(pane: SqlPane, session: Any) -> None:
        await ask(pane, "SELECT a.range AS n, 'x' AS word FROM range(250000) a")
        assert pane.table.total_rows() == 100_000
        assert state_text(pane) == "First 100,000 rows. An export writes all of them."
        assert not isinstance(pane.table.source, ListSource)
        assert not pane.table.horizontalHeader().sectionsClickable()
        state_of(pane).steps[0][1]()
        await answered(pane)
        assert pane.table.total_rows() == 250_000
        assert state_of(pane) is None
        pane.table.last_row()
        await wait_until(lambda: (row := pane.table.current_row()) is not None and row["n"] == 249_999)
        assert len(pane.table.table.rows) < 2_000
        await wait_until_idle(session.jobs)

    on_store(qapp, SqlPane, root, drive)


def test_a_chart_and_a_plan_are_tabs_of_the_answer(qapp: Any, tmp_path: Path) -> None:
    root = healthy().write(tmp_path / "store")

    async def drive(pane: SqlPane, session: Any) -> None:
        pane.tabs.choose("chart")
        await ask(pane, EXAMPLES[0].text)
        assert (pane.form.currentData(), pane.column.count()) == ("bars", 2)
        await wait_until(lambda: "Orders: " in pane.chart.accessibleDescription(), "the bars are drawn")
        await ask(pane, "SELECT storeTime, count(*) AS n FROM units GROUP BY 1")
        await wait_until_idle(session.jobs)
        assert pane.form.currentData() == "lines"
        assert pane.column.isHidden()
        pane.explain()
        await answered(pane)
        assert pane.tabs.key == "plan"
        assert "storeTime" in pane.plan.toPlainText()
        await ask(pane, "SELECT 7 AS n")
        assert pane.tabs.key == "rows"

    on_store(qapp, SqlPane, root, drive)


def test_all_rows_are_exported(qapp: Any, tmp_path: Path) -> None:
    root = healthy().write(tmp_path / "store")

    async def drive(pane: SqlPane, session: Any) -> None:
        said: list[str] = []
        pane.statusMessage.connect(said.append)
        assert pane.ask_export() is None
        assert said[-1] == "There is nothing to export yet."
        await ask(pane, "SELECT a.range AS n FROM range(150000) a")
        box = pane.ask_export()
        assert box is not None
        assert [box.form.itemData(number) for number in range(box.form.count())] == ["csv", "jsonl", "parquet"]
        box.path.setText(str(tmp_path / "answer.csv"))
        box._go()
        await wait_until_idle(session.jobs)
        assert said[-1].startswith("150,000 rows written to")
        assert len((tmp_path / "answer.csv").read_text().splitlines()) == 150_001
        pane.export(pane.model.answer.question, root / "inside.csv")
        assert said[-1].startswith("Nothing is written into the store")

    on_store(qapp, SqlPane, root, drive)


def test_without_duckdb_the_view_says_what_is_missing(qapp: Any, tmp_path: Path) -> None:
    root = healthy().write(tmp_path / "store")

    async def drive(pane: SqlPane, session: Any) -> None:
        await wait_until(lambda: pane.model.vocabulary is not None, "the words are read")
        pane.model.vocabulary = Vocabulary({}, missing="SQL needs the package duckdb: pip install 'storescope[sql]'")
        pane._show()
        assert "pip install 'storescope[sql]'" in state_text(pane)
        assert not pane.run_button.isEnabled()

    on_store(qapp, SqlPane, root, drive)


def test_an_answer_says_that_the_store_has_grown_since(qapp: Any, tmp_path: Path) -> None:
    root = healthy().write(tmp_path / "store")

    async def drive(pane: SqlPane, session: Any) -> None:
        await ask(pane, "SELECT count(*) FROM units")
        pane.refresh()
        assert state_of(pane) is None
        pane.model.answer = sql_work.Answer(
            **{name: getattr(pane.model.answer, name) for name in pane.model.answer.__slots__} | {"log_end": 1}
        )
        pane.refresh()
        assert state_text(pane).endswith("the store has grown since.")
        state_of(pane).steps[0][1]()
        await answered(pane)
        assert state_of(pane) is None

    on_store(qapp, SqlPane, root, drive)


def test_examples_are_put_into_the_editor(qapp: Any, tmp_path: Path) -> None:
    root = healthy().write(tmp_path / "store")

    async def drive(pane: SqlPane, _session: Any) -> None:
        menu: QMenu = pane.examples_menu()
        assert len(menu.actions()) == len(EXAMPLES)
        menu.actions()[1].trigger()
        assert pane.editor.toPlainText() == EXAMPLES[1].text
        assert not pane.model.is_running, "an example is only written into the editor"
        assert pane.history_menu().actions()[0].text() == "No question was asked yet."

    on_store(qapp, SqlPane, root, drive)


@pytest.mark.golden
def test_a_store_that_is_shown_as_patched_is_asked_as_patched(qapp: Any, tmp_path: Path) -> None:
    from engine.repair.byte_edits import remove_message

    store = healthy()
    root = store.write(tmp_path / "store")

    async def drive(pane: SqlPane, session: Any) -> None:
        text = f"SELECT properties FROM units WHERE physicalOffset = {store.units[1].offset}"
        await ask(pane, text)
        before = dict(pane.table.current_row())
        patches = tuple(remove_message(session.snapshot, store.units[1].offset))
        session.jobs.patched = (session.path, patches)
        await session.read_anew(patches)
        assert state_text(pane).endswith("other patches are shown since.")
        await ask(pane, text)
        assert dict(pane.table.current_row()) != before

    on_store(qapp, SqlPane, root, drive)
