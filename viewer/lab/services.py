"""Services of a lab store: running or paused, their backlog and last work; pause, step, resume.

Below them the log now as one line: on disk, in the page cache, in the transient pool.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from viewer.lab.lines import now_line
from viewer.look.assets import plural_words, tr, tr_plural, words
from viewer.look.formats import size, span
from viewer.look.theme import follow, px, theme
from viewer.widgets.basics import Button, ElidedLine, Label, StatusMark, ThemedPanel, ToolButton
from viewer.widgets.boxes import column, row
from viewer.widgets.recovery_line import RecoveryLine

if TYPE_CHECKING:
    from engine.lab.samples import PositionSample, ServiceState

FLASH_MS = 300
NONE_MS = -1


@dataclass(frozen=True, slots=True)
class ServiceLabel:
    """A service as the list names it."""

    key: str
    name: str
    data_path: str


SERVICES = (
    ServiceLabel("commit", words("Commit"), words("pool → page cache")),
    ServiceLabel("flush", words("Flush"), words("page cache → disk")),
    ServiceLabel("reput", words("Dispatch"), words("log → queues, index")),
    ServiceLabel("queues", words("Queue flush"), words("queues → disk")),
    ServiceLabel("clean", words("Clean"), words("old files")),
)


class ServiceLine(QWidget):
    """A service: lamp, name, last work, backlog, pause and step."""

    pauseRequested = Signal(str, bool)
    stepRequested = Signal(str)

    def __init__(self, service: ServiceLabel) -> None:
        super().__init__()
        self.key = service.key
        self._paused = self._exists = self._slim = False
        self.setObjectName(f"lab.service.{service.key}")
        self.words = tr(service.name)
        self._lamp = StatusMark("")
        self._name = Label(tr(service.name), 13, "text", 600)
        self._state = Label("", 12, "warn", 500)
        self._last_work = ElidedLine("", 12, "text2")
        self._backlog = ElidedLine("", 12, "text3")
        self.pause = ToolButton("pause", tr("Pause {service}", service=tr(service.name)))
        self.pause.setObjectName(f"lab.service.{service.key}.pause")
        self.pause.clicked.connect(lambda: self.pauseRequested.emit(self.key, not self._paused))
        self.step = ToolButton("step", tr("One step of {service}", service=tr(service.name)))
        self.step.setObjectName(f"lab.service.{service.key}.step")
        self.step.clicked.connect(self._step)
        self._path_label = ElidedLine(tr(service.data_path), 12, "text3")
        name_column = column(None, row(self._name, self._state, None, gap=6), self._path_label, None, gap=0)
        self._left, self._right = name_column, column(None, self._last_work, self._backlog, None, gap=0)
        line = row(self._lamp, name_column, self._right, self.pause, self.step, gap=4)
        line.box.setStretch(2, 1)
        box = QVBoxLayout(self)
        box.setContentsMargins(px(12), 0, px(8), 0)
        box.addWidget(line)
        self._flash_timer = QTimer(self, interval=FLASH_MS, singleShot=True)
        self._flash_timer.timeout.connect(self._show_lamp)
        self._fit()
        follow(self, self._fit)
        self.show_state(None, "", "")

    def set_slim(self, slim: bool) -> None:
        """Give the name less width in narrow windows: the lamp shows that it is paused."""
        self._slim = slim
        self._fit()

    def _fit(self) -> None:
        self._left.setFixedWidth(px(86 if self._slim else 144))
        self._path_label.setVisible(not self._slim)
        self._state.setVisible(not self._slim)
        self.setFixedHeight(px(42))
        for tool in (self.pause, self.step):
            tool.setFixedSize(px(26), px(26))

    def _step(self) -> None:
        if not theme.still:
            self._lamp.set_kind("note")
            self._flash_timer.start()
        self.stepRequested.emit(self.key)

    def show_state(
        self, paused: bool | None, last_work: str, backlog: str, *, warn: bool = False, off: bool = False
    ) -> None:
        """Show the status of the service.

        ``paused`` is None if the store has no such service, or no engine runs it (``off``).
        """
        self._exists, self._paused = paused is not None, bool(paused)
        missing = tr("off") if off else tr("not there")
        self._state.setText(tr("paused") if paused else "" if paused is not None else missing)
        self._state.set_role("warn" if paused else "text3")
        self._left.setToolTip(f"{self.words}: {self._path_label.text()}")
        self._last_work.setText(last_work)
        self._backlog.setText(backlog)
        self._backlog.set_role("warn" if warn else "text3")
        for tool in (self.pause, self.step):
            tool.setEnabled(self._exists)
        self.pause.set_icon("play" if paused else "pause")
        tooltip = tr("Resume {service}" if paused else "Pause {service}", service=self._name.text())
        self.pause.setToolTip(tooltip)
        self.pause.setAccessibleName(tooltip)
        self.setAccessibleName(f"{self._name.text()} {self._state.text()}. {last_work}. {backlog}")
        if not self._flash_timer.isActive():
            self._show_lamp()

    def _show_lamp(self) -> None:
        self._lamp.set_kind("warn" if self._paused else "live" if self._exists else "out")


class ServicesPanel(ThemedPanel):
    """Emits ``pauseRequested(name, on)``, ``stepRequested(name)``, ``flushRequested()``, ``commitRequested()``,
    ``reopenRequested(changes)``.

    ``changes`` maps attributes of the configuration to new values.
    """

    pauseRequested = Signal(str, bool)
    stepRequested = Signal(str)
    flushRequested = Signal()
    commitRequested = Signal()
    reopenRequested = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._sync = False
        self._pool = False
        self.flush = Button(tr("Flush now"), "pill")
        self.flush.setObjectName("lab.flush")
        self.flush.setToolTip(tr("Bring everything put so far to disk"))
        self.flush.clicked.connect(self.flushRequested)
        self.commit = Button(tr("Commit now"), "pill")
        self.commit.setObjectName("lab.commit")
        self.commit.setToolTip(tr("Write the transient pool's buffers to the page cache"))
        self.commit.clicked.connect(self.commitRequested)
        self.lines = {service.key: ServiceLine(service) for service in SERVICES}
        self.now = RecoveryLine("lab.now", tr("Log positions now"), 18)
        self._mode, self._has_pool = ElidedLine("", 12, "text2", code=True), ElidedLine("", 12, "text2")
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
            line.pauseRequested.connect(self.pauseRequested)
            line.stepRequested.connect(self.stepRequested)
        box.addWidget(column(Label(tr("Now"), 12, "text2"), self.now, gap=2, margins=(12, 6, 12, 0)))
        lines = [
            row(label, None, button, gap=6) for label, button in ((self._mode, self.mode), (self._has_pool, self.pool))
        ]
        box.addWidget(column(*lines, gap=6, margins=(12, 4, 12, 8)))
        box.addStretch(1)
        self.show_store(None)

    def set_slim(self, slim: bool) -> None:
        """Give the names less width in narrow windows."""
        for line in self.lines.values():
            line.set_slim(slim)

    def show_store(self, config: object, *, able: bool = False) -> None:
        """Show a store's configuration, None for no store; ``able`` says that its engine is alive."""
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
        """Show that no engine runs: after a power loss, or while the store is opened."""
        for line in self.lines.values():
            line.show_state(None, "", "", off=True)
        self.now.show_parts([])

    def show_sample(self, sample: PositionSample | None) -> None:
        """Show the status of the services and of the log."""
        states: Mapping[str, ServiceState] = sample.services if sample is not None else {}
        now_ms = sample.at_ms if sample is not None else 0
        for key, line in self.lines.items():
            state = states.get(key)
            if state is None or sample is None:
                line.show_state(None, "", "")
            else:
                line.show_state(state.paused, _last_work(state, now_ms), _backlog(state), warn=state.paused)
        if sample is None:
            self.now.show_parts([])
        else:
            parts, flags = now_line(sample.positions)
            self.now.show_parts(parts, flags)

    def _ask_mode(self) -> None:
        self.reopenRequested.emit({"flush_disk_type": "ASYNC_FLUSH" if self._sync else "SYNC_FLUSH"})

    def _ask_pool(self) -> None:
        self.reopenRequested.emit({"transient_store_pool_enable": not self._pool})


UNIT_WORDS = {
    "units": plural_words("{n:,} unit", "{n:,} units"),
    "queues": plural_words("{n:,} queue", "{n:,} queues"),
    "files": plural_words("{n:,} file", "{n:,} files"),
    "rounds": plural_words("{n:,} round", "{n:,} rounds"),
}


def _counted(count: int, unit: str) -> str:
    if unit == "bytes":
        return size(count)
    return tr_plural(*UNIT_WORDS[unit], n=count) if unit in UNIT_WORDS else f"{count:,}"


def _last_work(state: ServiceState, now_ms: int) -> str:
    """Return ``274 units, now`` or ``0.8 MiB, 14.9 s ago``."""
    if state.last_ms is None:
        return tr("nothing yet")
    age_ms = max(0, now_ms - state.last_ms)
    return f"{_counted(state.moved, state.unit)}, " + (
        tr("now") if age_ms < 1500 else tr("{span} ago", span=span(age_ms))
    )


def _backlog(state: ServiceState) -> str:
    count, unit = (state.waiting_bytes, "bytes") if state.waiting_bytes is not None else (state.waiting, state.unit)
    if count is None:
        return ""
    return tr("{what} waiting", what=_counted(count, unit)) if count else tr("nothing waits")
