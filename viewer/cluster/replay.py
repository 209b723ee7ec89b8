"""Time bar under the view: shown time, going back, recording to a file and replaying one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, QTimer, Signal
from PySide6.QtWidgets import QFileDialog, QWidget

from viewer.cluster.rebalance_words import mark_words
from viewer.look.assets import tr
from viewer.look.formats import clock, size, span
from viewer.widgets.time_bar import Tick, TimeBar

if TYPE_CHECKING:
    from viewer.cluster.watch import ClusterWatch

PLAY_INTERVAL_MS = 500
"""Ms between two shown times of a replay."""


class Replay(QObject):
    """Emits ``timeChanged(ms)`` to show another time, ``statusText(words)`` for the status bar."""

    timeChanged = Signal(object)
    statusText = Signal(str)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._parent = parent
        self.watch: ClusterWatch | None = None
        self.bar = TimeBar("cluster")
        self.bar.pause.setToolTip(tr("Pause or resume reading (Space)"))
        self.bar.pause.setAccessibleName(self.bar.pause.toolTip())
        self.bar.record.clicked.connect(lambda _on: self.ask_record())
        self.bar.load.clicked.connect(lambda _on: self.ask_recording())
        self.bar.play.clicked.connect(lambda _on: self.play())
        self.bar.track.moved.connect(self.timeChanged)
        self.player = QTimer(self, interval=PLAY_INTERVAL_MS)
        self.player.timeout.connect(self.play_on)

    def set_watch(self, watch: ClusterWatch) -> None:
        """Set the watch of this window."""
        self.watch = watch

    # ---- hands -------------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Stop the replay."""
        self.player.stop()

    def play(self) -> None:
        """Replay from the shown time at original speed; again: stop."""
        model = self.watch.model if self.watch is not None else None
        if model is None or not model.readings:
            return
        if self.player.isActive():
            self.player.stop()
            self.show_bar()
            return
        self.player.start()
        at_end = model.shown_time_ms is None or model.shown_time_ms >= model.span[1]
        self.timeChanged.emit(model.span[0] if at_end else model.shown_time_ms)

    def play_on(self) -> None:
        """Advance the replay by one interval."""
        model = self.watch.model if self.watch is not None else None
        if model is None or not model.readings:
            self.player.stop()
            return
        time_ms = (model.shown_time_ms or model.span[0]) + PLAY_INTERVAL_MS
        if time_ms >= model.span[1]:
            self.player.stop()
        self.timeChanged.emit(time_ms)

    def ask_record(self) -> None:
        """Ask for a file and record to it; again: stop."""
        watch = self.watch
        self.show_bar()
        if watch is None or watch.model.state is None:
            return
        if watch.recorder is not None:
            path = watch.recorder.path
            watch.record(None)
            self.statusText.emit(tr("Recorded to {path}", path=str(path)))
            return
        dialog = file_dialog(self._parent, tr("Record the cluster"), "cluster.record.dialog", "cluster.jsonl")
        dialog.fileSelected.connect(lambda path: watch.record(Path(path)))
        dialog.open()

    def ask_recording(self) -> None:
        """Ask for the recording to open."""
        watch = self.watch
        if watch is not None:
            dialog = file_dialog(self._parent, tr("Open a recording of a cluster"), "cluster.load.dialog", "")
            dialog.fileSelected.connect(lambda path: watch.load(Path(path)))
            dialog.open()

    def show_bar(self) -> None:
        """Show the present time within the stored readings, with the marks."""
        bar, watch = self.bar, self.watch
        if watch is None:
            return
        model, recorder = watch.model, watch.recorder
        checked = (
            (bar.pause, model.status == "paused"),
            (bar.play, self.player.isActive()),
            (bar.record, recorder is not None),
        )
        for button, is_checked in checked:
            if button.isChecked() != is_checked:
                button.setChecked(is_checked)
        bar.pause.setEnabled(watch.runs or model.status == "paused")
        bar.live.setEnabled(bool(model.recording) or model.shown_time_ms is not None)
        for button in (bar.record, bar.play, bar.end):
            button.setEnabled(model.state is not None)
        for part in (bar.track, bar.live):
            part.setVisible(model.state is not None)
        if model.state is None:
            return
        begin_ms, end_ms = model.span
        time_ms = model.state.time_ms
        bar.clock.setText(clock(time_ms)[:10])
        if model.recording:
            bar.note.setText(tr("recording {name}", name=model.recording))
        else:
            bar.note.setText(
                tr("live") if model.shown_time_ms is None else tr("{span} before live", span=span(end_ms - time_ms))
            )
        ticks = [
            Tick(
                time_mark.time_ms,
                "error" if time_mark.kind in {"left", "gone"} else "note",
                mark_words(model, time_mark),
            )
            for time_mark in model.marks
            if time_mark.time_ms >= begin_ms
        ]
        bar.track.show_time((begin_ms, max(end_ms, begin_ms + 1)), time_ms, ticks)
        minutes, seconds = divmod((end_ms - begin_ms) // 1000, 60)
        duration = f"{minutes}:{seconds:02d}"
        bar.held.setText(f"{duration} · {size(recorder.bytes)}" if recorder is not None else duration)


def file_dialog(parent: QWidget, title: str, name: str, file: str) -> QFileDialog:
    """Return a dialog for a file to write, named ``file``; without a name, for one to open."""
    dialog = QFileDialog(parent, title, str(Path.home() / file))
    dialog.setObjectName(name)
    if file:
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix(Path(file).suffix.removeprefix("."))
    else:
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    return dialog
