"""Verdicts and evidence in words; an absence proves nothing where something could not be read."""

from __future__ import annotations

import pytest
from broken_stores import group_barred
from handmade_stores import HandmadeStore, healthy

from engine.inspection import open_store
from engine.inspection.where.evidence import where
from engine.inspection.where.facts import Evidence
from viewer.where.words import (
    EvidenceRow,
    entry_place,
    entry_text,
    evidence_rows,
    route_rows,
    verdict_chip,
    verdict_meaning,
    without_absence_verdicts,
)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    made_store = HandmadeStore()
    for number in range(6):
        made_store.put("Orders", keys=f"K{number}")
    with open_store(made_store.write(tmp_path_factory.mktemp("where") / "s")) as store:
        return {key: next(iter(where(store, key))) for key in ("K3", "K99")}


def test_a_verdict_is_a_chip_and_a_sentence(results):
    assert verdict_chip(results["K3"]).kind == "ok"
    assert verdict_meaning(results["K3"]) == "The message is intact, and its queue leads to it."
    assert (entry_text(results["K3"]), entry_place(results["K3"]).queue_offset) == ("Orders/0/3", 3)
    assert (entry_text(results["K99"]), entry_place(results["K99"])) == ("", None)


def test_evidence_and_ways_are_rows_with_places(results):
    rows = evidence_rows(results["K3"])
    assert [row.number for row in rows] == list(range(1, len(rows) + 1))
    assert any(row.place is not None for row in rows)
    assert not any(row.is_against for row in rows)
    assert {row.chip.kind for row in route_rows(results["K3"])} == {"ok"}


def test_nothing_is_concluded_from_an_absence_where_something_is_unread(results):
    assert without_absence_verdicts(results["K99"]).verdict == "unknown"
    assert without_absence_verdicts(results["K3"]).verdict == "found"


def test_long_names_lose_their_middle():
    row = EvidenceRow(
        1,
        "Unit",
        "a/very/long/place/that/has/no/room",
        "T" * 30 + "/0/5",
        None,
        Evidence("unit", None, None, "no entry"),
    )
    assert row.short_place == "a/very/long/…has/no/room"
    assert row.says == "TTTTTT…" + "T" * 9 + "/0/5"
    assert row.is_against


def test_a_group_that_may_not_consume_is_a_warning_among_the_ways(tmp_path):
    """The chip said "Has not reached it yet", as of a group that only needs time; the reason was an unmarked line."""
    new_store = healthy()
    root = new_store.write(tmp_path / "store")
    group_barred(root, new_store)
    with open_store(root) as store:
        (waiting,) = where(store, "Orders/0/19", group="billing")
        (past,) = where(store, "Orders/0/0", group="billing")
    (refused,) = [row for row in route_rows(waiting) if row.route.by == "group"]
    assert (refused.chip.kind, refused.chip.word) == ("warn", "The broker refuses it")
    assert "consumeEnable=false" in refused.explanation
    (permission,) = [row for row in evidence_rows(waiting) if row.evidence.what == "permission"]
    assert (permission.what, permission.place.name) == ("Permission", "subscriptionGroup.json")
    assert permission.is_against
    (group,) = [row for row in evidence_rows(waiting) if row.evidence.what == "group"]
    assert group.is_against
    (read,) = [row for row in route_rows(past) if row.route.by == "group"]
    assert read.chip.word == "Has read past it"
