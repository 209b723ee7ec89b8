"""The pipeline view with jobs that do not run: the shown job, its actions, and its links."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pipeline_lines as lines
import pytest
from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QGuiApplication

from viewer.look.topic_colours import TopicColours
from viewer.pipeline.pane import SLIM_BELOW, PipelinePane
from viewer.pipeline.request import JobRequest
from viewer.pipeline.state import JobState
from viewer.runtime import places
from viewer.runtime.places import Place

STORE = Path("/data/orders/store")


class FakeJobRuns(QObject):
    """Jobs whose states the test sets."""

    jobsChanged = Signal()  # noqa: N815  Qt spells signals so
    jobChanged = Signal(object)  # noqa: N815  Qt spells signals so
    ended = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.jobs: list[JobState] = []
        self.cancelled: list[JobState] = []

    def start(self, job_request: JobRequest) -> JobState:
        state = JobState(len(self.jobs) + 1, job_request, 1_795_248_000.0, 100.0)
        self.jobs = [state, *self.jobs]
        self.jobsChanged.emit()
        return state

    def cancel(self, job: JobState) -> None:
        self.cancelled.append(job)
        job.stopping = True

    def forget_ended(self) -> None:
        self.jobs = [job for job in self.jobs if job.running]
        self.jobsChanged.emit()

    def end(self, job: JobState, records: list[dict[str, Any]], code: int = 0) -> None:
        job.take_all(records, 101.0)
        job.end(code, 103.0)
        self.jobChanged.emit(job)
        self.jobsChanged.emit()
        self.ended.emit(job)


def session(path: Path = STORE) -> Any:
    return SimpleNamespace(path=path, jobs=SimpleNamespace(read=lambda *_arguments: None), colours=TopicColours())


@pytest.fixture
def runs(qapp: object) -> FakeJobRuns:
    return FakeJobRuns()


@pytest.fixture
def pane(themed_app: object, runs: FakeJobRuns) -> Iterator[PipelinePane]:
    pipeline_pane = PipelinePane()
    pipeline_pane.resize(1500, 900)
    pipeline_pane.set_runs(runs)  # type: ignore[arg-type]
    pipeline_pane.set_session(session())
    yield pipeline_pane
    pipeline_pane.set_session(None)
    pipeline_pane.deleteLater()


def links(pane: PipelinePane) -> tuple[list[Place], list[tuple[str, str]], list[str]]:
    """Return the places opened in the open store, in windows of their own, and beside it."""
    emitted: list[Place] = []
    elsewhere: list[tuple[str, str]] = []
    beside: list[str] = []
    pane.placeRequested.connect(emitted.append)
    pane.besideRequested.connect(lambda store, place: elsewhere.append((store, place)))
    pane.compareRequested.connect(beside.append)
    return emitted, elsewhere, beside


# ---- which job is shown ----------------------------------------------------------------------------------------------


def test_before_the_first_job_the_view_explains_jobs(pane: PipelinePane) -> None:
    assert pane._pages.currentIndex() == 0
    assert pane.status() == "No job runs."
    assert "pipeline.cancel" not in pane.commands()
    assert set(pane.commands()) == {"pipeline.run", "pipeline.copy"}


def test_a_job_that_is_run_is_shown_and_noted_with_its_command(pane: PipelinePane, runs: FakeJobRuns) -> None:
    noted: list[tuple[Any, ...]] = []
    pane.operationDone.connect(lambda *reported: noted.append(reported))
    job_request = JobRequest("verify", (str(STORE),))
    pane.run(job_request)
    assert pane.job is runs.jobs[0]
    assert pane._pages.currentIndex() == 1
    assert noted == [("pipeline.run", "Run a pipeline job", {"job": "verify"}, job_request.command())]
    assert pane.status() == "verify runs in its own process; the window stays free."
    assert "pipeline.cancel" in pane.commands()


def test_the_newest_job_is_shown_after_the_shown_one_is_removed(pane: PipelinePane, runs: FakeJobRuns) -> None:
    first_job = runs.start(JobRequest("verify", (str(STORE),)))
    second_job = runs.start(JobRequest("stats", (str(STORE),)))
    pane.show_job(first_job)
    assert pane.jobs_head.note.text() == "2 running"
    runs.end(first_job, lines.verify([]))
    assert pane.job is first_job, "it stays as it ends"
    runs.forget_ended()
    assert pane.job is second_job
    runs.end(second_job, lines.stats(4))
    runs.forget_ended()
    assert pane.job is None
    assert pane._pages.currentIndex() == 0


def test_cancelling_is_shown_and_an_ended_job_is_left_alone(pane: PipelinePane, runs: FakeJobRuns) -> None:
    pane.cancel()
    job = runs.start(JobRequest("verify", (str(STORE),)))
    pane.show_job(job)
    assert pane.head.cancel.text() == "Cancel"
    pane.head.cancel.click()
    assert pane.head.cancel.text() == "End now"
    pane.head.cancel.click()
    assert runs.cancelled == [job, job]
    runs.end(job, [], 130)
    assert pane.head.cancel.isHidden()
    pane.cancel()
    assert runs.cancelled == [job, job]
    assert pane.status() == "verify: cancelled"


def test_changes_of_another_job_keep_the_shown_one(pane: PipelinePane, runs: FakeJobRuns) -> None:
    shown = runs.start(JobRequest("verify", (str(STORE),)))
    pane.show_job(shown)
    other_job = runs.start(JobRequest("stats", (str(STORE),)))
    pane.show_job(shown)
    title = pane.head.head.title.text()
    runs.end(other_job, lines.stats(4))
    assert pane.job is shown
    assert pane.head.head.title.text() == title
    assert not pane.aside.isHidden(), "the newest statistics stand beside it"


def test_a_narrow_view_hides_the_statistics_beside(pane: PipelinePane, runs: FakeJobRuns) -> None:
    runs.end(runs.start(JobRequest("stats", (str(STORE),))), lines.stats(4))
    pane.show_job(runs.start(JobRequest("verify", (str(STORE),))))
    assert not pane.aside.isHidden()
    pane.resize(SLIM_BELOW - 200, 900)
    pane._fit()
    assert pane.aside.isHidden()


def test_a_place_chooses_only_an_existing_job_in_the_form(pane: PipelinePane) -> None:
    """``pipeline:nonsense`` left the form without a job, and running the command raised an error."""
    pane.show_place(Place("pipeline", name="rebuild"))
    assert pane.form.job_request().job == "rebuild"
    for name in ("nonsense", ""):
        pane.show_place(Place("pipeline", name=name))
        assert pane.form.job_request().job == "rebuild"
    pane.commands()["pipeline.copy"]()
    assert QGuiApplication.clipboard().text().startswith("storescope pipeline rebuild ")


# ---- links --------------------------------------------------------------------------------------------------


def test_a_place_of_the_open_store_opens_here_and_others_in_their_window(pane: PipelinePane, runs: FakeJobRuns) -> None:
    opened_here, elsewhere, _ = links(pane)
    place = places.log(640)
    pane.show_job(runs.start(JobRequest("verify", (str(STORE),))))
    pane._follow(place, "")
    pane._follow(place, str(STORE.parent))
    pane._follow(place, "/data/other")
    pane._follow("no place", "")
    assert opened_here == [place, place], "the folder that holds ``store`` names it, too"
    assert elsewhere == [("/data/other", "log:640")]


@pytest.mark.parametrize(
    ("reads", "target"),
    [((str(STORE),), "here"), (("/data/other",), "/data/other"), (("/data/*",), "here"), (("/a", "/b"), "here")],
)
def test_a_place_without_a_store_belongs_to_the_jobs_input(
    pane: PipelinePane, runs: FakeJobRuns, reads: tuple[str, ...], target: str
) -> None:
    opened_here, elsewhere, _ = links(pane)
    pane.show_job(runs.start(JobRequest("verify", reads)))
    pane._follow(places.log(640), "")
    assert (opened_here, elsewhere) == (([places.log(640)], []) if target == "here" else ([], [(target, "log:640")]))


def test_without_an_open_store_every_place_opens_one(pane: PipelinePane, runs: FakeJobRuns) -> None:
    opened_here, elsewhere, _ = links(pane)
    pane.show_job(runs.start(JobRequest("verify", (str(STORE),))))
    pane.set_session(None)
    pane._follow(places.log(640), "")
    assert (opened_here, elsewhere) == ([], [(str(STORE), "log:640")])


def test_a_written_store_opens_alone_or_beside_the_open_one(pane: PipelinePane, runs: FakeJobRuns) -> None:
    _, elsewhere, beside = links(pane)
    job = runs.start(JobRequest("rebuild", (str(STORE),), out="/data/asked"))
    pane.show_job(job)
    assert pane.result_buttons.isHidden(), "nothing is written yet"
    runs.end(job, lines.rebuild(Path("/data/built")))
    assert pane.written.text() == "Written: /data/built"
    pane.open_new.click()
    pane.open_beside.click()
    assert (elsewhere, beside) == ([("/data/built", "queue")], ["/data/built"])


def test_an_imported_store_opens_at_its_log_and_an_export_is_no_store(pane: PipelinePane, runs: FakeJobRuns) -> None:
    _, elsewhere, _ = links(pane)
    for name in ("import", "export"):
        job = runs.start(JobRequest(name, ("/exports/one",), out="/data/made"))
        pane.show_job(job)
        runs.end(job, [lines.summary(name, out="/data/made")])
        assert not pane.result_buttons.isHidden()
        assert pane.open_new.isHidden() is (name == "export")
        if name == "import":
            pane.open_new.click()
    assert elsewhere == [("/data/made", "log")]


def test_a_result_is_compared_only_while_a_store_is_open(pane: PipelinePane, runs: FakeJobRuns) -> None:
    """The button kept the state from the job's end, even if the store was closed or another one was opened since."""
    job = runs.start(JobRequest("rebuild", (str(STORE),), out="/data/built"))
    pane.show_job(job)
    runs.end(job, lines.rebuild(Path("/data/built")))
    assert not pane.open_beside.isHidden()
    pane.set_session(None)
    assert pane.open_beside.isHidden()
    assert not pane.open_new.isHidden()
    pane.set_session(session())
    assert not pane.open_beside.isHidden()


