"""Time in the live positions, and recordings: the shown moment, written files, and messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QFileDialog, QWidget
from sample_position_looks import START, look

from viewer.positions.live import LivePositions
from viewer.positions.live_side import export_samples
from viewer.positions.recording import read_recording
from viewer.positions.shown_time import SPAN
from viewer.runtime.live_history import LiveHistory, Mark, fill
from viewer.widgets.live_plot import LivePlot

BEGIN_S = START / 1000
END_S = BEGIN_S + 9.9
"""Of a hundred looks, ten a second."""


class Tail(QObject):
    """A fake of the store's tail."""

    markAdded = Signal(object)  # noqa: N815  Qt spells signals so

    def __init__(self) -> None:
        super().__init__()
        self.history = fill(LiveHistory(), [look(number) for number in range(100)])


class DelayedReads:
    """Reads off the loop that end when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Callable[[], Any], Callable[[Any], None], Callable[[Exception], None]]] = []

    def read(self, work: Callable[[], Any], done: Callable[[Any], None], failed: Callable[[Exception], None]) -> None:
        self.waiting.append((work, done, failed))

    def finish(self) -> None:
        waiting, self.waiting = self.waiting, []
        for work, done, failed in waiting:
            try:
                result = work()
            except Exception as error:  # noqa: BLE001 (as a job hands it on)
                failed(error)
            else:
                done(result)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "store"
    path.mkdir()
    return path


@pytest.fixture
def session(store: Path) -> Any:
    return SimpleNamespace(path=store, tail=Tail(), jobs=DelayedReads())


@pytest.fixture
def live(themed_app: object, session: Any) -> Iterator[LivePositions]:
    parent = QWidget()
    positions = LivePositions(LivePlot("positions.plot", "Positions"), LivePlot("positions.gaps", "Gaps"), parent)
    positions.set_session(session)
    yield positions
    positions.set_session(None)
    parent.deleteLater()


@pytest.fixture
def status_messages(live: LivePositions) -> list[str]:
    """Return the list of messages for the status bar."""
    words: list[str] = []
    live.statusText.connect(words.append)
    return words


# ---- the shown time ------------------------------------------------------------------------------------------


def test_the_newest_sample_is_shown_until_the_user_pauses(live: LivePositions, session: Any) -> None:
    assert live.at_end
    assert (live.range().end, live.range().span) == (END_S, SPAN)
    live.pause()
    assert not live.at_end
    session.tail.history.add(look(120))
    assert live.range().end == END_S, "looks come in, the picture stands"
    live.pause()
    assert live.at_end
    assert live.range().end == BEGIN_S + 12


def test_a_new_sample_is_reported_while_the_picture_is_paused(live: LivePositions) -> None:
    time_ms: list[int] = []
    live.changed.connect(lambda item: time_ms.append(item.time_ms))
    live.go_to(START + 5000)
    live.go_live()
    assert time_ms == [START + 5000, START + 9900]
    assert live.bar.live.isEnabled() is False


def test_the_whole_history_can_be_shown(live: LivePositions) -> None:
    live.go_to(START)
    live.fit()
    assert live.at_end
    assert live.range().span == pytest.approx(END_S - BEGIN_S)


def test_a_click_pins_the_cursor_and_another_releases_it(live: LivePositions) -> None:
    live._pointed(-2.0)
    assert live.cursor == pytest.approx(END_S - 2.0)
    live._picked(-3.0)
    live._pointed(-1.0)
    assert live.cursor == pytest.approx(END_S - 3.0), "it is pinned"
    live._picked(-1.0)
    live._pointed(None)
    assert live.cursor is None


def test_a_replay_from_the_beginning_ends_live(live: LivePositions) -> None:
    live.play()
    assert live.bar.play.isChecked()
    assert live.range().end == BEGIN_S
    live._play_on()
    assert live.range().end == pytest.approx(BEGIN_S + 0.1)
    live.play()
    assert not live.bar.play.isChecked()
    live.go_to(START + 9_850)
    live.play()
    live._play_on()
    assert live.at_end
    assert not live._player.isActive()


def test_another_store_starts_fresh_with_its_own_marks(
    live: LivePositions, session: Any, status_messages: list[str]
) -> None:
    live.go_to(START)
    other_session = SimpleNamespace(path=session.path, tail=Tail(), jobs=DelayedReads())
    live.set_session(other_session)  # type: ignore[arg-type]
    assert live.at_end
    assert live.shown is other_session.tail.history
    mark = Mark(1, START, "warn", "the log was cut")
    session.tail.markAdded.emit(mark)
    assert status_messages == [], "marks of the previous store are ignored"
    other_session.tail.markAdded.emit(mark)
    assert status_messages == ["the log was cut"]
    live.set_session(None)
    assert len(live.shown) == 0


# ---- recordings ------------------------------------------------------------------------------------------------------


def test_samples_are_written_off_the_loop_in_order(
    live: LivePositions, session: Any, status_messages: list[str], tmp_path: Path
) -> None:
    target = tmp_path / "seen.jsonl"
    target.write_text("what stood here before\n")
    live.record_to(target)
    assert live.recording
    session.jobs.finish()
    for number in (100, 101, 102):
        live.add(look(number))
    assert len(session.jobs.waiting) == 1, "one write at a time"
    session.jobs.finish()
    live.add(look(103))
    live.record()
    assert not live.recording
    store, looks = read_recording(target)
    assert store == str(session.path)
    assert [item.time_ms for item in looks] == [START + 100 * number for number in (99, 100, 101, 102, 103)]
    assert status_messages == [f"Recording to {target}", f"Recorded to {target}"]
    session.jobs.finish()
    assert len(read_recording(target)[1]) == 5, "nothing twice"


@pytest.mark.parametrize("way", ["straight", "link", "store by a link", "one file"])
def test_nothing_is_written_into_the_store_under_any_spelling(
    live: LivePositions, session: Any, status_messages: list[str], store: Path, tmp_path: Path, way: str
) -> None:
    """A recording was written beside the bytes of a store opened through a link, and of a single opened log file: the
    target was compared only with the store's own spelling.
    """
    target = store / "seen.jsonl"
    if way == "link":
        (tmp_path / "way").symlink_to(store)
        target = tmp_path / "way" / "seen.jsonl"
    elif way == "store by a link":
        (tmp_path / "way").symlink_to(store)
        session.path = tmp_path / "way"
    elif way == "one file":
        session.path = store / "00000000000000000000"
        session.path.touch()
    live.record_to(target)
    pane: Any = SimpleNamespace(session=session, statusMessage=SimpleNamespace(emit=status_messages.append))
    export_samples(pane, live, target)
    session.jobs.finish()
    assert status_messages == ["A recording cannot be written into the open store."] * 2
    assert not live.recording
    assert not target.exists()


def test_an_unwritable_file_is_reported_and_nothing_is_recorded(
    live: LivePositions, session: Any, status_messages: list[str], tmp_path: Path
) -> None:
    """If an existing file could not be removed, the error was not shown."""
    live.record_to(tmp_path)
    assert not live.recording
    live.record_to(tmp_path / "no folder" / "seen.jsonl")
    session.jobs.finish()
    assert not live.recording
    assert status_messages[0].startswith(f"{tmp_path}: ")
    assert status_messages[-1].startswith("The recording ended: ")
    assert not live.bar.record.isChecked()


def test_a_late_write_error_ends_only_its_own_recording(
    live: LivePositions, session: Any, status_messages: list[str], tmp_path: Path
) -> None:
    """The second recording was ended by the first one's error."""
    first_path = tmp_path / "gone" / "first.jsonl"
    first_path.parent.mkdir()
    live.record_to(first_path)
    first_jobs, session.jobs.waiting = session.jobs.waiting, []
    live.record()
    first_path.unlink()
    first_path.parent.rmdir()
    live.record_to(tmp_path / "second.jsonl")
    live._recorder.add(look(100))  # type: ignore[union-attr]
    first_jobs[0][2](OSError(5, "Input/output error"))
    assert live.recording
    live.record()
    assert len(read_recording(tmp_path / "second.jsonl")[1]) == 2
    assert "The recording ended: [Errno 5] Input/output error" in status_messages


