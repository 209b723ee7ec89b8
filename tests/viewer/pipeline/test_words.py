"""Texts of a job: its line, its result, its head, its input and output."""

from __future__ import annotations

from dataclasses import replace

import pytest

from viewer.pipeline.preview import JobPreview
from viewer.pipeline.request import JobRequest
from viewer.pipeline.state import JobState
from viewer.pipeline.words import (
    card_words,
    figures,
    found_words,
    job_status,
    job_words,
    lasted,
    look_fault,
    outcome,
    places_words,
    reads_words,
    short_count,
    title,
    writes_words,
)


def job(job_request: JobRequest, *records, ended: int | None = None) -> JobState:
    state = JobState(1, job_request, 1_795_248_000.0, 100.0)
    state.take_all(records, 101.0)
    if ended is not None:
        state.end(ended, 109.8)
    return state


STATS = JobRequest("stats", ("/data/broker-a/store",))


def test_places_are_the_store_s_folder_a_pattern_or_how_many():
    assert places_words(STATS) == "broker-a"
    assert places_words(JobRequest("stats", ("/fleet/*/store",))) == "fleet/*/store"
    assert places_words(JobRequest("stats", ("/a", "/b", "/c"))) == "3 places"
    assert places_words(JobRequest("export", ("/data/broker-a/store",), out="/tmp/units")) == "broker-a → units/"
    assert title(job(STATS)) == "stats · broker-a"


@pytest.mark.parametrize(("count", "text"), [(1592, "1,592"), (9_999_999, "9,999,999"), (36_700_000, "36.7 M")])
def test_counts_are_short(count, text):
    assert short_count(count) == text


def test_a_job_that_begins_runs_and_ends():
    assert (lasted(9.81), lasted(192)) == ("9.8 s", "3 min 12 s")
    assert job_status(job(STATS)) == "Spark is starting"
    running = job(STATS, {"type": "progress", "step": "counting", "done": 3, "tasks": 8, "stages": []})
    assert job_status(running).startswith("3 of 8 tasks")
    assert job_words(running)[:2] == ("stats", "broker-a")
    done = job(STATS, {"type": "stats", "messages": 5}, ended=0)
    assert job_status(done) == outcome(done)


def test_findings_of_a_check_are_counted_by_severity():
    job_request = JobRequest("verify", ("/s",))
    findings = [{"type": "finding", "id": "CL03", "severity": "error"}] + [
        {"type": "finding", "id": "CL10", "severity": "note"}
    ] * 2
    actual_job = job(job_request, *findings, ended=1)
    assert found_words(actual_job) == "1 error, 2 notes"
    assert outcome(job(job_request, ended=0)) == "no problems found"


def test_the_head_has_a_dash_for_unknown_values():
    names = [name for name, _, _ in figures(job(STATS))]
    assert names[0] == "Read"
    assert {value for _, value, _ in figures(job(STATS))} == {"–"}


def test_only_a_job_with_a_master_starts_spark():
    """A local job, which needs no Spark, had a first stage "Start Spark · Java and a session"."""
    local_job, cluster_job = job(STATS), job(replace(STATS, master="spark://host:7077"))
    assert card_words(local_job.cards[0])[:2] == ("Start the job", "a process of its own, without Spark")
    assert card_words(cluster_job.cards[0])[:2] == ("Start Spark", "Java and a session")
    assert [figures(state)[-1][0] for state in (local_job, cluster_job)] == ["Began in", "Spark began in"]


def test_input_and_output_of_a_job():
    looked = JobPreview(stores=1, log_bytes=1 << 20, splits=4)
    assert reads_words(STATS, looked) == "1 store, 1.00 MiB of log, 4 splits"
    assert writes_words(STATS, looked) == ""
    export = JobRequest("export", ("/s",), out="/tmp/x")
    assert "is written as a row" in writes_words(export, looked)
    assert look_fault(export, JobPreview(out_fault="there")) == "Something exists at this place already."
