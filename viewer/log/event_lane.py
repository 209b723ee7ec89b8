"""The lane of events below the Line of the Log view: crashes, starts, stalls, clock steps, retry storms.

The log is read for events in the worker once nothing else is under way. The lane has its room from the start, so
the rows below stay where they are. Until the log is read it says so: "not read" is not "nothing happened". Stop ends
the read; the view Timeline reads, too, and fills the lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QPointF, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen

from engine.errors import StoreError
from engine.inspection.timeline.events import TimelineEvent
from viewer.look.assets import tr, tr_plural
from viewer.look.theme import C, px, ui
from viewer.pane.event_words import GLYPHS, event_title, is_drawn, message_text
from viewer.runtime.jobs import Cancelled
from viewer.runtime.places import Place
from viewer.runtime.worker import WorkerDied
from viewer.widgets.canvas import Boxes, MarkCanvas
from viewer.widgets.drawn_marks import DrawnMark, condition, units_from
from viewer.widgets.line_strip import SIDE, LineStrip
from viewer.widgets.paint import mark
from viewer.widgets.row_commands import Facts

if TYPE_CHECKING:
    from viewer.runtime.store_session import StoreSession

HEIGHT = 20
APART = 12
"""Px at 100 % between two glyphs; of events that are nearer the worst is drawn."""
IDLE_MS = 1500
"""So long nothing else has run before the log is read for events."""
MAX_LOG_BYTES = 8 << 30
"""Longer logs are read for events only when the view Timeline is opened."""
MAX_NAMED = 4
RANKS = {kind: rank for rank, kind in enumerate(GLYPHS)}


class EventLane(MarkCanvas):
    """Draws events below the places of a :class:`LineStrip`. Emits ``eventChosen(event)``, and ``eventFollowed(event)``
    for a double click or Enter.
    """

    eventChosen = Signal(object)
    eventFollowed = Signal(object)

    def __init__(self, strip: LineStrip) -> None:
        super().__init__("units.events", tr("Events of the store"), HEIGHT, followed=True)
        self._strip = strip
        self._events: list[TimelineEvent] = []
        self._groups: list[tuple[float, list[TimelineEvent]]] | None = None
        self._chosen: TimelineEvent | None = None
        self._words = ""
        strip.lineMoved.connect(self._forget)
        strip.resized.connect(self._forget)

    def show_events(
        self, events: Sequence[TimelineEvent], last_stored: int | None, chosen: TimelineEvent | None = None
    ) -> None:
        """Show these events of a log whose last message was stored at ``last_stored``; ``chosen`` has a ring."""
        self._chosen, self._words = chosen, tr("The log shows no crash, start, stall or clock step.")
        shown = [event for event in events if is_drawn(event, last_stored)]
        if shown != self._events:
            self._events = shown
            self._forget()
        self.setAccessibleDescription(tr_plural("{n:,} event", "{n:,} events", n=len(shown)))
        self.update()

    def show_words(self, words: str) -> None:
        """Show words instead of events: the log is not read, or not all of it."""
        self._events, self._chosen, self._words = [], None, words
        self.setAccessibleDescription(words)
        self._forget()

    def _forget(self) -> None:
        self._groups = None
        self.update()

    def groups(self) -> list[tuple[float, list[TimelineEvent]]]:
        """Return the events of each glyph with its place, from left to right; the worst event of each comes first."""
        if self._groups is None:
            line, apart = self._strip.line, px(APART)
            placed = sorted(
                ((self._strip.x_of(_offset_of(event, line.written)), event) for event in self._events),
                key=lambda pair: pair[0],
            )
            groups: list[tuple[float, list[TimelineEvent]]] = []
            for x, event in placed:
                if groups and x - groups[-1][0] < apart:
                    groups[-1][1].append(event)
                else:
                    groups.append((x, [event]))
            for _, events in groups:
                events.sort(key=lambda event: RANKS[event.kind])
            self._groups = groups
        return self._groups

    def marks(self) -> Boxes:
        boxes = []
        for x, events in self.groups():
            event = events[0]
            offset = event.physical_offset
            facts = Facts(
                "lineMark",
                "",
                Place("timeline", name=event.kind),
                offset,
                term=condition("physicalOffset", offset) if offset is not None else None,
                command=units_from(offset) if offset is not None else None,
            )
            half = px(APART) / 2
            box = QRectF(x - half, 0, 2 * half, self.height() - 2)
            boxes.append((box, DrawnMark(facts, event.kind, self._words_of(events))))
        return boxes

    def _words_of(self, events: Sequence[TimelineEvent]) -> str:
        lines = [f"{event_title(event)}\n{message_text(event)}" for event in events[:MAX_NAMED]]
        further = len(events) - MAX_NAMED
        if further > 0:
            lines.append(tr("and {n:,} more", n=further))
        return "\n".join(lines)

    def words_under(self, point: QPointF) -> str:
        events = self._events_at(point)
        return self._words_of(events) if events else ""

    def _events_at(self, point: QPointF) -> list[TimelineEvent]:
        near = [(abs(x - point.x()), events) for x, events in self.groups() if abs(x - point.x()) <= px(APART) / 2]
        return min(near, key=lambda pair: pair[0])[1] if near else []

    def paintEvent(self, _event: QPaintEvent) -> None:
        p = QPainter(self)
        p.fillRect(self.rect(), C("pane"))
        p.fillRect(QRectF(0, self.height() - 1, self.width(), 1), C("hair"))
        middle = (self.height() - 1) / 2
        if not self.groups():
            p.setFont(ui(11))
            p.setPen(C("text3"))
            p.drawText(self.rect().adjusted(px(SIDE), 0, 0, -1), int(Qt.AlignmentFlag.AlignVCenter), self._words)
        for x, events in self.groups():
            shape, role = GLYPHS[events[0].kind]
            mark(p, shape, QPointF(x, middle), px(42) / 10, role)
            if self._chosen is not None and self._chosen in events:
                p.setRenderHint(QPainter.RenderHint.Antialiasing)
                p.setPen(QPen(C("accent"), 1.5))
                p.setBrush(Qt.BrushStyle.NoBrush)
                p.drawEllipse(QPointF(x, middle), px(80) / 10, px(80) / 10)
        self.paint_framed(p)

    # ---- pointer and keys --------------------------------------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton and (events := self._events_at(event.position())):
            self.frame(next(n for n, (_, group) in enumerate(self.groups()) if group is events))
            self.eventChosen.emit(events[0])

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if events := self._events_at(event.position()):
            self.eventFollowed.emit(events[0])

    def keyPressEvent(self, event: QKeyEvent) -> None:
        groups = self.groups()
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and groups:
            self.eventFollowed.emit(groups[min(self._framed, len(groups) - 1)][1][0])
            return
        framed = self._framed
        super().keyPressEvent(event)
        if groups and self._framed != framed:
            self.eventChosen.emit(groups[self._framed][1][0])


def _offset_of(event: TimelineEvent, end: int) -> int:
    """Return where the lane shows an event; one without a place belongs to the end of the log."""
    return event.physical_offset if event.physical_offset is not None else end


class LogEvents(QObject):
    """Reads the log for events behind everything else, and shows them in the lane."""

    def __init__(self, lane: EventLane) -> None:
        super().__init__(lane)
        self._lane = lane
        self._session: StoreSession | None = None
        self._is_tried = False
        self._timer = QTimer(self, interval=IDLE_MS, singleShot=True)
        self._timer.timeout.connect(self._read_if_idle)
        lane.hide()

    def set_session(self, session: StoreSession | None) -> None:
        """Show another store, or none."""
        if self._session is not None:
            self._session.eventsChanged.disconnect(self._show)
            self._session.followingChanged.disconnect(self._on_following)
            self._session.jobs.changed.disconnect(self._on_jobs_changed)
        self._session, self._is_tried = session, False
        self._timer.stop()
        self._lane.setVisible(session is not None and (session.timeline is not None or _may_be_read(session)))
        if session is not None:
            session.eventsChanged.connect(self._show)
            session.jobs.changed.connect(self._on_jobs_changed)
            session.followingChanged.connect(self._on_following)
            session.later(self._on_jobs_changed)
            self._show()

    def _on_following(self, _on: bool) -> None:
        if self._session is not None and self._session.timeline is None and not self._is_tried:
            self._show()
            self._on_jobs_changed()

    @property
    def pending(self) -> bool:
        """True if the log will be read for events as soon as nothing else runs."""
        session = self._session
        return (
            session is not None
            and not self._is_tried
            and session.timeline is None
            and not session.following
            and self._lane.window().isVisible()
            and _may_be_read(session)
        )

    def _on_jobs_changed(self) -> None:
        """Wait until nothing has run for a while."""
        session = self._session
        if session is None or self._is_tried or session.timeline is not None:
            return
        if session.jobs.list:
            self._timer.stop()
        elif not self._timer.isActive():
            self._timer.start()

    def _read_if_idle(self) -> None:
        session = self._session
        if session is not None and self.pending and not session.jobs.list:
            self._is_tried = True
            self._lane.show_words(tr("Reading the log for events"))
            session.jobs.start(self._read(session))

    async def _read(self, session: StoreSession) -> None:
        log_end = session.log_end
        try:
            timeline = await session.jobs.in_worker(
                tr("Reading the log for events"),
                "viewer.timeline.timeline_work:find_events",
                session.path,
                session.config,
                behind=True,
            )
        except (Cancelled, StoreError, OSError, WorkerDied, RuntimeError):
            timeline = None  # the view Timeline says why
        if session is not self._session or session.timeline is not None:
            return
        if timeline is not None:
            session.set_timeline(timeline, log_end)
        else:
            self._lane.show_words(tr("The log was not read for events. The view Timeline reads it."))

    def _show(self) -> None:
        session = self._session
        timeline = session.timeline if session is not None else None
        if session is None:
            return
        if timeline is None:
            self._is_tried = False  # what was read before is of a log that was replaced
            self._lane.show_words(
                tr("While the log is followed it is not read for events.")
                if session.following
                else tr("The log is read for events when nothing else runs.")
            )
            return
        self._lane.show_events(timeline.events, timeline.last_stored, session.chosen_event)
        if (timeline.unread or timeline.unknown) and not self._lane.groups():
            self._lane.show_words(tr("Not all could be read, so events can be missing. The view Timeline says why."))
        self._lane.show()


def _may_be_read(session: StoreSession) -> bool:
    """Return True if the log is decoded, and short enough to be read for events without a request."""
    return not session.undecoded_log and 0 < session.snapshot.log.sequence.total_size <= MAX_LOG_BYTES
