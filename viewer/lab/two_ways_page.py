"""Page that runs the same load on two lab stores side by side, and can cut the power of both.

The stores are made for the comparison and deleted when the page is left; each has an engine in its own process.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import deque
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QVBoxLayout

from engine.errors import StoreError
from engine.releases import NEWEST
from viewer.lab.lines import now_line
from viewer.lab.load import LoadPanel
from viewer.lab.two_ways import Side, comparison_kind, markdown, rows, summary
from viewer.lab.values import ValuesDialog, values_words
from viewer.look.assets import tr, tr_plural
from viewer.look.formats import size
from viewer.look.theme import follow, px, ui
from viewer.runtime.lab_session import LabSession
from viewer.runtime.live_history import LONG_PAUSE
from viewer.widgets.basics import Button, ElidedLine, Hairline, Label, PaneHead, ThemedPanel
from viewer.widgets.boxes import column, row, splitter, stacked
from viewer.widgets.choices import ChoiceField
from viewer.widgets.live_plot import Curve, LivePlot
from viewer.widgets.record_state import State
from viewer.widgets.record_view import RecordView
from viewer.widgets.recovery_line import RecoveryLine

if TYPE_CHECKING:
    from engine.config import MessageStoreConfig
    from engine.lab.load_settings import LoadSettings
    from engine.lab.samples import LoadCounts, PositionSample

NAMES = ("A", "B")
ROLES = ("posLog", "posBuild")
SHOWN_SECONDS = 60.0
DRAW_MS = 500


FILE_SIZES = (1 << 20, 16 << 20, 64 << 20, 256 << 20, 1 << 30)
MAX_POOLED_FILE_BYTES = 64 << 20
"""Maximum file size with a pool, unless the user chooses more: a pool has five buffers of a file's size."""