def test_a_failed_job_has_no_output(pane: PipelinePane, runs: FakeJobRuns) -> None:
    job = runs.start(JobRequest("rebuild", (str(STORE),), out="/data/built"))
    pane.show_job(job)
    job.say("storescope: no space left")
    runs.end(job, [], 3)
    assert pane.result_buttons.isHidden()
    assert pane.status() == "rebuild: no space left"


# ---- figures and colours ---------------------------------------------------------------------------------------------


def test_topics_have_the_colours_of_their_own_store(pane: PipelinePane, runs: FakeJobRuns) -> None:
    own_job = runs.start(JobRequest("stats", (str(STORE),)))
    pane.show_job(own_job)
    runs.end(own_job, lines.stats(4))
    assert pane.session is not None
    assert pane.topic_colours is pane.session.colours
    other_job = runs.start(JobRequest("stats", ("/data/other",)))
    pane.show_job(other_job)
    runs.end(other_job, lines.stats(4))
    assert pane.topic_colours is not pane.session.colours


def test_areas_and_rates_are_drawn_for_jobs_with_counts(pane: PipelinePane, runs: FakeJobRuns) -> None:
    job = runs.start(JobRequest("verify", (str(STORE),)))
    pane.show_job(job)
    assert (pane._areas.isHidden(), pane.rates.isHidden()) == (True, True)
    counts = runs.start(JobRequest("stats", (str(STORE),)))
    pane.show_job(counts)
    assert (pane._areas.isHidden(), pane.rates.isHidden()) == (False, False), "while it counts, too"
    runs.end(counts, lines.stats(4))
    pane.show_job(job)
    assert (pane._areas.isHidden(), pane.rates.isHidden()) == (True, False)


def test_areas_link_to_their_queue_or_topic(pane: PipelinePane, runs: FakeJobRuns) -> None:
    opened_here, _, _ = links(pane)
    pane._area_followed(("OrderPaid", "1"))
    counts = runs.start(JobRequest("stats", (str(STORE),)))
    pane.show_job(counts)
    runs.end(counts, lines.stats(4))
    pane.group.choose("statsQueue")
    pane._area_followed(())
    pane._area_followed(("OrderPaid", "1"))
    pane._area_followed(("OrderPaid", "others"))
    assert opened_here == [places.queue("OrderPaid", 1), places.queue("OrderPaid", None)]
    pane.group.choose("statsTag")
    pane._area_followed(("OrderPaid", "1"))
    assert len(opened_here) == 2, "a tag is no queue"
