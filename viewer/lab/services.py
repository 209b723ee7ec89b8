"""The services of a lab store: running or paused, what waits for them, what they did last; paused, stepped, resumed.

Below them where the log stands now, as one line: on disk, in the page cache, in the transient pool.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from viewer.lab.lines import now_line
from viewer.look.assets import tr, words
from viewer.look.formats import size, span
from viewer.look.theme import follow, px, theme
from viewer.widgets.basics import Button, Elided, Label, Mark, Paper, Tool, column, row
from viewer.widgets.recovery_line import RecoveryLine

if TYPE_CHECKING:
    from engine.lab.samples import PositionSample, ServiceState

BEAT_MS = 300
NONE_MS = -1


@dataclass(frozen=True, slots=True)
class Shown:
    """A service as the list names it."""

    key: str
    name: str
    way: str


SERVICES = (
    Shown("commit", words("Commit"), words("pool → page cache")),
    Shown("flush", words("Flush"), words("page cache → disk")),
    Shown("reput", words("Dispatch"), words("log → queues, index")),
    Shown("queues", words("Queue flush"), words("queues → disk")),
    Shown("clean", words("Clean"), words("old files")),
)


class ServiceLine(QWidget):
    """One service: lamp, name, what it did, what waits, pause and step."""

    pauseAsked = Signal(str, bool)
    stepAsked = Signal(str)

    def __init__(self, shown: Shown) -> None:
        super().__init__()
        self.key = shown.key
        self._paused = self._there = self._slim = False
        self.setObjectName(f"lab.service.{shown.key}")
        self.words = tr(shown.name)
        self._lamp = Mark("")
        self._name = Label(tr(shown.name), 13, "text", 600)
        self._state = Label("", 12, "warn", 500)
        self._did = Elided("", 12, "text2")
        self._waits = Elided("", 12, "text3")
        self.pause = Tool("pause", tr("Pause {service}", service=tr(shown.name)))
        self.pause.setObjectName(f"lab.service.{shown.key}.pause")
        self.pause.clicked.connect(lambda: self.pauseAsked.emit(self.key, not self._paused))
        self.step = Tool("step", tr("One step of {service}", service=tr(shown.name)))
        self.step.setObjectName(f"lab.service.{shown.key}.step")
        self.step.clicked.connect(self._stepped)
        self._way = Elided(tr(shown.way), 12, "text3")
        left = column(None, row(self._name, self._state, None, gap=6), self._way, None, gap=0)
        self._left, self._right = left, column(None, self._did, self._waits, None, gap=0)
        line = row(self._lamp, left, self._right, self.pause, self.step, gap=4)
        line.box.setStretch(2, 1)
        box = QVBoxLayout(self)
        box.setContentsMargins(px(12), 0, px(8), 0)
        box.addWidget(line)
        self._beat = QTimer(self, interval=BEAT_MS, singleShot=True)
        self._beat.timeout.connect(self._show_lamp)
        self._fit()
        follow(self, self._fit)
        self.show_state(None, "", "")

    def set_slim(self, slim: bool) -> None:
        """Narrow windows give the name less room: lamp and picture say that it is paused."""
        self._slim = slim
        self._fit()

    def _fit(self) -> None:
        self._left.setFixedWidth(px(86 if self._slim else 144))
        self._way.setVisible(not self._slim)
        self._state.setVisible(not self._slim)
        self.setFixedHeight(px(42))
        for tool in (self.pause, self.step):
            tool.setFixedSize(px(26), px(26))

    def _stepped(self) -> None:
        if not theme.still:
            self._lamp.set_kind("note")
            self._beat.start()
        self.stepAsked.emit(self.key)

    def show_state(self, paused: bool | None, did: str, waits: str, *, warn: bool = False, off: bool = False) -> None:
        """How it stands; ``paused`` None: this store has no such service, or no engine that runs it (``off``)."""
        self._there, self._paused = paused is not None, bool(paused)
        missing = tr("off") if off else tr("not there")
        self._state.setText(tr("paused") if paused else "" if paused is not None else missing)
        self._state.set_role("warn" if paused else "text3")
        self._left.setToolTip(f"{self.words}: {self._way.text()}")
        self._did.setText(did)
        self._waits.setText(waits)
        self._waits.set_role("warn" if warn else "text3")
        for tool in (self.pause, self.step):
            tool.setEnabled(self._there)
        self.pause.set_icon("play" if paused else "pause")
        said = tr("Go on with {service}" if paused else "Pause {service}", service=self._name.text())
        self.pause.setToolTip(said)
        self.pause.setAccessibleName(said)
        self.setAccessibleName(f"{self._name.text()} {self._state.text()}. {did}. {waits}")
        if not self._beat.isActive():
            self._show_lamp()

    def _show_lamp(self) -> None:
        self._lamp.set_kind("warn" if self._paused else "live" if self._there else "out")


class ServicesPanel(Paper):
    """``pauseAsked(name, on)``, ``stepAsked(name)``, ``flushAsked()``, ``commitAsked()``, ``reopenAsked(changes)`` with
    attributes of the configuration and their new values.
    """

    pauseAsked = Signal(str, bool)
    stepAsked = Signal(str)
    flushAsked = Signal()
    commitAsked = Signal()
    reopenAsked = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._sync = False
        self._pool = False
        self.flush = Button(tr("Flush now"), "pill")
        self.flush.setObjectName("lab.flush")
        self.flush.setToolTip(tr("Bring everything put so far to disk"))
        self.flush.clicked.connect(self.flushAsked)
        self.commit = Button(tr("Commit now"), "pill")
        self.commit.setObjectName("lab.commit")
        self.commit.setToolTip(tr("Hand the transient pool's buffers to the page cache"))
        self.commit.clicked.connect(self.commitAsked)
        self.lines = {shown.key: ServiceLine(shown) for shown in SERVICES}
        self.now = RecoveryLine("lab.now", tr("Where the log stands now"), 18)
        self._mode, self._has_pool = Elided("", 12, "text2", code=True), Elided("", 12, "text2")
        self.mode = Button("", "pill")
        self.mode.setObjectName("lab.mode")
        self.mode.clicked.connect(self._ask_mode)
        self.pool = Button("", "pill")
        self.pool.setObjectName("lab.pool")
        self.pool.clicked.connect(self._ask_pool)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        box.addSpacing(px(6))
        for line in self.lines.values():
            box.addWidget(line)
            line.pauseAsked.connect(self.pauseAsked)
            line.stepAsked.connect(self.stepAsked)
        box.addWidget(column(Label(tr("Now"), 12, "text2"), self.now, gap=2, margins=(12, 6, 12, 0)))
        lines = [
            row(said, None, button, gap=6) for said, button in ((self._mode, self.mode), (self._has_pool, self.pool))
        ]
        box.addWidget(column(*lines, gap=6, margins=(12, 4, 12, 8)))
        box.addStretch(1)
        self.show_store(None)

    def set_slim(self, slim: bool) -> None:
        """Narrow windows give the names less room."""
        for line in self.lines.values():
            line.set_slim(slim)

    def show_store(self, config: object, *, able: bool = False) -> None:
        """Another store's configuration, None for no store; ``able``: its engine is alive."""
        self._sync = getattr(config, "flush_disk_type", "") == "SYNC_FLUSH"
        self._pool = bool(getattr(config, "transient_store_pool_enable", False))
        for part in (self.flush, self.commit, self.mode, self.pool):
            part.setEnabled(able)
        self.commit.setEnabled(able and self._pool)
        pool = tr("with the transient pool") if self._pool else tr("without the transient pool")
        self._mode.setText(("SYNC_FLUSH" if self._sync else "ASYNC_FLUSH") if config is not None else "")
        self._has_pool.setText(pool if config is not None else "")
        self.mode.setText(tr("Reopen with {mode}", mode="ASYNC_FLUSH" if self._sync else "SYNC_FLUSH"))
        self.pool.setText(tr("Reopen without the pool") if self._pool else tr("Reopen with the pool"))
        for part in (self.mode, self.pool):
            part.setVisible(config is not None)
            part.setAccessibleName(part.text())
            part.setToolTip(tr("The store is closed cleanly and opened again with that one value changed"))
        if config is None:
            self.show_sample(None)

    def show_off(self) -> None:
        """No engine runs: the plug was pulled, or the store is being opened."""
        for line in self.lines.values():
            line.show_state(None, "", "", off=True)
        self.now.show_parts([])

    def show_sample(self, sample: PositionSample | None) -> None:
        """The services and the line as they stand now."""
        states: Mapping[str, ServiceState] = sample.services if sample is not None else {}
        at = sample.at_ms if sample is not None else 0
        for key, line in self.lines.items():
            state = states.get(key)
            if state is None or sample is None:
                line.show_state(None, "", "")
            else:
                line.show_state(state.paused, _did(state, at), _waits(state), warn=state.paused)
        if sample is None:
            self.now.show_parts([])
        else:
            parts, flags = now_line(sample.positions)
            self.now.show_parts(parts, flags)

    def _ask_mode(self) -> None:
        self.reopenAsked.emit({"flush_disk_type": "ASYNC_FLUSH" if self._sync else "SYNC_FLUSH"})

    def _ask_pool(self) -> None:
        self.reopenAsked.emit({"transient_store_pool_enable": not self._pool})


