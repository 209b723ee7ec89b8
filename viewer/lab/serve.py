"""Serve the lab's store as a broker with a name server for any client; its clients and requests."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication, QIntValidator, QShowEvent
from PySide6.QtWidgets import QFileDialog, QStackedWidget, QVBoxLayout, QWidget

from viewer.lab.serve_model import BROKER_PORT, NAMESRV_PORT, ServeForm, ServeModel
from viewer.lab.serve_rows import CLIENTS, CODES, CodeRow
from viewer.look.assets import tr
from viewer.look.engine_words import engine_words
from viewer.look.theme import follow, px, ui
from viewer.widgets.basics import Button, Chip, Field, Label, Link, PaneHead, ThemedPanel
from viewer.widgets.boxes import column, row, scrolling, splitter, stacked
from viewer.widgets.choices import TickBox
from viewer.widgets.facts import Facts
from viewer.widgets.live_plot import LivePlot
from viewer.widgets.record_state import State
from viewer.widgets.record_view import RecordView

if TYPE_CHECKING:
    from engine.lab.serving import ServingState

LEGEND_WIDTH, LEGEND_MARGIN = 190, 300
"""Px of a code in the plot's legend, and of the legend's other parts."""


class ServePanel(ThemedPanel):
    """Emits ``serveRequested(ServeSettings)``, ``stopRequested()``, ``cutRequested()``.

    ``requestsRequested(filter)`` shows requests in their view; ``placeRequested(place)`` follows a link.
    """

    serveRequested = Signal(object)
    placeRequested = Signal(object)
    stopRequested = Signal()
    cutRequested = Signal()
    requestsRequested = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.model = ServeModel()
        self.plots_ready = False
        """True once the plot library is loaded; nothing is drawn before."""
        self.go = Button(tr("Serve"), "primary", "play")
        self.go.setObjectName("lab.serve")
        self.go.clicked.connect(self._serve)
        self.stop = Button(tr("Stop serving"), "", "stop")
        self.stop.setObjectName("lab.serve.stop")
        self.stop.clicked.connect(self.stopRequested)
        self.cut = Button(tr("Cut all connections"))
        self.cut.setObjectName("lab.serve.cut")
        self.cut.clicked.connect(self.cutRequested)
        self.chip = Chip("live", tr("serving"))
        self.head = PaneHead(tr("Serve"), "", self.chip, self.cut, self.stop)
        self.pages = QStackedWidget()
        self.pages.addWidget(self._start_page())
        self.pages.addWidget(self._running_page())
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        box.addWidget(self.head)
        box.addWidget(self.pages, 1)
        self.show_state(None, able=False)

    def _start_page(self) -> QWidget:
        self.port, self.namesrv, self.ha = (
            _port(name, explanation)
            for name, explanation in (
                ("lab.serve.port", tr("Broker's port")),
                ("lab.serve.namesrv", tr("Name server's port")),
                ("lab.serve.ha", tr("HA port, where slaves follow the log")),
            )
        )
        self.port.setText(str(BROKER_PORT))
        self.namesrv.setText(str(NAMESRV_PORT))
        self.vip = TickBox()
        self.vip.setObjectName("lab.serve.vip")
        self.vip.setChecked(True)
        self.vip.setToolTip(
            tr("The second port of RocketMQ's brokers, always two below the first: old clients, and slaves, ask there")
        )
        self.config = Field(tr("broker.conf, if any"), code=True)
        self.config.setObjectName("lab.serve.config")
        self.config.setAccessibleName(tr("Configuration of the broker"))
        choose = Button(tr("Choose…"), "pill")
        choose.setObjectName("lab.serve.choose")
        choose.clicked.connect(self.ask_config)
        for field in (self.port, self.config):
            field.textChanged.connect(lambda _text: self._show_placeholders())
        self.fault = Label("", 12, "error", wrap=True)
        self.fault.setObjectName("lab.serve.fault")
        explanation = Label(
            tr(
                "Run a name server and a broker on this store, on 127.0.0.1: connect a RocketMQ client to it. 0 "
                "takes a free port; an empty field follows broker.conf, or the broker's port."
            ),
            13,
            "text2",
            wrap=True,
        )
        names = [Label(label, 12, "text3") for label in (tr("Broker"), tr("Name server"), tr("HA"), tr("Config"))]
        inner = column(
            explanation,
            row(names[0], self.port, 8, names[1], self.namesrv, 8, names[2], self.ha, 8, self.vip, None),
            row(names[3], self.config, choose, 8, self.go, None),
            self.fault,
            None,
            gap=8,
            margins=(14, 10, 14, 10),
        )
        self.config.setMinimumWidth(px(220))
        self.config.setMaximumWidth(px(360))
        self.fault.hide()
        self._show_placeholders()
        follow(self, self._fit)
        self._fit()
        return inner

    def _fit(self) -> None:
        self.vip.setFont(ui(12))

    def _show_placeholders(self) -> None:
        """Show what empty fields stand for."""
        form = self._form()
        fields = (self.port, self.namesrv, self.ha)
        for field, placeholder in zip(fields, form.placeholders(), strict=True):
            field.setPlaceholderText(placeholder)
        self.vip.setText(form.vip_words())
        self.vip.setAccessibleName(self.vip.text())

    def _form(self) -> ServeForm:
        return ServeForm(
            self.port.text(), self.namesrv.text(), self.ha.text(), self.vip.isChecked(), self.config.text()
        )

    def _running_page(self) -> QWidget:
        copy = Link(tr("Copy"), 12)
        copy.clicked.connect(self._copy)
        self.facts = Facts(88)
        self.facts.placeRequested.connect(self.placeRequested)
        ground = ThemedPanel("pane")
        box = QVBoxLayout(ground)
        box.setContentsMargins(px(14), px(8), px(12), px(8))
        box.addWidget(self.facts)
        box.addStretch(1)
        self.codes, self.clients = RecordView("lab.serve.codes", CODES), RecordView("lab.serve.clients", CLIENTS)
        self.codes.setAccessibleName(tr("Requests by code"))
        self.clients.setAccessibleName(tr("Clients that are connected"))
        self.codes.placeRequested.connect(self.placeRequested)
        self.codes.doubleClicked.connect(lambda _index: self._show_code())
        self.codes.activated.connect(lambda _index: self._show_code())
        self.rates = LivePlot("lab.serve.rates", tr("Requests a second"))
        self.waits = LivePlot("lab.serve.waits", tr("Held, not 0"))
        show = Link(tr("Show in Requests"), 12)
        show.setObjectName("lab.serve.requests")
        show.clicked.connect(lambda: self.requestsRequested.emit(""))
        self.code_head = PaneHead(tr("By code"), "", show)
        self.client_head = PaneHead(tr("Clients"), tr("from their heartbeats"))
        addresses = stacked(PaneHead(tr("Addresses"), "", copy), scrolling(ground), room=1)
        addresses.setMinimumWidth(px(280))
        top = splitter(False, (addresses, 320), (self.rates, 420), (self.waits, 240))
        codes, clients = stacked(self.code_head, self.codes), stacked(self.client_head, self.clients)
        return splitter(True, (top, 210), (splitter(False, (codes, 680), (clients, 300)), 230))

    def show_state(self, state: ServingState | None, *, able: bool) -> None:
        """Show how the store is served, None if it is not; ``able`` says whether it can be."""
        self.model.take(state, time.time())
        is_serving = state is not None
        self.pages.setCurrentIndex(int(is_serving))
        for part in (self.chip, self.cut, self.stop):
            part.setVisible(is_serving)
        self.go.setEnabled(able)
        self.head.set_note(self.model.head_note())
        if not is_serving:
            return
        self.fault.hide()
        self._draw()
        self.code_head.set_note(tr("a double click shows the rows"))
        self.facts.show_facts(self.model.addresses())
        _update_rows(self.codes, self.model.codes(), tr("Nothing has been asked yet."))
        _update_rows(self.clients, self.model.clients(), tr("No client has sent a heartbeat yet."))

    def _draw(self) -> None:
        """Draw the plots if they are visible and the plot library is loaded."""
        if not self.plots_ready or not self.isVisible():
            return
        names = max(0, (self.rates.width() - px(LEGEND_MARGIN)) // px(LEGEND_WIDTH))
        pictures = (
            (self.rates, self.model.history.rates(self.rates.live_width(), names)),
            (self.waits, self.model.history.waits(self.waits.live_width())),
        )
        for plot, frame in pictures:
            if frame is None:
                plot.show_nothing(tr("Nothing is known yet."))
            else:
                plot.show_live(frame)

    def showEvent(self, event: QShowEvent) -> None:
        """Draw the requests that came while the panel was hidden."""
        super().showEvent(event)
        if self.model.state is not None:
            self._draw()

    def ask_config(self) -> None:
        """Ask for a ``broker.conf``."""
        dialog = QFileDialog(self, tr("Configuration of the broker"), str(Path.home()))
        dialog.setObjectName("lab.serve.config.dialog")
        dialog.setNameFilters([tr("Configurations of brokers (*.conf *.properties)"), tr("All files (*)")])
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(self.config.setText)
        dialog.open()

    def fail(self, reason: str) -> None:
        """Show below the fields why serving failed."""
        self.fault.setText(engine_words(reason))
        self.fault.show()

    def retheme(self) -> None:
        """Apply colours, fonts and zoom."""
        for table in (self.codes, self.clients):
            table.refresh_look()

    def _serve(self) -> None:
        form = self._form()
        fault = form.fault()
        if fault:
            self.fail(fault)
            return
        self.fault.hide()
        self.serveRequested.emit(form.settings())

    def _copy(self) -> None:
        if self.model.state is not None:
            QGuiApplication.clipboard().setText(self.model.state.namesrv)

    def _show_code(self) -> None:
        chosen = self.codes.current_row()
        if isinstance(chosen, CodeRow):
            self.requestsRequested.emit(f"code = {chosen.code}")


def _port(name: str, label: str) -> Field:
    field = Field(label, code=True, width=76)
    field.setObjectName(name)
    field.setAccessibleName(label)
    field.setToolTip(label)
    field.setValidator(QIntValidator(0, 99_999, field))
    field.setAlignment(Qt.AlignmentFlag.AlignRight)
    field.setMinimumHeight(px(24))
    return field


def _update_rows(table: RecordView, rows: Sequence[object], empty_text: str) -> None:
    """Show these rows and keep the selected row number."""
    selected_row = table.currentIndex().row()
    if list(rows) != table.table.rows:
        table.set_rows(list(rows))
        if 0 <= selected_row < len(rows):
            table.go_to(selected_row)
    table.set_state(None if rows else State("empty", empty_text))