def test_a_recording_with_an_unwritten_end_is_reported_as_failed(
    live: LivePositions, session: Any, status_messages: list[str], tmp_path: Path
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    live.record_to(folder / "seen.jsonl")
    session.jobs.finish()
    (folder / "seen.jsonl").unlink()
    folder.rmdir()
    live.add(look(100))
    live.record()
    assert not live.recording
    assert not any(words.startswith("Recorded to") for words in status_messages)
    assert any(words.startswith("The recording ended: ") for words in status_messages)


def test_a_recording_replaces_the_store_until_the_user_goes_back(
    live: LivePositions, session: Any, status_messages: list[str], tmp_path: Path
) -> None:
    live.record_to(tmp_path / "seen.jsonl")
    live.add(look(130))
    live.record()
    session.jobs.finish()
    live.load(tmp_path / "seen.jsonl")
    session.jobs.finish()
    assert not live.at_end
    assert live.shown is not session.tail.history
    assert status_messages[-1] == "Recording seen.jsonl: 2 samples"
    assert live.range().end == BEGIN_S + 13
    live.pause()
    assert live.range().end == BEGIN_S + 13, "a recording has no end to follow"
    live.go_live()
    assert live.shown is session.tail.history


def test_another_file_is_refused_and_the_store_stays_visible(
    live: LivePositions, session: Any, status_messages: list[str], tmp_path: Path
) -> None:
    (tmp_path / "other.jsonl").write_text("{}\n")
    for name in ("other.jsonl", "absent.jsonl"):
        live.load(tmp_path / name)
        session.jobs.finish()
    assert "expected a recording of positions" in status_messages[0]
    assert "absent.jsonl" in status_messages[1]
    assert live.at_end


def test_a_late_recording_is_not_shown_for_another_store(
    live: LivePositions, session: Any, status_messages: list[str], tmp_path: Path
) -> None:
    live.record_to(tmp_path / "seen.jsonl")
    live.record()
    session.jobs.finish()
    live.load(tmp_path / "seen.jsonl")
    other_session: Any = SimpleNamespace(path=session.path, tail=Tail(), jobs=DelayedReads())
    live.set_session(other_session)
    session.jobs.finish()
    assert live.at_end
    assert live.shown is other_session.tail.history


@pytest.mark.parametrize("ask", ["record", "ask_recording"])
def test_a_closed_dialog_is_deleted(live: LivePositions, ask: str, qtbot: Any) -> None:
    """Every closed dialog stayed in memory, hidden, with its list of files."""
    getattr(live, ask)()
    (dialog,) = live._pane.findChildren(QFileDialog)
    dialog.reject()
    qtbot.waitUntil(lambda: live._pane.findChildren(QFileDialog) == [], timeout=60_000)
