"""The Cluster view: name servers to ask, the picture with the selection beside it, tables of everything.

Readings come from the window's :class:`~viewer.cluster.watch.ClusterWatch`, which outlives this pane. Only
administrators' requests are sent: nothing in a cluster is changed.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QGuiApplication, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QScrollArea,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from viewer.cluster.access import AccessFiles
from viewer.cluster.address_bar import AddressBar
from viewer.cluster.cells_canvas import CellsCanvas, CellsHead, QueueMap, TopicQueues
from viewer.cluster.clients_bar import ClientsBar
from viewer.cluster.cluster_model import ClusterModel, NoAddress, Selection
from viewer.cluster.columns import LINES, REQUESTS, LineRow, RequestRow, line_rows, request_rows
from viewer.cluster.details import breadcrumb_words
from viewer.cluster.drawing import same
from viewer.cluster.exports import ClusterExports
from viewer.cluster.lag_panel import LagPanel
from viewer.cluster.lessons_panel import LessonsSidebar
from viewer.cluster.lines_canvas import LinesCanvas
from viewer.cluster.links import item_links, link_of, why_not
from viewer.cluster.markdown import lessons_markdown, markdown
from viewer.cluster.offset_box import OffsetBox
from viewer.cluster.plan import ROW
from viewer.cluster.rebalance_words import rebalance_markdown
from viewer.cluster.replay import Replay
from viewer.cluster.side import FoldedSide, SidePanel
from viewer.cluster.start_page import StartPage
from viewer.cluster.words import fault_words, status_sentence
from viewer.look.assets import tr, tr_plural, words
from viewer.look.engine_words import engine_words
from viewer.look.formats import clock
from viewer.look.theme import px, scale
from viewer.pane import Pane
from viewer.pane.table_commands import command_copier, table_commands
from viewer.pane.view_tabs import OF_CLUSTER, ClusterTabs
from viewer.runtime.places import Place
from viewer.widgets.basics import Button, Field, Key, Label, PaneHead, ThemedPanel, ToolButton
from viewer.widgets.boxes import row, stacked, wrapped_row
from viewer.widgets.record_state import State, StateLine
from viewer.widgets.record_view import RecordView
from viewer.widgets.row_window import ListSource

if TYPE_CHECKING:
    from viewer.cluster.watch import ClusterWatch
    from viewer.runtime.settings import Settings
    from viewer.runtime.store_session import StoreSession

FILTERS = (
    ("behind", words("Behind")),
    ("orphan", words("No owner")),
    ("idle", words("Idle clients")),
    ("two", words("Two owners")),
)
SLIM_BELOW_WIDTH = 1520
"""Width below which the side column is folded, px: the lines need the space."""


class ClusterPane(Pane):
    """View of a running cluster. ``watch`` is set after construction."""

    commandsChanged = Signal()  # other commands are possible now
    messagesRequested = Signal(str, object)
    """Ask for the window with the messages of a topic ("" for none), at a queue or None."""
    sendRequested = Signal(str)
    """Ask for the box that sends a message to a topic ("" for none)."""
    wants_tree = False

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("cluster.pane")
        self.watch: ClusterWatch | None = None
        self.model = ClusterModel()
        self._settings: Settings | None = None
        self._shown_status, self._shown_commands = "", frozenset[str]()
        self._build()
        self._show()

    # ---- building ----------------------------------------------------------------------------------------------------

    def _build(self) -> None:
        self.exports = ClusterExports(self, self._markdown)
        self.exports.statusText.connect(self.statusMessage)
        self.address_bar = self._bar()
        self.start_page = StartPage()
        self.start_page.addressChosen.connect(self._ask)
        self.fault = StateLine()
        self.fault.setObjectName("cluster.fault")
        self.lines, self.cells, self.heads = LinesCanvas(self.link_of), CellsCanvas(self.link_of), CellsHead()
        self.map, self.topic_queues = QueueMap(self.link_of), TopicQueues(self.link_of)
        self.topic_queues_head = PaneHead("", "")
        for canvas in (self.lines, self.cells, self.map, self.topic_queues):
            canvas.chosen.connect(self.choose)
            canvas.itemFollowed.connect(self.follow)
        self._lines_area, self._cells_area = _scrolled(self.lines), _scrolled(self.cells)
        self._cells_area.verticalScrollBar().valueChanged.connect(lambda _at: self._show_map())
        self._cells_area.horizontalScrollBar().valueChanged.connect(lambda _at: self._show_map())
        self._cells_area.viewport().installEventFilter(self)
        self.cells.widthChanged.connect(self._show_map)
        large_picture = stacked(
            self.map, self.heads, self._cells_area, self.topic_queues_head, self.topic_queues, room=2
        )
        self.table, self.requests = RecordView("cluster.table", LINES), RecordView("cluster.requests", REQUESTS)
        self.table.setAccessibleName(tr("Lines of the picture"))
        self.requests.setAccessibleName(tr("Requests of administrators"))
        self.table.placeRequested.connect(self.placeRequested)
        self.table.rowChosen.connect(self._row_chosen)
        self.table.copier = command_copier(self.table, shlex.join)
        self.requests_head = PaneHead(tr("Requests"), tr("asked of name servers and brokers"))
        tables = stacked(
            PaneHead(tr("Lines"), tr("one row per queue and group")),
            self.table,
            self.table.strip,
            self.requests_head,
            self.requests,
            self.requests.strip,
            room=1,
        )
        tables.layout().setStretch(4, 1)  # type: ignore[union-attr]
        self.pages = QStackedWidget()
        self.beside = LessonsSidebar(self.link_of)
        self.rebalance, self.lessons = self.beside.rebalance, self.beside.lessons
        self.rebalance.timeRequested.connect(self.go_to)
        self.rebalance.groupChosen.connect(lambda name: self.choose(Selection("group", name)))
        self.rebalance.lanes.chosen.connect(self.choose)
        self.rebalance.lanes.itemFollowed.connect(self.follow)
        self.lessons.groupRequested.connect(self._look_at_group)
        self.lessons.operationDone.connect(
            lambda name: self.operationDone.emit("cluster.lesson", tr("Run a lesson"), {"lesson": name}, "")
        )
        self.lag = LagPanel()
        self.lag.exportRequested.connect(self.exports.ask_lag_file)
        self.lag.groupChosen.connect(lambda name: self.choose(Selection("group", name)))
        for page in (self.start_page, self._lines_area, large_picture, tables, self.beside, self.lag):
            self.pages.addWidget(page)
        self.side, self.folded = SidePanel(), FoldedSide()
        self.side.chosen.connect(self.choose)
        self.side.placeRequested.connect(self.placeRequested)
        self.folded.toggled.connect(lambda _on: self._fit_side())
        body = row(self.pages, self.side, self.folded, gap=0)
        body.box.setStretch(0, 1)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        self.clients = ClientsBar()
        self.clients.operationDone.connect(
            lambda name, action, parameters: self.operationDone.emit(name, action, parameters, "")
        )
        self.clients.declarationChanged.connect(self._declaration_changed)
        self.clients.lab.edited.connect(self.edited)
        self.clients.lab.statusText.connect(self.statusMessage)
        box.addWidget(
            stacked(self.address_bar, self._filters(), self.clients, self.fault, body, self._time_bar(), room=4)
        )
        self.lead = self.address_bar.address

    def _bar(self) -> AddressBar:
        self.copy = ToolButton("save", tr("Export as Markdown…"), tr("Markdown"))
        self.copy.setObjectName("cluster.markdown")
        self.copy.clicked.connect(lambda _on: self.exports.ask_markdown())
        self.tabs = ClusterTabs("cluster.tabs", OF_CLUSTER)
        self.tabs.placeRequested.connect(self.placeRequested)
        self.tabs.chosen.connect(lambda _key: self._tab_chosen())
        bar = AddressBar(self.copy, 8, self.tabs, 8)
        bar.connectRequested.connect(self.connect_now)
        bar.earlierChosen.connect(self._ask)
        bar.goClicked.connect(self.connect_or_end)
        bar.addressEdited.connect(lambda: self._fault_at_field(""))
        bar.readRequested.connect(self.read_again)
        bar.intervalChosen.connect(self._set_interval)
        return bar

    def _time_bar(self) -> QWidget:
        self.replay = Replay(self)
        self.replay.timeChanged.connect(self.go_to)
        self.replay.statusText.connect(self.statusMessage)
        bar = self.replay.bar
        bar.pause.clicked.connect(lambda _on: self.pause_now())
        for back in (bar.end, bar.live):
            back.clicked.connect(self.go_live)
        return bar

    def _filters(self) -> QWidget:
        self.filter = Field(tr("Topic, group, client or address"), icon_name="filter", width=300)
        self.filter.setObjectName("cluster.filter")
        self.filter.textChanged.connect(lambda _text: self._filtered())
        self.pills: dict[str, Button] = {}
        for key, label in FILTERS:
            pill = self.pills[key] = Button(tr(label), "pill")
            pill.setObjectName(f"cluster.only.{key}")
            pill.setCheckable(True)
            pill.clicked.connect(lambda _on, key=key: self._pill(key))
        self.troubles = Label("", 12, "text3")
        self.filters = ThemedPanel("pane", ("bottom",))
        line = wrapped_row(
            self.filter, Key("Ctrl L"), *self.pills.values(), None, self.troubles, margins=(12, 6, 12, 6)
        )
        box = QVBoxLayout(self.filters)
        box.setContentsMargins(0, 0, 0, 1)
        box.addWidget(line)
        return self.filters

    # ---- what the window calls ---------------------------------------------------------------------------------------

    def use(self, settings: Settings) -> None:
        """Offer the addresses that were used before."""
        self._settings = settings
        self.address_bar.use(settings)
        self.start_page.show_addresses(self.address_bar.earlier_addresses)

    def set_watch(self, watch: ClusterWatch) -> None:
        """Set the watch of this window; called once."""
        self.watch, self.model = watch, watch.model
        self.exports.watch = watch
        for canvas in (self.lines, self.cells, self.map, self.topic_queues):
            canvas.model = watch.model
        self.rebalance.model = self.lag.model = watch.model
        self.replay.set_watch(watch)
        self.clients.model, self.clients.own = watch.model, watch.own
        self.clients.lab.session = watch.lab
        if watch.lab is not None:
            watch.lab.servingChanged.connect(self._show_actions)
        self.lessons.model, self.lessons.own = watch.model, watch.own
        self.lessons.runs = watch.lessons
        watch.readingAdded.connect(self.lessons.go_on)
        watch.lessonEventsAdded.connect(self.lessons.go_on)
        watch.own.changed.connect(self.clients.refresh)
        watch.statusText.connect(self.statusMessage)
        watch.readingAdded.connect(
            self._show, Qt.ConnectionType.QueuedConnection
        )  # queued, so that drawing has its own turn of the event loop
        watch.changed.connect(self._show)
        if self.model.address:
            self.address_bar.show_cluster(self.model.address, watch.access)
        self.filter.setText(self.model.text)
        self.address_bar.show_interval(self.model.interval_s)
        self._show()

    def set_session(self, session: StoreSession | None) -> None:
        """Set the store that links lead to."""
        super().set_session(session)
        if session is not None:
            session.surveyed.connect(self._show)
        self._show()

    def show_place(self, place: Place) -> None:
        """Show the view or one of its tabs (``field``); ``cluster:HOST:PORT`` connects to that name server."""
        if place.field:
            self.tabs.choose(place.field)
        if place.name and self.watch is not None and place.name != self.model.address:
            self._ask(place.name)
        self._show()

    def retheme(self) -> None:
        """Apply colours, fonts and zoom."""
        for table in (self.table, self.requests, self.lag.table):
            table.refresh_look()
        self._show()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fold the side column in narrow windows."""
        super().resizeEvent(event)
        self._fit_side()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Move the map's frame when the table of cells is resized."""
        if watched is self._cells_area.viewport() and event.type() == QEvent.Type.Resize:
            self._show_map()
        return False

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Pause on Space; other keys: see :meth:`ClientsBar.press`."""
        if event.key() == Qt.Key.Key_Space:
            self.pause_now()
        elif not self.clients.handle_key(event):
            super().keyPressEvent(event)

    def status(self) -> str:
        """Return the sentence of the status bar."""
        return status_sentence(self.model)

    def busy(self) -> bool:
        """Return True while the first reading is under way."""
        return self.model.status == "connecting" and self.model.state is None and self.isVisible()

    def focus_stops(self) -> Sequence[QWidget]:
        """Return the parts between which F6 moves the focus."""
        pictures = (self.lines, self.map, self.cells, self.topic_queues, self.rebalance.lanes)
        tables = (self.table, self.requests, self.lag.table)
        return self.address_bar.address, self.address_bar.account_file, self.filter, *pictures, *tables, self.folded

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the commands of the view, and of a table in front."""
        commands: dict[str, Callable[[], object]] = {
            "cluster.connect": self.connect_or_end,
            "cluster.pause": self.pause_now,
            "view.refresh": self.read_again,
            "filter.focus": self.filter.setFocus,
            "cluster.export": self.exports.ask_markdown,
            "cluster.copy": self.exports.copy_markdown,
            "live.record": self.replay.ask_record,
            "live.load": self.replay.ask_recording,
            "live.play": self.replay.play,
            "live.now": self.go_live,
            "live.pause": self.pause_now,
        } | self.clients.possible_commands()
        if self.model.state is not None and not self.model.recording:
            commands["cluster.browse"] = self.browse
            if self.model.is_own:
                commands["cluster.offsets"] = self.ask_offsets
                commands["cluster.send"] = lambda: self.sendRequested.emit(self.chosen_topic())
        if self.model.state is not None and self.beside.offered:
            commands["cluster.lessons"] = self.bring_lessons
        if self.tabs.key == "rebalance":
            commands |= {
                "list.next": lambda: self.rebalance.walk(1),
                "list.previous": lambda: self.rebalance.walk(-1),
                "live.fit": self.rebalance.fit,
            }
        if self.session is not None and self.tabs.key == "tables":
            commands |= table_commands(self, self._table, "cluster.jsonl")
        return commands

    def _table(self) -> RecordView:
        return self.requests if self.requests.hasFocus() else self.table

    # ---- whom it asks ------------------------------------------------------------------------------------------------

    def connect_or_end(self) -> None:
        """Connect to the name servers in the field, or disconnect."""
        if self.watch is not None and self.watch.runs:
            self.watch.end()
            self.operationDone.emit(
                "cluster.end", tr("Disconnect from the cluster"), {"address": self.model.address}, ""
            )
        else:
            self.connect_now()

    def connect_now(self) -> None:
        """Connect to the name servers in the field."""
        self._ask(self.address_bar.address.text(), files=self.address_bar.access_files())

    def _ask(self, text: str, *, files: AccessFiles | None = None) -> None:
        """Connect to the name servers in ``text``; without ``files`` with those that were used with them before."""
        if self.watch is None:
            return
        bar = self.address_bar
        if files is None:
            files = bar.saved_access(text)
            bar.show_cluster(text, files)
        try:
            self.watch.begin(text, files)
        except NoAddress as error:
            self._fault_at_field(
                tr(
                    "“{text}” is not an address. Expected HOST:PORT, for example 127.0.0.1:9876; separate several "
                    "with ;",
                    text=engine_words(str(error)),
                )
            )
            return
        self._fault_at_field("")
        bar.address.setText(self.model.address)
        bar.remember(self.model.address, files)
        self.start_page.show_addresses(bar.earlier_addresses)
        line = self.watch.command_line()
        self.operationDone.emit("cluster.connect", tr("Connect to a cluster"), {"address": self.model.address}, line)
        self.placeMoved.emit(Place("cluster", name=self.model.address))

    def _fault_at_field(self, reason: str) -> None:
        self.address_bar.show_fault(reason)
        if reason:
            self.fault.show_state(State("error", reason))
            self.statusMessage.emit(reason)
        else:
            self._show_fault()

    def ask_offsets(self) -> OffsetBox | None:
        """Show the box that moves a group's offsets, for what is chosen in the picture."""
        watch, settings = self.watch, self._settings
        if watch is None or settings is None or not self.model.is_own:
            return None
        box = OffsetBox(self.model.addresses, watch.access, watch.ask_own, settings.lab_folder.parent / "offsets", self)
        group = self.model.find_group(self.model.leading)
        box.fill(group.name if group is not None else "", self.chosen_topic())
        box.operationDone.connect(self.operationDone)
        box.operationDone.connect(lambda *_: self.read_again())
        box.open()
        return box

    def chosen_topic(self) -> str:
        """Return the topic of what is chosen in the picture, "" if there is none."""
        chosen = self.model.chosen
        topic = chosen.queue.topic if chosen.queue is not None else chosen.name if chosen.kind == "topic" else ""
        group = self.model.find_group(self.model.leading)
        return topic or (next(iter(group.group.subscriptions), "") if group is not None else "")

    def browse(self) -> None:
        """Ask for the window with the messages of what is chosen in the picture."""
        self.messagesRequested.emit(self.chosen_topic(), self.model.chosen.queue)

    def _declaration_changed(self) -> None:
        if self.watch is not None:
            self.watch.save_declarations()
        self._show()

    def pause_now(self) -> None:
        """Pause reading, or continue."""
        if self.watch is not None:
            self.watch.pause()

    def read_again(self) -> None:
        """Read now, from the start."""
        if self.watch is not None:
            self.watch.again()

    def _set_interval(self, seconds: float) -> None:
        if self.watch is not None:
            self.watch.set_interval(seconds)

    # ---- time --------------------------------------------------------------------------------------------------------

    def go_to(self, time_ms: int | None) -> None:
        """Show an earlier time (ms), or the newest; readings continue."""
        self.model.go_to(time_ms)
        self._show()

    def go_live(self) -> None:
        """Return to the newest time, also from a recording."""
        self.replay.stop()
        if self.model.recording:
            self.read_again()
        else:
            self.rebalance.follow_now()

    # ---- what is chosen ----------------------------------------------------------------------------------------------

    def choose(self, chosen: Selection) -> None:
        """Select an item of the picture."""
        self.model.choose(chosen)
        self._show_pictures()
        self._show_side()
        self._bring_into_view(chosen)
        item_name = breadcrumb_words(self.model, chosen)
        self.placeMoved.emit(Place("cluster", name=self.model.address, part=item_name))

    def _bring_into_view(self, chosen: Selection) -> None:
        is_large = self.pages.currentIndex() == 2
        area, canvas = (self._cells_area, self.cells) if is_large else (self._lines_area, self.lines)
        box = canvas.box_of(chosen)
        if box is not None:
            centre, size = box.center() * scale(), box.size() * scale()
            area.ensureVisible(round(centre.x()), round(centre.y()), round(size.width() / 2), round(size.height()))

    def _row_chosen(self, row: LineRow | None) -> None:
        if row is not None and not same(row.chosen, self.model.chosen):
            self.model.choose(row.chosen)
            self._show_side()

    def _look_at_group(self, name: str) -> None:
        """Select the group of a lesson while the rebalance tab is in front."""
        if self.tabs.key == "rebalance" and self.model.leading != name:
            self.choose(Selection("group", name))

    def bring_lessons(self) -> None:
        """Show the lessons beside the rebalance."""
        self.tabs.choose("rebalance")
        self.beside.bring()

    def link_of(self, chosen: Selection) -> object | None:
        """Return the place of an item in the open store; None if it has no such topic, or no store is open."""
        return link_of(self.session, self.model, chosen)

    def follow(self, chosen: Selection) -> None:
        """Go to the place of an item."""
        place = self.link_of(chosen)
        if place is not None:
            self.placeRequested.emit(place)
        else:
            self.statusMessage.emit(why_not(self.session, chosen))

    # ---- filter and tabs ---------------------------------------------------------------------------------------------

    def _filtered(self) -> None:
        only = next((key for key, pill in self.pills.items() if pill.isChecked()), "")
        self.model.show(self.filter.text(), only)
        self._show()

    def _pill(self, key: str) -> None:
        for name, pill in self.pills.items():
            if name != key:
                pill.setChecked(False)
        self._filtered()

    def _tab_chosen(self) -> None:
        self._show()
        self.placeMoved.emit(Place("cluster", name=self.model.address))

    # ---- Markdown ----------------------------------------------------------------------------------------------------

    def _markdown(self) -> str:
        """Return the shown content as Markdown: the picture, or the rebalance of a group."""
        if self.tabs.key == "rebalance" and self.rebalance.line.steps:
            rebalance = rebalance_markdown(self.model, self.rebalance.line)
            return rebalance + lessons_markdown(self.lessons.runs.values())
        return markdown(self.model)

    # ---- showing -----------------------------------------------------------------------------------------------------

    def _show(self) -> None:
        """Show the present state of the model."""
        model = self.model
        running = self.watch is not None and self.watch.runs
        self.address_bar.show_connection(running=running, can_read=bool(model.address))
        self.copy.setEnabled(model.state is not None)
        self.filters.setVisible(model.state is not None and self.tabs.key not in {"rebalance", "lag"})
        if not self.isVisible() and model.state is not None:
            return
        self._show_fault()
        self._show_pages()
        self._show_pictures()
        self._show_side()
        self.replay.show_bar()
        status = status_sentence(model)
        if model.status != self._shown_status:
            self._shown_status = model.status
            self.statusMessage.emit(status)
        else:
            self.statusUpdated.emit(status)

    def showEvent(self, event: object) -> None:
        """Show the readings that came while the view was hidden."""
        super().showEvent(event)  # type: ignore[arg-type]
        self._show()

    def _show_fault(self) -> None:
        message, model = fault_words(self.model), self.model
        if message:
            self.fault.show_state(State("error", message, steps=((tr("Try again"), self.read_again),)))
        elif model.stale and model.state is not None:
            time_text = clock(model.state.time_ms)
            step = (tr("Go on"), self.read_again)
            self.fault.show_state(State("stale", tr("As of {time}", time=time_text), steps=(step,)))
        elif model.state is not None and not model.unfiltered.clients and not model.unfiltered.producers:
            address = model.address
            copy = (tr("Copy"), lambda: QGuiApplication.clipboard().setText(address))
            message = tr("No client is connected. Connect your client to {address}.", address=address)
            self.fault.show_state(State("note", message, steps=(copy,)))
        else:
            self.fault.show_state(None)

    def _show_pages(self) -> None:
        model = self.model
        if model.state is None:
            page = 0
            self.start_page.show_connecting(model.address if model.status == "connecting" else "")
        elif self.tabs.key == "tables":
            page = 3
        elif self.tabs.key == "rebalance":
            page = 4
        elif self.tabs.key == "lag":
            page = 5
        else:
            page = 2 if model.unfiltered.large else 1
        if self.pages.currentIndex() != page:
            self.pages.setCurrentIndex(page)
        errors, warnings = model.unfiltered.troubles
        parts = [tr("{n:,} without owner", n=errors)] if errors else []
        parts += [tr("{n:,} in trouble", n=warnings)] if warnings else []
        self.troubles.setText(" · ".join(parts) or (tr("sorted by trouble, then rate") if page == 2 else ""))

    def _show_pictures(self) -> None:
        page = self.pages.currentIndex()
        if page == 1:
            self.lines.show_picture()
        elif page == 2:
            self.cells.show_picture()
            self._show_map()
            self._show_topic_queues()
        elif page == 3:
            _update_rows(self.table, line_rows(self.model, self.link_of))
            _update_rows(self.requests, request_rows(self.model))
        elif page == 4:
            self.beside.refresh()
        elif page == 5:
            self.lag.refresh()

    def _show_map(self) -> None:
        if self.pages.currentIndex() != 2:
            return
        bar, visible_height = self._cells_area.verticalScrollBar(), self._cells_area.viewport().height()
        first_topic = int(bar.value() / scale() // ROW)
        end_topic = min(int((bar.value() + visible_height) / scale() // ROW), len(self.cells.plan.topics))
        self.map.show_cells(self.cells.plan, min(first_topic, end_topic), end_topic)
        self.heads.show_plan(self.cells.plan, self._cells_area.horizontalScrollBar().value())

    def _show_topic_queues(self) -> None:
        model, chosen = self.model, self.model.chosen
        name = chosen.queue.topic if chosen.queue is not None else chosen.name if chosen.kind == "topic" else ""
        topic = model.find_topic(name)
        if topic is None and chosen.kind in {"group", "client"}:
            group = model.find_group(chosen.group or chosen.name)
            names = list(group.group.subscriptions) if group is not None else []
            topic = next((topic_row for item in names if (topic_row := model.find_topic(item)) is not None), None)
        is_shown = topic is not None
        for part in (self.topic_queues_head, self.topic_queues):
            part.setVisible(is_shown)
        if topic is not None:
            brokers = ", ".join(dict.fromkeys(item.queue.broker for item in topic.queues))
            note = tr_plural(
                "{n:,} queue on {brokers}", "{n:,} queues on {brokers}", n=len(topic.queues), brokers=brokers
            )
            if topic.groups:
                note += " · " + tr("owner in {group}", group=topic.groups[0])
            self.topic_queues_head.set_title(topic.name)
            self.topic_queues_head.set_note(note)
        self.topic_queues.show_topic(model, topic)

    def _show_side(self) -> None:
        self.clients.setVisible(self.model.state is not None and not self.model.recording)
        self._show_actions()
        self.folded.show_chosen(self.model)
        self._fit_side()

    def _show_actions(self) -> None:
        """Update bar and menus to the possible actions."""
        self.clients.refresh()
        able = frozenset(self.clients.possible_commands())
        if able != self._shown_commands:
            self._shown_commands = able
            self.commandsChanged.emit()

    def _fit_side(self) -> None:
        has_state = self.model.state is not None
        is_slim = self.width() < px(SLIM_BELOW_WIDTH) or self.pages.currentIndex() in {2, 4, 5}
        self.folded.setVisible(has_state and is_slim)
        self.side.setVisible(has_state and (not is_slim or self.folded.isChecked()))
        if not self.side.isHidden():
            self.side.show_chosen(self.model, lambda chosen: item_links(self.session, self.model, chosen))


def _scrolled(canvas: QWidget) -> QScrollArea:
    area = QScrollArea()
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setWidgetResizable(True)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    area.setWidget(canvas)
    return area


def _update_rows(table: RecordView, rows: Sequence[LineRow] | Sequence[RequestRow]) -> None:
    """Show these rows; the same rows are updated in place: order, scroll position and selection stay."""
    source = table.source
    shown_rows = source.rows if isinstance(source, ListSource) else []
    new_rows = {row.key: row for row in rows}
    if rows and len(shown_rows) == len(rows) and {row.key for row in shown_rows} == new_rows.keys():
        for number, shown_row in enumerate(list(shown_rows)):
            if shown_row != new_rows[shown_row.key]:
                table.replace_row(number, new_rows[shown_row.key])
    else:
        table.set_rows(list(rows))
    table.set_state(None if rows else State("empty", tr("Nothing is there yet.")))
