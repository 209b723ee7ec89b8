"""The log: every unit a row, under the Line and the filter; the chosen row decoded and as bytes below.

Scrolling goes by position in bytes from the first second. A filter runs in the worker process; its hits are rows at
once.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication, QShowEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from engine.codec.message import Unit
from engine.inspection.lost_units import lost_units
from viewer.log.columns import unit_kind
from viewer.log.count import LogCount
from viewer.log.event_lane import EventLane, LogEvents
from viewer.log.export import LogExport
from viewer.log.filter import LogFilter
from viewer.log.find import LogFind
from viewer.log.frequency import LogFrequency
from viewer.log.log_model import LogModel, next_of
from viewer.log.marks import LogMarks
from viewer.log.resend import LogResend
from viewer.log.rows import LogRow, LogSource, MatchSource, NonUnitRow, UnitRow
from viewer.log.tools import LogTools, SameValueCommands
from viewer.log.unit_panes import UnitPanes
from viewer.look.assets import tr, tr_plural
from viewer.pane import Pane
from viewer.pane.event_words import event_title, message_text
from viewer.pane.histogram_bar import HistogramBar
from viewer.pane.log_survey import LogSurvey
from viewer.runtime import places
from viewer.runtime.edit import Edit
from viewer.runtime.places import Place
from viewer.runtime.store_session import StoreSession
from viewer.widgets.boxes import splitter
from viewer.widgets.focus import set_reading_order
from viewer.widgets.line_strip import LineStrip
from viewer.widgets.log_line import LogLine
from viewer.widgets.record_state import State
from viewer.widgets.record_view import RecordView

if TYPE_CHECKING:
    from engine.inspection.side_index import SideIndex
    from engine.inspection.timeline.events import TimelineEvent
    from viewer.pane.incident_card import IncidentCard
    from viewer.runtime.settings import Settings

MAX_JSON_BYTES = 16 << 20


class UnitsPane(Pane):
    """The view of the commit log."""

    scrolled = Signal(object)
    """The offset of the unit at the top of the table."""
    copyRequested = Signal(object)
    """The unit of which a copy is to be sent to a cluster."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.model = LogModel()
        self._wanted: Place | None = None
        self._settings: Settings | None = None
        self.incident: IncidentCard | None = None
        self._late = False
        self._end_wanted = -1
        self._build()
        self.survey = LogSurvey(self.line)
        self.events = LogEvents(self.lane)
        self.survey.extentKnown.connect(self._lined)
        model, table = self.model, self.table
        self.filtering = LogFilter(model, self)
        self.count = LogCount(model, self)
        self.tools = LogTools(model, table, self.unit)
        self.filter = self.tools.line
        self.upper.insertWidget(0, self.filter)
        self.finding = LogFind(model, table, self.unit)
        self.upper.insertWidget(1, self.finding.line)
        self.times = HistogramBar("units.histogram")
        self.upper.insertWidget(2, self.times.strip)
        self.marks = LogMarks(model, table, self)
        self.same = SameValueCommands(table)
        self.exports = LogExport(model, table, self)
        self.resends = LogResend(model, table, self)
        self.frequency = LogFrequency(model, table, self.unit, self.tools.known_values)
        self._connect()
        self._join_parts()

    def _build(self) -> None:
        self.line = LineStrip()
        self.lane = EventLane(self.line)
        self.table = RecordView("units.table", unit_kind(places.queue), runner=self._read)
        self.table.setAccessibleName(tr("Units of the log"))
        self.table.filters = True
        self.table.copier = self._copied
        self.unit = UnitPanes(self, self._shown_columns)
        self.unit.statusText.connect(self.statusMessage)
        upper = QWidget()
        self.upper = box = QVBoxLayout(upper)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        for part, stretch in ((self.table, 1), (self.table.strip, 0)):
            box.addWidget(part, stretch)
        self.below = self.unit.build()
        self.split = splitter(True, (upper, 526), (self.below, 308))
        self.split.setObjectName("units.split")
        self._outer = outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.setSpacing(0)
        outer.addWidget(self.line)
        outer.addWidget(self.lane)
        outer.addWidget(self.split, 1)
        self.lead = self.table

    def _shown_columns(self) -> frozenset[str]:
        return frozenset(column.key for column in self.table.kind.columns)

    def _connect(self) -> None:
        self.table.rowChosen.connect(self._row_chosen)
        self.table.placeRequested.connect(self.placeRequested)
        self.table.moved.connect(self._moved)
        self.table.filled.connect(self._filled)
        self.table.failed.connect(self._failed)
        self.unit.placeRequested.connect(self.placeRequested)
        self.line.offsetChosen.connect(self._on_offset_chosen)
        self.lane.eventChosen.connect(self._on_event_chosen)
        self.lane.eventFollowed.connect(self._on_event_followed)
        self.filter.applied.connect(self._filter_applied)
        self.filter.edited.connect(self._filter_edited)
        self.count.counted.connect(self._counted)
        self.count.logGrown.connect(self.survey.extend_to_known_end)
        self.filtering.filterStarted.connect(self._filter_began)
        self.filtering.hitsAdded.connect(self._on_hits_added)
        self.filtering.stateChanged.connect(self._on_filter_state)
        self.filtering.cleared.connect(lambda: self.filter.apply(""))

    def _join_parts(self) -> None:
        """Connect the parts with each other and with the window."""
        for status_text in (
            self.tools.statusText,
            self.finding.statusText,
            self.marks.statusText,
            self.same.statusText,
            self.exports.statusText,
            self.resends.statusText,
        ):
            status_text.connect(self.statusMessage)
        for did in (self.tools.operationDone, self.exports.operationDone, self.resends.operationDone):
            did.connect(self.operationDone)
        for edited in (self.tools.edited, self.marks.edited):
            edited.connect(self.edited)
        for signal in (self.finding.offsetRequested, self.marks.offsetRequested):
            signal.connect(self.go_to)
        for filtered in (self.marks.filterRequested, self.same.filterRequested):
            filtered.connect(self.filter.apply)
        self.tools.ruleRequested.connect(self.marks.ask_rules)
        self.same.stepRequested.connect(self.finding.jump)
        self.frequency.termRequested.connect(self.tools.take_term)
        self.times.filterRequested.connect(self.filter.apply)
        self.times.narrowed.connect(self._note_range)
        self.times.offsetRequested.connect(self._on_bar_chosen)
        self.unit.columnRequested.connect(self.table.fitting.add)

    # ---- what the window calls ---------------------------------------------------------------------------------------

    def use(self, settings: Settings) -> None:
        """Show the filters that were saved."""
        self.tools.use(settings)
        self.finding.settings = settings
        self.marks.use(settings)
        self.unit.use(settings)
        self.times.use(settings)
        self._settings = settings

    def set_session(self, session: StoreSession | None) -> None:
        """Show another store, or none."""
        super().set_session(session)
        self.filtering.forget()
        self.model.close()
        for part in (self.filtering, self.same, self.exports, self.resends, self.frequency):
            part.session = session
        self.filter.set_text("")
        self.survey.set_session(session)
        self.events.set_session(session)
        self.times.set_session(session)
        self.count.set_session(session)
        if self.incident is not None:
            self.incident.set_session(session)
        self.unit.set_session(session)
        self.unit.detail.doer = self.table.doer
        self.tools.set_session(session)
        self.finding.set_session(session)
        self.marks.set_session(session)
        if session is None:
            self.table.set_rows([])
            self.table.set_state(None)
            return
        session.selectionChanged.connect(self._selected_elsewhere)
        session.findingsChanged.connect(self._tell_incident)
        self._tell_incident()
        session.followingChanged.connect(self._following)
        session.decodingChanged.connect(self._decode_again)
        log = LogSource(session.snapshot.log)
        self.model.open(log, lambda: session.broken)
        self.marks.apply_row_styles()
        self.table.set_source(log, choose=self._wanted is None)
        self.table.setFocus()
        session.later(self._tell_lost)
        session.later(self.survey.read_extent)
        session.later(self._show_times)

    def _tell_lost(self) -> None:
        """Name the messages in unreadable bytes, once the first rows are shown: this asks all queues and tries
        salvage.
        """
        log, session = self.model.log, self.session
        if log is None or session is None:
            return
        log.lost = partial(lost_units, session.snapshot)
        if self.table.loading:  # rows that are on their way were made without it
            self.table.filled.connect(self._tell_again, Qt.ConnectionType.SingleShotConnection)
        else:
            self._tell_again()

    def _tell_again(self) -> None:
        if any(isinstance(row, NonUnitRow) and row.kind == "damage" for row in self.table.table.rows):
            self.table.filled.connect(self._tell_chosen, Qt.ConnectionType.SingleShotConnection)
            self.table.reload(anew=True)

    def _tell_chosen(self) -> None:
        """The chosen row says now which messages stood in it: so does its detail."""
        row, loaded = self.table.current_row(), self.unit.current
        if isinstance(row, NonUnitRow) and row.was and loaded is not None and not loaded.lost:
            self.unit.show_row(row)

    def _tell_incident(self) -> None:
        """Show the incident when messages are first lost; loaded late, so that it does not delay the first rows."""
        session = self.session
        if self.incident is not None or session is None or session.incident is None:
            return
        from viewer.pane.incident_card import IncidentCard

        self.incident = IncidentCard("log.incident", first_look="line")
        self.incident.settings = self._settings
        self.incident.placeRequested.connect(self.placeRequested)
        self.incident.reportRequested.connect(self.reportRequested)
        self.incident.statusText.connect(self.statusMessage)
        self.incident.table.doer = self.table.doer
        self._outer.insertWidget(2, self.incident)
        set_reading_order(self)
        self.incident.set_session(session)

    def show_place(self, place: Place) -> None:
        """Bring a unit, and a field of it, into view."""
        if place.kind not in {"log", "filter"}:
            return
        if self.session is None or self.model.log is None:
            self._wanted = place
            return
        if place.kind == "filter":
            self.tools.show_place(place)
        if place.offset is not None:
            self.go_to(place.offset, place.field)

    def refresh(self) -> None:
        """Read the log again after the store has grown, once the view is visible."""
        self._late = not self.isVisible()
        if self.session is None or self._late:
            return
        self.survey.on_log_grown()
        if self.model.filter.source is None:
            if self.session.following:
                self._go_to_newest()
            else:
                self.table.reload()

    def showEvent(self, event: QShowEvent) -> None:
        """Refresh if the store grew while the view was hidden."""
        super().showEvent(event)
        if self._late:
            self.refresh()

    def retheme(self) -> None:
        """Colours, fonts or zoom changed."""
        self.table.refresh_look()
        self.unit.retheme()

    def focus_stops(self) -> Sequence[QWidget]:
        """Return the parts between which F6 moves the focus."""
        return self.filter.field, self.times.strip, self.table, self.unit.detail, self.unit.hex

    def commands(self) -> dict[str, Callable[[], object]]:
        """Copying, stepping and filtering act on the table."""
        return {
            "columns.choose": self.table.fitting.open_menu,
            "copy.cell": lambda: self.table.copy_current("cell"),
            "copy.row": lambda: self.table.copy_current("row"),
            "copy.json": lambda: self.table.copy_current("json"),
            "copy.cli": lambda: self.table.copy_current("cli"),
            "list.next": lambda: self.table.choose_next(1),
            "list.previous": lambda: self.table.choose_next(-1),
            "filter.focus": self.filter.focus,
            "filter.apply": self.filter.apply,
            "filter.clear": lambda: self.filter.apply(""),
            "problem.next": lambda: self.next_problem(1),
            "problem.previous": lambda: self.next_problem(-1),
            "go.first": self.table.first_row,
            "go.last": self.table.last_row,
            **self.tools.commands(),
            **self.finding.commands(),
            **self.marks.commands(),
            **self.same.commands(),
            **self.exports.commands(),
            **self.resends.commands(),
            "message.copy": self.ask_copy,
            **self.frequency.commands(),
            **self.times.commands(),
            **self.unit.commands(),
        }

    def ask_copy(self) -> None:
        """Ask for the box that sends a copy of the chosen message to a cluster."""
        loaded = self.unit.current
        if self.session is not None and self.session.snapshot.capsule is not None:
            self.statusMessage.emit(tr("The bodies of messages are not in a capsule."))
        elif loaded is None or loaded.decoded is None:
            self.statusMessage.emit(tr("Choose a message first."))
        else:
            self.copyRequested.emit(loaded.decoded.unit)

    def busy(self) -> bool:
        """True while a filter or a search runs."""
        return self.model.filter.running or self.model.find.running

    def reads_behind(self) -> bool:
        """Return True while the lane of events or the time histogram waits for its turn to read the log."""
        return self.events.pending or self.times.pending

    def status(self) -> str:
        """Return the matches of the filter, or the length of the log."""
        if self.session is not None and self._has_no_files() and self.session.undecoded_log:
            return self.session.undecoded_log
        return self.model.status(self.session.unread.edge if self.session is not None else tr("complete"))

    # ---- rows --------------------------------------------------------------------------------------------------------

    def _read(self, work: Callable[[], Any], done: Callable[[Any], None], failed: Callable[[Exception], None]) -> None:
        if self.session is not None:
            self.session.jobs.read(work, done, failed)

    def _lined(self, line: LogLine) -> None:
        self.model.extent = line
        self.table.show_extent()
        self.count.look()
        self.statusUpdated.emit(self.status())

    def _counted(self, index: SideIndex) -> None:
        if self.model.log is not None:
            self.model.log.counted = index
            self._tell_topics(index)
            self.survey.show_damage([span for segment in index.segments for span in segment.damages])
            self.statusUpdated.emit(self.status())

    def _tell_topics(self, index: SideIndex) -> None:
        topics: Counter[str] = Counter()
        for segment in index.segments:
            topics.update(segment.topics)
        if self.session is not None:
            self.session.note_topics(topics, index.units)

    def _filled(self) -> None:
        self._choose_match()
        self._choose_newest()
        if (row := self.table.current_row()) is not None:
            self.unit.replace_row(row)
        if self._wanted is not None and self.model.filter.source is None:
            place, self._wanted = self._wanted, None
            self.show_place(place)
        if self.table.total_rows() == 0 and self.model.filter.source is None:
            undecoded = self.session.undecoded_log if self.session is not None else ""
            nothing = tr("The log has no files.") if self._has_no_files() else tr("The log holds no unit yet.")
            self.table.set_state(State("unread", undecoded) if undecoded else State("empty", nothing))
        elif self.model.filter.source is None:
            self.table.set_state(None)

    def _has_no_files(self) -> bool:
        return self.session is not None and not self.session.snapshot.log.files

    def _failed(self, error: Exception) -> None:
        self.table.set_state(State("error", str(error), steps=((tr("Refresh"), self.refresh),)))

    def _row_chosen(self, row: LogRow | None) -> None:
        field = self._field if row is not None and self._field_for == row.offset else ""
        self._field = ""
        self.unit.show_row(row, field)
        if row is not None and self.session is not None:
            self.session.select(row.offset)
            self.placeMoved.emit(places.log(row.offset))
            self._do_wished(row)

    def _do_wished(self, row: LogRow) -> None:
        """Run the command that another view requested for the unit of this row."""
        session = self.session
        if session is None or session.wished is None:
            return
        offset, command = session.wished
        if row.offset == offset:
            session.wished = None
            self.commands()[command]()
        elif row.offset < offset < self.table.source.behind(row):
            session.wished = None
            self.statusMessage.emit(tr("No unit begins at {offset:,}.", offset=offset))

    _field = ""
    _field_for = -1

    def go_to(self, offset: int, field: str = "") -> None:
        """Choose the row that holds ``offset``; where a filter hides it, the filter goes."""
        place = self.model.place_of(offset)
        if place is None:
            self.filter.apply("")
            place = offset
        self._choose(place, offset, field)

    def _choose(self, position: int, offset: int, field: str) -> None:
        row = self.table.current_row()
        if row is not None and row.offset == offset:
            self.table.go_to(position)
            if field:
                self.unit.choose_field(field)
            self._do_wished(row)
            return
        self._field, self._field_for = field, offset
        self._end_wanted = -1
        self.table.go_to(position)

    def _selected_elsewhere(self, offset: int | None) -> None:
        row = self.table.current_row()
        if offset is not None and (row is None or row.offset != offset) and not self.isVisible():
            self.go_to(offset)

    def _decode_again(self) -> None:
        """Read rows, matches and the detail again: bodies are decoded by other rules."""
        self.unit.decode_again()
        current_filter = self.model.filter.text if self.model.filter.source is not None else ""
        if "body." in current_filter or "body[" in current_filter:
            self.filter.apply(current_filter)
        else:
            self._read_rows_anew()

    def _read_rows_anew(self) -> None:
        """Read the shown rows again, once those on their way are there: they were made without the new rules."""
        if self.table.loading:
            self.table.filled.connect(self._read_rows_anew, Qt.ConnectionType.SingleShotConnection)
        else:
            self.table.reload(anew=True)

    def _following(self, on: bool) -> None:
        if on:
            self.filter.apply("")
            self._go_to_newest()

    def _go_to_newest(self) -> None:
        """Read the end of the log and choose its newest unit once it is there."""
        self._end_wanted = self.table.source.end
        self.table.tail()

    def _choose_newest(self) -> None:
        """The newest unit, not the zero tail behind it; nothing where the rows do not reach the end that was wanted."""
        rows = self.table.table.rows
        if self._end_wanted < 0 or self.model.filter.source is not None or not rows:
            return
        if self.table.source.behind(rows[-1]) >= self._end_wanted:
            self._end_wanted = -1
            newest = next((row for row in reversed(rows) if isinstance(row, UnitRow)), rows[-1])
            self.table.go_to(newest.offset)
            self.table.scrollToBottom()

    def _moved(self, start: int, stop: int) -> None:
        shown_start, shown_stop = self.model.frame(start, stop)
        self.line.set_frame(shown_start, shown_stop)
        self.scrolled.emit(shown_start)

    def scroll_to(self, offset: int) -> None:
        """Bring the unit at ``offset`` to the top of the table. The choice stays."""
        if self.table.table.rows:
            self.table.scroll_to(self.model.place_near(offset))

    def _on_offset_chosen(self, offset: int) -> None:
        self.table.go_to(self.model.place_near(offset), choose=False)

    def _on_event_chosen(self, event: TimelineEvent) -> None:
        """Choose the unit at which an event shows; the view Timeline chooses the event, too."""
        if self.session is None:
            return
        self.session.choose_event(event)
        end = self.line.line.written
        self.go_to(event.physical_offset if event.physical_offset is not None else max(self.line.line.low, end - 1))
        self.statusMessage.emit(f"{event_title(event)} · {message_text(event)}")

    def _on_event_followed(self, event: TimelineEvent) -> None:
        """Show an event in the view Timeline."""
        if self.session is not None:
            self.session.choose_event(event)
            self.placeRequested.emit(Place("timeline"))

    def next_problem(self, step: int) -> None:
        """Choose the next row that is damaged or doubtful, among the rows held and the findings."""
        if self.model.log is None or self.session is None:
            return
        row = self.table.current_row()
        offset = row.offset if row is not None else self.model.log.start
        kind = self.table.kind
        problem_offsets = {
            r.offset
            for r in self.table.table.rows
            if (look := kind.look(r)) is not None and look.mark in {"error", "warn"}
        }
        problem_offsets |= {
            f.offset for f in self.session.findings if f.offset is not None and "commitlog" in str(f.file or "")
        }
        ahead = next_of(problem_offsets, offset, step)
        if ahead is not None:
            self.go_to(ahead)
        else:
            self.statusMessage.emit(tr("No problem is known in this direction. A check of the whole store finds all."))

    # ---- filter ------------------------------------------------------------------------------------------------------

    def _filter_edited(self, good: bool) -> None:
        if not good and self.model.filter.source is not None:
            self.table.set_state(State("stale", tr("Rows of the last good filter")))
        elif (
            self.model.filter.source is not None
            and self.table.strip.state is not None
            and self.table.strip.state.kind == "stale"
        ):
            self.table.set_state(None)

    def _filter_applied(self, text: str) -> None:
        model = self.model
        if model.log is None:
            return
        row = self.table.current_row()
        if text:
            model.offset_before_filter = row.offset if row is not None else model.offset_before_filter
            self.times.pause()
            self.filtering.begin(text, model.log)
            return
        if self.model.filter.source is not None:
            self.filtering.forget()
            self.table.set_state(None)
            self.table.set_source(model.log, start_position=row.offset if row is not None else None, choose=True)
            self.statusMessage.emit(self.status())
            self.statusUpdated.emit(self.status())
        self._show_times()

    def _show_times(self) -> None:
        """Show the times of the filter's units, once it does not run: its rows come first."""
        if not self.model.filter.running:
            self.times.show(self.model.filter.text)

    def _note_range(self, before: str, after: str) -> None:
        """Let Undo take a range back that the time histogram has put into the filter."""
        self.edited.emit(Edit(tr("range of time"), before, after, self.filter.apply))

    def _on_bar_chosen(self, offset: int) -> None:
        """Choose the first unit of a bar; the filter stays, also if it has not come there yet."""
        if self.model.filter.source is not None and self.model.place_of(offset) is None:
            self.statusMessage.emit(tr("The filter has not come to this message yet: Go on continues it."))
            return
        self.go_to(offset)

    def _filter_began(self, source: MatchSource) -> None:
        self.table.set_source(source)

    def _on_hits_added(self) -> None:
        self.table.reload()

    def _choose_match(self) -> None:
        """A filter's first rows have come: choose the unit that was chosen before, or else the first."""
        model = self.model
        if model.filter.source is None or self.table.current_row() is not None or not self.table.table.rows:
            return
        self.table.go_to(model.place_of(model.offset_before_filter) or 0)

    def _on_filter_state(self, state: State | None, sentence: str) -> None:
        self.table.set_state(state)
        self._show_times()
        if (
            self.model.filter.source is not None
            and not self.model.filter.source.offsets
            and state is not None
            and state.kind == "empty"
        ):
            self.unit.show_row(None)
        self.statusMessage.emit(sentence)

    # ---- copies ------------------------------------------------------------------------------------------------------

    def _copied(self, form: str, row: LogRow) -> str | None:
        if form == "cli":
            return self.command_of(row)
        self._copy_json(row)
        return None

    def command_of(self, row: LogRow) -> str:
        """The command line that prints this row."""
        words = ["storescope", "units", "STORE", "--from", str(row.offset), "--limit", "1", "--json"]
        return self.session.command_line(words) if self.session is not None else shlex.join(words)

    def record_of(self, row: LogRow) -> dict[str, Any]:
        """The record that the command line prints for this row; reads its unit from the disk."""
        from engine.inspection import records

        snapshot = self.session.snapshot if self.session is not None else None
        log = snapshot.log if snapshot is not None else None
        item = log.unit_at(row.offset) if log is not None and isinstance(row, UnitRow) else None
        if snapshot is None or log is None or not isinstance(item, Unit):
            return self.table.kind.as_record(row)
        file = log.sequence.find(row.offset)
        record = records.unit(item, f"{file.start_offset:020d}" if file is not None else None)
        return record if snapshot.capsule is None else record | {"bodySha256": None}

    def _copy_json(self, row: LogRow) -> None:
        """The record that the command line prints, read off the loop."""
        if self.session is None:
            return

        def work() -> str:
            return json.dumps(self.record_of(row), ensure_ascii=False)

        def done(text: str) -> None:
            QGuiApplication.clipboard().setText(text)
            self.statusMessage.emit(
                tr_plural("Copied {n:,} character of JSON", "Copied {n:,} characters of JSON", n=len(text))
            )

        self._read(work, done, lambda error: self.statusMessage.emit(str(error)))
