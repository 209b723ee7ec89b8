"""Two ways at once: the same load on two lab stores side by side, until a plug is pulled on both.

The stores are made for the comparison and deleted when it is left; each has an engine in a process of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QComboBox, QVBoxLayout

from engine.errors import StoreError
from viewer.assets import tr
from viewer.bridge.lab_desk import LabDesk
from viewer.models.two_ways import Side, rows, two_kind
from viewer.panes.lab_lines import now_line
from viewer.panes.lab_load import LoadPanel
from viewer.theme import px, theme, ui
from viewer.widgets.kit import Button, Elided, Hairline, Label, PaneHead, Paper, column, splitter, stacked
from viewer.widgets.live_plot import Curve, LivePlot
from viewer.widgets.record_state import State
from viewer.widgets.record_view import RecordView
from viewer.widgets.recovery_line import RecoveryLine

if TYPE_CHECKING:
    from engine.lab.load import LoadSettings
    from engine.lab.samples import LoadCounts, PositionSample

NAMES = ("A", "B")
ROLES = ("posLog", "posBuild")
SECONDS = 60.0
DRAW_MS = 500


class SidePanel(Paper):
    """One of the two stores: what it is made as, and where its log stands."""

    def __init__(self, number: int, first: int) -> None:
        super().__init__()
        name = NAMES[number]
        self.preset = QComboBox()
        self.preset.setObjectName(f"lab.two.preset.{name.lower()}")
        self.preset.setAccessibleName(tr("What store {name} is made as", name=name))
        from engine.lab.presets import PRESETS

        for preset in PRESETS:
            self.preset.addItem(tr(preset.name), preset)
        self.preset.setCurrentIndex(first)
        self.words = Label("", 12, "text3", wrap=True)
        self.preset.currentIndexChanged.connect(lambda _n: self._say())
        self.state = Elided("", 12, "text2")
        self.line = RecoveryLine(18)
        self.line.setObjectName(f"lab.two.line.{name.lower()}")
        self.line.setAccessibleName(tr("Where the log of store {name} stands", name=name))
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        box.addWidget(PaneHead(tr("Store {name}", name=name), "", self.preset))
        box.addWidget(column(self.words, self.state, self.line, gap=4, margins=(12, 8, 12, 4)))
        box.addStretch(1)
        self._say()
        self._fit()
        theme.changed.connect(self._fit)

    def _fit(self) -> None:
        self.preset.setFont(ui(12))

    def _say(self) -> None:
        self.words.setText(tr(self.preset.currentData().words))

    def show_sample(self, sample: PositionSample | None) -> None:
        """Where its log stands."""
        if sample is None:
            self.line.show_parts([])
            self.state.setText("")
            return
        parts, flags = now_line(sample.positions)
        self.line.show_parts(parts, flags)
        end = sample.positions.wrote
        self.state.setText(tr("{rate:,.0f} messages a second, {end:,} bytes", rate=sample.rates.messages, end=end))


class TwoWays(Paper):
    """``leaveAsked()`` to go back to the lab, ``said(words)`` for the status bar."""

    leaveAsked = Signal()
    said = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("lab.two.page")
        self.folder: Path | None = None
        """Where the two stores are made; the window says it."""
        self.plots_ready = False
        self.desks = (LabDesk(), LabDesk())
        self.sides = [Side(name) for name in NAMES]
        self._made: Path | None = None
        self._busy = False
        self._rates: tuple[deque[tuple[float, float]], ...] = (deque(maxlen=1200), deque(maxlen=1200))
        self._build()
        for number, desk in enumerate(self.desks):
            desk.sampled.connect(lambda sample, number=number: self._sampled(number, sample))
            desk.counted.connect(lambda counts, number=number: self._counted(number, counts))
            desk.failed.connect(lambda words, number=number: self._say(f"{NAMES[number]}: {words}"))
            desk.died.connect(lambda words, number=number: self._say(f"{NAMES[number]}: {words}"))
            desk.changed.connect(self._show_state)
        self._timer = QTimer(self, interval=DRAW_MS)
        self._timer.timeout.connect(self._draw)
        self._show_state()

    def _build(self) -> None:
        self.load = LoadPanel("lab.two.load")
        self.load.plot.hide()
        self.load.startAsked.connect(self.begin)
        self.load.changed.connect(lambda settings: self._each(lambda desk: desk.set_load(settings)))
        self.load.pauseAsked.connect(lambda on: self._each(lambda desk: desk.pause_load(on)))
        self.load.stopAsked.connect(lambda: self._each(lambda desk: desk.set_load(None)))
        self.panels = (SidePanel(0, 0), SidePanel(1, 2))
        self.plug = Button(tr("Pull both plugs"), "danger", "plug")
        self.plug.setObjectName("lab.two.plug")
        self.plug.setToolTip(tr("Both stores were made for this comparison"))
        self.plug.clicked.connect(self.pull)
        leave = Button(tr("Back to the lab"))
        leave.setObjectName("lab.two.leave")
        leave.clicked.connect(self.leaveAsked)
        self.head = PaneHead(tr("Two ways at once"), tr("the same load on two lab stores"), self.plug, leave)
        self.plot = LivePlot("lab.two.plot", tr("Messages a second"))
        self.plot.show_nothing(tr("Start the load: both stores are made, and fed alike."))
        self.table = RecordView("lab.two.table", two_kind())
        self.table.setAccessibleName(tr("Both ways compared"))
        self.table.set_state(State("empty", tr("Figures of both stand here when the load runs.")))
        left = column(self.load, None, gap=0)
        left.setMinimumWidth(px(324))
        figures = stacked(self.table, self.table.strip, room=0)
        right = splitter(
            True, (splitter(False, (self.panels[0], 500), (self.panels[1], 500)), 190), (self.plot, 220), (figures, 330)
        )
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        for part in (self.head, Hairline(), splitter(False, (left, 384), (right, 1144))):
            box.addWidget(part)
        box.setStretch(2, 1)

    # ---- deeds -------------------------------------------------------------------------------------------------------

    @property
    def folder_made(self) -> Path | None:
        """The folder of the two stores; None where there are none."""
        return self._made

    def begin(self, settings: LoadSettings) -> None:
        """Make both stores where they are not there, and put the load on them."""
        if not self._busy:
            self.desks[0].begin(self.run(settings))

    async def run(self, settings: LoadSettings) -> None:
        """Make both stores anew, as chosen, and begin the load on both."""
        self._busy = True
        self._show_state()
        try:
            await self.end()
            folder = self._new_folder()
            self.sides = [Side(name) for name in NAMES]
            for rates in self._rates:
                rates.clear()
            self.said.emit(tr("Making both stores"))
            await asyncio.gather(*(
                desk.open(folder / name.lower(), panel.preset.currentData().config, "5.3")
                for desk, panel, name in zip(self.desks, self.panels, NAMES, strict=True)
            ))  # fmt: skip
            await asyncio.gather(*(desk.set_load(settings) for desk in self.desks))
            self.said.emit(tr("Both stores get the same load"))
        finally:
            self._busy = False
            self._show_state()
        self._timer.start()

    def _new_folder(self) -> Path:
        base = self.folder or Path.home()
        number = 1
        while (base / f"two-ways-{number}").exists():
            number += 1
        self._made = base / f"two-ways-{number}"
        return self._made

    def pull(self) -> None:
        """Pull both plugs, and count what is lost."""
        if not self._busy and all(desk.plug_possible for desk in self.desks):
            self.desks[0].begin(self.pull_both())

    async def pull_both(self) -> None:
        """The same power loss for both; then each is recovered."""
        self._busy = True
        self._show_state()
        try:
            await asyncio.gather(*(desk.pull_the_plug(1) for desk in self.desks))
            await asyncio.gather(*(desk.recover() for desk in self.desks))
        finally:
            self._busy = False
        for side, desk in zip(self.sides, self.desks, strict=True):
            report = desk.report
            if report is not None:
                side.lost, side.allowed = report.loss.messages, report.loss.allowed
                side.lost_bytes = max(0, report.before.end_offset - report.after.end_offset) if report.after else 0
        self._show_state()
        self._draw()

    async def end(self) -> None:
        """Close both stores and delete what was made for the comparison."""
        self._timer.stop()
        for desk in self.desks:
            await desk.close()
        made, self._made = self._made, None
        if made is not None:
            await asyncio.to_thread(_delete, made)

    def _each(self, work: object) -> None:
        assert callable(work)
        for desk in self.desks:
            if desk.alive:
                desk.begin(work(desk))

    # ---- showing -----------------------------------------------------------------------------------------------------

    def _show_state(self) -> None:
        running = all(desk.load is not None for desk in self.desks)
        paused = all(desk.load_paused for desk in self.desks)
        self.load.show_state(able=not self._busy, running=running, paused=paused)
        able = not self._busy and all(desk.plug_possible and desk.report is None for desk in self.desks)
        self.plug.setEnabled(able)
        for panel in self.panels:
            panel.preset.setEnabled(not running and not self._busy)

    def _sampled(self, number: int, sample: PositionSample) -> None:
        if self.desks[number].load is not None and not self.desks[number].load_paused:
            self.sides[number].add(sample)
            self._rates[number].append((sample.at_ms / 1000, sample.rates.messages))
        if self.isVisible():
            self.panels[number].show_sample(sample)
            if number == 0 and self.desks[0].load is not None:
                self.load.show_rate(sample.at_ms / 1000, sample.rates.messages)

    def _counted(self, number: int, counts: LoadCounts) -> None:
        self.sides[number].count(counts)

    def _draw(self) -> None:
        if not self.isVisible():
            return
        found = rows(*self.sides)
        at = self.table.currentIndex().row()
        self.table.set_rows(list(found))
        self.table.set_state(None)
        if at >= 0:
            self.table.go_to_row(at)
        if self.plots_ready and all(len(rates) > 1 for rates in self._rates):
            self.plot.show_curves([_curve(name, role, rates) for name, role, rates in
                                   zip(NAMES, ROLES, self._rates, strict=True)], times=True)  # fmt: skip

    def _say(self, words: str) -> None:
        self._show_state()
        self.said.emit(words)

    def retheme(self) -> None:
        """Colours, fonts or zoom changed."""
        self.table.refresh_look()


def _curve(name: str, role: str, rates: Sequence[tuple[float, float]]) -> Curve:
    newest = rates[-1][0]
    shown = [(at, rate) for at, rate in rates if newest - at <= SECONDS]
    return Curve(name, role, [at for at, _ in shown], [rate for _, rate in shown], f"{shown[-1][1]:,.0f} /s")


def _delete(folder: Path) -> None:
    """Both stores of a comparison, and their folder where nothing else is in it; only what the lab made goes."""
    from engine.lab.lab_store import delete_lab

    for name in NAMES:
        with contextlib.suppress(StoreError, OSError):
            delete_lab(folder / name.lower())
    with contextlib.suppress(OSError):
        folder.rmdir()