class SidePanel(ThemedPanel):
    """Panel of one of the two stores: its configuration, and the status of its log."""

    def __init__(self, number: int, preset_number: int) -> None:
        super().__init__()
        name = NAMES[number]
        key = name.lower()
        self._name = name
        self.preset = ChoiceField()
        self.preset.setObjectName(f"lab.two.preset.{key}")
        self.preset.setAccessibleName(tr("What store {name} is made as", name=name))
        from engine.lab.presets import PRESETS

        for preset in PRESETS:
            self.preset.addItem(tr(preset.name), preset)
        self.preset.setCurrentIndex(preset_number)
        self.config: MessageStoreConfig = PRESETS[preset_number].config
        self.preset.currentIndexChanged.connect(lambda _n: self.set_config(self.preset.currentData().config))
        self.sync = self._pill("SYNC_FLUSH", f"lab.two.sync.{key}", tr("Every put waits for the disk"))
        self.sync.clicked.connect(lambda on: self.change(flush_disk_type="SYNC_FLUSH" if on else "ASYNC_FLUSH"))
        self.pool = self._pill(tr("pool"), f"lab.two.pool.{key}", tr("Puts go to the transient pool first"))
        self.pool.clicked.connect(self._use_pool)
        self.files = ChoiceField()
        self.files.setObjectName(f"lab.two.files.{key}")
        self.files.setAccessibleName(tr("Length of the log files of store {name}", name=name))
        self.files.activated.connect(lambda _n: self.change(mapped_file_size_commit_log=self.files.currentData()))
        self.values = Button(tr("Values…"), "pill")
        self.values.setObjectName(f"lab.two.values.{key}")
        self.values.setToolTip(tr("Every value of the configuration, with default, range and meaning"))
        self.values.clicked.connect(self.ask_values)
        self.words = Label("", 12, "text3", wrap=True)
        self.state = ElidedLine("", 12, "text2")
        self.line = RecoveryLine(f"lab.two.line.{key}", tr("Log positions of store {name}", name=name), 18)
        self.state.hide()
        self.line.hide()
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        box.addWidget(PaneHead(tr("Store {name}", name=name), "", self.preset))
        tools = row(self.sync, self.pool, Label(tr("files of"), 12, "text2"), self.files, None, self.values, gap=6)
        box.addWidget(column(tools, self.words, self.state, self.line, gap=4, margins=(12, 8, 12, 4)))
        box.addStretch(1)
        self.set_config(self.config)
        self._fit()
        follow(self, self._fit)

    def _pill(self, words: str, name: str, tip: str) -> Button:
        button = Button(words, "pill")
        button.setObjectName(name)
        button.setCheckable(True)
        button.setToolTip(tip)
        return button

    def _fit(self) -> None:
        for box in (self.preset, self.files):
            box.setFont(ui(12))

    # ---- values ------------------------------------------------------------------------------------------------------

    def set_config(self, config: MessageStoreConfig) -> None:
        """Use these values for the store."""
        self.config = config
        self.sync.setChecked(config.flush_disk_type == "SYNC_FLUSH")
        self.pool.setChecked(config.transient_store_pool_enable)
        file_size = config.mapped_file_size_commit_log
        self.files.clear()
        for length in sorted({*FILE_SIZES, file_size}):
            self.files.addItem(size(length), length)
        self.files.setCurrentIndex(self.files.findData(file_size))
        is_preset = config == self.preset.currentData().config
        self.words.setText(tr(self.preset.currentData().words) if is_preset else values_words(config))

    def change(self, **changes: bool | int | str) -> None:
        """Change single values."""
        from engine.lab.presets import with_changes

        self.set_config(with_changes(self.config, changes))

    def _use_pool(self, on: bool) -> None:
        changes: dict[str, bool | int | str] = {"transient_store_pool_enable": on}
        if on and self.config.mapped_file_size_commit_log > MAX_POOLED_FILE_BYTES:
            changes["mapped_file_size_commit_log"] = MAX_POOLED_FILE_BYTES
        self.change(**changes)

    def ask_values(self) -> None:
        """Show every value in a dialog."""
        title = tr("Values of store {name}", name=self._name)
        dialog = ValuesDialog(self, "lab.two.dialog", title, self.config)
        dialog.valuesAccepted.connect(self.set_config)
        dialog.open()

    def set_able(self, on: bool) -> None:
        """Allow or forbid changes: not while the load runs."""
        for part in (self.preset, self.sync, self.pool, self.files, self.values):
            part.setEnabled(on)

    def say(self) -> str:
        """Describe the configuration in words."""
        return f"{tr(self.preset.currentData().name)}; {values_words(self.config)}"

    def show_sample(self, sample: PositionSample | None) -> None:
        """Show the status of the store's log."""
        for part in (self.state, self.line):  # without figures the words about the values need the room
            part.setVisible(sample is not None)
        if sample is None:
            self.line.show_parts([])
            self.state.setText("")
            return
        parts, flags = now_line(sample.positions, open_here=False)
        self.line.show_parts(parts, flags)
        end = sample.positions.wrote
        text = "{rate:,.0f} messages a second, {bytes}"
        self.state.setText(tr(text, rate=sample.rates.messages, bytes=tr_plural("{n:,} byte", "{n:,} bytes", n=end)))


class _SessionListener(QObject):
    """Passes the signals of one lab session to the page; ends with the page, which its engine may outlive."""

    def __init__(self, page: TwoWaysPage, number: int) -> None:
        super().__init__(page)
        self._page, self._number = page, number
        lab = page.labs[number]
        lab.sampled.connect(self._sampled)
        lab.counted.connect(self._counted)
        lab.failed.connect(self._failed)
        lab.died.connect(self._failed)
        lab.changed.connect(self._changed)

    def _sampled(self, sample: PositionSample) -> None:
        self._page.take_sample(self._number, sample)

    def _counted(self, counts: LoadCounts) -> None:
        self._page.take_counts(self._number, counts)

    def _failed(self, words: str) -> None:
        self._page.say(self._number, words)

    def _changed(self) -> None:
        self._page.show_state()


