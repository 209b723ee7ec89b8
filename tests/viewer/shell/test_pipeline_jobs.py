"""Pipeline jobs as the window sees them: listed while they run, asked about at the end, and opened where they led."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pipeline_lines as lines
import pytest
from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import QApplication, QMainWindow

from viewer.pipeline.request import JobRequest
from viewer.pipeline.state import JobState
from viewer.runtime.jobs import Jobs
from viewer.shell import pipeline_jobs as module
from viewer.shell.pipeline_jobs import PipelineRoom


class FakeJobRuns(QObject):
    """Jobs that stand as a test says."""

    jobsChanged = Signal()  # noqa: N815  Qt spells signals so
    jobChanged = Signal(object)  # noqa: N815  Qt spells signals so
    ended = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.jobs: list[JobState] = []
        self.cancelled: list[JobState] = []
        self.ends = 0

    @property
    def running(self) -> bool:
        return any(job.running for job in self.jobs)

    def start(self, name: str) -> JobState:
        state = JobState(len(self.jobs) + 1, JobRequest(name, ("/data/store",)), 1_795_248_000.0, 100.0)
        self.jobs = [state, *self.jobs]
        self.jobsChanged.emit()
        return state

    def over(self, job: JobState, code: int = 0) -> None:
        job.end(code, 103.0)
        self.ended.emit(job)

    def cancel(self, job: JobState) -> None:
        self.cancelled.append(job)

    async def end(self) -> None:
        self.ends += 1


class Window(QMainWindow):
    """As much of a window as the room asks for."""

    def __init__(self) -> None:
        super().__init__()
        self.jobs = Jobs()
        self.session: Any = None
        self.closed = False
        self.said: list[str] = []
        self.say = self.said.append
        self.enabled = 0

    def enable(self) -> None:
        self.enabled += 1

    def closeEvent(self, event: QCloseEvent) -> None:  # noqa: N802
        self.closed = True
        super().closeEvent(event)


@pytest.fixture
def fake_window(run: object, monkeypatch: pytest.MonkeyPatch) -> Iterator[Window]:
    monkeypatch.setattr(module, "PipelineRuns", FakeJobRuns)
    window = Window()
    window.show()
    yield window
    window.jobs.close()
    window.deleteLater()
    QApplication.sendPostedEvents(None, 52)  # DeferredDelete


@pytest.fixture
def beside() -> list[Path]:
    """Stores that were to be opened beside the window's."""
    return []


@pytest.fixture
def room(fake_window: Window, beside: list[Path]) -> PipelineRoom:
    return PipelineRoom(fake_window, beside.append)  # type: ignore[arg-type]


@pytest.fixture
def runs(room: PipelineRoom) -> Any:
    return room.runs


def test_a_job_is_listed_among_the_work_under_way_until_it_ends(
    room: PipelineRoom, runs: FakeJobRuns, fake_window: Window
) -> None:
    job = runs.start("verify")
    runs.jobsChanged.emit()
    (shown,) = fake_window.jobs.list
    assert (shown.title, shown.part) == ("verify", None)
    assert shown.stays, "another store leaves it alone"
    job.take_all(lines.verify([], ended=False), 101.0)
    runs.jobChanged.emit(job)
    assert shown.part == job.part
    assert "58 of 108 tasks" in shown.note
    shown.cancel()
    assert runs.cancelled == [job]
    before = fake_window.enabled
    runs.over(job, 130)
    assert fake_window.jobs.list == []
    assert fake_window.said == ["verify has ended: cancelled"]
    assert fake_window.enabled == before + 1


def test_a_job_that_had_ended_before_is_not_listed(room: PipelineRoom, runs: FakeJobRuns, fake_window: Window) -> None:
    job = runs.start("verify")
    runs.over(job)
    runs.jobsChanged.emit()
    assert fake_window.jobs.list == []
    runs.jobChanged.emit(job)
    runs.over(job)
    assert fake_window.jobs.list == [], "what comes late harms nothing"


def test_to_a_window_that_is_closed_nothing_is_said(room: PipelineRoom, runs: FakeJobRuns, fake_window: Window) -> None:
    job = runs.start("verify")
    fake_window.closed = True
    runs.over(job)
    assert (fake_window.jobs.list, fake_window.said) == ([], [])


# ---- the end of the window -------------------------------------------------------------------------------------------


def test_each_job_that_runs_is_a_sentence_of_the_question(
    room: PipelineRoom, runs: FakeJobRuns, fake_window: Window
) -> None:
    assert room.running_in_words() == []
    runs.start("verify").take_all(lines.verify([], ended=False), 101.0)
    runs.start("stats")
    runs.over(runs.start("export"))
    running = room.running_in_words()
    assert any(line.startswith("verify: 58 of 108 tasks") for line in running)
    assert "stats: Spark is starting" in running
    assert not any(line.startswith("export") for line in running)


def test_jobs_are_ended_behind_a_window_that_closes(
    room: PipelineRoom, runs: FakeJobRuns, fake_window: Window, run: Any
) -> None:
    runs.start("verify")

    async def close() -> None:
        fake_window.close()
        assert fake_window.closed
        await fake_window.jobs.drain()

    run(close())
    assert runs.ends == 1


# ---- what a view asks for --------------------------------------------------------------------------------------------


def test_a_view_shows_these_jobs_and_what_it_asks_for_opens(
    room: PipelineRoom, runs: FakeJobRuns, fake_window: Window, beside: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Pane(QObject):
        besideRequested = Signal(str, str)  # noqa: N815
        compareRequested = Signal(str)  # noqa: N815
        commandsChanged = Signal()  # noqa: N815
        shown: Any = None

        def set_runs(self, shown: Any) -> None:
            self.shown = shown

    opened: list[tuple[Path, str]] = []
    monkeypatch.setattr(module, "PipelinePane", Pane)
    monkeypatch.setattr(module, "open_beside", lambda _window, path, place: opened.append((path, place)))
    pane: Any = Pane()
    room.wire(pane)
    assert pane.shown is runs
    pane.besideRequested.emit("", "log:5")
    assert opened == [], "without a store there is nothing that could be meant"
    fake_window.session = SimpleNamespace(path=Path("/data/store"))
    pane.besideRequested.emit("", "log:5")
    pane.besideRequested.emit("/data/built", "queue")
    assert opened == [(Path("/data/store"), "log:5"), (Path("/data/built"), "queue")]
    pane.compareRequested.emit("/data/built")
    assert beside == [Path("/data/built")]
    pane.commandsChanged.emit()
    assert fake_window.enabled == 1
