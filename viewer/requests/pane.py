"""The Requests view: traffic on a server's connections, a row for each request with its response; fields and bytes.

Rows come from the window's :class:`~viewer.requests.watch.RequestWatch`, which outlives this pane: from the broker
of the lab, or from a file that ``storescope serve`` wrote.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QFileDialog, QVBoxLayout, QWidget

from engine.errors import BadFilter
from engine.remoting.frame_parts import EXTRA, frame_parts
from engine.remoting.recording import ReplayResult
from viewer.look.assets import tr, tr_plural, words
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
    FILTER_ENTRIES,
    FRAMES,
    FieldRow,
    FilterEntry,
    answer_chip,
    field_rows,
    filter_entries,
)
from viewer.requests.fields import PILLS, term_of
from viewer.requests.rate_strip import RateStrip
from viewer.requests.request_log import Frame, RequestLog, ShownRow
from viewer.requests.words import SourceStatus, card_words, edge_words, status_words
from viewer.runtime.places import REQUESTS_LIVE, Place
from viewer.widgets.basics import Button, Chip, ElidedLine, Field, Key, PaneHead, ThemedPanel, ToolButton
from viewer.widgets.boxes import column, row, splitter, stacked, wrapped_row
from viewer.widgets.hex_pages import HexField
from viewer.widgets.hex_view import HexView
from viewer.widgets.record_state import State
from viewer.widgets.record_view import RecordView
from viewer.widgets.row_window import Page
from viewer.widgets.table_tail import TableTail
from viewer.widgets.word_tabs import WordTabs

if TYPE_CHECKING:
    from viewer.requests.watch import RequestWatch
    from viewer.runtime.store_session import StoreSession

FILTER_LIST_WIDTH, NARROW_LIST_WIDTH = 304, 200
NARROW = 900
"""Px at 100 % below which the list of filters takes less."""
SLIM_BELOW_WIDTH = 1280
PILL_WORDS = {
    "not0": words("Not 0"),
    "held": words("Held"),
    "sends": words("Sends"),
    "beats": words("Without heartbeats"),
}
SUFFIX = "requests"


class LogSource:
    """Rows that pass the filter, as a source of the table; positions are the numbers of exchanges or frames."""

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

    def read(self, position: int, before: int, after: int) -> Page[ShownRow]:
        """Return a page of rows; see :class:`viewer.widgets.row_window.RowSource`."""
        rows = self._log.rows
        index = self._index_at(position)
        start_index, end_index = max(0, index - before), min(len(rows), index + after)
        return Page(rows[start_index:end_index], index - start_index, start_index == 0, end_index == len(rows))

    def _index_at(self, position: int) -> int:
        return bisect_left(self._log.rows, position, key=self.position)

    def position(self, row: ShownRow) -> int:
        return row.number

    def behind(self, row: ShownRow) -> int:
        return row.number + 1

    def number(self, row: ShownRow) -> int | None:
        return self._index_at(row.number)

    def position_of(self, number: int) -> int | None:
        return self._log.rows[number].number if 0 <= number < len(self._log.rows) else None


class RequestsPane(Pane):
    """View of requests. ``watch`` is set after construction; ``recordRequested()`` asks for the lab's server."""

    recordRequested = Signal()

    wants_tree = False

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("requests.pane")
        self.watch: RequestWatch | None = None
        self._log = RequestLog()
        self._chosen: ShownRow | None = None
        self._follows_end = True
        self._build()
        self._show()

    # ---- building ----------------------------------------------------------------------------------------------------

    def _build(self) -> None:
        self.strip = RateStrip()
        self.strip.chosen.connect(self._go_to_second)
        self.table = RecordView("requests.table", EXCHANGES)
        self.table.setAccessibleName(tr("Requests"))
        self.table.rowChosen.connect(self._row_chosen)
        self.table.placeRequested.connect(self._follow)
        self.table.installEventFilter(self)
        self._tail = TableTail(self.table, self._is_following, self._leave_end, self.go_to_end)
        self.talks = RecordView("requests.talks", FILTER_ENTRIES)
        self.talks.setAccessibleName(tr("Connections, codes and answers"))
        self.talks.rowChosen.connect(
            self._filter_chosen, Qt.ConnectionType.QueuedConnection
        )  # queued: applying the filter changes this list
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
        self.left.setFixedWidth(px(FILTER_LIST_WIDTH))
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
        self.pause = ToolButton("pause", tr("Pause or resume (Space)"), checkable=True)
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
        bar = ThemedPanel("pane", ("bottom",))
        line = wrapped_row(
            self.record, self.pause, 8, self.open, None, self.export, self.again, 8, self.tabs, margins=(12, 6, 10, 6)
        )
        box = QVBoxLayout(bar)
        box.setContentsMargins(0, 0, 0, 1)
        box.addWidget(line)
        return bar

    def _card(self) -> QWidget:
        card = ThemedPanel("side", ("right", "bottom"))
        self.card_name, self.card_where = ElidedLine("", 15, "text", 600, middle=True), ElidedLine("", 12, "text2")
        self.card_kept = ElidedLine("", 12, "text3")
        self.chip = Chip("live", tr("recording"))
        top = row(self.card_name, self.chip)
        top.box.setStretch(0, 1)
        box = QVBoxLayout(card)
        box.setContentsMargins(px(14), px(8), px(12), px(8))
        box.addWidget(column(top, self.card_where, self.card_kept, gap=3))
        return card

    def _filters(self) -> QWidget:
        self.filter = Field(tr('Filter, as topic = "Orders" and ms > 100'), code=True, icon_name="filter")
        self.filter.setObjectName("requests.filter")
        self.filter.setAccessibleName(tr("Filter of the requests"))
        self.filter.returnPressed.connect(lambda: self.set_filter(self.filter.text()))
        self.filter.textEdited.connect(lambda _text: self._fault(""))
        self.pills: dict[str, Button] = {}
        for key, label in PILL_WORDS.items():
            pill = self.pills[key] = Button(tr(label), "pill")
            pill.setObjectName(f"requests.only.{key}")
            pill.setCheckable(True)
            pill.clicked.connect(lambda on, key=key: self._pill(key, on))
        self.pill_box = row(*self.pills.values())
        self.shape = WordTabs("requests.shape", (("exchanges", tr("Exchanges")), ("frames", tr("Frames"))))
        self.shape.setToolTip(tr("One row per request with its response, or one row per frame"))
        self.shape.chosen.connect(lambda key: self.show_frames(key == "frames"))
        self.filter_fault = ElidedLine("", 12, "error")
        self.filter_fault.setObjectName("requests.filter.fault")
        self.filter_fault.hide()
        box_paper = ThemedPanel("pane", ("bottom",))
        line = row(self.filter, Key("Ctrl L"), self.pill_box, 4, self.shape)
        line.box.setStretch(0, 1)
        box = QVBoxLayout(box_paper)
        box.setContentsMargins(px(12), px(6), px(12), px(7))
        box.addWidget(column(line, self.filter_fault, gap=3))
        return box_paper

    # ---- what the window calls ---------------------------------------------------------------------------------------

    def set_watch(self, watch: RequestWatch) -> None:
        """Set the source of this window's requests; called once."""
        self.watch, self._log = watch, watch.log
        watch.changed.connect(self._show)
        watch.rowsChanged.connect(self._on_rows)
        self.filter.setText(watch.text)
        self._show()

    def set_session(self, session: StoreSession | None) -> None:
        """Set the store that links lead to."""
        super().set_session(session)
        for table in (self.table, self.talks, self.fields):
            table.filter_place = None

    def show_place(self, place: Place) -> None:
        """Show the view; ``requests:PATH`` opens that file, a part is a filter."""
        if self.watch is None:
            return
        if place.name == REQUESTS_LIVE:
            if self.watch.feed is None:
                self.recordRequested.emit()
        elif place.name and place.name != self.watch.source_status.name:
            self.watch.open_file(Path(place.name))
        if place.part:
            self.set_filter(place.part)
        self._show()

    def retheme(self) -> None:
        """Apply colours, fonts and zoom."""
        for table in (self.table, self.talks, self.fields):
            table.refresh_look()
        self._fit()
        self._show_bytes()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Hide the filter buttons in narrow windows. The list of filters takes less in half a screen."""
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        self.pill_box.setVisible(self.width() >= px(SLIM_BELOW_WIDTH))
        self.left.setFixedWidth(px(FILTER_LIST_WIDTH if self.width() >= px(NARROW) else NARROW_LIST_WIDTH))

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """Handle keys on the table: Space pauses; Alt+Enter shows the other half of the exchange."""
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
        """Describe the source and the number of requests."""
        return status_words(self._log, self._source_status)

    def busy(self) -> bool:
        """Return True while a file is read."""
        return self._source_status.kind == "reading" and self.isVisible()

    def focus_stops(self) -> Sequence[QWidget]:
        """Return the parts between which F6 moves the focus."""
        return self.talks, self.filter, self.table, self.fields, self.hex

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the commands of the view and of its table."""
        commands: dict[str, Callable[[], object]] = {
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
            commands |= {
                name: action
                for name, action in table_commands(self, lambda: self.table, "requests.jsonl").items()
                if not name.startswith(("filter.", "frequency"))
            }
        return commands

    # ---- sources -----------------------------------------------------------------------------------------------------

    @property
    def _source_status(self) -> SourceStatus:
        return self.watch.source_status if self.watch is not None else SourceStatus()

    def record_or_end(self) -> None:
        """Start to record the lab broker's requests, or stop."""
        if self.watch is None:
            return
        if self.watch.running:
            self.watch.end()
            self.operationDone.emit("requests.end", tr("Stop recording requests"), {}, "")
        else:
            self.recordRequested.emit()

    def pause_now(self) -> None:
        """Pause fetching, or continue."""
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
            self.operationDone.emit("requests.open", tr("Open requests"), {"path": str(path)}, "")
            self.placeMoved.emit(Place("requests", name=str(path)))

    def ask_export(self) -> None:
        """Ask for the target: visible rows as JSON lines, or everything stored as a recording."""
        if not self._log.stored_count:
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

        def on_result(result: int | Exception) -> None:
            if isinstance(result, Exception):
                self.statusMessage.emit(f"{path}: {engine_words(str(result))}")
            else:
                self.statusMessage.emit(
                    tr_plural("{n:,} row written to {path}", "{n:,} rows written to {path}", n=result, path=str(path))
                )

        self.watch.export(path, self._log.rows, on_result)

    def ask_replay(self) -> None:
        """Ask for the folder of a new store into which all stored requests are replayed."""
        if not any(row.exchange.request.data for row in self._log.rows):
            self.statusMessage.emit(tr("Nothing here can be sent again: this needs a recording with complete frames."))
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
        """Replay all stored requests into a new store; report the responses that differ."""
        if self.watch is None:
            return
        self.statusMessage.emit(tr("Sending the requests again into {path} …", path=str(folder)))

        def on_result(result: ReplayResult | Exception) -> None:
            if isinstance(result, Exception):
                self.statusMessage.emit(engine_words(str(result)))
                return
            self.statusMessage.emit(
                tr_plural(
                    "{n:,} request was sent again: {same:,} got the same response, {differs:,} a different one, "
                    "{none:,} none",
                    "{n:,} requests were sent again: {same:,} got the same response, {differs:,} a different one, "
                    "{none:,} none",
                    n=result.sent,
                    same=result.same,
                    differs=result.differs,
                    none=result.unanswered,
                )
            )

        line = f"storescope replay RECORDING --store '{folder}'"
        self.operationDone.emit("requests.replay", tr("Replay requests"), {"path": str(folder)}, line)
        self.watch.replay(folder, on_result)

    # ---- filter ------------------------------------------------------------------------------------------------------

    def set_filter(self, text: str) -> None:
        """Apply a filter; an error in it is shown below the field."""
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

    def _fault(self, reason: str) -> None:
        self.filter.setProperty("state", "error" if reason else "")
        self.filter.style().polish(self.filter)
        self.filter.setAccessibleDescription(reason)
        self.filter_fault.setText(reason)
        self.filter_fault.setVisible(bool(reason))

    def _pill(self, key: str, on: bool) -> None:
        self.set_filter(PILLS[key] if on else "")

    def _filter_chosen(self, talk: FilterEntry | None) -> None:
        if talk is not None and self.talks.hasFocus():
            self.set_filter(talk.term)

    def follow_client(self) -> None:
        """Show only the requests of the selected client, or all again."""
        if self._chosen is not None:
            term = term_of("client", self._chosen.client)
            self.set_filter("" if self.filter.text() == term else term)

    def follow_opaque(self) -> None:
        """Show only the frames of this connection with this opaque, or all again."""
        if self._chosen is not None:
            term = f"{term_of('peer', self._chosen.peer)} and {term_of('opaque', self._chosen.opaque)}"
            self.set_filter("" if self.filter.text() == term else term)

    def next_of_client(self, step: int) -> None:
        """Select the next request of the same connection."""
        row = self._log.next_of(self._chosen, step) if self._chosen is not None else None
        if row is None:
            self.statusMessage.emit(tr("No further request of this client is shown."))
        else:
            self._leave_end()
            self.table.go_to(row.number)

    def other_half(self) -> None:
        """Switch between the bytes of request and response; for a frame, go to its other half."""
        if isinstance(self._chosen, Frame):
            self._go_to_frame(self._chosen.counterpart)
            return
        self.side.choose("answer" if self.side.key == "request" else "request")

    def show_frames(self, on: bool) -> None:
        """Show a row for each frame, or for each exchange; the selection stays."""
        if self.watch is None or self._log.by_frame == on:
            return
        chosen = self._chosen
        if chosen is not None:
            self._chosen = chosen.row if isinstance(chosen, Frame) else chosen.request_frame
        self.watch.show_by_frame(on)

    def _follow(self, place: object) -> None:
        """Follow a link: to the other half of an exchange in this view, else to a place outside."""
        if isinstance(place, Frame):
            self._go_to_frame(place)
        else:
            self.placeRequested.emit(place)

    def _go_to_frame(self, frame: Frame | None) -> None:
        if frame is None:
            self.statusMessage.emit(tr("The other half of the exchange was not seen."))
        elif not self._log.holds(frame):
            self.statusMessage.emit(tr("The filter hides the other half of the exchange."))
        else:
            self._leave_end()
            self.table.go_to(frame.number)

    def _go_to_second(self, ms: int) -> None:
        first_row = next((row for row in self._log.rows if row.time >= ms), None)
        if first_row is not None:
            self._leave_end()
            self.table.go_to(first_row.number)

    # ---- the end of the table ----------------------------------------------------------------------------------------

    def _is_following(self) -> bool:
        """Return True if the table follows new rows."""
        return self._follows_end and self._source_status.kind == "live"

    def _leave_end(self) -> None:
        """Stop following new rows, because the user looks at one place."""
        if self._is_following():
            self._follows_end = False
            self.table.set_state(self._state())

    def go_to_end(self) -> None:
        """Show the newest rows and follow."""
        self._follows_end = True
        self.table.tail()
        self.table.set_state(self._state())

    # ---- showing -----------------------------------------------------------------------------------------------------

    def _show(self) -> None:
        """Show all rows again after the source or the filter has changed."""
        chosen = self._chosen
        if self.watch is not None and not self.filter.hasFocus():
            self.filter.setText(self.watch.text)
            for key, pill in self.pills.items():
                pill.setChecked(PILLS[key] == self.watch.text)
        self._show_shape()
        if self._source_status.kind in {"off", "reading", "starting", "file"}:
            self._follows_end = True
        if self._log.rows and self._is_following():
            self.table.go_to(self._log.rows[-1].number)
            self.table.scrollToBottom()
        elif chosen is not None and self._log.holds(chosen):
            self.table.go_to(chosen.number)
        elif self._log.rows:
            self.table.go_to(self._log.rows[-1 if self._source_status.kind == "paused" else 0].number)
        else:
            self._row_chosen(None)
        self._show_status()
        if self.isVisible():
            self.statusMessage.emit(self.status())

    def _show_shape(self) -> None:
        """Set source and columns; rows of exchanges have no frame columns, so the order of changes matters."""
        frames = self._log.by_frame
        if not frames and self.table.kind is not EXCHANGES:
            self.table.set_kind(EXCHANGES)
        self.table.set_source(LogSource(self._log))
        if frames and self.table.kind is not FRAMES:
            self.table.set_kind(FRAMES)
        self.shape.choose("frames" if frames else "exchanges")
        self.side.setVisible(not frames)
        self.field_head.set_title(tr("Frame") if frames else tr("Exchange"))

    def _on_rows(self, new_rows: list[ShownRow], changed_rows: list[ShownRow]) -> None:
        if not self.isVisible():
            return
        shown_numbers = {row.number: number for number, row in enumerate(self.table.table.rows)}
        for changed_row in changed_rows:
            number = shown_numbers.get(changed_row.number)
            if number is not None:
                self.table.table.row_changed(number)
        if self._chosen is not None and self._chosen in changed_rows:
            self._show_chosen()
        if new_rows and self._is_following():
            self.table.tail()
        elif self._log.reordered:
            self.table.reload(anew=True)
        elif new_rows:
            self.table.show_extent()
        self._show_status()

    def showEvent(self, event: object) -> None:
        """Show the frames that came while the view was hidden."""
        super().showEvent(event)  # type: ignore[arg-type]
        self._show()

    def _show_status(self) -> None:
        log, source_status = self._log, self._source_status
        running = self.watch is not None and self.watch.running
        self.record.setText(tr("Stop") if running else tr("Record"))
        self.record.setAccessibleName(self.record.text())
        self.pause.setEnabled(source_status.kind in {"live", "paused"})
        self.pause.setChecked(source_status.kind == "paused")
        for button in (self.export, self.again):
            button.setEnabled(bool(log.stored_count))
            button.setToolTip("" if log.stored_count else tr("Record requests or open a recording first."))
        name, where, stored = card_words(log, source_status)
        self.card_name.setText(name)
        self.card_where.setText(where)
        self.card_kept.setText(stored)
        self.chip.setVisible(source_status.kind in {"live", "paused"})
        self.chip.set_chip(*(("live", tr("recording")) if source_status.kind == "live" else ("warn", tr("paused"))))
        if not self.talks.hasFocus() or source_status.kind != "live":
            self._show_filters()
        self.strip.show_seconds(log.seconds, live=source_status.kind == "live")
        self.table.set_state(self._state())
        self.statusUpdated.emit(status_words(log, source_status))

    def _show_filters(self) -> None:
        rows = filter_entries(self._log) if self._log.total else []
        self.talks.set_state(None if rows else State("hint", tr("As requests come, they are counted here.")))
        if rows == self.talks.table.rows:
            return
        current = self.talks.current_row()
        self.talks.set_rows(rows)
        if current is not None:
            index = next(
                (n for n, talk in enumerate(rows) if talk.term == current.term and talk.kind == current.kind), None
            )
            if index is not None:
                self.talks.go_to(index)

    def _state(self) -> State | None:
        log, source_status = self._log, self._source_status
        if source_status.fault:
            return State("error", engine_words(source_status.fault))
        if source_status.kind in {"reading", "starting"}:
            return State("loading", tr("Reading {path} …", path=source_status.name))
        if not log.rows and log.stored_count:
            message = tr("No frame matches the filter.") if log.by_frame else tr("No request matches the filter.")
            return State("hint", message, steps=((tr("Show all"), lambda: self.set_filter("")),))
        if source_status.kind == "off":
            return State("hint", tr("Nothing is recorded. Record keeps the last 64 MiB; the oldest are dropped."))
        if not log.rows and source_status.kind == "live":
            return State(
                "empty", tr("No request has arrived yet. Connect a client to {address}.", address=source_status.name)
            )
        if not log.rows and source_status.left_out is None:
            text = tr("There is no request in {path} yet: new ones are shown as they arrive.", path=source_status.name)
            return State("empty", text)
        if not log.rows:
            return State("empty", tr("There is no request in {path}.", path=source_status.name))
        edge_text = edge_words(source_status, self._follows_end)
        if source_status.kind == "live" and not self._follows_end:
            return State("note", edge_text, steps=((tr("Go to the end"), self.go_to_end),))
        return State("live" if source_status.kind == "live" else "note", edge_text) if edge_text else None

    def _row_chosen(self, chosen: ShownRow | None) -> None:
        self._chosen = chosen
        self._show_chosen()
        if chosen is not None and self.watch is not None:
            part = "" if chosen.exchange.broken else f"{chosen.client} · {tr('opaque')} {chosen.opaque:,}"
            source_status = self._source_status
            live = source_status.kind in {"starting", "live", "paused", "ended"} and not source_status.of_file
            name = REQUESTS_LIVE if live else source_status.name
            self.placeMoved.emit(Place("requests", name=name, key=part))

    def _show_chosen(self) -> None:
        chosen = self._chosen
        if chosen is None:
            self.fields.set_rows([])
            self.fields.set_state(State("hint", tr("Choose a request: its fields are shown here.")))
            self.field_head.set_note("")
            self._show_bytes()
            return
        self.field_head.set_note(f"{chosen.client} · {tr('opaque')} {chosen.opaque:,} · {clock(chosen.time)}")
        self.fields.set_rows(field_rows(chosen))
        self.fields.set_state(None)
        self._show_bytes()

    def _show_bytes(self) -> None:
        chosen = self._chosen
        frame = None
        if isinstance(chosen, Frame):
            frame = chosen.recorded
        elif chosen is not None:
            frame = chosen.exchange.request if self.side.key == "request" else chosen.exchange.answer
        has_bytes = frame is not None and bool(frame.data)
        self.hex.setFocusPolicy(Qt.FocusPolicy.StrongFocus if has_bytes else Qt.FocusPolicy.NoFocus)
        if frame is None or not has_bytes:
            self.hex.clear()
            reason = "" if chosen is None else answer_chip(chosen).word
            if chosen is not None and chosen.exchange.sizes is not None:
                reason = tr("the bytes are not kept in a log of requests")
            self.hex_head.set_note(reason)
            return
        data = frame.data
        self.hex.show_bytes(
            lambda position, count: data[position : position + count], 0, frame_fields(data), len(data), 0, len(data)
        )
        self.hex_head.set_note(tr_plural("{n:,} byte", "{n:,} bytes", n=len(data)))

    def _field_chosen(self, chosen: FieldRow | None) -> None:
        if chosen is None or not chosen.part or not self.fields.hasFocus():
            return
        self.side.choose(chosen.side)
        self.hex.choose_field(chosen.part)

    def _byte_chosen(self, name: str) -> None:
        rows = [field_row for field_row in self.fields.table.rows if isinstance(field_row, FieldRow)]
        side = "" if self._log.by_frame else self.side.key
        index = next(
            (n for n, field_row in enumerate(rows) if field_row.part == name and side in {"", field_row.side}), None
        )
        if index is not None:
            self.fields.go_to(index)


def frame_fields(frame: bytes) -> list[HexField]:
    """Return the parts of a frame as hex fields: lengths and encoding, identity, and header fields in alternating
    colours.
    """
    fields: list[HexField] = []
    is_odd = False
    for name, position, size in frame_parts(frame):
        group = {"body": "body", "remark": "topic", "language": "host", "version": "host"}.get(name, "id")
        if name in {"totalLength", "serializeType", "headerLength", "extFieldsLength"}:
            group = "frame"
        elif name.startswith(EXTRA):
            group, is_odd = ("propsAlt" if is_odd else "props"), not is_odd
        fields.append(HexField(name, position, size, group))
    return fields
