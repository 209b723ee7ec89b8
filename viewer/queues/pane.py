"""The Queues view: a queue as a line, the entries around the selection as cells, and a table with verdicts.

Several queues of several topics can be chosen. The table shows them one after the other; line, cells and side follow
the queue of the selected row. Only rows on the screen are resolved, off the loop. The verdicts of a whole queue are
counted by a job that can be stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

from engine.codec.message import Unit
from viewer.look.assets import plural_words, tr
from viewer.look.engine_words import engine_words
from viewer.look.theme import px
from viewer.pane import Pane
from viewer.pane.histogram_bar import HistogramBar
from viewer.pane.table_commands import command_copier, table_commands
from viewer.pane.view_tabs import ENTRIES_TAB, QueueTabs
from viewer.queues.check_list import CheckList
from viewer.queues.columns import count_words, queue_kind
from viewer.queues.facts import LoadedQueues, QueueKey, look, own_unit
from viewer.queues.picture import QueuePicture
from viewer.queues.queues_model import (
    QueuesModel,
    first_queue,
    queue_of_place,
    queues_of_topics,
    times_term,
    verdict_sentence,
)
from viewer.queues.rows import EntryRow, QueueRow
from viewer.queues.side import QueueSide
from viewer.queues.verdict_counter import VerdictCounter
from viewer.runtime import places
from viewer.runtime.places import Place
from viewer.runtime.store_session import StoreSession
from viewer.runtime.survey import TopicFacts
from viewer.widgets.basics import Button, Label, PaneHead, ThemedPanel, ToolButton
from viewer.widgets.boxes import fill, splitter
from viewer.widgets.flow import WrappedRow
from viewer.widgets.record_state import State
from viewer.widgets.record_view import RecordView

if TYPE_CHECKING:
    from viewer.runtime.settings import Settings

NARROW_FORM = 430
"""Px at 100 % below which the form has no room for its command."""


class _Form(ThemedPanel):
    """The choice of topics and queues. In a narrow pane it hides ``command``, which the menus have, too."""

    def __init__(self, command: Button) -> None:
        super().__init__("pane", ("bottom",))
        self._command = command

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._command.setVisible(self.width() >= px(NARROW_FORM))


class QueuesPane(Pane):
    """The view of the consume queues."""

    entriesAdded = Signal()
    """The queues in front have more entries, and the table's source knows them."""
    table: RecordView

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.model = QueuesModel()
        self._counter = VerdictCounter(self)
        self._wanted: Place | None = None
        self._unasked = False
        """True if the next row was not selected by the user: then the unit selected in the log stays."""
        self._late = False
        self._build()

    def _build(self) -> None:
        self._topic_list = CheckList("queue.topics", tr("Topics"), 220, plural_words("{n:,} topic", "{n:,} topics"))
        self._queue_list = CheckList("queue.queues", tr("Queues"), 150, plural_words("{n:,} queue", "{n:,} queues"))
        self._topic_list.chosen.connect(self._topics_chosen)
        self._queue_list.chosen.connect(self._queues_chosen)
        command = Button(tr("Copy as command"), "flat")
        command.clicked.connect(lambda: self.table.copy_current("cli"))
        form = _Form(command)
        self.tabs = QueueTabs("queue.tabs", ENTRIES_TAB)
        self.tabs.placeRequested.connect(self.placeRequested)
        self.picture, self.side = QueuePicture(), QueueSide()
        self.times = HistogramBar("queue.histogram")
        tools = (Label(tr("Problem"), 12, "text3"), self._step_tool("back", -1), self._step_tool("forward", 1))
        self._head = PaneHead(tr("Entries"), "", *tools)
        self.table = RecordView("queue.table", queue_kind(places.log), runner=self._read)
        self.table.setAccessibleName(tr("Entries of the queue"))
        self._connect()
        main_column = ThemedPanel()
        box = QVBoxLayout(main_column)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        fill(box, (form, self.picture, self.times.strip, self._head, self.table, self.table.strip))
        line = WrappedRow(gap=8, line_gap=0, line_height=39)
        form.setLayout(line)
        line.setContentsMargins(px(12), 0, px(12), 1)
        topic, queue = Label(tr("Topic"), 12, "text3"), Label(tr("Queue"), 12, "text3")
        fill(line, (self.tabs, 8, topic, self._topic_list, queue, self._queue_list, None, command))
        scroll = QScrollArea()
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setWidgetResizable(True)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setWidget(self.side)
        scroll.setMinimumWidth(px(328))
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(splitter(False, (main_column, 890), (scroll, 372)))
        self.lead = self.table

    def _connect(self) -> None:
        self.table.rowChosen.connect(self._row_chosen)
        self.table.placeRequested.connect(self.placeRequested)
        self.table.moved.connect(self.picture.show_window)
        self.picture.entryChosen.connect(self.go_to_entry)
        self.picture.statusText.connect(self.statusMessage)
        self.side.entryRequested.connect(self.go_to_entry)
        self.side.placeRequested.connect(self.placeRequested)
        self.side.continueRequested.connect(self._count_more)
        self.times.filterRequested.connect(lambda text: self.placeRequested.emit(places.filtered("only", text)))
        self.times.offsetRequested.connect(self._on_bar_chosen)
        self._counter.changed.connect(self._counted)
        self._counter.statusText.connect(self.statusMessage)

    def _step_tool(self, icon_name: str, step: int) -> ToolButton:
        button = ToolButton(icon_name, tr("Next problem") if step > 0 else tr("Previous problem"))
        button.clicked.connect(lambda: self.next_problem(step))
        return button

    # ---- what the window calls ---------------------------------------------------------------------------------------

    def use(self, settings: Settings) -> None:
        """Show the time histogram as it was left."""
        self.times.use(settings)

    def set_session(self, session: StoreSession | None) -> None:
        """Show another store, or none."""
        super().set_session(session)
        self.times.set_session(session)
        self._wanted = None
        self.model.forget_store()
        self._forget()
        if session is None:
            self._topic_list.set_items([], [])
            self._queue_list.set_items([], [])
            return
        session.surveyed.connect(self._offer)
        self.table.copier = command_copier(self.table, session.command_line)
        self.table.set_state(State("loading", tr("Looking at the queues")))
        if session.survey is not None:
            self._offer()

    def show_place(self, place: Place) -> None:
        """Bring a topic, a queue or an entry into view."""
        if place.kind != "queue" or not place.topic:
            return
        if self.session is None or self.session.survey is None:
            self._wanted = place
            return
        self._show_wanted(place)

    def refresh(self) -> None:
        """Read bounds and groups again, since the store has grown; the choice stays."""
        self._late = not self.isVisible()
        if self.model.queues and not self._late:
            self._load(self.model.queues, keep=True)

    def showEvent(self, event: QShowEvent) -> None:
        """Refresh if the store grew while the view was hidden."""
        super().showEvent(event)
        if self._late:
            self.refresh()

    def retheme(self) -> None:
        """Apply changed colours, fonts or zoom."""
        self.table.refresh_look()
        self.side.refresh_look()

    def focus_stops(self) -> Sequence[QWidget]:
        """Return the parts between which F6 moves the focus."""
        return self.picture.line, self.picture.cells, self.times.strip, self.table

    def commands(self) -> dict[str, Callable[[], object]]:
        """Copying and stepping act on the table."""
        return {
            **table_commands(self, lambda: self.table, "queue.jsonl"),
            "problem.next": lambda: self.next_problem(1),
            "problem.previous": lambda: self.next_problem(-1),
            **self.times.commands(),
        }

    def status(self) -> str:
        """Return the verdicts of the queue in front, as far as they were counted."""
        return verdict_sentence(self.model.current, self._counter.of(self.model.current))

    # ---- what is chosen ----------------------------------------------------------------------------------------------

    @property
    def _topics(self) -> Sequence[TopicFacts]:
        """Topics of the store, as far as it was surveyed."""
        return self.session.survey.topics if self.session is not None and self.session.survey is not None else ()

    def _offer(self) -> None:
        """The topics of the store, in the list; the first time the busiest queue is opened."""
        if self.session is None or self.session.survey is None:
            return
        topics = self._topics
        self._topic_list.set_items([(topic.name, topic.name) for topic in topics], self.model.topics)
        if not topics:
            self._forget()
            self._offer_queues()
            self.table.set_state(_no_queues(self.session))
        elif self._wanted is not None:
            place, self._wanted = self._wanted, None
            self._show_wanted(place)
        elif not self.model.queues:
            self._load([first_queue(topics)])

    def _show_wanted(self, place: Place) -> None:
        key = queue_of_place(place, self._topics)
        if key in self.model.queues and self.model.source is not None and self._has_queues(place.topic):
            self._go(key, place.queue_offset)
        else:
            self._load([key], place=place)

    def _has_queues(self, name: str) -> bool:
        return any(topic.name == name and topic.queues for topic in self._topics)

    def _topics_chosen(self, names: list[str]) -> None:
        keys = queues_of_topics(names, self._topics)
        if keys:
            self._load(keys)

    def _queues_chosen(self, keys: list[QueueKey]) -> None:
        if keys:
            self._load(keys)

    def _offer_queues(self) -> None:
        self._topic_list.set_items([(topic.name, topic.name) for topic in self._topics], self.model.topics)
        self._queue_list.set_items(self.model.queue_items(self._topics), self.model.queues)

    # ---- reading -----------------------------------------------------------------------------------------------------

    def _read(self, work: Callable[[], Any], done: Callable[[Any], None], failed: Callable[[Exception], None]) -> None:
        if self.session is not None:
            self.session.jobs.read(work, done, failed)

    def _load(self, queues: list[QueueKey], place: Place | None = None, *, keep: bool = False) -> None:
        """Look at the chosen queues off the loop, then show them at a place."""
        if self.session is None:
            return
        generation, store = self.model.choose(queues, again=keep), self.session.snapshot
        self._offer_queues()
        keys = list(self.model.queues)
        self._read(
            lambda: look(store, keys),
            lambda loaded: self._loaded(generation, loaded, place, keep),
            lambda error: self._not_loaded(generation, error),
        )

    def _loaded(self, generation: int, loaded: LoadedQueues, place: Place | None, keep: bool) -> None:
        if generation != self.model.generation or self.session is None:
            return
        if keep and self.model.holds(loaded):
            self._grown(loaded)
            return
        self._forget()
        key = self.model.take(loaded, place)
        self.picture.set_source(self.session, loaded.source)
        if key is None:
            self.table.set_state(State("empty", self.model.missing_words()))
            return
        facts = list(loaded.facts.values())
        self.table.set_state(None)
        self.table.set_kind(
            queue_kind(
                places.log,
                several=len(facts) > 1,
                ext=any(f.has_ext for f in facts),
                batch=any(f.kind == "batch" for f in facts),
                delay=any(f.delayed for f in facts),
                logical=any(f.logical for f in facts),
                priority=any(f.has_priorities for f in facts),
            )
        )
        self.table.setAccessibleName(tr("Entries of the queue"))
        self._show_queue(key)
        self._start_at(key, place.queue_offset if place is not None else None)
        self._counter.count(self.session, [key, *loaded.facts], MAX_COUNTED_UNASKED)

    def _grown(self, loaded: LoadedQueues) -> None:
        """Take a newer reading of the same queues; the rows on the screen stay in place."""
        assert self.session is not None
        longer = self.model.grow(loaded)
        self.table.reload()
        self.entriesAdded.emit()
        current = self.model.current
        if current in self.model.facts:
            self.picture.show_queue(self.model.facts[current], self._counter.of(current))
            self.side.show_queue(self.model.facts[current], self.session)
        if longer and not self._counter.running:
            self._counter.count(self.session, longer, MAX_COUNTED_UNASKED)

    def _start_at(self, key: QueueKey, offset: int | None) -> None:
        source = self.model.source
        assert source is not None
        self._unasked = offset is None
        outside = self.model.outside_words(key, offset)
        if outside:
            self.statusMessage.emit(outside)
        goal = self.model.goal(key, offset)
        self._find(key, goal, lambda place: self.table.set_source(source, start_position=place, choose=True))

    def _find(self, key: QueueKey, offset: int, then: Callable[[int | None], None]) -> None:
        """The row of an entry: by arithmetic, but in a batch queue by a search on the disk."""
        source, generation = self.model.source, self.model.generation
        if source is None:
            return
        if self.model.facts[key].kind == "simple":
            then(source.place_of(*key, offset))
            return

        def done(place: int | None) -> None:
            if generation == self.model.generation:
                then(place)

        self._read(lambda: source.place_of(*key, offset), done, lambda error: self.statusMessage.emit(str(error)))

    def _not_loaded(self, generation: int, error: Exception) -> None:
        if generation == self.model.generation:
            self._forget()
            self.table.set_state(State("error", str(error)))

    def _forget(self) -> None:
        self.model.forget()
        self._counter.forget()
        self.table.set_rows([])
        self.table.set_state(None)
        self.side.show_verdicts(None)
        self.picture.set_source(None, None)
        self.side.show_entry(None, b"", "", 0, None)
        self.side.show_queue(None)
        self._head.set_note("")

    # ---- showing -----------------------------------------------------------------------------------------------------

    def _show_queue(self, key: QueueKey) -> None:
        """Line, cells and side follow the queue of the chosen row."""
        if key == self.model.current or key not in self.model.facts:
            return
        self.model.current = key
        facts = self.model.facts[key]
        self.picture.show_queue(facts, self._counter.of(key))
        self.side.show_queue(facts, self.session)
        self._show_counts(key)
        self._head.set_note(self.model.head_note())
        self._show_times(key)

    def _show_times(self, key: QueueKey) -> None:
        """Show when the messages of a queue were stored."""
        term = times_term(*key)
        if term is None:
            self.times.feed.show_words(
                tr("Messages of a light queue are stored under another topic: the Log view shows their times.")
            )
        else:
            self.times.show(term)

    def _on_bar_chosen(self, offset: int) -> None:
        """Choose the entry of the first message of a bar."""
        session, key = self.session, self.model.current
        if session is None or key is None:
            return
        log = session.snapshot.log

        def done(item: object) -> None:
            if key == self.model.current and isinstance(item, Unit):
                self.go_to_entry(item.queue_offset)

        self._read(lambda: log.unit_at(offset, crc=False), done, lambda error: self.statusMessage.emit(str(error)))

    def _row_chosen(self, chosen: QueueRow | None) -> None:
        if chosen is None or self.session is None:
            return
        key = (chosen.topic, chosen.queue_id)
        self._show_queue(key)
        self.placeMoved.emit(places.queue(chosen.topic, chosen.queue_id, chosen.queue_offset))
        if not isinstance(chosen, EntryRow):
            self.model.entry = None
            self.side.show_entry(None, b"", "", 0, None)
            return
        self.model.entry = chosen
        if key not in self.model.facts:
            return
        self.picture.choose(chosen.queue_offset)
        self._show_entry(key, chosen)
        unasked, self._unasked = self._unasked, False
        if not unasked:
            self.session.select(
                chosen.physical_offset
                if chosen.state != "moved" and chosen.verdict not in {None, "missing", "belowMinOffset"}
                else None
            )

    def _show_entry(self, key: QueueKey, chosen: EntryRow) -> None:
        source, generation = self.model.source, self.model.generation
        if source is None:
            return

        snapshot = self.session.snapshot if self.session is not None else None

        def work() -> tuple[tuple[bytes, str, int], QueueRow | None, int | None]:
            previous_row = source.row(chosen.number - 1) if chosen.number > 0 else None
            unit_offset = own_unit(snapshot, chosen) if snapshot is not None else None
            return source.raw(chosen.number), previous_row, unit_offset

        def done(answer: tuple[tuple[bytes, str, int], QueueRow | None, int | None]) -> None:
            if generation == self.model.generation and chosen is self.model.entry:
                (raw, file, number_in_file), previous_row, unit = answer
                previous_entry = (
                    previous_row
                    if isinstance(previous_row, EntryRow) and (previous_row.topic, previous_row.queue_id) == key
                    else None
                )
                self.side.show_entry(chosen, raw, file, number_in_file, previous_entry, unit)

        self._read(work, done, lambda error: self.statusMessage.emit(str(error)))

    # ---- going -------------------------------------------------------------------------------------------------------

    def go_to_entry(self, offset: int) -> None:
        """Bring an entry of the queue in front into view and choose it."""
        if self.model.current is not None:
            self._go(self.model.current, offset)

    def _go(self, key: QueueKey, offset: int | None) -> None:
        self._show_queue(key)
        if self.model.source is None or key not in self.model.facts:
            return
        self._find(
            key, self.model.goal(key, offset), lambda place: self.table.go_to(place) if place is not None else None
        )

    def next_problem(self, step: int = 1) -> None:
        """Choose the next (−1: previous) entry that does not agree with the log."""
        counts = self._counter.of(self.model.current)
        if counts is None:
            return
        offset = self.model.next_problem(counts, step)
        if offset is not None:
            self.go_to_entry(offset)
        elif counts.complete:
            self.statusMessage.emit(tr("No further entry disagrees with the log."))
        else:
            self.statusMessage.emit(tr("No further problem in the entries looked at so far: counting on."))
            self._count_more()

    # ---- counting ----------------------------------------------------------------------------------------------------

    def _count_more(self) -> None:
        current = self.model.current
        if self.session is not None and current is not None:
            self._counter.count(self.session, [current, *self.model.queues], MAX_COUNTED_ON_REQUEST)
            self._show_counts(current)

    def _counted(self, key: QueueKey) -> None:
        if key == self.model.current:
            self._show_counts(key)
            self.picture.show_queue(self.model.facts[key], self._counter.of(key))
            self.statusUpdated.emit(self.status())

    def _show_counts(self, key: QueueKey) -> None:
        counts = self._counter.of(key)
        self.side.show_verdicts(counts, counting=self._counter.running)
        self.side.setAccessibleDescription(count_words(dict(counts.counts)) if counts else "")


MAX_COUNTED_UNASKED = 20_000
"""Maximum number of entries whose verdicts are counted without a request."""
MAX_COUNTED_ON_REQUEST = 1_000_000


def _no_queues(session: StoreSession) -> State:
    """Return why no queue is shown: there is none, or queues are not decoded."""
    for subject in ("log", "queues"):
        part = session.snapshot.undecoded_part(subject)
        reason = session.snapshot.why_unknown(subject) if part is not None else None
        if reason is not None and subject == "queues" and session.snapshot.queues.rocksdb is not None:
            return State("unread", tr("The queues cannot be read: {why}", why=engine_words(reason)))
        if reason is not None:
            return State("unread", engine_words(reason))
    return State("empty", tr("The store has no consume queues."))
