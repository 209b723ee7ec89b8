"""Load of the lab: sliders for sizes, rate and producers; started, changed while it runs, stopped.

Below them the results: messages a second over the last minute, statuses, latencies. A slider holds the number of a
step. Rates and sizes rise by 1–2–5, because the effect of a load grows with powers, not with units.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QGridLayout, QSlider, QVBoxLayout, QWidget

from viewer.look.assets import tr, words
from viewer.look.formats import number, short_ms, size
from viewer.look.theme import follow, px, ui
from viewer.pane.live_plots import Range, rate_frame
from viewer.widgets.basics import Button, Chip, ElidedLine, Label, PaneHead, ThemedPanel, ToolButton
from viewer.widgets.boxes import column
from viewer.widgets.choices import TickBox
from viewer.widgets.facts import Fact, Facts
from viewer.widgets.live_plot import LivePlot

if TYPE_CHECKING:
    from engine.lab.load_settings import LoadSettings
    from viewer.runtime.live_history import LiveHistory


SHOWN_SECONDS = 60.0
DRAW_INTERVAL_S = 0.5
"""Seconds between two updates of the small plot."""
CHANGE_DELAY_MS = 150
"""Ms that a slider must rest before the running load changes."""


class LoadPanel(ThemedPanel):
    """Emits ``startRequested(LoadSettings)``, ``changed(LoadSettings)`` during a load, ``pauseRequested(bool)``,
    ``stopRequested()``.
    """

    startRequested = Signal(object)
    changed = Signal(object)
    pauseRequested = Signal(bool)
    stopRequested = Signal()

    def __init__(self, name: str = "lab.load") -> None:
        super().__init__()
        self.setObjectName(f"{name}.panel")
        self._able = self._running = self._paused = False
        self.sliders: dict[str, QSlider] = {}
        self._slim = False
        self._value_labels: dict[str, ElidedLine] = {}
        self._chip = Chip("live", "")
        self._chip.hide()
        self.start = Button(tr("Start the load"), "pill")
        self.start.setObjectName(name)
        self.start.clicked.connect(self.toggle)
        self.pause = ToolButton("pause", tr("Pause the load"))
        self.pause.setObjectName(f"{name}.pause")
        self.pause.clicked.connect(lambda: self.pauseRequested.emit(not self._paused))
        self.plot = LivePlot(f"{name}.plot", tr("Messages a second"))
        self.plot.show_nothing(tr("Nothing was put yet."))
        self._drawn_at = 0.0
        self.plots_ready = False
        """True once the plot library is loaded; nothing is drawn before."""
        self.facts = Facts(76)
        self.facts.setObjectName(f"{name}.facts")
        self.facts.setAccessibleName(tr("Results of the load"))
        self._change_timer = QTimer(self, interval=CHANGE_DELAY_MS, singleShot=True)
        self._change_timer.timeout.connect(self._emit_change)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        box.addWidget(PaneHead(tr("Load"), "", self._chip, self.pause, self.start))
        box.addWidget(self._build_knobs(name))
        box.addWidget(self.plot, 1)
        box.addWidget(column(self.facts, margins=(12, 6, 12, 10)))
        self._show_state()
        self._retheme()
        follow(self, self._retheme)

    def _build_knobs(self, name: str) -> QWidget:
        inner = QWidget()
        grid = self._grid = QGridLayout(inner)
        grid.setContentsMargins(px(12), px(8), px(12), px(2))
        grid.setHorizontalSpacing(px(8))
        grid.setVerticalSpacing(px(1))
        for line, knob in enumerate(KNOBS):
            slider = QSlider(Qt.Orientation.Horizontal)
            slider.setObjectName(f"{name}.{knob.key}")
            slider.setAccessibleName(tr(knob.name))
            slider.setToolTip(tr(knob.tip))
            slider.setRange(0, len(knob.steps) - 1)
            slider.setValue(knob.step_of(knob.initial))
            slider.setPageStep(1)
            slider.valueChanged.connect(lambda _value: self._moved())
            value_label = ElidedLine("", 12, code=True)
            self.sliders[knob.key], self._value_labels[knob.key] = slider, value_label
            grid.addWidget(Label(tr(knob.name), 12, "text2"), line, 0)
            grid.addWidget(slider, line, 1)
            grid.addWidget(value_label, line, 2)
        self.zipf = TickBox(tr("few topics get most (Zipf)"))
        self.zipf.setObjectName(f"{name}.zipf")
        self.zipf.setAccessibleName(tr("Few topics get most (Zipf)"))
        self.zipf.setChecked(True)
        self.zipf.toggled.connect(lambda _on: self._moved())
        grid.addWidget(self.zipf, len(KNOBS), 1, 1, 2)
        grid.setColumnStretch(1, 1)
        return inner

    def set_slim(self, slim: bool) -> None:
        """Give the values less width in narrow windows."""
        if slim != self._slim:
            self._slim = slim
            self._retheme()

    def _retheme(self) -> None:
        self.zipf.setFont(ui(12))
        room = px(84 if self._slim else 126)
        self._grid.setColumnMinimumWidth(2, room)
        for key, slider in self.sliders.items():
            slider.setFixedHeight(px(24))
            self._value_labels[key].setFixedWidth(room)

    # ---- what is set -------------------------------------------------------------------------------------------------

    def value(self, key: str) -> int:
        """Return the value of the slider ``key``."""
        knob = next(knob for knob in KNOBS if knob.key == key)
        return knob.steps[self.sliders[key].value()]

    def set_value(self, key: str, value: int) -> None:
        """Move the slider ``key`` to the step nearest to ``value``."""
        knob = next(knob for knob in KNOBS if knob.key == key)
        self.sliders[key].setValue(knob.step_of(value))

    def settings(self) -> LoadSettings:
        """Return the settings of all sliders."""
        from engine.lab.load_settings import LoadSettings

        body = self.value("body_size")
        return LoadSettings(
            producers=self.value("producers"),
            rate=self.value("rate"),
            body_size=body,
            body_spread=spread_bytes(body, self.value("body_spread")),
            topics=self.value("topics"),
            zipf=self.zipf.isChecked(),
            keys=self.value("keys"),
            batch=self.value("batch"),
        )

    def words(self) -> str:
        """Describe the settings in words."""
        parts = [f"{tr(knob.name)} {self._value_labels[knob.key].text()}" for knob in KNOBS]
        return ", ".join([*parts, *([self.zipf.text()] if self.zipf.isChecked() else [])])

    def _moved(self) -> None:
        self._say()
        if self._running and not self._paused:
            self._change_timer.start()

    def _emit_change(self) -> None:
        if self._running and not self._paused:
            self.changed.emit(self.settings())

    def _say(self) -> None:
        for knob in KNOBS:
            text = knob.say(knob.steps[self.sliders[knob.key].value()])
            self._value_labels[knob.key].setText(text)
            self.sliders[knob.key].setAccessibleDescription(text)

    # ---- what the pane calls -----------------------------------------------------------------------------------------

    def toggle(self) -> None:
        """Start the load, or stop the running one."""
        if self._running:
            self.stopRequested.emit()
        elif self._able:
            self.startRequested.emit(self.settings())

    def show_state(self, *, able: bool, running: bool, paused: bool) -> None:
        """Show whether a load can be started, is running, or is paused."""
        self._able, self._running, self._paused = able, running, paused
        self._show_state()

    def _show_state(self) -> None:
        self._say()
        self.start.setEnabled(self._able or self._running)
        self.start.setText(tr("Stop the load") if self._running else tr("Start the load"))
        self.start.setAccessibleName(self.start.text())
        self.pause.setVisible(self._running)
        self.pause.set_icon("play" if self._paused else "pause")
        tooltip = tr("Resume the load") if self._paused else tr("Pause the load")
        self.pause.setToolTip(tooltip)
        self.pause.setAccessibleName(tooltip)
        self._chip.setVisible(self._running)
        if self._paused:
            self._chip.set_chip("warn", tr("paused"))

    def show_history(self, history: LiveHistory | None, *, now: bool = False) -> None:
        """Draw the last minute of the series that Positions shows too; a few times a second at most, or ``now``."""
        if history is None or not len(history):
            self.plot.show_nothing(tr("Nothing was put yet."))
            return
        end_s = history.span[1] / 1000
        if self.plots_ready and (now or end_s - self._drawn_at >= DRAW_INTERVAL_S or end_s < self._drawn_at):
            self._drawn_at = end_s
            self.plot.show_live(rate_frame(history, Range(end_s, SHOWN_SECONDS), self.plot.live_width(), messages=True))

    def show_rate(self, rate: float) -> None:
        """Show the present rate in messages a second."""
        if self._running and not self._paused:
            self._chip.set_chip("live", f"{rate:,.0f} /s")

    def show_answers(
        self, rate: float, statuses: Mapping[str, int], median_ms: float | None, p99_ms: float | None, bytes_s: float
    ) -> None:
        """Show the results so far: statuses, latencies in ms, bytes a second."""
        from viewer.look.formats import size

        total = sum(statuses.values())
        if not total:
            self.facts.show_facts(())
            return
        ordered = sorted(statuses.items(), key=lambda item: -item[1])
        first_status, count = ordered[0]
        facts = [Fact(tr("answered"), f"{rate:,.0f} /s", f"{first_status} {_share(count, total)}")]
        facts += [Fact("", f"{name} {count:,}", _share(count, total), "warn") for name, count in ordered[1:5]]
        if median_ms is not None and p99_ms is not None:
            facts.append(Fact(tr("median"), short_ms(median_ms), tr("p99 {ms:,.1f} ms", ms=p99_ms)))
        facts.append(Fact(tr("bytes"), f"{size(bytes_s)}/s", tr("whole units")))
        self.facts.show_facts(facts)


def _share(part: int, total: int) -> str:
    share = part * 100 / total
    return "100 %" if part == total else f"{min(share, 99.99):.2f} %" if share >= 0.01 else "< 0.01 %"


NO_LIMIT = 0
"""Rate without a limit."""


@dataclass(frozen=True, slots=True)
class LoadSlider:
    """A slider: ``key`` of the settings, its name, its steps and the text of a step."""

    key: str
    name: str
    steps: tuple[int, ...]
    say: Callable[[int], str]
    initial: int
    tip: str = ""

    def step_of(self, value: int) -> int:
        """Return the number of the step nearest to ``value``."""
        return min(range(len(self.steps)), key=lambda n: abs(self.steps[n] - value))


def _rate(value: int) -> str:
    return tr("no limit") if value == NO_LIMIT else f"{value:,} /s"


def _bytes(value: int) -> str:
    return size(value) if value >= 10_000 else f"{value:,} B"


def _percent(value: int) -> str:
    return tr("all alike") if value == 0 else f"± {value} %"


def _keys(value: int) -> str:
    return tr("none") if value == 0 else number(value)


def _batch(value: int) -> str:
    return tr("off") if value == 1 else number(value)


KNOBS = (
    LoadSlider(
        "producers", words("Producers"), tuple(range(1, 17)), number, 4, words("Threads that put at the same time")
    ),
    LoadSlider(
        "rate",
        words("Rate"),
        (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000, NO_LIMIT),
        _rate,
        2000,
        words("Messages a second, of all producers together"),
    ),
    LoadSlider(
        "body_size",
        words("Body"),
        (0, 10, 50, 100, 200, 500, 1000, 2000, 4096, 10_240, 65_536, 262_144, 1_048_576),
        _bytes,
        200,
        words("Bytes of a body, on average"),
    ),
    LoadSlider(
        "body_spread",
        words("Spread"),
        (0, 10, 25, 33, 50, 75, 100),
        _percent,
        33,
        words("How far bodies are shorter or longer than that"),
    ),
    LoadSlider(
        "topics", words("Topics"), (1, 2, 3, 4, 5, 8, 16, 32, 64), number, 3, words("How many topics get messages")
    ),
    LoadSlider(
        "keys",
        words("Keys"),
        (0, 10, 100, 1000, 10_000, 50_000, 100_000, 1_000_000),
        _keys,
        1000,
        words("How many different keys there are; a few keys make long index chains"),
    ),
    LoadSlider("batch", words("Batch"), (1, 2, 4, 8, 16, 32, 64, 128, 256), _batch, 1, words("Messages of one put")),
)
BY_KEY = {knob.key: knob for knob in KNOBS}


def spread_bytes(body: int, percent: int) -> int:
    """Return the bytes by which a body is shorter or longer at most."""
    return body * percent // 100
