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
from PySide6.QtWidgets import QApplication, QLabel, QMainWindow

from viewer.lab.write_questions import Question
from viewer.pipeline.request import Wish
from viewer.pipeline.state import JobState
from viewer.runtime.jobs import Jobs
from viewer.shell import pipeline_jobs as module
from viewer.shell.pipeline_jobs import QUESTION, PipelineRoom


class Runs(QObject):
    """Jobs that stand as a test says."""

    listed = Signal()
    told = Signal(object)
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
        made = JobState(len(self.jobs) + 1, Wish(name, ("/data/store",)), 1_795_248_000.0, 100.0)
        self.jobs = [made, *self.jobs]
        self.listed.emit()
        return made

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
def made(run: object, monkeypatch: pytest.MonkeyPatch) -> Iterator[Window]:
    monkeypatch.setattr(module, "PipelineRuns", Runs)
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
def room(made: Window, beside: list[Path]) -> PipelineRoom:
    return PipelineRoom(made, beside.append)  # type: ignore[arg-type]


@pytest.fixture
def runs(room: PipelineRoom) -> Any:
    return room.runs


def test_a_job_is_listed_among_the_work_under_way_until_it_ends(room: PipelineRoom, runs: Runs, made: Window) -> None:
    job = runs.start("verify")
    runs.listed.emit()
    (shown,) = made.jobs.list
    assert (shown.title, shown.part) == ("verify", None)
    assert shown.stays, "another store leaves it alone"
    job.take_all(lines.verify([], ended=False), 101.0)
    runs.told.emit(job)
    assert shown.part == job.part
    assert "58 of 108 tasks" in shown.note
    shown.cancel()
    assert runs.cancelled == [job]
    before = made.enabled
    runs.over(job, 130)
    assert made.jobs.list == []
    assert made.said == ["verify has ended: cancelled"]
    assert made.enabled == before + 1


def test_a_job_that_had_ended_before_is_not_listed(room: PipelineRoom, runs: Runs, made: Window) -> None:
    job = runs.start("verify")
    runs.over(job)
    runs.listed.emit()
    assert made.jobs.list == []
    runs.told.emit(job)
    runs.over(job)
    assert made.jobs.list == [], "what comes late harms nothing"


def test_to_a_window_that_is_closed_nothing_is_said(room: PipelineRoom, runs: Runs, made: Window) -> None:
    job = runs.start("verify")
    made.closed = True
    runs.over(job)
    assert (made.jobs.list, made.said) == ([], [])


# ---- the end of the window -------------------------------------------------------------------------------------------


def questions(made: Window) -> list[Question]:
    return made.findChildren(Question, QUESTION)


def test_where_nothing_runs_nobody_is_asked(room: PipelineRoom, runs: Runs, made: Window) -> None:
    assert not room.ask_end()
    runs.over(runs.start("verify"))
    assert not room.ask_end()
    assert questions(made) == []


def test_one_question_names_every_job_and_how_it_stands(room: PipelineRoom, runs: Runs, made: Window) -> None:
    runs.start("verify").take_all(lines.verify([], ended=False), 101.0)
    runs.start("stats")
    runs.over(runs.start("export"))
    assert room.ask_end()
    assert room.ask_end(), "it stands there already"
    (box,) = questions(made)
    said = [label.text() for label in box.findChildren(QLabel)]
    assert any(line.startswith("verify: 58 of 108 tasks") for line in said)
    assert "stats: Spark is starting" in said
    assert not any(line.startswith("export") for line in said)
    box.reject()
    assert not made.closed


def test_who_agrees_closes_the_window_and_its_jobs_are_ended_behind_it(
    room: PipelineRoom, runs: Runs, made: Window, run: Any
) -> None:
    runs.start("verify")

    async def close() -> None:
        assert room.ask_end()
        questions(made)[0].agree.click()
        assert made.closed
        await made.jobs.drain()

    run(close())
    assert runs.ends == 1


class Spontaneous(QCloseEvent):
    """The cross of the window's frame."""

    def spontaneous(self) -> bool:
        return True


def test_the_cross_of_the_window_asks_first_and_the_window_stays(room: PipelineRoom, runs: Runs, made: Window) -> None:
    runs.start("verify")
    event = Spontaneous()
    assert room.eventFilter(made, event), "nobody else hears of it"
    assert not event.isAccepted()
    assert len(questions(made)) == 1
    runs.over(runs.jobs[0])
    assert not room.eventFilter(made, Spontaneous())


# ---- what a view asks for --------------------------------------------------------------------------------------------


def test_a_view_shows_these_jobs_and_what_it_asks_for_opens(
    room: PipelineRoom, runs: Runs, made: Window, beside: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Pane(QObject):
        besideAsked = Signal(str, str)  # noqa: N815
        compareAsked = Signal(str)  # noqa: N815
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
    pane.besideAsked.emit("", "log:5")
    assert opened == [], "without a store there is nothing that could be meant"
    made.session = SimpleNamespace(path=Path("/data/store"))
    pane.besideAsked.emit("", "log:5")
    pane.besideAsked.emit("/data/built", "queue")
    assert opened == [(Path("/data/store"), "log:5"), (Path("/data/built"), "queue")]
    pane.compareAsked.emit("/data/built")
    assert beside == [Path("/data/built")]
    pane.commandsChanged.emit()
    assert made.enabled == 1
