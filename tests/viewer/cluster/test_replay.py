"""The time control of the view: replay, recording start and end, and file dialogs."""

from __future__ import annotations

from pathlib import Path

import pytest
import sample_clusters as made
from PySide6.QtWidgets import QFileDialog, QWidget
from sample_clusters import FakeReaderProcess

from viewer.cluster.cluster_model import Reading
from viewer.cluster.replay import PLAY_INTERVAL_MS, Replay, file_dialog
from viewer.cluster.watch import ClusterWatch


@pytest.fixture
def replay(shown) -> Replay:
    parent = shown(QWidget())
    works = FakeReaderProcess()
    watch = ClusterWatch(works, lambda work, done, _failed: done(work()), parent)
    made_replay = Replay(parent)
    made_replay.set_watch(watch)
    made_replay.timeChanged.connect(lambda position: (watch.model.go_to(position), made_replay.show_bar()))
    watch.begin(made.NAMES)
    for second in range(10):
        works.items(Reading(made.small(second)))
    made_replay.show_bar()
    return made_replay


def test_a_replay_runs_from_the_beginning_to_the_end(replay):
    model = replay.watch.model
    replay.play()
    assert replay.player.isActive()
    assert replay.bar.play.isChecked()
    assert model.state.time_ms == made.BEGUN
    replay.play_on()
    assert model.shown_time_ms == made.BEGUN + PLAY_INTERVAL_MS
    replay.play()
    assert not replay.player.isActive()
    replay.play()
    assert model.shown_time_ms == made.BEGUN + PLAY_INTERVAL_MS, "it goes on where it stood"
    for _ in range(40):
        replay.play_on()
        if not replay.player.isActive():
            break
    assert model.shown_time_ms is None
    assert replay.bar.held.text() == "0:09"


def test_a_recording_is_requested_started_and_ended(replay, tmp_path: Path, monkeypatch):
    opened: list[QFileDialog] = []

    def note(dialog: QFileDialog) -> None:
        opened.append(dialog)

    monkeypatch.setattr(QFileDialog, "open", note)
    emitted = []
    replay.statusText.connect(emitted.append)
    replay.ask_record()
    opened[-1].fileSelected.emit(str(tmp_path / "r.jsonl"))
    replay.show_bar()
    assert replay.bar.record.isChecked()
    assert "·" in replay.bar.held.text()
    replay.ask_record()
    assert emitted == [f"Recorded to {tmp_path / 'r.jsonl'}"]
    replay.ask_recording()
    opened[-1].fileSelected.emit(str(tmp_path / "r.jsonl"))
    replay.show_bar()
    assert replay.bar.note.text() == "recording r.jsonl"
    assert replay.bar.live.isEnabled()


def test_without_a_cluster_nothing_runs(shown):
    replay = Replay(shown(QWidget()))
    replay.show_bar()
    replay.play()
    replay.play_on()
    replay.ask_record()
    replay.ask_recording()
    assert not replay.player.isActive()
    dialog = file_dialog(replay._parent, "Title", "name", "c.md")
    assert dialog.acceptMode() == QFileDialog.AcceptMode.AcceptSave
    assert dialog.defaultSuffix() == "md"
