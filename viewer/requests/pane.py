"""The Requests view: what goes over a server's connections, each request with its answer a row; its fields, its bytes.

Rows come by the window's :class:`~viewer.requests.watch.RequestWatch`, which outlives this pane: from the broker that
the lab runs, or out of a file that ``storescope serve`` wrote.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QFileDialog, QVBoxLayout, QWidget

from engine.errors import BadFilter
from engine.remoting.frame_parts import EXTRA, frame_parts
from engine.remoting.replaying import Replayed
from viewer.look.assets import tr, words
from viewer.look.engine_words import engine_words
from viewer.look.formats import clock
from viewer.look.theme import px
from viewer.pane import Pane
from viewer.pane.table_commands import table_commands
from viewer.pane.target_folder import ask_target_folder
from viewer.pane.view_tabs import REQUESTS, ClusterTabs
from viewer.requests.columns import (
    EXCHANGES,
    FIELD_ROWS,
    FRAMES,
    TALKS,
    FieldRow,
    TalkRow,
    answer_chip,
    field_rows,
    talk_rows,
)
from viewer.requests.fields import PILLS, term_of
from viewer.requests.rate_strip import RateStrip
from viewer.requests.request_log import Frame, RequestLog, Shown
from viewer.requests.words import Standing, card_words, edge_words, standing_words
from viewer.runtime.places import REQUESTS_LIVE, Place
from viewer.widgets.basics import (
    Button,
    Chip,
    Elided,
    Field,
    Key,
    PaneHead,
    Paper,
    Tool,
    WordTabs,
    column,
    row,
    splitter,
    stacked,
)
from viewer.widgets.hex_pages import HexField
from viewer.widgets.hex_view import HexView
from viewer.widgets.record_state import State
from viewer.widgets.record_view import RecordView
from viewer.widgets.row_window import Page
from viewer.widgets.table_tail import TableTail

if TYPE_CHECKING:
    from viewer.requests.watch import RequestWatch
    from viewer.runtime.store_session import StoreSession

TALK_WIDTH = 264
SLIM = 1240
PILL_WORDS = {
    "not0": words("Not 0"),
    "held": words("Held"),
    "sends": words("Sends"),
    "beats": words("Without heartbeats"),
}
SUFFIX = "requests"


class LogSource:
    """The rows of a log that the filter lets through; their positions are the numbers of exchanges, or of frames."""

    def __init__(self, log: RequestLog) -> None:
        self._log = log

    @property
    def start(self) -> int:
        return self._log.rows[0].number if self._log.rows else 0

    @property
    def end(self) -> int:
        return self._log.rows[-1].number + 1 if self._log.rows else 0

    @property
    def total(self) -> int:
        return len(self._log.rows)

    def read(self, position: int, before: int, after: int) -> Page[Shown]:
        """A slice; see :class:`viewer.widgets.row_window.RowSource`."""
        rows = self._log.rows
        at = self._at(position)
        low, high = max(0, at - before), min(len(rows), at + after)
        return Page(rows[low:high], at - low, low == 0, high == len(rows))

    def _at(self, position: int) -> int:
        return bisect_left(self._log.rows, position, key=self.position)

    def position(self, row: Shown) -> int:
        return row.number

    def behind(self, row: Shown) -> int:
        return row.number + 1

    def number(self, row: Shown) -> int | None:
        return self._at(row.number)

    def position_of(self, number: int) -> int | None:
        return self._log.rows[number].number if 0 <= number < len(self._log.rows) else None


class RequestsPane(Pane):
    """See the module. ``watch`` comes once the pane was made; ``recordAsked()``: the lab's server is wanted."""

    recordAsked = Signal()

    wants_tree = False

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("requests.pane")
        self.watch: RequestWatch | None = None
        self._log = RequestLog()
        self._chosen: Shown | None = None
        self._keeps_end = True
        self._build()
        self._show()

    # ---- building ----------------------------------------------------------------------------------------------------

    def _build(self) -> None:
        self.strip = RateStrip()
        self.strip.chose.connect(self._go_to_second)
        self.table = RecordView("requests.table", EXCHANGES)
        self.table.setAccessibleName(tr("Requests"))
        self.table.rowChosen.connect(self._row_chosen)
        self.table.placeRequested.connect(self._follow)
        self.table.installEventFilter(self)
        self._tail = TableTail(self.table, self._follows, self._leave_end, self.go_to_end)
        self.talks = RecordView("requests.talks", TALKS)
        self.talks.setAccessibleName(tr("Connections, codes and answers"))
        self.talks.rowChosen.connect(self._talk_chosen, Qt.ConnectionType.QueuedConnection)  # the list changes by it
        self.fields = RecordView("requests.fields", FIELD_ROWS)
        self.fields.setAccessibleName(tr("Fields of the request"))
        self.fields.rowChosen.connect(self._field_chosen)
        self.fields.placeRequested.connect(self._follow)
        self.hex = HexView("requests.hex")
        self.hex.setAccessibleName(tr("Bytes of the frame"))
        self.hex.fieldChosen.connect(self._byte_chosen)
        self.side = WordTabs("requests.side", (("request", tr("Request")), ("answer", tr("Answer"))))
        self.side.chosen.connect(lambda _key: self._show_bytes())
        self.field_head = PaneHead(tr("Exchange"), "")
        self.hex_head = PaneHead(tr("Bytes"), "", self.side)
        lower = splitter(False, (stacked(self.field_head, self.fields), 480), (stacked(self.hex_head, self.hex), 820))
        upper = stacked(self.table, self.table.strip, room=0)
        body = splitter(True, (upper, 560), (lower, 320))
        right = stacked(self.strip, self._filters(), body, room=2)
        self.left = stacked(self._card(), self.talks, room=1)
        self.left.setFixedWidth(px(TALK_WIDTH))
        line = row(self.left, right, gap=0)
        line.box.setStretch(1, 1)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.addWidget(stacked(self._bar(), line, room=1))
        self.lead = self.table

    def _bar(self) -> QWidget:
        self.record = Button(tr("Record"), "primary", "record")
        self.record.setObjectName("requests.record")
        self.record.clicked.connect(self.record_or_end)
        self.pause = Tool("pause", tr("Pause, or go on (Space)"), checkable=True)
        self.pause.setObjectName("requests.pause.tool")
        self.pause.clicked.connect(lambda _on: self.pause_now())
        self.open = Button(tr("Open a file…"), "", "open")
        self.open.setObjectName("requests.open.button")
        self.open.clicked.connect(self.ask_file)
        self.export = Button(tr("Export…"), "", "save")
        self.export.setObjectName("requests.export.button")
        self.export.clicked.connect(self.ask_export)
        self.again = Button(tr("Replay…"), "", "play")
        self.again.setObjectName("requests.replay.button")
        self.again.clicked.connect(self.ask_replay)
        self.tabs = ClusterTabs("requests.tabs", (REQUESTS,))
        self.tabs.placeRequested.connect(self.placeRequested)
        made = Paper("pane", ("bottom",))
        line = row(
            self.record, self.pause, 8, self.open, None, self.export, self.again, 8, self.tabs, margins=(12, 6, 10, 6)
        )
        box = QVBoxLayout(made)
        box.setContentsMargins(0, 0, 0, 1)
        box.addWidget(line)
        return made

    def _card(self) -> QWidget:
        made = Paper("side", ("right", "bottom"))
        self.card_name, self.card_where = Elided("", 15, "text", 600, middle=True), Elided("", 12, "text2")
        self.card_kept = Elided("", 12, "text3")
        self.chip = Chip("live", tr("recording"))
        top = row(self.card_name, self.chip)
        top.box.setStretch(0, 1)
        box = QVBoxLayout(made)
        box.setContentsMargins(px(14), px(8), px(12), px(8))
        box.addWidget(column(top, self.card_where, self.card_kept, gap=3))
        return made

    def _filters(self) -> QWidget:
        self.filter = Field(tr('Filter, as topic = "Orders" and ms > 100'), code=True, icon_name="filter")
        self.filter.setObjectName("requests.filter")
        self.filter.setAccessibleName(tr("Filter of the requests"))
        self.filter.returnPressed.connect(lambda: self.set_filter(self.filter.text()))
        self.filter.textEdited.connect(lambda _text: self._fault(""))
        self.pills: dict[str, Button] = {}
        for key, said in PILL_WORDS.items():
            pill = self.pills[key] = Button(tr(said), "pill")
            pill.setObjectName(f"requests.only.{key}")
            pill.setCheckable(True)
            pill.clicked.connect(lambda on, key=key: self._pill(key, on))
        self.pill_box = row(*self.pills.values())
        self.shape = WordTabs("requests.shape", (("exchanges", tr("Exchanges")), ("frames", tr("Frames"))))
        self.shape.setToolTip(tr("A row each request with its answer, or each frame a row"))
        self.shape.chosen.connect(lambda key: self.show_frames(key == "frames"))
        self.filter_fault = Elided("", 12, "error")
        self.filter_fault.setObjectName("requests.filter.fault")
        self.filter_fault.hide()
        made = Paper("pane", ("bottom",))
        line = row(self.filter, Key("Ctrl L"), self.pill_box, 4, self.shape)
        line.box.setStretch(0, 1)
        box = QVBoxLayout(made)
        box.setContentsMargins(px(12), px(6), px(12), px(7))
        box.addWidget(column(line, self.filter_fault, gap=3))
        return made

    # ---- what the window calls ---------------------------------------------------------------------------------------

    def set_watch(self, watch: RequestWatch) -> None:
        """The requests of this window; once."""
        self.watch, self._log = watch, watch.log
        watch.changed.connect(self._show)
        watch.came.connect(self._came)
        self.filter.setText(watch.text)
        self._show()

    def set_session(self, session: StoreSession | None) -> None:
        """Another store is open: links lead there."""
        super().set_session(session)
        for table in (self.table, self.talks, self.fields):
            table.filter_place = None

    def show_place(self, place: Place) -> None:
        """The view as a whole; ``requests:PATH`` opens that file; a part is a filter."""
        if self.watch is None:
            return
        if place.name == REQUESTS_LIVE:
            if self.watch.feed is None:
                self.recordAsked.emit()
        elif place.name and place.name != self.watch.standing.name:
            self.watch.open_file(Path(place.name))
        if place.part:
            self.set_filter(place.part)
        self._show()

    def retheme(self) -> None:
        """Colours, fonts or zoom changed."""
        for table in (self.table, self.talks, self.fields):
            table.refresh_look()
        self.left.setFixedWidth(px(TALK_WIDTH))
        self._show_bytes()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Narrow windows leave the buttons beside the filter out, as the log does."""
        super().resizeEvent(event)
        self.pill_box.setVisible(self.width() >= px(SLIM))

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """On the table: Space pauses; Alt+Enter shows the other half of the exchange."""
        if event.type() != QEvent.Type.KeyPress or not isinstance(event, QKeyEvent):
            return False
        alt = bool(event.modifiers() & Qt.KeyboardModifier.AltModifier)
        if event.key() == Qt.Key.Key_Space:
            self.pause_now()
        elif alt and event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            self.other_half()
        else:
            return False
        return True

    def status(self) -> str:
        """How it stands."""
        return standing_words(self._log, self._standing)

    def busy(self) -> bool:
        """Whether a file is being read."""
        return self._standing.kind == "reading" and self.isVisible()

    def commands(self) -> dict[str, Callable[[], object]]:
        """Recording, pausing, files; the table's own."""
        found: dict[str, Callable[[], object]] = {
            "requests.record": self.record_or_end,
            "requests.pause": self.pause_now,
            "requests.open": self.ask_file,
            "requests.export": self.ask_export,
            "requests.replay": self.ask_replay,
            "requests.client": self.follow_client,
            "requests.opaque": self.follow_opaque,
            "requests.half": self.other_half,
            "requests.frames": lambda: self.show_frames(not self._log.by_frame),
            "filter.focus": self.filter.setFocus,
            "filter.apply": lambda: self.set_filter(self.filter.text()),
            "filter.clear": lambda: self.set_filter(""),
            "same.key.next": lambda: self.next_of_client(1),
            "same.key.previous": lambda: self.next_of_client(-1),
        }
        if self.session is not None:
            found |= {
                name: does
                for name, does in table_commands(self, lambda: self.table, "requests.jsonl").items()
                if not name.startswith(("filter.", "frequency"))
            }
        return found

    # ---- sources -----------------------------------------------------------------------------------------------------

    @property
    def _standing(self) -> Standing:
        return self.watch.standing if self.watch is not None else Standing()

    def record_or_end(self) -> None:
        """Record what the lab's broker is asked from now on, or no more."""
        if self.watch is None:
            return
        if self.watch.feed is not None:
            self.watch.end()
            self.did.emit("requests.end", tr("Stop recording requests"), {}, "")
        else:
            self.recordAsked.emit()

    def pause_now(self) -> None:
        """Fetch nothing for a while, or go on."""
        if self.watch is not None:
            self.watch.pause()

    def ask_file(self) -> None:
        """Ask for a file that ``storescope serve`` wrote."""
        dialog = QFileDialog(self, tr("Open requests"), str(Path.home()))
        dialog.setObjectName("requests.open.dialog")
        dialog.setNameFilters([tr("Recordings and logs of requests (*.requests *.jsonl)"), tr("All files (*)")])
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(lambda path: self.open_file(Path(path)))
        dialog.open()

    def open_file(self, path: Path) -> None:
        """Show the requests of a file."""
        if self.watch is not None:
            self.watch.open_file(path)
            self.did.emit("requests.open", tr("Open requests"), {"path": str(path)}, "")
            self.placeMoved.emit(Place("requests", name=str(path)))

    def ask_export(self) -> None:
        """Ask where the rows in sight go as JSON lines, or all that is kept as a recording."""
        if not self._log.kept:
            self.statusMessage.emit(tr("There is nothing to export yet."))
            return
        dialog = QFileDialog(self, tr("Export requests"), str(Path.home() / "requests.jsonl"))
        dialog.setObjectName("requests.export.dialog")
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setNameFilters(
            [tr("Lines of JSON, as shown (*.jsonl)"), tr("A recording of all that is kept (*.requests)")]
        )
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(lambda path: self.write(Path(path)))
        dialog.open()

    def write(self, path: Path) -> None:
        """Write the file, off the loop."""
        if self.watch is None:
            return

        def told(result: int | Exception) -> None:
            if isinstance(result, Exception):
                self.statusMessage.emit(f"{path}: {engine_words(str(result))}")
            else:
                self.statusMessage.emit(tr("{count:,} rows written to {path}", count=result, path=str(path)))

        self.watch.export(path, self._log.rows, told)

    def ask_replay(self) -> None:
        """Ask for the folder of a new store into which everything that is kept is sent again."""
        if not any(one.exchange.request.data for one in self._log.rows):
            self.statusMessage.emit(tr("Nothing here can be sent again: a recording with whole frames is needed."))
            return
        if self.watch is not None:
            store = self.session.path if self.session is not None else None
            ask_target_folder(
                self,
                "requests.replay.dialog",
                tr("Folder for the new store"),
                tr("Replay"),
                "replayed",
                store,
                self.watch.run,
                self.replay,
            )

    def replay(self, folder: Path) -> None:
        """Send everything that is kept again, into a new store; says what was answered otherwise."""
        if self.watch is None:
            return
        self.statusMessage.emit(tr("Sending the requests again into {path} …", path=str(folder)))

        def told(result: Replayed | Exception) -> None:
            if isinstance(result, Exception):
                self.statusMessage.emit(engine_words(str(result)))
                return
            self.statusMessage.emit(
                tr(
                    "{sent:,} requests were sent again: {same:,} answered as before, {differs:,} otherwise, "
                    "{none:,} not at all",
                    sent=result.sent,
                    same=result.same,
                    differs=result.differs,
                    none=result.unanswered,
                )
            )

        line = f"storescope replay RECORDING --store '{folder}'"
        self.did.emit("requests.replay", tr("Replay requests"), {"path": str(folder)}, line)
        self.watch.replay(folder, told)

    # ---- filter ------------------------------------------------------------------------------------------------------

    def set_filter(self, text: str) -> None:
        """Show what ``text`` asks for; what is wrong with it stands under the field."""
        if self.watch is None:
            return
        self.filter.setText(text)
        try:
            self.watch.show(text)
        except BadFilter as error:
            self._fault(engine_words(error.what))
            return
        self._fault("")
        for key, pill in self.pills.items():
            pill.setChecked(PILLS[key] == text)

    def _fault(self, said: str) -> None:
        self.filter.setProperty("state", "error" if said else "")
        self.filter.style().polish(self.filter)
        self.filter.setAccessibleDescription(said)
        self.filter_fault.setText(said)
        self.filter_fault.setVisible(bool(said))

    def _pill(self, key: str, on: bool) -> None:
        self.set_filter(PILLS[key] if on else "")

    def _talk_chosen(self, talk: TalkRow | None) -> None:
        if talk is not None and self.talks.hasFocus():
            self.set_filter(talk.term)

    def follow_client(self) -> None:
        """Only the requests of this client, or all again."""
        if self._chosen is not None:
            term = term_of("client", self._chosen.client)
            self.set_filter("" if self.filter.text() == term else term)

    def follow_opaque(self) -> None:
        """Only what this connection said under this opaque, or all again."""
        if self._chosen is not None:
            term = f"{term_of('peer', self._chosen.peer)} and {term_of('opaque', self._chosen.opaque)}"
            self.set_filter("" if self.filter.text() == term else term)

    def next_of_client(self, step: int) -> None:
        """Choose the next request of the same connection."""
        found = self._log.next_of(self._chosen, step) if self._chosen is not None else None
        if found is None:
            self.statusMessage.emit(tr("There is no further request of this client in sight."))
        else:
            self._leave_end()
            self.table.go_to(found.number)

    def other_half(self) -> None:
        """The answer's bytes in the place of the request's, or the other way round; of a frame the row of its other."""
        if isinstance(self._chosen, Frame):
            self._go_to_frame(self._chosen.other)
            return
        self.side.choose("answer" if self.side.key == "request" else "request")

    def show_frames(self, on: bool) -> None:
        """A row each frame, or each request with its answer; what was chosen stays chosen."""
        if self.watch is None or self._log.by_frame == on:
            return
        chosen = self._chosen
        if chosen is not None:
            self._chosen = chosen.row if isinstance(chosen, Frame) else chosen.asked
        self.watch.show_by_frame(on)

    def _follow(self, place: object) -> None:
        """A link: to the other half of an exchange here, else out of the view."""
        if isinstance(place, Frame):
            self._go_to_frame(place)
        else:
            self.placeRequested.emit(place)

    def _go_to_frame(self, frame: Frame | None) -> None:
        if frame is None:
            self.statusMessage.emit(tr("The other half of the exchange was not seen."))
        elif not self._log.holds(frame):
            self.statusMessage.emit(tr("The filter does not let the other half of the exchange through."))
        else:
            self._leave_end()
            self.table.go_to(frame.number)

    def _go_to_second(self, ms: int) -> None:
        found = next((one for one in self._log.rows if one.time >= ms), None)
        if found is not None:
            self._leave_end()
            self.table.go_to(found.number)

    # ---- the end of the table ----------------------------------------------------------------------------------------

    def _follows(self) -> bool:
        """Whether rows that come are kept in view."""
        return self._keeps_end and self._standing.kind == "live"

    def _leave_end(self) -> None:
        """Somebody looks at one place: the table stands still."""
        if self._follows():
            self._keeps_end = False
            self.table.set_state(self._state())

    def go_to_end(self) -> None:
        """Show the newest rows, and those that come."""
        self._keeps_end = True
        self.table.tail()
        self.table.set_state(self._state())

    # ---- showing -----------------------------------------------------------------------------------------------------

    def _show(self) -> None:
        """Everything as it stands now: another source, another filter."""
        chosen = self._chosen
        if self.watch is not None and not self.filter.hasFocus():
            self.filter.setText(self.watch.text)
            for key, pill in self.pills.items():
                pill.setChecked(PILLS[key] == self.watch.text)
        self._show_shape()
        if self._standing.kind in {"off", "reading", "starting", "file"}:
            self._keeps_end = True
        if self._log.rows and self._follows():
            self.table.go_to(self._log.rows[-1].number)
            self.table.scrollToBottom()
        elif chosen is not None and self._log.holds(chosen):
            self.table.go_to(chosen.number)
        elif self._log.rows:
            self.table.go_to(self._log.rows[-1 if self._standing.kind == "paused" else 0].number)
        else:
            self._row_chosen(None)
        self._show_standing()
        if self.isVisible():
            self.statusMessage.emit(self.status())

    def _show_shape(self) -> None:
        """The rows under the columns that are theirs; those of exchanges can tell of a frame, not the other way."""
        frames = self._log.by_frame
        if not frames and self.table.kind is not EXCHANGES:
            self.table.set_kind(EXCHANGES)
        self.table.set_source(LogSource(self._log))
        if frames and self.table.kind is not FRAMES:
            self.table.set_kind(FRAMES)
        self.shape.choose("frames" if frames else "exchanges")
        self.side.setVisible(not frames)
        self.field_head.set_title(tr("Frame") if frames else tr("Exchange"))

    def _came(self, new: list[Shown], changed: list[Shown]) -> None:
        if not self.isVisible():
            return
        held = {one.number: number for number, one in enumerate(self.table.table.rows)}
        for one in changed:
            number = held.get(one.number)
            if number is not None:
                self.table.table.row_changed(number)
        if self._chosen is not None and self._chosen in changed:
            self._show_chosen()
        if new and self._follows():
            self.table.tail()
        elif self._log.reordered:
            self.table.reload(anew=True)
        elif new:
            self.table.show_extent()
        self._show_standing()

    def showEvent(self, event: object) -> None:
        """What came meanwhile."""
        super().showEvent(event)  # type: ignore[arg-type]
        self._show()

    def _show_standing(self) -> None:
        log, standing = self._log, self._standing
        running = self.watch is not None and self.watch.feed is not None
        self.record.setText(tr("Stop") if running else tr("Record"))
        self.record.setAccessibleName(self.record.text())
        self.pause.setEnabled(standing.kind in {"live", "paused"})
        self.pause.setChecked(standing.kind == "paused")
        self.export.setEnabled(bool(log.kept))
        self.again.setEnabled(bool(log.kept))
        name, where, kept = card_words(log, standing)
        self.card_name.setText(name)
        self.card_where.setText(where)
        self.card_kept.setText(kept)
        self.chip.setVisible(standing.kind in {"live", "paused"})
        self.chip.set_chip(*(("live", tr("recording")) if standing.kind == "live" else ("warn", tr("paused"))))
        if not self.talks.hasFocus() or standing.kind != "live":
            self._show_talks()
        self.strip.show_seconds(log.seconds, live=standing.kind == "live")
        self.table.set_state(self._state())
        self.statusGrew.emit(standing_words(log, standing))

    def _show_talks(self) -> None:
        rows = talk_rows(self._log) if self._log.total else []
        self.talks.set_state(None if rows else State("empty", tr("As requests come, they are counted here.")))
        if rows == self.talks.table.rows:
            return
        current = self.talks.current_row()
        self.talks.set_rows(rows)
        if current is not None:
            at = next((n for n, one in enumerate(rows) if one.term == current.term and one.kind == current.kind), None)
            if at is not None:
                self.talks.go_to(at)

    def _state(self) -> State | None:
        log, standing = self._log, self._standing
        if standing.fault:
            return State("error", engine_words(standing.fault))
        if standing.kind in {"reading", "starting"}:
            return State("loading", tr("Reading {path} …", path=standing.name))
        if not log.rows and log.kept:
            none = tr("No frame matches the filter.") if log.by_frame else tr("No request matches the filter.")
            return State("empty", none, steps=((tr("Show all"), lambda: self.set_filter("")),))
        if standing.kind == "off":
            return State("empty", tr("Nothing is recorded. Record keeps the last 64 MiB, the oldest go."))
        if not log.rows and standing.kind == "live":
            return State("empty", tr("No request has come yet. Point a client at {address}.", address=standing.name))
        if not log.rows:
            return State("empty", tr("There is no request in {path}.", path=standing.name))
        said = edge_words(standing, self._keeps_end)
        if standing.kind == "live" and not self._keeps_end:
            return State("note", said, steps=((tr("Go to the end"), self.go_to_end),))
        return State("live" if standing.kind == "live" else "note", said) if said else None

    def _row_chosen(self, chosen: Shown | None) -> None:
        self._chosen = chosen
        self._show_chosen()
        if chosen is not None and self.watch is not None:
            part = "" if chosen.exchange.broken else f"{chosen.client} · {tr('opaque')} {chosen.opaque:,}"
            live = self._standing.kind in {"starting", "live", "paused", "ended"}
            name = REQUESTS_LIVE if live else self._standing.name
            self.placeMoved.emit(Place("requests", name=name, key=part))

    def _show_chosen(self) -> None:
        chosen = self._chosen
        if chosen is None:
            self.fields.set_rows([])
            self.fields.set_state(State("empty", tr("Choose a request: its fields are shown here.")))
            self.field_head.set_note("")
            self._show_bytes()
            return
        self.field_head.set_note(f"{chosen.client} · {tr('opaque')} {chosen.opaque:,} · {clock(chosen.time)}")
        self.fields.set_rows(field_rows(chosen))
        self.fields.set_state(None)
        self._show_bytes()

    def _show_bytes(self) -> None:
        chosen = self._chosen
        seen = None
        if isinstance(chosen, Frame):
            seen = chosen.seen
        elif chosen is not None:
            seen = chosen.exchange.request if self.side.key == "request" else chosen.exchange.answer
        there = seen is not None and bool(seen.data)
        self.hex.setFocusPolicy(Qt.FocusPolicy.StrongFocus if there else Qt.FocusPolicy.NoFocus)
        if seen is None or not there:
            self.hex.clear()
            why = "" if chosen is None else answer_chip(chosen).word
            if chosen is not None and chosen.exchange.sizes is not None:
                why = tr("the bytes are not kept in a log of requests")
            self.hex_head.set_note(why)
            return
        data = seen.data
        self.hex.show_bytes(lambda at, count: data[at : at + count], 0, painted(data), len(data), 0, len(data))
        self.hex_head.set_note(tr("{n:,} bytes", n=len(data)))

    def _field_chosen(self, chosen: FieldRow | None) -> None:
        if chosen is None or not chosen.part or not self.fields.hasFocus():
            return
        self.side.choose(chosen.side)
        self.hex.choose_field(chosen.part)

    def _byte_chosen(self, name: str) -> None:
        rows = [one for one in self.fields.table.rows if isinstance(one, FieldRow)]
        side = "" if self._log.by_frame else self.side.key
        at = next((n for n, one in enumerate(rows) if one.part == name and side in {"", one.side}), None)
        if at is not None:
            self.fields.go_to(at)


def painted(frame: bytes) -> list[HexField]:
    """The parts of a frame with their fills: lengths and form as frame, what names it as identity, its own fields in
    turns.
    """
    found: list[HexField] = []
    other = False
    for name, at, size in frame_parts(frame):
        group = {"body": "body", "remark": "topic", "language": "host", "version": "host"}.get(name, "id")
        if name in {"totalLength", "serializeType", "headerLength", "extFieldsLength"}:
            group = "frame"
        elif name.startswith(EXTRA):
            group, other = ("propsAlt" if other else "props"), not other
        found.append(HexField(name, at, size, group))
    return found
