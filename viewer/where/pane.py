"""View with one search field, a verdict in words, and the evidence with every place a link."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QCompleter, QSizePolicy, QVBoxLayout, QWidget

from engine.errors import StoreError
from engine.inspection.copy_out import copy_found
from viewer.look.assets import tr
from viewer.look.engine_words import engine_words
from viewer.look.theme import px
from viewer.pane import Pane
from viewer.pane.log_survey import LogSurvey
from viewer.pane.table_commands import table_commands
from viewer.pane.view_tabs import CHAIN, MESSAGE, SearchTabs
from viewer.runtime import places
from viewer.runtime.jobs import Cancelled
from viewer.runtime.places import Place
from viewer.where.history_line import HistoryLine
from viewer.where.where_model import SEARCHING, WhereModel
from viewer.where.words import (
    EVIDENCE,
    RESULTS,
    ROUTES,
    EvidenceRow,
    RouteRow,
    entry_text,
    evidence_rows,
    route_rows,
    verdict_chip,
    verdict_meaning,
)
from viewer.where.work import WhereQuery, log_offsets
from viewer.widgets.basics import Button, Field, Hairline, Label, Link, PaneHead, StatusMark, ThemedPanel
from viewer.widgets.boxes import column, empty, fill, fixed_row, row, splitter, stacked
from viewer.widgets.flow import WrappedRow
from viewer.widgets.focus import set_reading_order
from viewer.widgets.line_strip import LineStrip
from viewer.widgets.log_line import LinePin
from viewer.widgets.record_state import state_of
from viewer.widgets.record_view import RecordView

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot
    from engine.inspection.where.evidence import WhereResult
    from viewer.runtime.store_session import StoreSession


class WherePane(Pane):
    """View that answers for one message, or for every message of a key."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("where.pane")
        self.model = WhereModel()
        self.strip = LineStrip("where.line")
        self.strip.offsetChosen.connect(lambda offset: self.placeRequested.emit(places.log(offset)))
        self._survey = LogSurvey(self.strip)
        self.table = RecordView("where.results", RESULTS)
        self.table.setAccessibleName(tr("Matching messages"))
        self.table.rowChosen.connect(self._show_result)
        self.evidence = RecordView("where.evidence", EVIDENCE)
        self.evidence.setAccessibleName(tr("Chain of evidence"))
        self.routes = RecordView("where.routes", ROUTES)
        self.routes.setAccessibleName(tr("Ways to the message"))
        self.routes.rowChosen.connect(self._show_route)
        for part in (self.table, self.evidence, self.routes):
            part.placeRequested.connect(self.placeRequested)
        self._results_head = PaneHead(tr("Messages"))
        self._evidence_head = PaneHead(tr("Evidence"), tr("in the order in which it was found; every place is a link"))
        self._routes_head = PaneHead(tr("Ways to it"), tr("by its place, its queue, each key and each group"))
        left_column = splitter(
            True,
            (stacked(self._results_head, self.table, self.table.strip), 260),
            (stacked(self._routes_head, self.routes, self.routes.strip), 340),
        )
        self._sentence = Label("", 12, "text2", wrap=True, select=True)
        self._sentence.setObjectName("where.says")
        self.evidence.rowChosen.connect(self._show_sentence)
        sentence_box = column(self._sentence, margins=(14, 8, 14, 10))
        right_column = stacked(
            self._verdict_box(),
            self._evidence_head,
            self.evidence,
            self.evidence.strip,
            Hairline(),
            sentence_box,
            room=2,
        )
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.setSpacing(0)
        fill(outer, (self.strip, self._form(), splitter(False, (left_column, 440), (right_column, 860))))
        outer.setStretch(2, 1)
        self.lead = self.field
        self._show_state()

    def _form(self) -> ThemedPanel:
        form = self._form_paper = ThemedPanel("pane", ("bottom",))
        self.field = self._field(
            "where.field", tr("Message id, unique key, key, T#tags, offset or topic/queue/offset"), 0
        )
        self.topic = self._field("where.topic", tr("any topic"), 150)
        self.topic.setAccessibleName(tr("Topic"))
        self.group = self._field("where.group", tr("any group"), 150)
        self.group.setAccessibleName(tr("Consumer group"))
        look = Button(tr("Look for it"), "primary")
        look.setObjectName("where.look")
        look.clicked.connect(self.ask)
        copy = Button(tr("Copy as command"), "flat")
        copy.clicked.connect(self._copy_command)
        line = WrappedRow(gap=8, line_gap=0, line_height=39)
        form.setLayout(line)
        line.setContentsMargins(px(12), 0, px(8), 1)
        tabs = SearchTabs("where.tabs", MESSAGE)
        tabs.otherViewChosen.connect(self._open_other_tab)
        fill(
            line,
            (
                tabs,
                self.field,
                fixed_row(Label(tr("Topic"), 12, "text3"), self.topic),
                fixed_row(Label(tr("Group"), 12, "text3"), self.group),
                look,
                copy,
            ),
        )
        return form

    def _open_other_tab(self, key: str) -> None:
        """Open the conversation or the chain of the key in the form."""
        text, topic = self.field.text().strip(), self.topic.text().strip()
        place = places.trace(topic, text) if key == CHAIN else Place("conversation", topic=topic, key=text)
        self.placeRequested.emit(place)

    def _field(self, name: str, hint: str, width: int) -> Field:
        field = Field(hint, code=True, width=width)
        field.setObjectName(name)
        field.returnPressed.connect(self.ask)
        if not width:
            field.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
            field.setMinimumWidth(px(160))
        return field

    def _verdict_box(self) -> ThemedPanel:
        self._box = ThemedPanel("pane", ("bottom",))
        self._verdict = Label("", 18, "text", 600)
        self._verdict.setObjectName("where.verdict")
        self._chip = row(gap=0)
        self._entry = Label("", 12, "text2", code=True, select=True)
        self._meaning = Label("", 13, "text", wrap=True, select=True)
        self._step = Label("", 12, "text2", wrap=True, select=True)
        self._step.setObjectName("where.next")
        self.history_line = HistoryLine()
        self.history_line.placeRequested.connect(self.placeRequested)
        self._copy_out_link = Link(tr("Copy the command that copies it out"))
        self._copy_out_link.setObjectName("where.copyOut")
        self._copy_out_link.clicked.connect(self._copy_out)
        steps = row(Label(tr("Next step"), 12, "text3"), self._step, gap=8)
        steps.box.setStretch(1, 1)
        inner = column(
            row(self._chip, self._verdict, None, self._entry, gap=10),
            self._meaning,
            self.history_line,
            steps,
            row(self._copy_out_link, None),
            gap=6,
            margins=(14, 12, 14, 12),
        )
        box = QVBoxLayout(self._box)
        box.setContentsMargins(0, 0, 0, 1)
        box.addWidget(inner)
        return self._box

    # ---- what the window calls ---------------------------------------------------------------------------------------

    def set_session(self, session: StoreSession | None) -> None:
        """Show another store, with an empty form."""
        super().set_session(session)
        self._survey.set_session(session)
        self.model.forget_store()
        for field in (self.field, self.topic, self.group):
            field.clear()
        self._fill()
        if session is not None:
            self._survey.read_extent()
            session.jobs.read(lambda: known_groups(session.snapshot), self._offer_groups, lambda _error: None)
            session.surveyed.connect(self._offer_topics)
            self._offer_topics()

    def show_place(self, place: Place) -> None:
        """Search for what ``place`` names; without a name, focus the field."""
        if not place.key:
            self.field.setFocus()
            self.field.selectAll()
            return
        question = WhereQuery(place.key, place.topic, place.name)
        if self.model.is_new(question):
            self.field.setText(question.text)
            self.topic.setText(question.topic)
            self.group.setText(question.group)
            self.ask()

    def refresh(self) -> None:
        """Draw the log again after the store has grown; earlier results may be outdated."""
        self._survey.on_log_grown()

    def retheme(self) -> None:
        """Apply fonts and colours."""
        self.table.refresh_look()
        self.evidence.refresh_look()
        self.routes.refresh_look()

    def busy(self) -> bool:
        """Return True while a search runs."""
        return self.model.running

    def status(self) -> str:
        """Return the verdict in one sentence."""
        return self.model.summary

    def focus_stops(self) -> Sequence[QWidget]:
        """Return the parts between which F6 moves the focus."""
        return self.field, self.table, self.routes, self.evidence

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the commands for copying and stepping in the focused table."""
        return {
            **table_commands(self, self._focused_table, "where.jsonl"),
            "copy.cli": self._copy_command,
            "copy.out": self._copy_out,
        }

    def _focused_table(self) -> RecordView:
        return next((table for table in (self.table, self.routes) if table.hasFocus()), self.evidence)

    # ---- asking ------------------------------------------------------------------------------------------------------

    def ask(self) -> None:
        """Search for what the fields contain."""
        if not self.field.text().strip():
            self.field.setFocus()
            return
        if self.session is None:
            return
        question = self.model.begin(self.field.text(), self.topic.text(), self.group.text())
        if question is not None:
            self._fill()
            self.session.jobs.start(self._ask(self.session, question))

    async def _ask(self, session: StoreSession, question: WhereQuery) -> None:
        answer, error = None, ""
        try:
            answer = await session.jobs.in_worker(
                tr(SEARCHING), "viewer.where.work:where_of", session.path, session.config, question
            )
        except Cancelled:
            error = tr("The search was stopped.")
        except (StoreError, OSError, RuntimeError) as exception:
            error = str(exception)
        if session is not self.session:
            return
        if answer is not None:
            self.model.end(answer, has_unread=bool(session.unread))
        else:
            self.model.fail(error)
        self._fill()
        self.placeMoved.emit(self.model.place())
        self.statusMessage.emit(self.model.summary)

    def _fill(self) -> None:
        self.table.set_rows(list(self.model.results))
        self._results_head.set_note(self.model.head_note())
        if self.model.results:
            offsets = log_offsets(self.model.results)
            self.strip.set_pins([LinePin(offset, "note", self.model.question.text) for offset in offsets])
            self.table.go_to_row(0)
        else:
            self._show_result(None)
        self._show_state()

    def _show_state(self) -> None:
        self.table.set_state(
            state_of(self.model.table_state(), self._filter_tags if self.model.lacks_tags else self.ask)
        )
        for table in (self.evidence, self.routes):
            table.set_state(state_of(self.model.detail_state()))

    def _show_result(self, result: WhereResult | None) -> None:
        layout = self._chip.box
        empty(layout)
        self._box.setVisible(result is not None)
        if result is None:
            self.evidence.set_rows([])
            self.routes.set_rows([])
            self._show_sentence(None)
            return
        chip = verdict_chip(result)
        layout.addWidget(StatusMark(chip.kind, 6))
        self._verdict.setText(chip.word)
        self._entry.setText(entry_text(result))
        meaning = verdict_meaning(result)
        if self.session is not None:
            meaning = self.session.unread.beside(meaning)
        self._meaning.setText(meaning)
        self._step.setText(engine_words(result.next_step))
        self.history_line.show_result(result)
        self._copy_out_link.setVisible(bool(self._copy_out_command(result)))
        self._copy_out_link.setToolTip(self._copy_out_command(result))
        set_reading_order(self)
        self.routes.set_rows(list(route_rows(result)))
        rows = evidence_rows(result)
        self.evidence.set_rows(list(rows))
        if rows:
            self.evidence.go_to_row(0)
        if result.physical_offset is not None:
            self.strip.set_frame(result.physical_offset, result.physical_offset + 1)
        summary = self.model.describe(result, meaning)
        self.setAccessibleDescription(summary)
        if self.isVisible():
            self.statusMessage.emit(summary)

    def _show_sentence(self, row: EvidenceRow | None) -> None:
        """Show the selected piece of evidence as a full sentence."""
        text = tr("{n}. {what}: {contents}", n=row.number, what=row.what, contents=row.holds) if row is not None else ""
        self._sentence.setText(text)

    def _show_route(self, row: RouteRow | None) -> None:
        """Explain why the selected route leads to the message, or does not."""
        if row is not None:
            self._sentence.setText(f"{row.route.value}: {row.chip.word}. {row.explanation}")

    def _copy_command(self) -> None:
        command = self.model.command()
        if self.session is not None and command:
            self._copy_text(self.session.command_line(command))

    def _filter_tags(self) -> None:
        """Show the units of the log that have the tags."""
        self.placeRequested.emit(self.model.filter_of_tags())

    def _copy_out_command(self, result: WhereResult | None) -> str:
        """Return the command that copies the message out; "" if none of it remains."""
        if self.session is None or result is None:
            return ""
        return self.session.with_config(copy_found(self.session.snapshot, result))

    def _copy_out(self) -> None:
        """Copy that command for the selected message to the clipboard."""
        command = self._copy_out_command(self.table.current_row())
        if command:
            self._copy_text(command)
        else:
            self.statusMessage.emit(tr("Nothing of this message can be copied out."))

    def _copy_text(self, text: str) -> None:
        QGuiApplication.clipboard().setText(text)
        self.statusMessage.emit(tr("Copied: {text}", text=text))

    # ---- what may be typed -------------------------------------------------------------------------------------------

    def _offer_topics(self) -> None:
        survey = self.session.survey if self.session is not None else None
        if survey is not None:
            self._offer(self.topic, [topic.name for topic in survey.topics])

    def _offer_groups(self, groups: list[str]) -> None:
        self._offer(self.group, groups)

    def _offer(self, field: Field, names: list[str]) -> None:
        completer = QCompleter(names, field)
        completer.setCaseSensitivity(completer.caseSensitivity().CaseInsensitive)
        field.setCompleter(completer)


def known_groups(store: StoreSnapshot) -> list[str]:
    """Return the names of the groups that have offsets in the store's tables; reads the disk."""
    from engine.inspection.tables import offsets

    return sorted({row.group for row in offsets(store)})
