"""The view SQL: a question, and its answer as rows, as a chart, or as the plan of DuckDB."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QPoint, QTimer
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QMenu, QPlainTextEdit, QStackedWidget, QVBoxLayout, QWidget

from engine.errors import StoreError
from engine.files.temporary_folders import TemporaryFolder, hold_new
from viewer.look.assets import tr, tr_plural, words
from viewer.look.engine_words import engine_words
from viewer.look.theme import follow, mono, px, ui
from viewer.pane import Pane
from viewer.pane.exporting import TableExportBox
from viewer.pane.plot_library import plot_library
from viewer.pane.table_commands import command_copier, table_commands
from viewer.runtime.jobs import Cancelled
from viewer.runtime.places import Place
from viewer.runtime.store_session import StoreSession, in_store
from viewer.runtime.worker import WorkerDied
from viewer.sql.answers import Answer, AnswerFile, Question, Refusal, SqlRow, Vocabulary, rows_of
from viewer.sql.chart import CHART_ROWS, ChartData, Form, chart_of, usual_form, value_columns
from viewer.sql.completion import Words
from viewer.sql.editor import Editor
from viewer.sql.examples import EXAMPLES
from viewer.sql.relations_tree import RelationsTree
from viewer.sql.result_columns import result_kind
from viewer.sql.sql_model import SqlModel
from viewer.widgets.basics import Button, PaneHead, ThemedPanel, ToolButton
from viewer.widgets.boxes import splitter, stacked
from viewer.widgets.choices import ChoiceField, TickBox
from viewer.widgets.columns import RecordKind, gutter
from viewer.widgets.live_plot import Bar, Curve, LivePlot
from viewer.widgets.record_state import State, StateLine, state_of
from viewer.widgets.record_view import RecordView
from viewer.widgets.row_window import ListSource
from viewer.widgets.word_tabs import WordTabs

if TYPE_CHECKING:
    from viewer.runtime.settings import Settings

ASK, EXPORT, VOCABULARY = (f"viewer.sql.sql_work:{name}" for name in ("ask", "export", "vocabulary"))
LOAD_PLOTS_AFTER_MS = 1000
"""Time after which an idle view loads the plots."""
ROWS, CHART, PLAN = "rows", "chart", "plan"
FORMS = (
    ("csv", words("CSV: one line a row")),
    ("jsonl", words("JSON lines: every field")),
    ("parquet", words("Parquet: columns with their types")),
)
MAX_MENU_CHARACTERS = 80
NO_COLUMNS = RecordKind("sqlRow", (gutter(12),))


class SqlPane(Pane):
    """A sheet with one question at a time. Earlier ones are in the settings."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("sql.pane")
        self.model = SqlModel()
        self._settings: Settings | None = None
        self._task: asyncio.Task[Any] | None = None
        self._folder: TemporaryFolder | None = None
        self._file_number = 0
        self._is_reading_words = False
        self._chart_generation = 0
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(splitter(True, (self._question_part(), 270), (self._answer_part(), 430)))
        self.lead = self.editor
        self._show()

    # ---- building ----------------------------------------------------------------------------------------------------

    def _question_part(self) -> QWidget:
        self.editor = Editor()
        self.editor.runRequested.connect(self.run)
        self.editor.stopRequested.connect(self.stop)
        self.editor.olderRequested.connect(self.show_older)
        self.editor.textChanged.connect(self._text_changed)
        self.relations = RelationsTree()
        self.relations.wordChosen.connect(self.editor.insert)
        self.examples = Button(tr("Examples"), "flat")
        self.examples.setObjectName("sql.examples")
        self.examples.clicked.connect(lambda: self._drop(self.examples, self.examples_menu()))
        self.history = Button(tr("History"), "flat")
        self.history.setObjectName("sql.history")
        self.history.setToolTip(tr("Earlier questions (Alt+Up, Alt+Down)"))
        self.history.clicked.connect(lambda: self._drop(self.history, self.history_menu()))
        self.with_bodies = TickBox(tr("with bodies"))
        self.with_bodies.setObjectName("sql.bodies")
        self.with_bodies.setAccessibleName(tr("units have the columns of bodies, also of decoded ones"))
        self.with_bodies.setToolTip(self.with_bodies.accessibleName())
        self.with_bodies.setFont(ui(12))
        self.explain_button = Button(tr("Explain"))
        self.explain_button.setObjectName("sql.explain")
        self.explain_button.setToolTip(tr("Show the plan of DuckDB"))
        self.explain_button.clicked.connect(self.explain)
        self.run_button = Button(tr("Ask"), "primary")
        self.run_button.setObjectName("sql.run")
        self.run_button.setToolTip("Ctrl+Enter")
        self.run_button.clicked.connect(self.run_or_stop)
        self.head = PaneHead(
            tr("Question"),
            "",
            self.examples,
            self.history,
            self.with_bodies,
            self.explain_button,
            self.run_button,
        )
        self.fault = StateLine()
        self.fault.setObjectName("sql.fault")
        self.relations_head = PaneHead(tr("Relations"), tr("Enter writes the name"))
        editor = stacked(_padded(self.editor), self.fault, room=0)
        beside = stacked(self.relations_head, self.relations, room=1)
        beside.setMinimumWidth(px(220))
        return stacked(self.head, splitter(False, (editor, 720), (beside, 280)), room=1)

    def _answer_part(self) -> QWidget:
        self.tabs = WordTabs("sql.tabs", ((ROWS, tr("Rows")), (CHART, tr("Chart")), (PLAN, tr("Plan"))))
        self.tabs.chosen.connect(lambda _key: self._show_page())
        self.form = ChoiceField()
        self.form.setObjectName("sql.chart.form")
        self.form.setAccessibleName(tr("Form of the chart"))
        for key, text in (("bars", tr("Bars")), ("lines", tr("Lines"))):
            self.form.addItem(text, key)
        self.column = ChoiceField()
        self.column.setObjectName("sql.chart.column")
        self.column.setAccessibleName(tr("Column of the bars"))
        for field in (self.form, self.column):
            field.setFont(ui(12))
            field.setSizeAdjustPolicy(ChoiceField.SizeAdjustPolicy.AdjustToContents)
            field.activated.connect(lambda _index: self._draw_chart())
        self.export_button = ToolButton("save", tr("Export all rows… (Ctrl+E)"), tr("Export"))
        self.export_button.setObjectName("sql.export")
        self.export_button.clicked.connect(self.ask_export)
        self.answer_head = PaneHead(tr("Result"), "", self.form, self.column, self.export_button, 8, self.tabs)
        self.table = RecordView("sql.table", NO_COLUMNS, runner=self._read)
        self.table.setAccessibleName(tr("Rows of the answer"))
        self.table.placeRequested.connect(self.placeRequested)
        self.table.rowChosen.connect(self._chosen)
        self.table.failed.connect(lambda error: self.statusMessage.emit(engine_words(str(error))))
        self.chart = LivePlot("sql.chart", tr("Chart"))
        self.plan = QPlainTextEdit()
        self.plan.setObjectName("sql.plan")
        self.plan.setAccessibleName(tr("Plan of DuckDB"))
        self.plan.setReadOnly(True)
        self.plan.setProperty("bare", True)
        self.plan.setFrameShape(QPlainTextEdit.Shape.NoFrame)
        self.plan.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.plan.setTabChangesFocus(True)
        follow(self.plan, lambda: self.plan.setFont(mono(12)))
        self.plan.setFont(mono(12))
        self.pages = QStackedWidget()
        for page in (stacked(self.table, self.table.strip, room=0), self.chart, self.plan):
            self.pages.addWidget(page)
        return stacked(self.answer_head, self.pages, room=1)

    # ---- what the window calls ---------------------------------------------------------------------------------------

    def use(self, settings: Settings) -> None:
        """Remember questions between starts."""
        self._settings = settings

    def set_session(self, session: StoreSession | None) -> None:
        """Show another store; nothing is asked by itself."""
        self.stop()
        super().set_session(session)
        self.model.forget_store()
        self.table.copier = None if session is None else command_copier(self.table, session.command_line)
        self._give_up_files()
        self._fill()
        if session is not None:
            session.forgotten.connect(self._show_states)
        if self.isVisible():
            self._read_words()

    def show_place(self, place: Place) -> None:
        """Show the view; a question in the place is asked, unless it is the one that is answered already."""
        self._read_words()
        if place.name and (self.model.answer is None or self.model.answer.question.text != place.name):
            self.editor.set_text(place.name)
            self.run()

    def refresh(self) -> None:
        """Say that the answer is of an earlier time; the user may ask again."""
        self._show_states()

    def showEvent(self, event: QShowEvent) -> None:
        """Read the words of questions, and what charts need while the user writes a question."""
        super().showEvent(event)
        self._read_words()
        QTimer.singleShot(LOAD_PLOTS_AFTER_MS, self, lambda: plot_library.load(self, lambda: None))
        self._show_states()

    def retheme(self) -> None:
        """Apply fonts and colours."""
        self.table.refresh_look()

    def status(self) -> str:
        """Return how many rows there are."""
        return self.model.summary()

    def busy(self) -> bool:
        """Return True while a question is asked."""
        return self.model.is_running and self.isVisible()

    def focus_stops(self) -> Sequence[QWidget]:
        """Return the parts between which F6 moves the focus."""
        return self.editor, self.relations, self.tabs, self.table, self.plan

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the commands of the sheet, and those of its table."""
        return table_commands(self, lambda: self.table, "answer.csv") | {
            "sql.run": self.run,
            "sql.explain": self.explain,
            "sql.bodies": self.with_bodies.toggle,
            "export.table": self.ask_export,
        }

    # ---- asking ------------------------------------------------------------------------------------------------------

    def run_or_stop(self) -> None:
        """Ask, or stop what is asked."""
        if self.model.is_running:
            self.stop()
        else:
            self.run()

    def run(self) -> None:
        """Ask the question in the editor."""
        self._ask(self._question(self.editor.toPlainText()))

    def _question(self, text: str) -> Question:
        """Return a question with what the tick box asks for."""
        has_rules = self.session is not None and bool(self.session.decoding_rules)
        with_bodies = self.with_bodies.isChecked()
        return Question(text, with_bodies, is_decoded=with_bodies and has_rules)

    def explain(self) -> None:
        """Show the plan of the question in the editor."""
        text = self.editor.toPlainText()
        is_plan = text.lstrip().upper().startswith("EXPLAIN")
        self._ask(self._question(text if is_plan else f"EXPLAIN {text}"), is_shown=False)

    def show_more(self) -> None:
        """Ask the same question for more rows."""
        question = self.model.next_question()
        if question is not None:
            self._ask(question, is_shown=False)

    def ask_again(self) -> None:
        """Ask the question of the answer again."""
        if self.model.answer is not None:
            self._ask(self.model.answer.question, is_shown=False)

    def stop(self) -> None:
        """Stop the question that runs."""
        if self._task is not None:
            self._task.cancel()

    def _ask(self, question: Question, *, is_shown: bool = True) -> None:
        """Ask in the worker. ``is_shown``: it is the text of the editor, which the history keeps."""
        session = self.session
        if session is None or not question.text.strip() or self.model.is_running:
            return
        if is_shown and self._settings is not None:
            self._settings.remember_question(question.text.strip())
            self.model.used_index = -1
        if is_shown:
            line = session.command_line(question.command)
            self.operationDone.emit("sql.run", tr("Ask in SQL"), {"question": question.text.strip()}, line)
        self.model.begin()
        self._show()
        self._task = session.jobs.start(self._answer(session, question))

    async def _answer(self, session: StoreSession, question: Question) -> None:
        patches = session.patches
        try:
            file = await session.jobs.quick(self._new_file)
            answer = await session.jobs.in_worker(
                tr("Asking in SQL"), ASK, session.path, session.config, question, file
            )
        except (Cancelled, asyncio.CancelledError):
            self.model.stop()
        except (StoreError, OSError, WorkerDied, RuntimeError) as error:
            self.model.fail(str(error))
        else:
            if session is not self.session:
                return
            self._take(answer, patches, question)
            return
        finally:
            self._task = None
        if session is self.session:
            self._show()

    def _take(self, answer: Answer | Refusal, patches: tuple[Any, ...], question: Question) -> None:
        previous = self.model.answer
        self.model.take(answer, patches)
        if isinstance(answer, Refusal):
            self._show_refusal(answer, question)
        elif answer.is_plan:
            self.plan.setPlainText(self.model.plan)
            self.tabs.choose(PLAN)
        else:
            if previous is not None and previous.file is not None:
                with contextlib.suppress(OSError):
                    previous.file.unlink()
            self._fill()
            if self.tabs.key == PLAN:
                self.tabs.choose(ROWS)
        self._show()
        self.statusUpdated.emit(self.status())

    def _show_refusal(self, refusal: Refusal, question: Question) -> None:
        """Mark the wrong characters, if the editor still has the text of the question."""
        shift = question.text.find(self.editor.toPlainText())
        if refusal.start is not None and shift >= 0:
            self.editor.show_fault(max(refusal.start - shift, 0), refusal.length)

    def _new_file(self) -> Path:
        if self._folder is None:
            self._folder = hold_new(Path(tempfile.gettempdir()), "storescope-answers-")
        self._file_number += 1
        return self._folder.path / f"{self._file_number}.arrow"

    def _give_up_files(self) -> None:
        folder, self._folder = self._folder, None
        if folder is not None:
            folder.give_up()

    def _read_words(self) -> None:
        """Read the words of questions once; the worker knows whether DuckDB is there."""
        session = self.session
        if session is None or self._is_reading_words or self.model.vocabulary is not None:
            return
        self._is_reading_words = True
        session.jobs.start(self._take_words(session))

    async def _take_words(self, session: StoreSession) -> None:
        try:
            vocabulary: Vocabulary = await session.jobs.in_worker(tr("Reading the words of SQL"), VOCABULARY)
        except (Cancelled, asyncio.CancelledError, WorkerDied, RuntimeError):
            return
        finally:
            self._is_reading_words = False
        self.model.vocabulary = vocabulary
        self.editor.use(Words(vocabulary))
        self.relations.show_vocabulary(vocabulary)
        self._show()

    # ---- earlier questions and examples ------------------------------------------------------------------------------

    def show_older(self, step: int) -> None:
        """Show the question that was used before the shown one, or after it."""
        used = self._settings.questions if self._settings is not None else []
        if used:
            text = self.model.older(used, step, self.editor.toPlainText())
            index = self.model.used_index
            self.editor.set_text(text)
            self.model.used_index = index

    def _text_changed(self) -> None:
        self.model.used_index = -1
        if self.model.refusal is not None or self.model.error:
            self.model.refusal, self.model.error = None, ""
            self._show_fault()

    def examples_menu(self) -> QMenu:
        """Return the menu of questions to begin with."""
        menu = QMenu(self.examples)
        menu.setObjectName("sql.examples.menu")
        for example in EXAMPLES:
            menu.addAction(tr(example.title)).triggered.connect(partial(self._put, example.text))
        return menu

    def history_menu(self) -> QMenu:
        """Return the menu of earlier questions, newest first."""
        menu = QMenu(self.history)
        menu.setObjectName("sql.history.menu")
        used = self._settings.questions if self._settings is not None else []
        for text in used:
            line = " ".join(text.split())
            shown = line if len(line) <= MAX_MENU_CHARACTERS else f"{line[:MAX_MENU_CHARACTERS]}…"
            action = menu.addAction(shown.replace("&", "&&"))
            action.setToolTip(text)
            action.triggered.connect(partial(self._put, text))
        if not used:
            menu.addAction(tr("No question was asked yet.")).setEnabled(False)
        return menu

    def _put(self, text: str, _on: bool = False) -> None:
        self.editor.set_text(text)
        self.editor.setFocus()

    def _drop(self, button: QWidget, menu: QMenu) -> None:
        menu.aboutToHide.connect(menu.deleteLater)
        menu.popup(button.mapToGlobal(QPoint(0, button.height())))

    # ---- showing -----------------------------------------------------------------------------------------------------

    def _read(self, work: Callable[[], Any], done: Callable[[Any], None], failed: Callable[[Exception], None]) -> None:
        if self.session is not None:
            self.session.jobs.read(work, done, failed)

    def _fill(self) -> None:
        """Show the rows of the answer, or none."""
        answer = self.model.answer
        self.table.set_rows([])  # rows of one answer do not fit the columns of another
        if answer is None:
            self.table.set_kind(NO_COLUMNS)
        else:
            self.table.set_kind(result_kind(answer))
            self.table.set_source(ListSource(rows_of(answer)) if answer.rows is not None else AnswerFile(answer))
            if answer.row_count and answer.rows is not None:
                self.table.go_to_row(0)
            self.table.horizontalHeader().setToolTip(
                "" if answer.rows is not None else tr("So many rows are not sorted here: write ORDER BY.")
            )
            self._fill_chart_choices(answer)
        self._show_page()
        self._show()

    def _fill_chart_choices(self, answer: Answer) -> None:
        self.form.setCurrentIndex(self.form.findData(usual_form(answer.columns)))
        self.column.clear()
        for name in value_columns(answer.columns):
            self.column.addItem(name, name)

    def _show(self) -> None:
        """Show what the model says, except for the rows."""
        running = self.model.is_running
        text = tr("Stop") if running else tr("Ask")
        if self.run_button.text() != text:
            self.run_button.setText(text)
            self.run_button.setAccessibleName(text)
            self.run_button.setProperty("kind", "" if running else "primary")
            self.run_button.style().polish(self.run_button)
            self.run_button.retheme()
        can_ask = self.model.vocabulary is None or not self.model.vocabulary.missing
        for part in (self.run_button, self.explain_button):
            part.setEnabled(can_ask and self.session is not None)
        self.export_button.setEnabled(self.model.answer is not None)
        self.answer_head.set_note(self.model.head_note())
        self._show_fault()
        self._show_states()

    def _show_fault(self) -> None:
        text = self.model.fault()
        self.fault.show_state(State("error", text) if text else None)

    def _show_states(self) -> None:
        """Show what is said in the table's place, or below its rows."""
        model, session = self.model, self.session
        state = state_of(model.table_state())
        if state is None and session is not None:
            stale = model.stale_words(session.snapshot.log.end_offset, session.patches)
            again = (tr("Ask again"), self.ask_again)
            if model.is_running:
                state = State("loading", tr("Asking the store…"), steps=((tr("Stop"), self.stop),))
            elif model.cut_words():
                more = (tr("Show {n:,}", n=model.next_limit()), self.show_more)
                words_of_both = f"{model.cut_words()} {stale}".strip()
                state = State("cut", words_of_both, steps=(more, again if stale else (tr("Export…"), self.ask_export)))
            elif stale:
                state = State("stale", stale, steps=(again,))
            elif model.is_stopped:
                state = State("note", tr("The question was stopped."))
        self.table.set_state(state)

    def _show_page(self) -> None:
        number = (ROWS, CHART, PLAN).index(self.tabs.key)
        self.pages.setCurrentIndex(number)
        is_chart = self.tabs.key == CHART
        has_answer = self.model.answer is not None
        self.form.setVisible(is_chart and has_answer)
        self.column.setVisible(
            is_chart and has_answer and self.form.currentData() == "bars" and self.column.count() > 1
        )
        if is_chart:
            self._draw_chart()

    def _chosen(self, row: SqlRow | None) -> None:
        offset = row.get("physicalOffset") if row is not None else None
        if self.session is not None and isinstance(offset, int) and self.table.hasFocus():
            self.session.select(offset)

    # ---- chart -------------------------------------------------------------------------------------------------------

    def _draw_chart(self) -> None:
        answer, session = self.model.answer, self.session
        self._chart_generation += 1
        if answer is None or session is None:
            self.chart.show_nothing(tr("Ask a question first: its first column is the axis, its numbers are drawn."))
            return
        if not plot_library.loaded:
            plot_library.load(self, self._draw_chart, lambda error: self.chart.show_nothing(str(error)))
            return
        form: Form = self.form.currentData()
        self.column.setVisible(form == "bars" and self.column.count() > 1)
        chosen_column = self.column.currentData() or ""
        generation, source = self._chart_generation, self.table.source

        def work() -> ChartData:
            rows = source.read(0, 0, CHART_ROWS).rows
            return chart_of(answer.columns, rows, answer.row_count, form, chosen_column)

        def done(data: ChartData) -> None:
            if generation == self._chart_generation:
                self._show_chart(data)

        session.jobs.read(work, done, lambda error: self.chart.show_nothing(engine_words(str(error))))

    def _show_chart(self, data: ChartData) -> None:
        self.chart.set_title(tr("Chart"), data.note)
        if data.why:
            self.chart.show_nothing(data.why)
        elif data.form == "bars":
            self.chart.show_bars([Bar(bar.name, "posLog", bar.value, bar.words) for bar in data.bars])
        else:
            curves = [Curve(line.name, line.role, line.xs, line.ys, " ") for line in data.series]
            self.chart.show_curves(curves, times=data.are_times)

    # ---- export ------------------------------------------------------------------------------------------------------

    def ask_export(self) -> TableExportBox | None:
        """Ask for a file, and write all rows of the answer into it."""
        answer, session = self.model.answer, self.session
        if answer is None or session is None:
            self.statusMessage.emit(tr("There is nothing to export yet."))
            return None
        box = TableExportBox("answer.csv", Path.home(), self, FORMS)
        question = replace(answer.question)
        box.exportRequested.connect(lambda path: self.export(question, path))
        box.open()
        return box

    def export(self, question: Question, target: Path) -> None:
        """Write all rows that answer ``question`` into ``target``, in a job that can be cancelled."""
        session, say = self.session, self.statusMessage.emit
        if session is None or session.closed:
            return
        if in_store(session.path, target):
            say(tr("Nothing is written into the store: choose another folder."))
            return

        async def work() -> None:
            try:
                count = await session.jobs.in_worker(
                    tr("Exporting {name}", name=target.name), EXPORT, session.path, session.config, question, target
                )
            except Cancelled:
                say(tr("The export was stopped; no file was written."))
            except (StoreError, OSError, WorkerDied, RuntimeError) as error:
                say(f"{target}: {engine_words(str(error))}")
            else:
                message = tr_plural(
                    "{n:,} row written to {path}", "{n:,} rows written to {path}", n=count, path=str(target)
                )
                say(session.unread.beside(message))

        session.jobs.start(work())


def _padded(editor: Editor) -> QWidget:
    ground = ThemedPanel("pane")
    box = QVBoxLayout(ground)
    box.setContentsMargins(px(8), px(6), px(4), px(4))
    box.addWidget(editor)
    return ground