class TwoWaysPage(ThemedPanel):
    """The page that compares two ways to write.

    Emits ``leaveRequested()`` to return to the lab, ``statusText(words)`` for the status bar, ``changed()`` when other
    commands become possible.
    """

    leaveRequested = Signal()
    statusText = Signal(str)
    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("lab.two.page")
        self.folder: Path | None = None
        """Folder for the two stores; the window sets it."""
        self.plots_ready = False
        self.labs = (LabSession(), LabSession())
        self.sides = [Side(name) for name in NAMES]
        self._folder: Path | None = None
        self._busy = False
        self._configurations: tuple[str, ...] = ("", "")
        self._load_words = ""
        self._rates: tuple[deque[tuple[float, float]], ...] = (deque(maxlen=1200), deque(maxlen=1200))
        self._build()
        self._listeners = [_SessionListener(self, number) for number in range(2)]
        self._timer = QTimer(self, interval=DRAW_MS)
        self._timer.timeout.connect(self._draw)
        self.show_state()

    def _build(self) -> None:
        self.load = LoadPanel("lab.two.load")
        self.load.plot.hide()
        self.load.startRequested.connect(self.begin)
        self.load.changed.connect(lambda settings: self._each(lambda lab: lab.set_load(settings)))
        self.load.pauseRequested.connect(lambda on: self._each(lambda lab: lab.pause_load(on)))
        self.load.stopRequested.connect(lambda: self._each(lambda lab: lab.set_load(None)))
        self.panels = (SidePanel(0, 0), SidePanel(1, 2))
        self.cut = Button(tr("Cut the power of both"), "danger", "plug")
        self.cut.setObjectName("lab.two.plug")
        self.cut.setToolTip(tr("Both stores were made for this comparison"))
        self.cut.clicked.connect(self.pull)
        self.copy = Button(tr("Copy as Markdown"))
        self.copy.setObjectName("lab.two.copy")
        self.copy.clicked.connect(self.copy_markdown)
        leave = Button(tr("Back to the lab"))
        leave.setObjectName("lab.two.leave")
        leave.clicked.connect(self.leaveRequested)
        self.head = PaneHead(tr("Two ways at once"), tr("the same load on two lab stores"), self.copy, self.cut, leave)
        self.plot = LivePlot("lab.two.plot", tr("Messages a second"))
        self.plot.show_nothing(tr("Start the load: it creates both stores and gives them the same messages."))
        self.table = RecordView("lab.two.table", comparison_kind())
        self.table.setAccessibleName(tr("Both ways compared"))
        self.table.set_state(State("hint", tr("The figures of both appear here while the load runs.")))
        self.summary_line = ElidedLine("", 12, "text", 600)
        self.summary_line.setObjectName("lab.two.short")
        self.summary_line.setAccessibleName(tr("In short"))
        left_column = column(self.load, None, gap=0)
        left_column.setMinimumWidth(px(324))
        summary_row = column(self.summary_line, margins=(12, 6, 12, 6))
        figures = stacked(summary_row, Hairline(), self.table, self.table.strip, room=2)
        right = splitter(
            True, (splitter(False, (self.panels[0], 500), (self.panels[1], 500)), 190), (self.plot, 220), (figures, 330)
        )
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        for part in (self.head, Hairline(), splitter(False, (left_column, 384), (right, 1144))):
            box.addWidget(part)
        box.setStretch(2, 1)

    # ---- commands ----------------------------------------------------------------------------------------------------

    @property
    def folder_made(self) -> Path | None:
        """Folder of the two stores; None if there are none."""
        return self._folder

    def begin(self, settings: LoadSettings) -> None:
        """Make both stores and start the load on them."""
        if not self._busy:
            self.labs[0].begin(self.run(settings))

    async def run(self, settings: LoadSettings) -> None:
        """Make both stores again and start the load on both."""
        self._busy = True
        self.show_state()
        try:
            await self.end()
            folder = self._make_folder_name()
            self.sides = [Side(name) for name in NAMES]
            self._configurations = tuple(panel.say() for panel in self.panels)
            self._load_words = self.load.words()
            for rates in self._rates:
                rates.clear()
            self.statusText.emit(tr("Making both stores"))
            await asyncio.gather(
                *(
                    lab.open(folder / name.lower(), panel.config, NEWEST)
                    for lab, panel, name in zip(self.labs, self.panels, NAMES, strict=True)
                )
            )
            await asyncio.gather(*(lab.set_load(settings) for lab in self.labs))
            self.statusText.emit(tr("Both stores get the same load"))
        finally:
            self._busy = False
            self.show_state()
        self._timer.start()

    def _make_folder_name(self) -> Path:
        base = self.folder or Path.home()
        number = 1
        while (base / f"two-ways-{number}").exists():
            number += 1
        self._folder = base / f"two-ways-{number}"
        return self._folder

    def pull(self) -> None:
        """Cut the power of both stores and count what is lost."""
        if not self._busy and all(lab.can_cut_power for lab in self.labs):
            self.labs[0].begin(self.pull_both())

    async def pull_both(self) -> None:
        """Cut the power of both stores, then recover each."""
        self._busy = True
        self.show_state()
        try:
            await asyncio.gather(*(lab.cut_power(1) for lab in self.labs))
            await asyncio.gather(*(lab.recover() for lab in self.labs))
        finally:
            self._busy = False
        for side, lab in zip(self.sides, self.labs, strict=True):
            report = lab.report
            if report is not None:
                side.take_report(report)
        self.show_state()
        self._draw()

    def end(self) -> Coroutine[None, None, None]:
        """Close both stores and delete what was made for the comparison; the page may be gone before that ends."""
        self._timer.stop()
        folder, self._folder = self._folder, None
        return self._end(folder)

    async def _end(self, folder: Path | None) -> None:
        for lab in self.labs:
            await lab.close()
        if folder is not None:
            await asyncio.to_thread(_delete, folder)

    def copy_markdown(self) -> None:
        """Copy the comparison to the clipboard."""
        QGuiApplication.clipboard().setText(self.markdown())
        self.statusText.emit(tr("Copied the comparison as Markdown"))

    def markdown(self) -> str:
        """Return the comparison as Markdown: configurations, load, every figure."""
        return markdown(self.sides[0], self.sides[1], self._configurations, self._load_words)

    def _each(self, work: object) -> None:
        assert callable(work)
        for lab in self.labs:
            if lab.alive:
                lab.begin(work(lab))

    # ---- showing -----------------------------------------------------------------------------------------------------

    def show_state(self) -> None:
        running = all(lab.load is not None for lab in self.labs)
        paused = all(lab.load_paused for lab in self.labs)
        self.load.show_state(able=not self._busy, running=running, paused=paused)
        self.copy.setEnabled(self.has_figures)
        able = not self._busy and all(lab.can_cut_power and lab.report is None for lab in self.labs)
        self.cut.setEnabled(able)
        for panel in self.panels:
            panel.set_able(not running and not self._busy)
        self.changed.emit()

    @property
    def has_figures(self) -> bool:
        """Return True if there is anything to compare yet."""
        return any(side.seconds > 0 for side in self.sides)

    def take_sample(self, number: int, sample: PositionSample) -> None:
        """Show a new sample of one of the stores."""
        if self.labs[number].load is not None and not self.labs[number].load_paused:
            self.sides[number].add(sample)
            self._rates[number].append((sample.at_ms / 1000, sample.rates.messages))
        if self.isVisible():
            self.panels[number].show_sample(sample)
            if number == 0 and self.labs[0].load is not None:
                self.load.show_rate(sample.rates.messages)

    def take_counts(self, number: int, counts: LoadCounts) -> None:
        """Add the put results of one of the stores."""
        self.sides[number].count(counts)

    def _draw(self) -> None:
        if not self.isVisible():
            return
        figure_rows = rows(*self.sides)
        selected_row = self.table.currentIndex().row()
        self.table.set_rows(list(figure_rows))
        self.table.set_state(None)
        self.summary_line.setText(summary(*self.sides))
        if self.copy.isEnabled() != self.has_figures:
            self.show_state()
        if selected_row >= 0:
            self.table.go_to_row(selected_row)
        if self.plots_ready and all(len(rates) > 1 for rates in self._rates):
            self.plot.show_curves(
                [_curve(name, role, rates) for name, role, rates in zip(NAMES, ROLES, self._rates, strict=True)],
                times=True,
            )

    def say(self, number: int, words: str) -> None:
        """Show a message of one of the stores in the status bar."""
        self.show_state()
        self.statusText.emit(f"{NAMES[number]}: {words}")

    def retheme(self) -> None:
        """Apply colours, fonts and zoom."""
        self.table.refresh_look()


def _curve(name: str, role: str, rates: Sequence[tuple[float, float]]) -> Curve:
    newest = rates[-1][0]
    points: list[tuple[float, float]] = []
    for time_s, rate in rates:
        if points and time_s - points[-1][0] > LONG_PAUSE / 1000:  # the load was paused: no line across the gap
            points.append((time_s, math.nan))
        if newest - time_s <= SHOWN_SECONDS:
            points.append((time_s, rate))
    return Curve(name, role, [time_s for time_s, _ in points], [rate for _, rate in points], f"{points[-1][1]:,.0f} /s")


def _delete(folder: Path) -> None:
    """Delete both stores of a comparison, and their folder if it is empty then."""
    from engine.lab.lab_store import delete_lab

    for name in NAMES:
        with contextlib.suppress(StoreError, OSError):
            delete_lab(folder / name.lower())
    with contextlib.suppress(OSError):
        folder.rmdir()