UNITS = {
    "bytes": words("{n:,} bytes"),
    "units": words("{n:,} units"),
    "queues": words("{n:,} queues"),
    "files": words("{n:,} files"),
    "rounds": words("{n:,} rounds"),
}


ONE = {
    "units": words("1 unit"),
    "queues": words("1 queue"),
    "files": words("1 file"),
    "rounds": words("1 round"),
}


def _counted(count: int, unit: str) -> str:
    if count == 1 and unit in ONE:
        return tr(ONE[unit])
    return size(count) if unit == "bytes" else tr(UNITS.get(unit, "{n:,}"), n=count)


def _did(state: ServiceState, at: int) -> str:
    """``274 units, now`` · ``0.8 MiB, 14.9 s ago``."""
    if state.last_ms is None:
        return tr("nothing yet")
    ago = max(0, at - state.last_ms)
    return f"{_counted(state.moved, state.unit)}, " + (tr("now") if ago < 1500 else tr("{span} ago", span=span(ago)))


def _waits(state: ServiceState) -> str:
    count, unit = (state.waiting_bytes, "bytes") if state.waiting_bytes is not None else (state.waiting, state.unit)
    if count is None:
        return ""
    return tr("{what} waiting", what=_counted(count, unit)) if count else tr("nothing waits")
