"""The index: files with their headers, the load of their slots, and the trace of a key through all of them.

A trace is drawn lane by lane as a query walks, newest file first; every step is a row of the table below, and step,
card, slot and file are one selection. Whatever has a unit leads there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

from PySide6.QtCore import Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QFrame, QMenu, QScrollArea, QStackedWidget, QVBoxLayout, QWidget

from engine.codec.index_keys import key_text
from engine.errors import StoreError
from viewer.index.chain_canvas import ChainCanvas
from viewer.index.columns import chain_kind, file_kind, step_kind
from viewer.index.facts import ChainRow, FileRow, chain_rows, file_rows, slot_of_entry
from viewer.index.hash_strip import HashStrip
from viewer.index.index_model import CHAIN, FILES, STEPS, IndexModel
from viewer.index.slot_map import SlotPanel
from viewer.index.trace_form import TraceForm
from viewer.index.trace_lanes import ChainLane, StepRow, TraceQuery, TraceResult, ask_near, with_lanes
from viewer.index.trace_words import command_of, sentence, strip_parts, verdict_links
from viewer.look.assets import tr
from viewer.look.theme import px
from viewer.pane import Pane
from viewer.pane.table_commands import command_copier, table_commands
from viewer.pane.table_find import find_or
from viewer.runtime import places
from viewer.runtime.jobs import Cancelled
from viewer.runtime.places import Place
from viewer.runtime.store_session import StoreSession
from viewer.widgets.basics import Button, Link, PaneHead, StatusMark
from viewer.widgets.boxes import empty, fill, row, splitter, stacked
from viewer.widgets.record_menu import build_menu
from viewer.widgets.record_state import State, state_of
from viewer.widgets.record_view import RecordView


class IndexPane(Pane):
    """The view of the index files."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.model = IndexModel()
        self._filling = False
        self._build()
        self.strip.show_parts(strip_parts(None))
        self._show_chips(None)

    # ---- building ----------------------------------------------------------------------------------------------------

    def _build(self) -> None:
        self.form, self.strip, self.slots, self.canvas = (
            TraceForm(),
            HashStrip(),
            SlotPanel(),
            ChainCanvas(self._menu_of_step),
        )
        self.files = self._table("index.files", file_kind(places.log), tr("Index files"))
        self.chain = self._table("index.chain", chain_kind(places.log), tr("Chain of the chosen slot"))
        self.steps = self._table("trace.steps", step_kind(places.log), tr("Steps of the trace"))
        self._scroll = QScrollArea()
        self._scroll.setFrameShape(QFrame.Shape.NoFrame)
        self._scroll.setWidgetResizable(True)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._scroll.setWidget(self.canvas)
        self._scroll.setFocusProxy(self.canvas)
        self._top, self._lower = QStackedWidget(), QStackedWidget()
        self._top_switch = self._switch(
            self._top, (tr("Files"), stacked(self.files, self.files.strip, room=0)), (tr("Chain"), self._scroll)
        )
        self._lower_switch = self._switch(
            self._lower,
            (tr("Steps"), stacked(self.steps, self.steps.strip, room=0)),
            (tr("Slot"), stacked(self.chain, self.chain.strip, room=0)),
        )
        self._chips = row(gap=8)
        self._top_head = PaneHead(tr("Files"), "", self._chips, *self._top_switch)
        self._lower_head = PaneHead(tr("Steps"), "", *self._lower_switch)
        upper = stacked(self._top_head, self._top)
        lower = splitter(False, (stacked(self._lower_head, self._lower), 740), (self.slots, 500))
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        fill(box, (self.form, self.strip, splitter(True, (upper, 480), (lower, 330))))
        box.setStretch(2, 1)
        self._connect()
        self._show_pages()

    def _table(self, name: str, kind: Any, accessible: str) -> RecordView:
        table = RecordView(name, kind)
        table.setAccessibleName(accessible)
        table.placeRequested.connect(self.placeRequested)
        return table

    def _switch(self, stack: QStackedWidget, *pages: tuple[str, QWidget]) -> list[Button]:
        buttons = []
        for number, (words, page) in enumerate(pages):
            stack.addWidget(page)
            button = Button(words, "pill")
            button.setCheckable(True)
            low = stack is self._lower
            button.clicked.connect(lambda _=False, n=number, low=low: self.show_page(**{"low" if low else "top": n}))
            buttons.append(button)
        return buttons

    def _connect(self) -> None:
        self.form.traceRequested.connect(self.trace)
        self.form.copyRequested.connect(self._copy_command)
        self.form.messageRequested.connect(lambda: self._look_for("where"))
        self.form.conversationRequested.connect(lambda: self._look_for("conversation"))
        self.files.rowChosen.connect(self._file_chosen)
        self.steps.rowChosen.connect(self._step_chosen)
        self.canvas.chosen.connect(self._card_chosen)
        self.canvas.stepFollowed.connect(self._follow_step)
        self.slots.slotChosen.connect(self._slot_picked)

    def show_page(self, top: int | None = None, low: int | None = None) -> None:
        """Files (0) or the chain of the trace (1) above; its steps (0) or the chosen slot (1) below."""
        self.model.show_page(top, low)
        self._show_pages()

    def _show_pages(self) -> None:
        for stack, buttons, page in (
            (self._top, self._top_switch, self.model.top_page),
            (self._lower, self._lower_switch, self.model.low_page),
        ):
            stack.setCurrentIndex(page)
            for number, button in enumerate(buttons):
                button.setChecked(number == page)
        self._show_heads()

    # ---- what the window calls ---------------------------------------------------------------------------------------

    def set_session(self, session: StoreSession | None) -> None:
        """Show another store, or none."""
        super().set_session(session)
        self.model.forget_store()
        self.slots.set_session(session)
        if session is None:
            self.form.clear()
        for table in (self.files, self.chain, self.steps):
            table.set_rows([])
            table.set_state(None)
            table.copier = None if session is None else command_copier(table, session.command_line)
        self.canvas.show_lanes([])
        self.strip.show_parts(strip_parts(None))
        self._show_chips(None)
        self._show_pages()
        if session is None:
            return
        self.steps.set_state(state_of(self.model.steps_state()))
        self.chain.set_state(State("hint", tr("Choose a slot in the map: its chain is shown here.")))
        self.files.set_state(State("loading", tr("Looking at the index files")))
        session.surveyed.connect(self._offer_topics)
        session.findingsChanged.connect(self._mark_files)
        self._offer_topics()
        self._load_files()

    def show_place(self, place: Place) -> None:
        """Bring a file, a slot, an entry or the trace of a key into view."""
        if self.session is None:
            self.model.pending_place = place
        elif place.kind == "trace":
            self.form.show_question(place.topic, place.key)
            if place.topic and place.key:
                self._ask_from(place)
            else:
                (self.form.topic if place.key else self.form.key).setFocus()
        elif place.name and not self.model.files:
            self.model.pending_place = place
        elif place.name:
            self._show_file_place(place)

    def refresh(self) -> None:
        """Read the headers again after the store has grown, once the view is visible."""
        if self.model.grow(visible=self.isVisible()):
            self._load_files()

    def showEvent(self, event: QShowEvent) -> None:
        """Refresh if the store grew while the view was hidden."""
        super().showEvent(event)
        if self.model.is_stale:
            self.refresh()

    def retheme(self) -> None:
        """Colours, fonts or zoom changed."""
        for table in (self.files, self.chain, self.steps):
            table.refresh_look()
        self.canvas.update()

    def focus_stops(self) -> Sequence[QWidget]:
        """Return the parts between which F6 moves the focus."""
        return self.files, self.canvas, self.form.key, self.steps, self.chain

    def commands(self) -> dict[str, Callable[[], object]]:
        """Copying and stepping act on the table in front."""
        return {
            **table_commands(self, self._front, "index.jsonl"),
            "trace.open": self.form.focus_key,
            "copy.cli": self._copy_command if self.model.answer else lambda: self._front().copy_current("cli"),
            "find.next": lambda: find_or(self, self._front, 1, self._next_step),
            "find.previous": lambda: find_or(self, self._front, -1, self._next_step),
            "problem.next": lambda: self._next_step(1, problem=True),
            "problem.previous": lambda: self._next_step(-1, problem=True),
        }

    def status(self) -> str:
        """Return the result of the trace, or the number of files."""
        return self.model.status()

    def _front(self) -> RecordView:
        below = self.steps if self.model.low_page == STEPS else self.chain
        return self.files if self.files.hasFocus() or not below.total_rows() else below

    # ---- files -------------------------------------------------------------------------------------------------------

    def _offer_topics(self) -> None:
        if self.session is not None and self.session.survey is not None:
            self.form.offer_topics([topic.name for topic in self.session.survey.topics])

    def _load_files(self) -> None:
        session = self.session
        if session is None:
            return

        def done(rows: list[FileRow]) -> None:
            if session is self.session:
                self._show_files(rows)

        def failed(error: Exception) -> None:
            if session is self.session:
                self.files.set_state(State("error", str(error)))

        session.jobs.read(lambda: file_rows(session.snapshot), done, failed)

    def _mark_files(self) -> None:
        """Mark the files in which the check found something."""
        if self.model.files:
            self._show_files(self.model.files)

    def _show_files(self, rows: list[FileRow]) -> None:
        if not self.model.take_files(rows, self.session.findings if self.session is not None else None):
            return
        chosen = self.files.current_row()
        self._filling = True
        self.files.set_rows(self.model.files)
        self.files.set_state(state_of(self.model.files_state()))
        self._show_heads()
        if self.model.files:
            self.files.go_to((self.model.index_of_file(chosen.name) if chosen is not None else None) or 0)
        self._filling = False
        step = self.steps.current_row()
        if step is not None:
            self._step_chosen(step)
        place = self.model.take_pending_place()
        if place is not None:
            self.show_place(place)

    def _file_chosen(self, chosen: FileRow | None) -> None:
        if chosen is None:
            return
        self.slots.show_file(chosen.name, chosen.used or 0)
        if not self._filling:
            self.placeMoved.emit(places.index(chosen.name))

    def _show_file_place(self, place: Place) -> None:
        index = self.model.index_of_file(place.name)
        if index is None:
            self.statusMessage.emit(tr("No index file is named {name}.", name=place.name))
            return
        self.show_page(top=FILES)
        self.files.go_to(index)
        if place.offset is None or self.session is None:
            return
        if place.part == "slot":
            self._load_chain(place.name, place.offset)
            return
        store, name, number = self.session.snapshot, place.name, place.offset

        def done(slot: int | None) -> None:
            if slot is None:
                self.statusMessage.emit(tr("{file} has no entry {n:,}.", file=name, n=number))
            else:
                self._load_chain(name, slot, number)

        self.session.jobs.read(lambda: slot_of_entry(store, name, number), done, self._failed)

    # ---- one slot ----------------------------------------------------------------------------------------------------

    def _slot_picked(self, slot: int) -> None:
        chosen = self.files.current_row()
        if chosen is not None:
            self._load_chain(chosen.name, slot)

    def _load_chain(self, name: str, slot: int, entry: int | None = None) -> None:
        if self.session is None:
            return
        generation, store = self.model.begin_chain(name, slot), self.session.snapshot
        self._show_pages()

        def done(rows: list[ChainRow]) -> None:
            if self.model.is_current_chain(generation):
                self._show_chain(slot, rows, entry)

        self.session.jobs.read(lambda: chain_rows(store, name, slot), done, self._failed)

    def _show_chain(self, slot: int, rows: list[ChainRow], entry: int | None) -> None:
        self.chain.set_rows(rows)
        self.chain.set_state(None if rows else State("empty", tr("No entry in slot {slot:,}.", slot=slot)))
        self.slots.choose(slot, sum(row.verdict in {"ok", "gone"} for row in rows))
        row_number = next((n for n, row in enumerate(rows) if row.entry == entry), None)
        if row_number is not None:
            self.chain.go_to(row_number)
        self._show_heads()

    # ---- the trace ---------------------------------------------------------------------------------------------------

    def _look_for(self, view: Literal["where", "conversation"]) -> None:
        """Open another view with the key of the form."""
        key = key_text(self.form.key.text().strip(), self.form.index_type.currentData())
        self.placeRequested.emit(Place(view, topic=self.form.topic.text().strip() if key else "", key=key))

    def _ask_from(self, place: Place) -> None:
        question = self.form.question()
        if question is not None:
            near = None if place.offset is None or place.time is None else (place.offset, place.time)
            self.trace(replace(question, near=near))

    def trace(self, question: TraceQuery) -> None:
        """Walk the index for a key, off the loop; an older trace under way is dropped."""
        if self.session is not None:
            self.session.jobs.start(self._trace(self.session, question, self.model.begin_trace()))

    async def _trace(self, session: StoreSession, question: TraceQuery, generation: int) -> None:
        self.strip.show_parts(strip_parts(question))
        self.steps.set_rows([])
        self.steps.set_state(State("loading", tr("Walking the chains of {key}", key=question.text)))
        try:
            answer, drawn = await session.jobs.run(
                tr("Trace of {key}", key=question.text),
                lambda control: with_lanes(ask_near(session.snapshot, question, control.stop)),
            )
        except (Cancelled, StoreError, OSError) as error:
            if self.model.is_current_trace(generation):
                self.steps.set_state(State("error", str(error) or tr("The trace was stopped.")))
            return
        if self.model.is_current_trace(generation) and session is self.session:
            self.show_answer(answer, drawn)

    def show_answer(self, answer: TraceResult, drawn: list[ChainLane]) -> None:
        self.model.take_answer(answer)
        question = answer.question
        if question.near and question.begin is not None and question.end is not None:
            self.form.show_window(question.begin, question.end)
        self.canvas.show_lanes(drawn)
        self.steps.set_kind(step_kind(places.log, question.text))
        self.steps.set_rows(list(answer.steps))
        self.steps.set_state(state_of(self.model.steps_state()))
        self.strip.show_parts(strip_parts(answer.question, answer))
        self._show_chips(answer)
        self._show_pages()
        self._scroll.verticalScrollBar().setValue(0)
        first_step = self.model.first_step()
        if first_step is not None:
            self.steps.go_to(first_step.step - 1)
        self.placeMoved.emit(places.trace(question.topic, question.indexed_text, *(question.near or (None, None))))
        self.statusMessage.emit(sentence(answer))

    def _step_chosen(self, step: StepRow | None) -> None:
        if step is None:
            return
        self.canvas.choose(step.step)
        box = self.canvas.place_of(step.step)
        if box is not None:
            self._scroll.ensureVisible(int(box.x + box.width), int(box.y + box.height), px(24), px(24))
            self._scroll.ensureVisible(int(box.x), int(box.y), px(24), px(24))
        shown_slot = self.model.slot_of_step(step)
        if shown_slot is not None:
            self.slots.show_file(shown_slot.file.name, shown_slot.file.used or 0)
            self.slots.choose(shown_slot.slot, shown_slot.length)
        if self.session is not None and step.phy_offset is not None and step.verdict in {"match", "collision"}:
            self.session.select(step.phy_offset)

    def _card_chosen(self, step: int) -> None:
        self.show_page(low=STEPS)
        self.steps.go_to(step - 1)

    def _menu_of_step(self, step: int) -> QMenu | None:
        """Return the menu of the card's row, for its cell with the physical offset."""
        step_row = self.model.step(step)
        columns = [column.key for column in self.steps.kind.columns]
        return build_menu(self.steps, step_row, columns.index("phyOffset")) if step_row is not None else None

    def _follow_step(self, step: int) -> None:
        step_row = self.model.step(step)
        if step_row is not None and step_row.phy_offset is not None:
            self.placeRequested.emit(places.log(step_row.phy_offset))

    def _next_step(self, way: int, *, problem: bool = False) -> None:
        """Choose the next (−1: previous) match, or the next step where something is wrong."""
        if self.model.answer is None:
            return
        number = self.model.next_step(self.steps.current_row(), way, problem=problem)
        if number is not None:
            self.steps.go_to(number - 1)
        else:
            self.statusMessage.emit(tr("No further problem.") if problem else tr("No further match."))

    # ---- words -------------------------------------------------------------------------------------------------------

    def _show_heads(self) -> None:
        for head, (title, note) in (
            (self._top_head, self.model.top_head()),
            (self._lower_head, self.model.low_head()),
        ):
            head.set_title(title)
            head.set_note(note)
        self._chips.setVisible(self.model.top_page == CHAIN)

    def _show_chips(self, answer: TraceResult | None) -> None:
        layout = self._chips.box
        empty(layout)
        for shape, words, step in verdict_links(answer) if answer is not None else ():
            link = Link(words)
            link.clicked.connect(lambda n=step: self._go_to_step(n))
            layout.addWidget(row(StatusMark(shape, 5), link, gap=4))

    def _go_to_step(self, step: int) -> None:
        """Choose a step in the table, and its card."""
        self.show_page(low=STEPS)
        self.steps.go_to(step - 1)

    def _copy_command(self) -> None:
        from PySide6.QtWidgets import QApplication

        question = self.form.question()
        if question is None or self.session is None:
            return
        text = self.session.command_line(command_of(question))
        QApplication.clipboard().setText(text)
        self.statusMessage.emit(tr("Copied: {text}", text=text))

    def _failed(self, error: Exception) -> None:
        self.statusMessage.emit(str(error))
