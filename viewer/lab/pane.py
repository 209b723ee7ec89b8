"""The lab: put messages into a store of your own, put it under load, cut its power.

The left column holds the controls, the middle shows the bytes of the last message, the right the services; below is
the result of a power loss. The store is open for writing in its own process: everything here asks the lab session.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QStackedWidget, QVBoxLayout, QWidget

from engine.codec.message import MIN_UNIT_SIZE, list_fields
from engine.errors import CorruptUnit, StoreError
from viewer.lab.load import LoadPanel
from viewer.lab.power_loss_panel import PowerLossPanel
from viewer.lab.put import PutPanel
from viewer.lab.put_statistics import PutStatisticsPanel, RightColumn
from viewer.lab.serve import ServePanel
from viewer.lab.services import ServicesPanel
from viewer.look.assets import tr
from viewer.look.engine_words import engine_words
from viewer.look.formats import size
from viewer.look.theme import px
from viewer.pane import Pane
from viewer.pane.plot_library import plot_library
from viewer.pane.table_commands import table_commands
from viewer.runtime.places import REQUESTS_LIVE, Place
from viewer.runtime.put_form import FormFault, PutForm
from viewer.widgets.basics import Button, Card, Chip, Glyph, Hairline, Label, PaneHead, ThemedPanel
from viewer.widgets.boxes import row, scrolling, splitter, stacked
from viewer.widgets.hex_pages import hex_fields
from viewer.widgets.hex_view import HexView
from viewer.widgets.record_view import RecordView
from viewer.widgets.word_tabs import WordTabs

if TYPE_CHECKING:
    from engine.lab.samples import LoadCounts, PositionSample, ServeSettings
    from viewer.lab.two_ways_page import TwoWaysPage
    from viewer.runtime.lab_session import LabSession, ManualPut
    from viewer.runtime.store_session import StoreSession

LEFT_WIDTH, RIGHT_WIDTH = 384, 384
SLIM_BELOW_WIDTH = 1300
SLIM_RIGHT_WIDTH = 324


class LabPane(Pane):
    """The Lab view. Its ``…Requested`` signals ask the window to create a store, to write into one, and so on."""

    createRequested = Signal()
    writeRequested = Signal()
    powerLossRequested = Signal()
    recoverRequested = Signal()
    recoverAgainRequested = Signal()
    compareRequested = Signal()
    commandsChanged = Signal()
    comparisonLeft = Signal()

    wants_tree = False

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.lab: LabSession | None = None
        self.lab_folder: Path | None = None
        self._plots_requested = False
        self._comparing = False
        self._widths_fixed = False
        self._build()
        self._wire()
        self._show_state()

    # ---- building ----------------------------------------------------------------------------------------------------

    def _build(self) -> None:
        self.put = PutPanel()
        self.load = LoadPanel()
        self.services = ServicesPanel()
        self.power_loss = PowerLossPanel()
        self.hex = HexView("lab.hex")
        self.hex.setAccessibleName(tr("The bytes the message became"))
        self._new_chip = Chip("live", tr("new"))
        self._new_chip.hide()
        self.bytes_head = PaneHead(tr("The bytes it became"), "", self._new_chip)
        self._controls = stacked(self.put, Hairline(), self.load, room=2)
        self._left = scrolling(self._controls)
        self.put_statistics = PutStatisticsPanel()
        self._right = RightColumn(self.services, self.put_statistics)
        top = self._top = splitter(False, (stacked(self.bytes_head, self.hex), 760), (self._right, RIGHT_WIDTH))
        self.serve = ServePanel()
        self.deck = WordTabs("lab.deck", (("plug", tr("Cut the power")), ("serve", tr("Serve"))))
        self._lower = QStackedWidget()
        self.deck.chosen.connect(lambda key: self._lower.setCurrentIndex(int(key == "serve")))
        self._lower.addWidget(self.power_loss)
        self._lower.addWidget(self.serve)
        tabs = ThemedPanel("pane", ("bottom",))
        tabs_box = QVBoxLayout(tabs)
        tabs_box.setContentsMargins(0, 0, 0, 1)
        tabs_box.addWidget(row(self.deck, None, margins=(14, 2, 12, 2)))
        right = splitter(True, (top, 460), (stacked(tabs, self._lower, room=1), 500))
        right.setMinimumWidth(px(420))
        self._columns = splitter(False, (self._left, LEFT_WIDTH), (right, 1144))
        for moved_splitter in (self._top, self._columns):
            moved_splitter.splitterMoved.connect(self._fix_widths)
        self._pages = QStackedWidget()
        self._pages.addWidget(self._empty_page())
        self._pages.addWidget(self._columns)
        self.two: TwoWaysPage | None = None
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.addWidget(self._pages)

    def _fix_widths(self) -> None:
        """Keep the column widths from now on: the user has dragged one."""
        self._widths_fixed = True

    def _empty_page(self) -> QWidget:
        make = self._make = Button(tr("Make a lab store…"), "primary")
        make.setObjectName("lab.make")
        make.clicked.connect(self.createRequested)
        self._write = Button(tr("Open this store for writing…"))
        self._write.setObjectName("lab.write")
        self._write.clicked.connect(self.writeRequested)
        compare = Button(tr("Two ways at once…"))
        compare.setObjectName("lab.two")
        compare.clicked.connect(self.compareRequested)
        self._reason_label = Label("", 13, "error", wrap=True)
        self._reason_label.setObjectName("lab.why")
        explanation = Label(
            tr(
                "The store in this window is open for reading only. In the lab you put messages into a lab store, "
                "watch them being committed, flushed and dispatched, and cut its power."
            ),
            13,
            "text2",
            wrap=True,
        )
        self._write_words = Label("", 12, "text3", wrap=True)
        self._write_words.setObjectName("lab.write.words")
        self._empty_title = Label(tr("No store is open for writing"), 18, "text", 600)
        card = Card(
            row(Glyph("lab", "accent", 28), self._empty_title, None, gap=12),
            explanation,
            self._reason_label,
            row(make, compare, None, gap=8),
            Hairline(),
            self._write_words,
            row(self._write, None),
            gap=12,
            pad=20,
        )
        card.setMaximumWidth(px(620))
        ground = ThemedPanel("window")
        box = QVBoxLayout(ground)
        box.setContentsMargins(px(24), px(48), px(24), px(24))
        box.addWidget(card, 0, Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop)
        return ground

    def _wire(self) -> None:
        self.put.putRequested.connect(self._put)
        self.put.earlierPutChosen.connect(self._show_bytes)
        self.load.startRequested.connect(lambda settings: self._ask(lambda lab: lab.set_load(settings)))
        self.load.changed.connect(lambda settings: self._ask(lambda lab: lab.set_load(settings)))
        self.load.pauseRequested.connect(lambda on: self._ask(lambda lab: lab.pause_load(on)))
        self.load.stopRequested.connect(lambda: self._ask(lambda lab: lab.set_load(None)))
        self.services.pauseRequested.connect(lambda name, on: self._ask(lambda lab: lab.pause(name, on)))
        self.services.stepRequested.connect(lambda name: self._ask(lambda lab: lab.step(name)))
        self.services.flushRequested.connect(self.flush)
        self.services.commitRequested.connect(self.commit)
        self.services.reopenRequested.connect(lambda changes: self._ask(lambda lab: lab.reopen(changes)))
        self.power_loss.powerLossRequested.connect(self.powerLossRequested)
        self.power_loss.recoverRequested.connect(self.recoverRequested)
        self.power_loss.againRequested.connect(self.recoverAgainRequested)
        self.serve.serveRequested.connect(lambda settings: self._ask(lambda lab: self._serve_now(lab, settings)))
        self.serve.placeRequested.connect(self.placeRequested)
        self.serve.stopRequested.connect(lambda: self._ask(lambda lab: lab.stop_serving()))
        self.serve.cutRequested.connect(lambda: self._ask(lambda lab: lab.cut_connections()))
        self.serve.requestsRequested.connect(
            lambda text: self.placeRequested.emit(Place("requests", name=REQUESTS_LIVE, part=text))
        )

    # ---- what the window calls ---------------------------------------------------------------------------------------

    def set_lab(self, lab: LabSession) -> None:
        """Set the lab session of this window; called once."""
        self.lab = lab
        self.put_statistics.set_lab(lab)
        lab.changed.connect(self._show_state)
        lab.sampled.connect(self._sampled)
        lab.counted.connect(self._counted)
        lab.putDone.connect(self._answered)
        lab.power_was_cut.connect(self._on_power_cut)
        lab.failed.connect(self._failed)
        lab.died.connect(self._died)
        lab.servingChanged.connect(self._show_serving)
        self._show_state()
        self._on_power_cut()
        if lab.sample is not None:
            self.services.show_sample(lab.sample)
        if lab.done:
            self.put.set_form(lab.done[-1].form)
            self._answered(lab.done[-1])

    def set_session(self, session: StoreSession | None) -> None:
        """Set the store that the window shows; the lab keeps its own."""
        super().set_session(session)
        if session is None:
            self.comparisonLeft.emit()
        else:
            self.hex.runner = session.jobs.read
        self._show_state()
        if self.isVisible():
            self._prepare_plot()

    def show_place(self, _place: Place) -> None:
        """Show the lab, which is a single place."""
        self._show_state()

    def showEvent(self, event: QShowEvent) -> None:
        """Load the plot library in a thread when the view is first shown."""
        super().showEvent(event)
        self._prepare_plot()
        if self.lab is not None and self.lab.sample is not None:
            self._sampled(self.lab.sample)
            self.load.show_history(self.lab.history, now=True)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Give the side columns less width in narrow windows."""
        super().resizeEvent(event)
        slim = self.width() < px(SLIM_BELOW_WIDTH)
        for part in (self.put, self.load, self.services):
            part.set_slim(slim)
        bar = self._left.verticalScrollBar().sizeHint().width()
        for area, inner, normal_width in (
            (self._left, self._controls, LEFT_WIDTH),
            (self._right, self.services, RIGHT_WIDTH),
        ):
            min_width = max(inner.minimumSizeHint().width() + bar, area.minimumSizeHint().width())
            area.setMinimumWidth(
                max(min_width, px(SLIM_RIGHT_WIDTH if slim else normal_width - 24))
                if area is self._right or not slim
                else min_width
            )
        self.power_loss.set_slim(slim)
        if not self._widths_fixed:
            left_width, right_width = self._left.minimumWidth(), self._right.minimumWidth()
            self._columns.setSizes([left_width if slim else px(LEFT_WIDTH), max(1, self.width() - left_width)])
            self._top.setSizes(
                [max(1, self.width() - left_width - right_width), right_width if slim else px(RIGHT_WIDTH)]
            )

    def retheme(self) -> None:
        """Apply colours, fonts and zoom."""
        self.power_loss.retheme()
        self.serve.retheme()
        self.resizeEvent(QResizeEvent(self.size(), self.size()))

    def focus_stops(self) -> Sequence[QWidget]:
        """Return the parts between which F6 moves the focus."""
        two_ways = (self.two.table,) if self.two is not None else ()
        lower = (self.power_loss.table, self.serve.port, self.serve.codes)
        return self._make, self.put.topic, self.load.sliders["producers"], self.hex, *lower, *two_ways

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the commands for the visible comparison table: copy, find, export."""
        commands = table_commands(self, self._table, "lab.jsonl")
        if self._comparing and self.two is not None and self.two.has_figures:
            commands["lab.copyTwo"] = self.two.copy_markdown
        return commands

    def _table(self) -> RecordView:
        return self.two.table if self._comparing and self.two is not None else self.power_loss.table

    def status(self) -> str:
        """Describe the paused services, and what a power loss would destroy."""
        lab = self.lab
        if lab is None or not lab.there or lab.sample is None:
            return tr("No store is open for writing")
        if lab.busy == "recover":
            return tr("Recovering: the log is read and dispatched again.")
        if lab.without_power:
            return tr("The power was cut. Nothing runs until the store is recovered.")
        sample = lab.sample
        names = {line.key: line.words for line in self.services.lines.values()}
        paused = [names[key] for key in names if (state := sample.services.get(key)) is not None and state.paused]
        words = []
        if paused:
            words.append(tr("Paused by hand: {services}", services=", ".join(paused)))
        unsafe = sample.positions.wrote - sample.positions.flushed
        words.append(
            tr("{size} would be lost if the power failed now", size=size(unsafe))
            if unsafe > 0
            else tr("everything is on disk")
        )
        return " · ".join(words)

    # ---- commands ----------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Flush everything put so far to disk."""
        self._ask(lambda lab: lab.flush())

    def commit(self) -> None:
        """Commit the pool's buffers to the page cache."""
        self._ask(lambda lab: lab.commit())

    def show_two_ways(self) -> None:
        """Show the page of two stores side by side; it is made at first use."""
        if self.two is None:
            from viewer.lab.two_ways_page import TwoWaysPage

            self.two = TwoWaysPage()
            self.two.folder = self.lab_folder
            self.two.leaveRequested.connect(self._leave_two)
            self.two.statusText.connect(self.statusMessage)
            self.two.changed.connect(self.commandsChanged)
            self.two.plots_ready = self.load.plots_ready
            self._pages.addWidget(self.two)
        self._comparing = True
        self._pages.setCurrentWidget(self.two)

    def finish(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run ``work`` to its end even if the view is closed."""
        if self.session is not None:
            self.session.jobs.finish(work)
        else:
            work.close()

    def say_why(self, reason: str) -> None:
        """Show why no store is open for writing."""
        self._reason_label.setText(reason)
        self._reason_label.setVisible(bool(reason))

    def set_making(self, progress: str) -> None:
        """Show the progress of making or opening a lab store; empty when it ends. Meanwhile no other can be made."""
        self._empty_title.setText(progress or tr("No store is open for writing"))
        self._make.setEnabled(not progress)

    def _leave_two(self) -> None:
        if self.two is not None:
            self.finish(self.two.end())
        self._comparing = False
        self._show_state()

    def _ask(self, work: Callable[[LabSession], object]) -> None:
        if self.lab is not None and self.lab.alive:
            self.lab.begin(work(self.lab))  # type: ignore[arg-type]

    def _put(self, form: PutForm) -> None:
        lab = self.lab
        if lab is None or not lab.alive:
            return
        lab.begin(self._put_now(lab, form))

    async def _serve_now(self, lab: LabSession, settings: ServeSettings) -> None:
        try:
            await lab.serve(settings)
        except StoreError as error:
            self.serve.fail(engine_words(str(error)))

    def show_serving(self) -> None:
        """Bring the Serve page to the front."""
        self.deck.choose("serve")

    async def _put_now(self, lab: LabSession, form: PutForm) -> None:
        try:
            await lab.put(form)
        except FormFault as fault:
            self.put.show_fault(fault)

    # ---- showing -----------------------------------------------------------------------------------------------------

    def _show_state(self) -> None:
        lab = self.lab
        has_store = lab is not None and lab.there
        if not (self._comparing and self.two is not None):
            self._pages.setCurrentIndex(1 if has_store and (lab is None or not lab.dead) else 0)
        if lab is not None and lab.dead:
            message = tr("The lab's engine has ended: {why}", why=engine_words(lab.dead))
            self.say_why(
                f"{message}\n{tr('Open the store for writing again: that recovers it, and shows first what it does.')}"
            )
        is_store = self.session is not None and self.session.snapshot.paths is not None
        refusal = self.session.writing_refusal if self.session is not None else ""
        question = tr("Writing into this store shows the recovery plan first and asks. Its power is never cut.")
        self._write_words.setText(refusal or question)
        self._write.setEnabled(is_store)
        self._write.setVisible(not refusal)
        can_write = lab is not None and lab.alive and not lab.without_power
        self.put.set_enabled(can_write)
        self.load.show_state(
            able=can_write,
            running=lab is not None and lab.load is not None,
            paused=lab is not None and lab.load_paused,
        )
        self.services.show_store(lab.config if lab is not None else None, able=can_write)
        if lab is not None and (lab.without_power or lab.busy):
            self.services.show_off()
        if lab is None:
            self.power_loss.show_able(can_cut=False, recover=False)
            return
        can_write = lab.can_cut_power and not lab.without_power
        self.power_loss.show_able(
            can_cut=can_write, recover=lab.without_power and not lab.busy, recover_again=lab.again_possible
        )
        self._show_serving()
        if self.isVisible():
            self.statusMessage.emit(self.status())

    def _show_serving(self) -> None:
        lab = self.lab
        if lab is not None:
            self.serve.show_state(lab.serving, able=lab.alive and not lab.without_power)

    def _sampled(self, sample: PositionSample) -> None:
        if not self.isVisible() or (self.lab is not None and self.lab.without_power):
            return
        self.services.show_sample(sample)
        if self.lab is not None:
            self.load.show_rate(sample.rates.messages)
            self.load.show_history(self.lab.history)
        self.statusMessage.emit(self.status())

    def _counted(self, counts: LoadCounts) -> None:
        lab = self.lab
        if lab is None or lab.sample is None or not self.isVisible():
            return
        rates, latency = lab.sample.rates, counts.latency
        median, p99 = latency.quantile(0.5) / 1e6, latency.quantile(0.99) / 1e6
        self.load.show_answers(rates.messages, counts.statuses, median, p99, rates.wrote)

    def _answered(self, done: ManualPut) -> None:
        if self.lab is None:
            return
        self.put.show_done(list(self.lab.done))
        self.put.set_enabled(self.lab.alive)
        self._show_bytes(done)
        self._new_chip.set_chip("live", tr("new"))
        self._new_chip.setVisible(done.offset is not None)

    def _show_bytes(self, done: ManualPut) -> None:
        self._new_chip.hide()
        if done.offset is None or not done.answer.unit:
            self.hex.clear()
            self.bytes_head.set_note("")
            return
        start, unit = done.offset, done.answer.unit
        fields = hex_fields(unit_parts(unit))

        def read(offset: int, count: int) -> bytes:
            return unit[max(0, offset - start) : max(0, offset - start + count)]

        self.hex.show_bytes(read, start, fields, len(unit), start, start + len(unit))
        self.bytes_head.set_note(f"{done.size:,} B @ {start:,}")

    def _on_power_cut(self) -> None:
        lab = self.lab
        report = lab.report if lab is not None else None
        self.power_loss.show_report(report)
        if report is not None:
            self.deck.choose("plug")  # the outcome is shown there, also after the store was served
        if report is not None and lab is not None and lab.done:
            last_offset = lab.done[-1].offset
            is_lost = last_offset is not None and last_offset >= report.plan.end_offset
            self._new_chip.set_chip("error" if is_lost else "ok", tr("gone") if is_lost else tr("kept"))
            self._new_chip.setVisible(last_offset is not None)
        self._show_state()

    def _failed(self, message: str) -> None:
        self.put.fail(message)
        self.statusMessage.emit(message)

    def _died(self, reason: str) -> None:
        self._show_state()
        self.statusMessage.emit(tr("The lab's engine has ended: {why}", why=engine_words(reason)))

    def _prepare_plot(self) -> None:
        session = self.session
        if session is None or self._plots_requested:
            return
        self._plots_requested = True

        def done() -> None:
            self.load.plots_ready = self.serve.plots_ready = True
            if self.lab is not None and self.lab.history is not None:
                self.load.show_history(self.lab.history, now=True)

        plot_library.load(self, done)


def unit_parts(raw: bytes) -> list[tuple[str, int, int]]:
    """Return name, position and length of each field of the units in ``raw``, up to the first invalid one."""
    fields: list[tuple[str, int, int]] = []
    offset = 0
    while len(raw) - offset >= MIN_UNIT_SIZE:
        unit_size = int.from_bytes(raw[offset : offset + 4], "big")
        if not MIN_UNIT_SIZE <= unit_size <= len(raw) - offset:
            break
        try:
            fields += [
                (name, offset + position, length)
                for name, position, length in list_fields(raw[offset : offset + unit_size])
            ]
        except (CorruptUnit, ValueError):
            break
        offset += unit_size
    return fields
