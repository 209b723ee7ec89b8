"""Serve: the lab's store as a broker with a name server, for any client; who is connected, what is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication, QIntValidator
from PySide6.QtWidgets import QStackedWidget, QVBoxLayout, QWidget

from viewer.lab.serve_rows import CLIENTS, CODES, CodeRow, address_facts, client_rows, code_rows, rate_of
from viewer.look.assets import tr
from viewer.look.engine_words import engine_words
from viewer.look.theme import px
from viewer.widgets.basics import Button, Chip, Field, Label, Link, PaneHead, Paper, column, row, splitter, stacked
from viewer.widgets.facts import Facts
from viewer.widgets.record_state import State
from viewer.widgets.record_view import RecordView

if TYPE_CHECKING:
    from engine.lab.serving import ServingState

BROKER_PORT, NAMESRV_PORT = 10911, 9876
LAST_PORT = 65_535


class ServePanel(Paper):
    """``serveAsked(port, name server's port)``, ``stopAsked()``, ``cutAsked()``; ``requestsAsked(filter)``: what was
    asked is to be seen.
    """

    serveAsked = Signal(int, int)
    stopAsked = Signal()
    cutAsked = Signal()
    requestsAsked = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.state: ServingState | None = None
        self._before: ServingState | None = None
        self.go = Button(tr("Serve"), "primary", "play")
        self.go.setObjectName("lab.serve")
        self.go.clicked.connect(self._serve)
        self.stop = Button(tr("Stop serving"), "", "stop")
        self.stop.setObjectName("lab.serve.stop")
        self.stop.clicked.connect(self.stopAsked)
        self.cut = Button(tr("Cut all connections"))
        self.cut.setObjectName("lab.serve.cut")
        self.cut.clicked.connect(self.cutAsked)
        self.chip = Chip("live", tr("serving"))
        self.head = PaneHead(tr("Serve"), "", self.chip, self.cut, self.stop)
        self.pages = QStackedWidget()
        self.pages.addWidget(self._off_page())
        self.pages.addWidget(self._on_page())
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        box.addWidget(self.head)
        box.addWidget(self.pages, 1)
        self.show_state(None, able=False)

    def _off_page(self) -> QWidget:
        self.port, self.namesrv = (_port(name, said, usual) for name, said, usual in (
            ("lab.serve.port", tr("Broker's port"), BROKER_PORT),
            ("lab.serve.namesrv", tr("Name server's port"), NAMESRV_PORT)))  # fmt: skip
        self.fault = Label("", 12, "error", wrap=True)
        self.fault.setObjectName("lab.serve.fault")
        said = Label(tr("A name server and a broker over this store, on the loopback: point a client of RocketMQ at "
                        "it. 0 takes a free port."), 13, "text2", wrap=True)  # fmt: skip
        inner = column(
            said,
            row(Label(tr("Broker"), 12, "text3"), self.port, 8, Label(tr("Name server"), 12, "text3"), self.namesrv,
                8, self.go, None),
            self.fault, None, gap=8, margins=(14, 10, 14, 10),
        )  # fmt: skip
        self.fault.hide()
        return inner

    def _on_page(self) -> QWidget:
        copy = Link(tr("Copy"), 12)
        copy.clicked.connect(self._copy)
        self.facts = Facts(96)
        about = column(self.facts, None, margins=(14, 8, 12, 8))
        self.codes, self.clients = RecordView("lab.serve.codes", CODES), RecordView("lab.serve.clients", CLIENTS)
        self.codes.setAccessibleName(tr("Requests by code"))
        self.clients.setAccessibleName(tr("Clients that are connected"))
        self.codes.doubleClicked.connect(lambda _index: self._show_code())
        self.codes.activated.connect(lambda _index: self._show_code())
        show = Link(tr("Show in Requests"), 12)
        show.setObjectName("lab.serve.requests")
        show.clicked.connect(lambda: self.requestsAsked.emit(""))
        self.code_head = PaneHead(tr("By code"), "", show)
        self.client_head = PaneHead(tr("Clients"), tr("as their heartbeats tell"))
        left = stacked(PaneHead(tr("Addresses"), "", copy), about, self.client_head, self.clients, room=3)
        return splitter(False, (left, 400), (stacked(self.code_head, self.codes), 600))

    def show_state(self, state: ServingState | None, *, able: bool) -> None:
        """How the store is served, None where it is not; ``able``: whether it can be."""
        was, self.state = self.state, state
        on = state is not None
        self.pages.setCurrentIndex(int(on))
        for part in (self.chip, self.cut, self.stop):
            part.setVisible(on)
        self.go.setEnabled(able)
        if state is None:
            self._before = None
            self.head.set_note(tr("name server and broker on this store, for any client"))
            return
        self.fault.hide()
        if was is not None and was.at < state.at:
            self._before = was
        rows = code_rows(state, self._before)
        rate = rate_of(rows)
        self.head.set_note("" if rate is None else tr("{n:,} requests a second", n=round(rate)))
        self.code_head.set_note(tr("a double click shows the rows"))
        self.facts.show_facts(address_facts(state))
        _keep(self.codes, rows, tr("Nothing has been asked yet."))
        _keep(self.clients, client_rows(state), tr("No client has sent a heartbeat yet."))

    def fail(self, said: str) -> None:
        """Why it is not served, under the fields."""
        self.fault.setText(engine_words(said))
        self.fault.show()

    def retheme(self) -> None:
        """Colours, fonts or zoom changed."""
        for table in (self.codes, self.clients):
            table.refresh_look()

    def _serve(self) -> None:
        ports = [int(field.text() or 0) for field in (self.port, self.namesrv)]
        wrong = next((port for port in ports if port > LAST_PORT), None)
        if wrong is not None:
            self.fail(tr("{port} is no port: expected 0 to 65,535", port=wrong))
            return
        self.fault.hide()
        self.serveAsked.emit(*ports)

    def _copy(self) -> None:
        if self.state is not None:
            QGuiApplication.clipboard().setText(self.state.namesrv)

    def _show_code(self) -> None:
        chosen = self.codes.current_row()
        if isinstance(chosen, CodeRow):
            self.requestsAsked.emit(f"code = {chosen.code}")


def _port(name: str, said: str, usual: int) -> Field:
    field = Field(said, code=True, width=84)
    field.setObjectName(name)
    field.setAccessibleName(said)
    field.setValidator(QIntValidator(0, 99_999, field))
    field.setText(str(usual))
    field.setAlignment(Qt.AlignmentFlag.AlignRight)
    field.setMinimumHeight(px(24))
    return field


def _keep(table: RecordView, rows: Sequence[object], said: str) -> None:
    """Show these rows; the chosen number stays."""
    at = table.currentIndex().row()
    if list(rows) != table.table.rows:
        table.set_rows(list(rows))
        if 0 <= at < len(rows):
            table.go_to(at)
    table.set_state(None if rows else State("empty", said))
