"""Broken places of the log are looked up by offset, joined, and reported with the entries that lead into them."""

from __future__ import annotations

from engine.inspection.check import places
from engine.inspection.check.places import Span, Spans, between


def test_neighbours_of_a_kind_are_one_place_and_are_found_by_offset():
    spans = Spans()
    damage_span = spans.add(100, 200, "damage", "bad", units=1)
    assert spans.add(200, 260, "damage", "bad", units=2) is damage_span
    gap_span = spans.add(260, 300, "gap", "gone")
    assert (damage_span.end, damage_span.units) == (260, 3)
    assert [spans.find(position) for position in (99, 100, 259, 260, 299, 300)] == [
        None,
        damage_span,
        damage_span,
        gap_span,
        gap_span,
        None,
    ]


def test_a_place_added_early_is_sorted():
    spans = Spans()
    spans.add(500, 600, "gap", "gone")
    spans.add(100, 200, "damage", "bad")
    spans.arrange()
    assert [span.start for span in spans.spans] == [100, 500]
    assert spans.find(150).kind == "damage"


def test_places_over_the_limit_are_joined_with_the_last(monkeypatch):
    monkeypatch.setattr(places, "MAX_SPANS", 2)
    spans = Spans()
    for position in range(0, 50, 10):
        spans.add(position, position + 5, "damage", "bad")
    assert [(span.start, span.end) for span in spans.spans] == [(0, 5), (10, 45)]


def test_lost_messages_are_listed_by_queue_with_affected_groups():
    span = Span(0, 100, "damage", "bad")
    assert span.lost == ""
    span.lead_in("T/0", 7)
    assert span.lost == "1 message lost: T/0 7"
    span.lead_all_in("T/1", 3, 5, 3)
    span.lead_in("T/2", 1)
    span.lead_in("T/2", 9)
    span.stand("g", "T/1", 4)
    span.stand("h", "T/1", 6)
    assert span.lost == ("6 messages lost: T/1 3–5, T/2 2 of 1–9, T/0 7; the next message of g (T/1/4) is one of them")
    evidence = span.evidence()
    assert (evidence["queueEntries"], evidence["firstQueueEntry"], evidence["groups"]) == (6, "T/0/7", ["g (T/1/4)"])
    assert {"queue": "T/1", "first": 3, "last": 5, "messages": 3} in evidence["lost"]


def test_unknown_times_are_left_out():
    assert list(between(5, -1).values()) == [5]
    assert between(-1, -1) == {}
