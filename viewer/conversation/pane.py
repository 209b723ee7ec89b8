"""The view Conversation: a name in, all units of its messages out, as a list of steps and as one text to read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QCompleter, QSizePolicy, QVBoxLayout, QWidget

from engine.errors import StoreError
from viewer.conversation.conversation_model import SEARCHING, STEP, ConversationModel
from viewer.conversation.conversation_work import ConversationAnswer, ConversationQuery, ConversationRow, body_texts
from viewer.conversation.reading_text import ReadingText, TextHit
from viewer.look.assets import tr, words
from viewer.look.theme import px
from viewer.pane import Pane
from viewer.pane.table_commands import command_copier, table_commands
from viewer.pane.view_tabs import CHAIN, CONVERSATION, SearchTabs
from viewer.runtime import places
from viewer.runtime.jobs import Cancelled
from viewer.runtime.places import Place
from viewer.runtime.worker import WorkerDied
from viewer.widgets.basics import Button, Field, Label, PaneHead, ThemedPanel
from viewer.widgets.boxes import fill, fixed_row, splitter, stacked
from viewer.widgets.columns import RecordKind, number_column, text_column
from viewer.widgets.find_line import FindLine
from viewer.widgets.flow import WrappedRow
from viewer.widgets.record_state import state_of
from viewer.widgets.record_view import RecordView
from viewer.widgets.search_term import SearchTerm
from viewer.widgets.table_state import TableState

if TYPE_CHECKING:
    from viewer.runtime.store_session import StoreSession

HIT = RecordKind(
    "conversationHit",
    (
        number_column("number", words("Hit"), 60, filterable=False),
        number_column("step", words("Step"), 60, filterable=False),
        text_column("excerpt", words("Text around it"), 300, mono=True, filterable=False),
    ),
)


class ConversationPane(Pane):
    """The form above; the steps and the hits on the left, the text with its find line on the right."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("conversation.pane")
        self.model = ConversationModel()
        self._hits: list[TextHit] = []
        self._hit_number = 0
        self._term: SearchTerm | None = None
        self.table = RecordView("conversation.steps", STEP)
        self.table.setAccessibleName(tr("Steps of the conversation"))
        self.table.placeRequested.connect(self.placeRequested)
        self.table.rowChosen.connect(self._choose_step)
        self.hits = RecordView("conversation.hits", HIT)
        self.hits.setAccessibleName(tr("Hits"))
        self.hits.rowChosen.connect(self._choose_hit)
        self.text = ReadingText()
        self.text.placeRequested.connect(self.placeRequested)
        self.text.stepReached.connect(lambda number: self.table.go_to_row(number - 1))
        self.find_line = FindLine("conversation.find", ("text", "regex"))
        self.find_line.bodies.hide()
        self.find_line.hitRequested.connect(self._step_hit)
        self.find_line.closed.connect(self._close_find)
        self.find_line.hide()
        self._head = PaneHead(tr("Conversation"), "")
        self._hits_head = PaneHead(tr("Hits"), "")
        self._hits_box = stacked(self._hits_head, self.hits, self.hits.strip, room=1)
        self._hits_box.hide()
        left = splitter(True, (stacked(self._head, self.table, self.table.strip, room=1), 420), (self._hits_box, 180))
        right = stacked(self.find_line, self.text, room=1)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.setSpacing(0)
        fill(outer, (self._form(), splitter(False, (left, 660), (right, 680))))
        outer.setStretch(1, 1)
        self.lead = self.field
        self._show_state()

    def _form(self) -> ThemedPanel:
        form = ThemedPanel("pane", ("bottom",))
        self.field = self._field("conversation.field", tr("Key, unique key, message id, offset or topic/queue/offset"))
        self.field.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.field.setMinimumWidth(px(160))
        self.topic = self._field("conversation.topic", tr("any topic"), 150)
        self.topic.setAccessibleName(tr("Topic"))
        start = Button(tr("Follow it"), "primary")
        start.setObjectName("conversation.start")
        start.clicked.connect(self.ask)
        copy = Button(tr("Copy as command"), "flat")
        copy.clicked.connect(self._copy_command)
        tabs = SearchTabs("conversation.tabs", CONVERSATION)
        tabs.otherViewChosen.connect(self._open_other_tab)
        line = WrappedRow(gap=8, line_gap=0, line_height=39)
        form.setLayout(line)
        line.setContentsMargins(px(12), 0, px(8), 1)
        topic_field = fixed_row(Label(tr("Topic"), 12, "text3"), self.topic)
        fill(line, (tabs, self.field, topic_field, start, copy))
        return form

    def _field(self, name: str, hint: str, width: int = 0) -> Field:
        field = Field(hint, code=True, width=width)
        field.setObjectName(name)
        field.returnPressed.connect(self.ask)
        return field

    def _open_other_tab(self, key: str) -> None:
        text, topic = self.field.text().strip(), self.topic.text().strip()
        place = places.trace(topic, text) if key == CHAIN else Place("where", topic=topic, key=text)
        self.placeRequested.emit(place)

    # ---- what the window calls ---------------------------------------------------------------------------------------

    def set_session(self, session: StoreSession | None) -> None:
        """Show another store, with an empty form."""
        super().set_session(session)
        self.model.forget_store()
        self.table.copier = None if session is None else command_copier(self.table, session.command_line)
        self.field.clear()
        self.topic.clear()
        self._close_find()
        self._fill()
        if session is not None:
            session.surveyed.connect(self._offer_topics)
            self._offer_topics()

    def show_place(self, place: Place) -> None:
        """Follow what ``place`` names; without a name, focus the field."""
        if not place.key:
            self.field.setFocus()
            self.field.selectAll()
            return
        if self.model.is_new(ConversationQuery(place.key, place.topic)):
            self.field.setText(place.key)
            self.topic.setText(place.topic)
            self.ask()

    def retheme(self) -> None:
        """Apply fonts and colours."""
        self.table.refresh_look()
        self.hits.refresh_look()

    def busy(self) -> bool:
        """Return True while a search runs."""
        return self.model.running

    def status(self) -> str:
        """Return messages, units and duration."""
        return self.model.summary()

    def focus_stops(self) -> Sequence[QWidget]:
        """Return the parts between which F6 moves the focus."""
        return self.field, self.table, self.text

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the commands for copying, stepping and finding."""
        return {
            **table_commands(self, lambda: self.table, "conversation.jsonl"),
            "find.open": self._open_find,
            "find.next": lambda: self._step_hit(1),
            "find.previous": lambda: self._step_hit(-1),
            "copy.cli": self._copy_command,
        }

    # ---- asking ------------------------------------------------------------------------------------------------------

    def ask(self) -> None:
        """Follow what the fields name."""
        if not self.field.text().strip():
            self.field.setFocus()
            return
        if self.session is None:
            return
        query = self.model.begin(self.field.text(), self.topic.text())
        if query is not None:
            self._fill()
            self.session.jobs.start(self._ask(self.session, query))

    async def _ask(self, session: StoreSession, query: ConversationQuery) -> None:
        answer: ConversationAnswer | None = None
        error = ""
        events = tuple(session.timeline.events) if session.timeline is not None else ()
        try:
            answer = await session.jobs.in_worker(
                tr(SEARCHING),
                "viewer.conversation.conversation_work:read_rows",
                session.path,
                session.config,
                query,
                events,
            )
            if answer is not None:
                rows = answer.rows
                answer = replace(answer, rows=await session.jobs.quick(lambda: body_texts(rows)))
            else:
                error = tr("The search was stopped.")
        except Cancelled:
            error = tr("The search was stopped.")
        except (StoreError, OSError, WorkerDied, RuntimeError) as exception:
            error = str(exception)
        if session is not self.session:
            return
        if answer is None:
            self.model.fail(error)
        else:
            self.model.end(answer)
        self._fill()
        self.placeMoved.emit(self.model.place())
        self.statusMessage.emit(self.model.summary())

    def _fill(self) -> None:
        rows = self.model.rows
        self.table.set_rows(list(rows))
        self.text.show_rows(rows)
        self._head.set_note(self.model.summary())
        self._forget_hits()
        if rows:
            self.table.go_to_row(0)
        self._show_state()

    def _show_state(self) -> None:
        retry = self._open_where if self.model.answer is not None else self.ask
        self.table.set_state(state_of(self.model.table_state(), retry))
        self.hits.set_state(state_of(TableState("empty", tr("Not found")) if not self._hits else None))

    def _open_where(self) -> None:
        question = self.model.question
        self.placeRequested.emit(Place("where", topic=question.topic, key=question.text))

    def _choose_step(self, row: ConversationRow | None) -> None:
        if row is None:
            return
        self.text.show_step(row.number)
        if self.session is not None and row.physical_offset is not None:
            self.session.select(row.physical_offset)

    # ---- find --------------------------------------------------------------------------------------------------------

    def _open_find(self) -> None:
        self.find_line.focus()

    def _close_find(self) -> None:
        self._forget_hits()
        self.find_line.hide()
        self.text.setFocus()

    def _forget_hits(self) -> None:
        self._hits, self._hit_number, self._term = [], 0, None
        self.text.forget_hits()
        self.hits.set_rows([])
        self._hits_box.hide()
        self.find_line.say("")

    def _step_hit(self, step: int) -> None:
        """Go to the next hit (1) or the one before (−1); the first time, list all of them."""
        if self.find_line.isHidden():
            self._open_find()
            if not self.find_line.field.text():
                return
        term = self.find_line.sought()
        if term is None:
            return
        if term != self._term:
            self._hits, self._hit_number, self._term = self.text.find_hits(term), 0, term
            self.hits.set_rows(list(self._hits))
            self._hits_box.setVisible(bool(self._hits))
            self._show_state()
        if not self._hits:
            self.find_line.say(tr("Not found"), "warn")
            self.statusMessage.emit(tr("Not found"))
            return
        count = len(self._hits)
        next_number = self._hit_number + step if self._hit_number else 1 if step > 0 else count
        self._go_to_hit((next_number - 1) % count + 1)

    def _go_to_hit(self, number: int) -> None:
        self._hit_number = number
        hit = self._hits[number - 1]
        self.text.show_hit(self._hits, hit)
        place_text = tr("{n:,} of {all}", n=number, all=f"{len(self._hits):,}")
        self.find_line.say(place_text, "ok")
        self._hits_head.set_note(place_text)
        self.hits.go_to_row(number - 1)

    def _choose_hit(self, hit: TextHit | None) -> None:
        if hit is not None and hit.number != self._hit_number:
            self._go_to_hit(hit.number)

    # ---- other -------------------------------------------------------------------------------------------------------

    def _copy_command(self) -> None:
        command = self.model.command()
        if self.session is not None and command:
            text = self.session.command_line(command)
            QGuiApplication.clipboard().setText(text)
            self.statusMessage.emit(tr("Copied: {text}", text=text))

    def _offer_topics(self) -> None:
        survey = self.session.survey if self.session is not None else None
        if survey is not None:
            completer = QCompleter([topic.name for topic in survey.topics], self.topic)
            completer.setCaseSensitivity(completer.caseSensitivity().CaseInsensitive)
            self.topic.setCompleter(completer)
