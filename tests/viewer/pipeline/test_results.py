"""Results of a job: its tables, messages for empty tables, and a failure with Spark's own message."""

from __future__ import annotations

from viewer.pipeline.request import JobRequest
from viewer.pipeline.results import ResultPanel, failure_words, nothing_words, sums_words
from viewer.pipeline.state import JobState


def job(name, *records, **options):
    state = JobState(1, JobRequest(name, ("/s",), **options), 1_795_248_000.0, 100.0)
    state.take_all(records, 101.0)
    return state


def test_parts_that_do_not_add_up_are_reported():
    complete = {"type": "stats", "unitBytes": 90, "stale": 0, "blank": 6, "damage": 0, "zeros": 4, "bytes": 100}
    assert sums_words(job("stats", complete)) == "sums equal the files"
    assert sums_words(job("stats", {**complete, "zeros": 3})) == "99 bytes of 100 are accounted for"
    assert sums_words(job("stats")) == ""


def test_an_empty_table_has_a_reason():
    assert nothing_words(job("verify")).startswith("No problems found")
    assert nothing_words(job("rebuild", compare=False)) == "It was not compared with the existing files."
    assert nothing_words(job("rebuild")).startswith("No queue and no index differs")


def test_a_failure_without_a_message_has_its_code():
    actual_job = job("stats")
    actual_job.end(7, 103.0)
    assert failure_words(actual_job).startswith("The job's process ended with code 7, after ")


def test_the_panel_shows_the_tables_of_a_job(qtbot):
    panel = ResultPanel("pipeline.result")
    qtbot.addWidget(panel)
    actual_job = job(
        "stats",
        {"type": "statsTopic", "topic": "T", "messages": 5, "bytes": 90},
        {"type": "statsQueue", "topic": "T", "queueId": 1, "messages": 5, "bytes": 90},
    )
    actual_job.end(0, 103.0)
    panel.show_job(actual_job)
    assert panel.table_key() == "statsTopic"
    assert [row["topic"] for row in panel.table.source.rows] == ["T"]
    panel.choose("statsQueue")
    assert panel.table_key() == "statsQueue"
    assert panel.export_name() == "stats-statsQueue.jsonl"
    panel.show_job(None)
