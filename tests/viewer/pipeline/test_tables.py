"""Results as tables: rows of the records, cells usable as log filters, links to places."""

from __future__ import annotations

from viewer.pipeline.request import JobRequest
from viewer.pipeline.state import JobState
from viewer.pipeline.tables import DIFFERENCES, TABLES, TRACED, each_rows, rule_rows, stats_rows, store_of, traced_rows
from viewer.runtime import places


def job(name: str, *records) -> JobState:
    state = JobState(1, JobRequest(name, ("/s",)), 1_795_248_000.0, 100.0)
    state.take_all(records, 101.0)
    return state


def column(kind, key):
    return next(item for item in kind.columns if item.key == key)


def test_tags_and_producers_have_the_names_of_the_filter():
    actual_job = job("stats", {"type": "statsTag", "tag": "A", "topic": "T", "messages": 1, "bytes": 2})
    assert [row["tags"] for row in stats_rows("statsTag", actual_job)] == ["A"]
    assert stats_rows("statsHour", actual_job) == []


def test_rules_are_listed_gravest_first_with_their_first_place():
    note = {"type": "finding", "id": "CL10", "severity": "note", "group": "log", "offset": 5, "store": "/b"}
    error = {"type": "finding", "id": "CL03", "severity": "error", "group": "log", "offset": 9, "store": "/a"}
    actual_job = job("verify", note, error, error)
    rows = rule_rows(actual_job)
    assert [(row.rule.id, row.rule.count, row.store) for row in rows] == [("CL03", 2, "/a"), ("CL10", 1, "/b")]
    assert [row.finding.id for row in each_rows(actual_job)][0] == "CL03"
    assert store_of(rows[0]) == "/a"


def test_a_key_links_to_its_unit_its_entry_and_where():
    record = {
        "type": "whereResult",
        "key": "K1",
        "verdict": "found",
        "physicalOffset": 640,
        "topic": "T",
        "queueId": 2,
        "queueOffset": 5,
    }
    (row,) = traced_rows(job("trace", record))
    assert column(TRACED, "keys").jump(row) == places.Place("where", key="K1")
    assert column(TRACED, "physicalOffset").jump(row) == places.log(640)
    assert column(TRACED, "topic").jump(row) == places.queue("T", 2, 5)
    assert column(TRACED, "topic").text(row) == "T/2/5"


def test_a_difference_leads_to_its_first_place():
    queue = {"what": "queue", "topic": "T", "queueId": 1, "firstMissing": 7, "firstExtra": 9}
    assert column(DIFFERENCES, "first").jump(queue) == places.queue("T", 1, 7)
    assert column(DIFFERENCES, "first").jump({"what": "index", "firstExtra": 640}) == places.log(640)
    assert column(DIFFERENCES, "first").jump({"what": "index"}) == places.index()


def test_every_table_accepts_a_job_without_rows():
    for name, tables in TABLES.items():
        for _, _, kind, rows in tables:
            assert list(rows(job(name))) == []
            assert kind.columns
