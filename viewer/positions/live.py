"""The live part of the positions: plots over time, the slider below them, marks, the cursor, recording and replay.

Ten readings a second go into a history of bounded size; the picture shows a stretch of it, at its end or where the user
stopped it. A recording fills a history of its own and is looked at in the same way.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, Qt, QTimer, Signal
from PySide6.QtWidgets import QFileDialog, QSplitter, QWidget

from viewer.look.assets import tr, tr_plural
from viewer.look.engine_words import engine_words
from viewer.look.formats import size
from viewer.pane.live_plots import (
    Range,
    gaps_frame,
    group_frame,
    latency_frame,
    positions_frame,
    rate_frame,
)
from viewer.pane.plot_library import plot_library
from viewer.positions.recording import Recorder, read_recording
from viewer.positions.shown_time import REPLAY_MS, ShownTime
from viewer.runtime.live_history import LiveHistory, Mark, fill
from viewer.runtime.position_reading import PositionReading
from viewer.runtime.store_session import StoreSession, in_store
from viewer.widgets.boxes import splitter
from viewer.widgets.live_frame import LiveFrame
from viewer.widgets.live_plot import LivePlot
from viewer.widgets.stepwise import Step, StepQueue
from viewer.widgets.time_bar import Tick, TimeBar

MAX_TICKS = 200
_ROLES = {"warn": "warn", "error": "error", "ok": "ok", "note": "posLog", "live": "live", "chat": "text3"}


class LivePositions(QObject):
    """The plots of the Positions view, live or of a recording.

    Emits ``changed(PositionReading)`` when another reading is shown, ``loaded()`` when plots can be drawn,
    ``statusText(words)`` for the status bar.
    """

    changed = Signal(object)
    loaded = Signal()
    statusText = Signal(str)

    def __init__(self, plot: LivePlot, gaps: LivePlot, parent: QWidget) -> None:
        super().__init__(parent)
        self._pane = parent
        self.plot, self.gaps = plot, gaps
        self.latency = LivePlot("positions.latency", tr("Flush latency"))
        self.group = LivePlot("positions.group", tr("Group size"))
        self.rate = LivePlot("positions.rate", tr("Put rate"))
        self.below: QSplitter = splitter(False, (self.latency, 330), (self.group, 330), (self.rate, 330))
        self.bar = TimeBar("positions")
        self.time = ShownTime()
        self.session: StoreSession | None = None
        self._ready = self._loading = False
        self._recorder: Recorder | None = None
        self._writing = False
        self._turns = StepQueue(self)
        self._player = QTimer(self, interval=REPLAY_MS)
        self._player.timeout.connect(self._play_on)
        self._plots = (self.plot, self.gaps, self.latency, self.group, self.rate)
        for live_plot in self._plots:
            live_plot.pointed.connect(self._pointed)
            live_plot.picked.connect(self._picked)
            live_plot.zoomed.connect(self.zoom)
            live_plot.dragged.connect(self._dragged)
            live_plot.fitted.connect(self.fit)
        self.bar.record.clicked.connect(self.record)
        self.bar.pause.clicked.connect(lambda _on: self.pause())
        self.bar.play.clicked.connect(lambda _on: self.play())
        self.bar.end.clicked.connect(self.go_live)
        self.bar.live.clicked.connect(self.go_live)
        self.bar.load.clicked.connect(self.ask_recording)
        self.bar.track.moved.connect(self.go_to)

    # ---- what comes in -----------------------------------------------------------------------------------------------

    def set_session(self, session: StoreSession | None) -> None:
        """Show another store, or none: forget the readings of the last one, and end a recording."""
        self._end_recording()
        self._player.stop()
        if self.session is not None:
            self.session.tail.markAdded.disconnect(self._marked)
        self.session = session
        self.time.open(session.tail.history if session is not None else LiveHistory())
        if session is not None:
            session.tail.markAdded.connect(self._marked)

    def add(self, reading: PositionReading) -> None:
        """Add a reading to the history, also while the plots are hidden."""
        if self._recorder is not None:
            self._recorder.add(reading)
            self._write()

    def _marked(self, mark: Mark) -> None:
        if mark.shape == "warn":
            self.statusText.emit(" · ".join(part for part in mark.words() if part))

    @property
    def history(self) -> LiveHistory:
        """The readings at the open store."""
        return self.time.history

    @property
    def shown(self) -> LiveHistory:
        """The history that is drawn: the store's, or that of a recording."""
        return self.time.shown

    @property
    def at_end(self) -> bool:
        """True while the picture follows the newest reading."""
        return self.time.at_end

    @property
    def cursor(self) -> float | None:
        """The cursor's place in s since the epoch."""
        return self.time.cursor

    def range(self) -> Range:
        """The time that is drawn."""
        return self.time.range()

    # ---- hands -------------------------------------------------------------------------------------------------------

    def pause(self) -> None:
        """Stop the picture, or continue it. Readings are taken either way."""
        self.time.pause()
        self.show()

    def go_live(self) -> None:
        """Return to the newest reading of the store, from a recording too."""
        self.time.go_live()
        self.show()

    def go_to(self, time_ms: int) -> None:
        """Show the time ``time_ms`` (ms) at the right edge."""
        self.time.go_to(time_ms)
        self.show()

    def play(self) -> None:
        """Play the shown time at its own pace."""
        self.time.play()
        self.show()

    def _play_on(self) -> None:
        self.time.play_on()
        self.show()

    def zoom(self, factor: float, seconds: float) -> None:
        """Show ``factor`` as much time, the place at ``seconds`` from the right edge staying where it is."""
        self.time.zoom(factor, seconds)
        self.show()

    def _dragged(self, seconds: float) -> None:
        self.time.drag(seconds)
        self.show()

    def fit(self) -> None:
        """All the time that is held."""
        self.time.fit()
        self.show()

    def _pointed(self, seconds: float | None) -> None:
        if self.time.point(seconds):
            self.show()

    def _picked(self, seconds: float) -> None:
        """A click keeps the cursor where it is, another one lets it go."""
        self.time.pick(seconds)
        self.show()

    # ---- drawing -----------------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Load the plot library when the plots are first looked at."""
        if self._ready or self._loading or self.session is None:
            return
        self._loading = True

        def done() -> None:
            self._ready = True
            self.loaded.emit()

        def failed(error: Exception) -> None:
            self._loading = False
            self.plot.show_nothing(tr("Plots are not available: {error}", error=engine_words(str(error))))

        plot_library.load(self, done, failed)

    @property
    def ready(self) -> bool:
        """True once the plot library is loaded."""
        return self._ready

    def show(self, *, spread: bool = False) -> None:
        """Draw one frame; ``spread``: a part a turn of the loop, and none where the last frame is still being drawn."""
        if not self.time.playing:
            self._player.stop()
        elif not self._player.isActive():
            self._player.start()
        history, shown, reading = self.shown, self.range(), self.time.reading()
        if reading is None or (spread and self._turns.busy):
            return
        steps: list[Step] = [lambda: self._show_bar(history, shown)]
        if self._ready and self._pane.isVisible():
            steps += self._frame(reading, history, shown)
        steps.append(lambda: self.changed.emit(reading))
        self._turns.take(steps, spread=spread)

    def _frame(self, reading: PositionReading, history: LiveHistory, shown: Range) -> list[Step]:
        """Return the steps that draw the plots: five for a lab store, four for others, whose flushes cannot be seen."""
        lab, width = reading.lab, self.plot.live_width()
        if self.rate.isHidden() == lab:
            self.rate.setVisible(lab)

        def draw(plot: LivePlot, name: str, what: str, frame: Callable[[], LiveFrame]) -> Step:
            def step() -> None:
                plot.set_title(name, what)
                plot.show_live(frame())

            return step

        def rates(plot: LivePlot, *, messages: bool) -> Callable[[], LiveFrame]:
            return lambda: rate_frame(history, shown, plot.live_width(), messages=messages)

        steps = [
            draw(
                self.plot,
                tr("Positions"),
                tr("MiB since the window began"),
                lambda: positions_frame(history, shown, width),
            ),
            draw(self.gaps, tr("Gaps"), tr("MiB"), lambda: gaps_frame(history, shown, width, lab=lab)),
        ]
        if lab:
            return [
                *steps,
                draw(self.rate, tr("Put rate"), tr("messages answered a second"), rates(self.rate, messages=True)),
                draw(
                    self.latency,
                    tr("Flush latency"),
                    tr("ms, one dot a flush"),
                    lambda: latency_frame(history, shown, self.latency.live_width()),
                ),
                draw(
                    self.group,
                    tr("Group size"),
                    tr("MiB a flush"),
                    lambda: group_frame(history, shown, self.group.live_width()),
                ),
            ]
        write_note = tr("MiB a second; files do not show flushes")
        return [
            *steps,
            draw(self.latency, tr("Write rate"), write_note, rates(self.latency, messages=False)),
            draw(self.group, tr("Put rate"), tr("messages dispatched a second"), rates(self.group, messages=True)),
        ]

    def _show_bar(self, history: LiveHistory, shown: Range) -> None:
        first_ms, last_ms = history.span
        bar = self.bar
        bar.clock.setText(self.time.clock())
        bar.note.setText(self.time.note())
        marks = [m for m in history.marks if m.upright][-MAX_TICKS:]
        ticks = [Tick(m.time_ms, _ROLES.get(m.shape, "text3"), m.words()[0]) for m in marks]
        bar.track.show_time(history.span, round(shown.end * 1000), ticks)
        for button, on in (
            (bar.pause, self.time.paused),
            (bar.play, self.time.playing),
            (bar.record, self._recorder is not None),
        ):
            if button.isChecked() != on:
                button.setChecked(on)
        bar.live.setEnabled(not self.at_end)
        minutes, seconds = divmod((last_ms - first_ms) // 1000, 60)
        recorded_text = f"{minutes}:{seconds:02d}"
        if self._recorder is not None:
            recorded_text += f" · {size(self._recorder.bytes)}"
        bar.held.setText(recorded_text)

    # ---- recording ---------------------------------------------------------------------------------------------------

    @property
    def recording(self) -> bool:
        """True while readings are written to a file."""
        return self._recorder is not None

    def record(self) -> None:
        """Ask for a file and record to it; again: stop."""
        if self._recorder is not None:
            path = self._recorder.path
            if self._end_recording():
                self.statusText.emit(tr("Recorded to {path}", path=str(path)))
            self.show()
            return
        self.bar.record.setChecked(False)
        name = time.strftime("positions-%Y%m%d-%H%M%S.jsonl")
        dialog = QFileDialog(self._pane, tr("Record to a file"), str(Path.home() / name))
        dialog.setObjectName("positions.recordDialog")
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.selectFile(name)
        dialog.fileSelected.connect(lambda path: self.record_to(Path(path)))
        dialog.open()

    def record_to(self, path: Path) -> None:
        """Record the readings in memory and all further ones to ``path``, which must not lie in a store."""
        session = self.session
        if session is None or in_store(session.path, path):
            self.statusText.emit(tr("A recording cannot be written into the open store."))
            return
        self._end_recording()
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            self.statusText.emit(f"{path}: {engine_words(error.strerror or str(error))}")
            return
        self._recorder = Recorder(path, str(session.path))
        if self.history.last is not None:
            self._recorder.add(self.history.last)
        self._write()
        self.statusText.emit(tr("Recording to {path}", path=str(path)))
        self.show()

    def _write(self) -> None:
        recorder, session = self._recorder, self.session
        if recorder is None or session is None or self._writing:
            return
        self._writing = True

        def done(_answer: object) -> None:
            self._writing = False

        def failed(error: Exception) -> None:
            self._writing = False
            if self._recorder is recorder:  # not one that has begun since then
                self._recorder = None
            self.statusText.emit(tr("The recording ended: {error}", error=engine_words(str(error))))
            self.show()

        session.jobs.read(recorder.write, done, failed)

    def _end_recording(self) -> bool:
        """Write the remaining readings. Return False, and show why, if that fails."""
        recorder, self._recorder = self._recorder, None
        if recorder is not None:
            try:
                recorder.write()
            except OSError as error:
                self.statusText.emit(tr("The recording ended: {error}", error=engine_words(str(error))))
                return False
        return True

    def ask_recording(self) -> None:
        """Ask for a recording and replay it."""
        dialog = QFileDialog(self._pane, tr("Open a recording…"), str(Path.home()))
        dialog.setObjectName("positions.loadDialog")
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(lambda path: self.load(Path(path)))
        dialog.open()

    def load(self, path: Path) -> None:
        """Show a recording; the store is looked at all the while."""
        session = self.session
        if session is None:
            return

        def work() -> LiveHistory:
            return fill(LiveHistory(), read_recording(path)[1])

        def done(history: LiveHistory) -> None:
            if session is self.session:
                self.time.show_recording(path.name, history)
                self.show()
                self.statusText.emit(
                    tr_plural(
                        "Recording {name}: {n:,} sample",
                        "Recording {name}: {n:,} samples",
                        name=path.name,
                        n=len(history),
                    )
                )

        session.jobs.read(work, done, lambda error: self.statusText.emit(str(error)))
