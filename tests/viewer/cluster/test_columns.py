"""The tables of the cluster view: one row per queue and group, with "…" for unknown values, and one row per request."""

from __future__ import annotations

import sample_clusters as made

from engine.cluster.state import Refusal
from viewer.cluster.columns import LINES, REQUESTS, line_rows, request_rows
from viewer.runtime import places

MODEL = made.looked_at(made.small(0), made.small(5))


def test_each_queue_has_a_row_for_each_group_that_consumes_it():
    rows = line_rows(MODEL, lambda chosen: places.queue("OrderPaid", 0) if chosen.kind == "queue" else None)
    assert len(rows) == 6 * 2 + 2
    row = next(line_row for line_row in rows if line_row.group == "billing" and line_row.chosen.queue == made.B[0])
    shown = {column.key: column.text(row) for column in LINES.columns}
    assert shown["nextOffset"] == "16,000"
    assert shown["behind"] == "4,500"
    assert (shown["owner"], shown["came"], shown["went"]) == ("C4", "100", "0")
    assert row.place == places.queue("OrderPaid", 0)
    look = LINES.look(row)
    assert look is not None
    assert look.mark == "warn"
    quiet = next(line_row for line_row in rows if line_row.group == "audit")
    assert {column.key: column.text(quiet) for column in LINES.columns}["behind"] == "…"
    assert len({line_row.key for line_row in rows}) == len(rows)


def test_requests_are_listed_with_answers_and_refusals_first():
    rows = request_rows(MODEL)
    assert [(row.request, row.answer, row.times) for row in rows] == [
        ("GET_BROKER_CLUSTER_INFO", "SUCCESS", 2),
        ("GET_TOPIC_STATS_INFO", "SUCCESS", 4),
    ]
    refused = made.looked_at(made.small(refusals=(Refusal("a:1", "GET_CONSUMER_RUNNING_INFO", "g c", 206, "off"),)))
    first_row = request_rows(refused)[0]
    assert (first_row.answer, first_row.trouble, first_row.about) == ("206", "error", "g c off")
    assert [column.text(first_row) for column in REQUESTS.columns][0] == "GET_CONSUMER_RUNNING_INFO"
    assert len({row.key for row in request_rows(refused)}) == 3
