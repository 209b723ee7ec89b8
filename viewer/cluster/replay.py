"""The strip under the view: the time that is shown, going back, recording to a file and replaying one."""

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

PLAY_MS = 500
"""Ms between two times that are shown while a recording is replayed."""


class Replay(QObject):
    """``went(ms)`` as another time is to be shown, ``said(words)`` for the status bar."""

    went = Signal(object)
    said = Signal(str)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._parent = parent
        self.watch: ClusterWatch | None = None
        self.bar = TimeBar("cluster")
        self.bar.pause.setToolTip(tr("Pause reading, or go on (Space)"))
        self.bar.pause.setAccessibleName(self.bar.pause.toolTip())
        self.bar.record.clicked.connect(lambda _on: self.ask_record())
        self.bar.load.clicked.connect(lambda _on: self.ask_recording())
        self.bar.play.clicked.connect(lambda _on: self.play())
        self.bar.track.moved.connect(self.went)
        self.player = QTimer(self, interval=PLAY_MS)
        self.player.timeout.connect(self.play_on)

    def set_watch(self, watch: ClusterWatch) -> None:
        """The cluster that is looked at."""
        self.watch = watch

    # ---- hands -------------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Time does not run on by itself."""
        self.player.stop()

    def play(self) -> None:
        """Let the time that is shown run on at its own pace, from where it stands; again: stop."""
        model = self.watch.model if self.watch is not None else None
        if model is None or not model.kept:
            return
        if self.player.isActive():
            self.player.stop()
            self.show_bar()
            return
        self.player.start()
        at_end = model.at is None or model.at >= model.span[1]
        self.went.emit(model.span[0] if at_end else model.at)

    def play_on(self) -> None:
        """One step of it."""
        model = self.watch.model if self.watch is not None else None
        if model is None or not model.kept:
            self.player.stop()
            return
        at = (model.at or model.span[0]) + PLAY_MS
        if at >= model.span[1]:
            self.player.stop()
        self.went.emit(at)

    def ask_record(self) -> None:
        """Ask for a file and record to it; again: stop."""
        watch = self.watch
        self.show_bar()
        if watch is None or watch.model.state is None:
            return
        if watch.recorder is not None:
            path = watch.recorder.path
            watch.record(None)
            self.said.emit(tr("Recorded to {path}", path=str(path)))
            return
        dialog = file_dialog(self._parent, tr("Record the cluster"), "cluster.record.dialog", "cluster.jsonl")
        dialog.fileSelected.connect(lambda path: watch.record(Path(path)))
        dialog.open()

    def ask_recording(self) -> None:
        """Ask which recording is to be shown."""
        watch = self.watch
        if watch is not None:
            dialog = file_dialog(self._parent, tr("Open a recording of a cluster"), "cluster.load.dialog", "")
            dialog.fileSelected.connect(lambda path: watch.load(Path(path)))
            dialog.open()

    def show_bar(self) -> None:
        """The time that is shown, within all of which readings are kept, with what happened."""
        bar, watch = self.bar, self.watch
        if watch is None:
            return
        model, recorder = watch.model, watch.recorder
        checked = (
            (bar.pause, model.standing == "paused"),
            (bar.play, self.player.isActive()),
            (bar.record, recorder is not None),
        )
        for button, on in checked:
            if button.isChecked() != on:
                button.setChecked(on)
        bar.pause.setEnabled(watch.runs or model.standing == "paused")
        bar.live.setEnabled(bool(model.recording) or model.at is not None)
        for button in (bar.record, bar.play, bar.end):
            button.setEnabled(model.state is not None)
        for part in (bar.track, bar.live):
            part.setVisible(model.state is not None)
        if model.state is None:
            return
        low, high = model.span
        at = model.state.at
        bar.clock.setText(clock(at)[:10])
        if model.recording:
            bar.note.setText(tr("recording {name}", name=model.recording))
        else:
            bar.note.setText(tr("live") if model.at is None else tr("{span} before live", span=span(high - at)))
        ticks = [
            Tick(one.at, "error" if one.what in {"left", "gone"} else "note", mark_words(model, one))
            for one in model.marks
            if one.at >= low
        ]
        bar.track.show_time((low, max(high, low + 1)), at, ticks)
        minutes, seconds = divmod((high - low) // 1000, 60)
        held = f"{minutes}:{seconds:02d}"
        bar.held.setText(f"{held} · {size(recorder.bytes)}" if recorder is not None else held)


def file_dialog(parent: QWidget, title: str, name: str, file: str) -> QFileDialog:
    """Asks for a file to write, named ``file``; without a name for one to open."""
    dialog = QFileDialog(parent, title, str(Path.home() / file))
    dialog.setObjectName(name)
    if file:
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix(Path(file).suffix.removeprefix("."))
    else:
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    return dialog
