"""Pipeline jobs in the window: listed while they run, confirmed at the end, and their results opened."""

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
from viewer.shell.pipeline_jobs import WindowPipeline


class FakeJobRuns(QObject):
    """Jobs whose states the test sets."""

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
    """A fake window with the parts that pipeline jobs use."""

    def __init__(self) -> None:
        super().__init__()
        self.jobs = Jobs()
        self.session: Any = None
        self.closed = False
        self.messages: list[str] = []
        self.say = self.messages.append
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
    """Return the list of stores to open beside the window's."""
    return []


@pytest.fixture
def room(fake_window: Window, beside: list[Path]) -> WindowPipeline:
    return WindowPipeline(fake_window, beside.append)  # type: ignore[arg-type]


@pytest.fixture
def runs(room: WindowPipeline) -> Any:
    return room.runs


def test_a_job_is_listed_as_running_work_until_it_ends(
    room: WindowPipeline, runs: FakeJobRuns, fake_window: Window
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
    enabled_before = fake_window.enabled
    runs.over(job, 130)
    assert fake_window.jobs.list == []
    assert fake_window.messages == ["verify has ended: cancelled"]
    assert fake_window.enabled == enabled_before + 1


def test_an_ended_job_is_not_listed(room: WindowPipeline, runs: FakeJobRuns, fake_window: Window) -> None:
    job = runs.start("verify")
    runs.over(job)
    runs.jobsChanged.emit()
    assert fake_window.jobs.list == []
    runs.jobChanged.emit(job)
    runs.over(job)
    assert fake_window.jobs.list == [], "what comes late harms nothing"


def test_a_closed_window_gets_no_messages(room: WindowPipeline, runs: FakeJobRuns, fake_window: Window) -> None:
    job = runs.start("verify")
    fake_window.closed = True
    runs.over(job)
    assert (fake_window.jobs.list, fake_window.messages) == ([], [])


# ---- the end of the window -------------------------------------------------------------------------------------------


def test_each_running_job_is_a_sentence_of_the_question(
    room: WindowPipeline, runs: FakeJobRuns, fake_window: Window
) -> None:
    assert room.running_in_words() == []
    runs.start("verify").take_all(lines.verify([], ended=False), 101.0)
    runs.start("stats")
    runs.over(runs.start("export"))
    running = room.running_in_words()
    assert any(line.startswith("verify: 58 of 108 tasks") for line in running)
    assert "stats: Spark is starting" in running
    assert not any(line.startswith("export") for line in running)


def test_jobs_end_after_the_window_closes(
    room: WindowPipeline, runs: FakeJobRuns, fake_window: Window, run: Any
) -> None:
    runs.start("verify")

    async def close() -> None:
        fake_window.close()
        assert fake_window.closed
        await fake_window.jobs.drain()

    run(close())
    assert runs.ends == 1


# ---- requests of a view --------------------------------------------------------------------------------------------


def test_a_view_shows_these_jobs_and_opens_its_requests(
    room: WindowPipeline, runs: FakeJobRuns, fake_window: Window, beside: list[Path], monkeypatch: pytest.MonkeyPatch
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
