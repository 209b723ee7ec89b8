"""Watching a cluster in a window: start, pause, retry and stop; late results are ignored."""

from __future__ import annotations

import pytest
import sample_clusters as made
from sample_clusters import FakeReaderProcess

from engine.client.events import Started
from engine.errors import UsageError
from viewer.cluster.access import AccessFiles
from viewer.cluster.clients_process import ClientActivity
from viewer.cluster.cluster_model import NoAddress, Reading
from viewer.cluster.lessons import LESSONS, LessonRun
from viewer.cluster.own_clients import OwnClients
from viewer.cluster.watch import WATCH_TARGET, ClusterWatch
from viewer.runtime.settings import Settings
from viewer.runtime.worker import Cancelled


@pytest.fixture
def works() -> FakeReaderProcess:
    return FakeReaderProcess()


@pytest.fixture
def watch(works, themed_app) -> ClusterWatch:
    return ClusterWatch(works, lambda work, done, _failed: done(work()))


def test_a_watch_reads_the_given_addresses_and_keeps_the_readings(watch, works):
    received: list[str] = []
    watch.readingAdded.connect(lambda: received.append("looked"))
    watch.changed.connect(lambda: received.append("changed"))
    watch.requestKindAdded.connect(lambda question: received.append(question.name))
    watch.begin("127.0.0.1")
    assert works.requests == [(WATCH_TARGET, (("127.0.0.1:9876",), 1.0, AccessFiles()))]
    assert watch.runs
    works.items(Reading(made.small(), made.ASKED))
    works.items(Reading(made.small(5), made.ASKED))
    assert received == ["changed", "GET_BROKER_CLUSTER_INFO", "GET_TOPIC_STATS_INFO", "looked", "looked"]
    assert watch.model.unfiltered.topics


def test_readings_after_a_stop_are_ignored(watch, works):
    watch.begin("a:1")
    late = works.items
    watch.end()
    assert works.cancelled == [1]
    late(Reading(made.small()))
    assert watch.model.state is None
    assert watch.model.status == "off"
    works.finished(None, Cancelled())
    assert not watch.runs


def test_a_paused_watch_continues_with_the_same_picture(watch, works):
    watch.pause()
    assert works.requests == []
    watch.begin("a:1")
    works.items(Reading(made.small()))
    watch.pause()
    assert watch.model.status == "paused"
    assert watch.model.stale
    watch.pause()
    assert watch.runs
    assert watch.model.state is not None
    watch.set_interval(5.0)
    assert works.requests[-1][1] == (("a:1",), 5.0, AccessFiles())
    watch.set_interval(5.0)
    assert len(works.requests) == 3


def test_an_ended_worker_is_a_failure_that_can_be_retried(watch, works):
    watch.begin("a:1")
    works.finished(None, RuntimeError("The worker process ended"))
    assert (watch.model.status, watch.model.fault) == ("failed", "The worker process ended")
    assert not watch.runs
    watch.again()
    assert watch.runs
    assert watch.model.fault == ""


def test_an_invalid_address_is_refused_and_the_watch_continues(watch, works):
    watch.begin("a:1")
    with pytest.raises(NoAddress):
        watch.begin("a:port")
    assert watch.runs
    assert works.cancelled == []


def test_readings_are_recorded_and_a_recording_is_shown(watch, works, tmp_path):
    emitted = []
    watch.statusText.connect(emitted.append)
    watch.begin(made.NAMES)
    works.items(Reading(made.small(0)))
    file = tmp_path / "r.jsonl"
    watch.record(file)
    works.items(Reading(made.small(1)))
    assert watch.recorder is not None
    assert watch.recorder.count == 2
    watch.record(None)
    works.items(Reading(made.small(2)))
    watch.load(file)
    assert not watch.runs
    assert (watch.model.status, len(watch.model.readings)) == ("replay", 2)
    watch.again()
    assert watch.model.recording == ""
    assert watch.model.address == made.NAMES
    assert emitted == []


def test_unwritable_and_unreadable_files_are_reported(works, themed_app, tmp_path):
    def run(work, done, failed):
        try:
            done(work())
        except (OSError, ValueError) as error:
            failed(error)

    watch = ClusterWatch(works, run)
    emitted = []
    watch.statusText.connect(emitted.append)
    watch.begin(made.NAMES)
    works.items(Reading(made.small(0)))
    watch.record(tmp_path / "nowhere" / "r.jsonl")
    assert watch.recorder is None
    assert "nowhere" in emitted[-1]
    watch.load(tmp_path / "nothing")
    assert "nothing" in emitted[-1]


def test_a_closing_window_writes_its_recording(works, themed_app, tmp_path):
    watch = ClusterWatch(works, lambda _work, _done, _failed: None)
    watch.begin(made.NAMES)
    works.items(Reading(made.small(0)))
    watch.record(tmp_path / "r.jsonl")
    works.items(Reading(made.small(1)))
    assert not (tmp_path / "r.jsonl").exists()
    watch.close()
    assert (tmp_path / "r.jsonl").read_text("utf-8").count("\n") == 3
    assert not watch.runs


def test_brokers_of_ended_lessons_are_dropped(watch, works, monkeypatch):
    monkeypatch.setattr(OwnClients, "_send_command", lambda _self, *_command: None)
    watch.begin("a:1")
    works.items(Reading(made.small()))
    names = {broker.name for broker in watch.model.state.brokers}
    removed = min(names)
    watch.own.add("broker", ("a:1",), removed, "T", 0)
    works.items(Reading(made.small(1)))
    assert {broker.name for broker in watch.model.state.brokers} == names
    watch.own.stop(1)
    works.items(Reading(made.small(2)))
    assert {broker.name for broker in watch.model.state.brokers} == names - {removed}


def test_events_of_a_lessons_clients_are_kept_by_its_run(watch):
    reports = []
    watch.lessonEventsAdded.connect(lambda: reports.append(1))
    run = watch.lessons["many"] = LessonRun(LESSONS[1], 1)
    run.record.groups.add(run.group)
    watch._on_activity(ClientActivity(events=(Started(1, "c", run.group), Started(1, "c", "another"))))
    watch._on_activity(ClientActivity(sent={"p": 1}))
    assert [event.group for event in run.record.events] == [run.group]
    assert reports == [1]


def test_an_act_is_refused_once_the_declaration_was_taken_back_in_another_window(works, themed_app, tmp_path):
    """A box for sending stayed open while the cluster stopped being declared, and it could still send."""
    settings = Settings(tmp_path)
    watch = ClusterWatch(works, lambda work, done, _failed: done(work()), settings=settings)
    watch.begin(made.NAMES)
    works.items(Reading(made.small(), made.ASKED))
    answers: list[tuple[object, Exception | None]] = []
    watch.ask_own("module:send", (), lambda value, error: answers.append((value, error)))
    assert isinstance(answers.pop()[1], UsageError), "nobody declared it"
    watch.model.declare()
    watch.save_declarations()
    watch.ask_own("module:send", (), lambda value, error: answers.append((value, error)))
    assert works.requests[-1] == ("module:send", ())
    Settings(tmp_path).own_clusters = {}
    watch.ask_own("module:send", (), lambda value, error: answers.append((value, error)))
    assert [request[0] for request in works.requests].count("module:send") == 1
    assert "not declared" in str(answers[-1][1])
