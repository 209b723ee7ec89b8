"""The model of the cluster view: addresses, readings, stable names, and visible rows."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sample_clusters as made

from viewer.cluster.cluster_model import ClusterModel, NoAddress, Reading, Selection, addresses_in
from viewer.cluster.rebalance import timeline


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("127.0.0.1:9876", ("127.0.0.1:9876",)),
        (" ns1 ; ns2:9000,ns1:9876 ", ("ns1:9876", "ns2:9000")),
        ("::1", ("[::1]:9876",)),
        ("[::1]:1234", ("[::1]:1234",)),
        ("[::1]", ("[::1]:9876",)),
    ],
)
def test_addresses_are_read_in_common_forms(text, addresses):
    assert addresses_in(text) == addresses


@pytest.mark.parametrize("text", ["", " ; ", "host:port", "a:b:c:port", "host:0", "host:70000", ":9876"])
def test_an_invalid_address_is_refused(text):
    with pytest.raises(NoAddress):
        addresses_in(text)


def test_a_reading_gives_rates_names_and_requests():
    model = ClusterModel()
    model.begin((made.NAMES,))
    assert model.status == "connecting"
    assert len(model.take(Reading(made.small(0), made.ASKED))) == 2
    assert model.take(Reading(made.small(5), made.ASKED)) == []
    assert (model.status, model.in_last) == ("live", 3)
    assert [asking.times for asking in model.requests.values()] == [2, 4]
    assert model.unfiltered.topics[0].in_rate == 600.0
    billing = model.find_group("billing")
    assert billing is not None
    assert [(row.badge.name, row.out_rate) for row in billing.clients] == [("C2", 200.0), ("C3", 200.0), ("C4", 0.0)]
    assert [row.badge.name for row in model.unfiltered.producers] == ["P1", "P2"]
    assert model.minutes["billing", made.C1.client_id][-1][1] == 200.0


def test_a_client_keeps_its_name_and_place_and_one_that_went_stays_for_some_seconds():
    model = made.looked_at(made.small(0), made.small(5))
    remaining = {made.C1: made.A, made.C3: made.B}
    model.take(Reading(made.small(6, owns=remaining)))
    billing = model.find_group("billing")
    assert billing is not None
    assert [(row.badge.name, row.has_left) for row in billing.clients] == [("C2", False), ("C4", False), ("C3", True)]
    model.take(Reading(made.small(20, owns=remaining)))
    billing = model.find_group("billing")
    assert billing is not None
    assert [row.badge.name for row in billing.clients] == ["C2", "C4"]
    model.take(Reading(made.small(21)))
    assert {row.badge.name for row in model.find_group("billing").clients} == {"C2", "C3", "C4"}  # type: ignore[union-attr]


def test_in_a_large_cluster_the_colours_are_each_groups_own():
    model = made.looked_at(made.large(0))
    for group in model.unfiltered.groups:
        assert [row.badge.name for row in group.clients] == ["C1", "C2", "C3", "C4"]
        assert [row.badge.place for row in group.clients] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("text", "only", "topics", "groups"),
    [
        ("", "", ["OrderPaid", "StockReserved"], ["audit", "billing", "ledger"]),
        ("stock", "", ["StockReserved"], ["ledger"]),
        ("billing", "", ["OrderPaid"], ["billing"]),
        ("10.0.1.4", "", ["OrderPaid", "StockReserved"], ["audit", "ledger"]),
        ("", "behind", ["OrderPaid"], ["audit", "billing"]),
        ("", "orphan", [], []),
        ("ledger", "behind", [], []),
        ("nothing", "", [], []),
    ],
)
def test_the_filter_keeps_matches_and_related_items(text, only, topics, groups):
    model = made.looked_at(made.small(0), made.small(5))
    model.show(text, only)
    assert sorted(row.name for row in model.picture.topics) == topics
    assert sorted(row.name for row in model.picture.groups) == groups
    assert len(model.unfiltered.topics) == 2


def test_idle_clients_and_two_owners_are_found():
    model = made.looked_at(made.small(owns={made.C1: made.A, made.C2: (made.A[0], *made.B), made.C3: ()}))
    model.show("", "idle")
    assert [row.name for row in model.picture.groups] == ["billing"]
    model.show("", "two")
    assert [row.name for row in model.picture.topics] == ["OrderPaid"]


def test_the_chosen_item_comes_first():
    model = made.looked_at(made.small())
    model.choose(Selection("client", made.C4.client_id, "audit"))
    assert model.leading == "audit"
    assert model.find_topic("OrderPaid").groups[0] == "audit"  # type: ignore[union-attr]


def test_a_cluster_that_does_not_answer_is_a_failure_and_one_that_did_stays():
    from engine.cluster.state import ClusterState

    model = ClusterModel()
    model.begin((made.NAMES,))
    model.take(Reading(ClusterState(1, {made.NAMES: "no answer"}, ())))
    assert (model.status, model.fault) == ("failed", f"{made.NAMES}: no answer")
    model = made.looked_at(made.small())
    model.take(Reading(made.small(5, name_servers={made.NAMES: "no answer"})))
    assert model.fault
    assert model.unfiltered.topics


def test_another_cluster_starts_empty_and_the_same_one_continues():
    model = made.looked_at(made.small())
    model.pause()
    assert model.stale
    model.begin((made.NAMES,))
    assert model.state is not None
    model.begin(("other:9876",))
    assert model.state is None
    model.fail("the worker ended")
    assert model.status == "failed"


def test_earlier_readings_and_the_newest_can_be_shown():
    model = made.looked_at(*(made.small(second) for second in range(0, 30, 2)))
    assert model.span == (made.BEGUN, made.BEGUN + 28_000)
    model.go_to(made.BEGUN + 13_500)
    assert model.state is not None
    assert model.state.time_ms == made.BEGUN + 12_000
    assert model.unfiltered.topics[0].in_rate == 600.0
    model.take(Reading(made.small(30)))
    assert model.state.time_ms == made.BEGUN + 12_000, "what comes does not disturb who looks back"
    model.go_to(None)
    assert model.state.time_ms == made.BEGUN + 30_000
    assert len(model.moments["billing"]) == 16
    assert "audit" not in model.moments


def test_a_recording_is_shown_from_its_beginning():
    model = ClusterModel()
    model.load(made.NAMES, [made.small(second) for second in range(10)], "r.jsonl")
    assert (model.status, model.recording) == ("replay", "r.jsonl")
    assert model.state is not None
    assert model.state.time_ms == made.BEGUN
    model.go_to(made.BEGUN + 5_000)
    assert model.unfiltered.topics[0].in_rate == 600.0
    model.begin((made.NAMES,))
    assert model.state is None
    assert model.recording == ""


def test_a_large_cluster_keeps_fewer_readings():
    model = made.looked_at(*(made.large(second, 20, 100, 4) for second in range(40)))
    assert len(model.readings) == 30


def test_timelines_of_a_large_cluster_reach_less_far_back(monkeypatch):
    """An hour of a hundred topics took more than a hundred MiB of moments."""
    monkeypatch.setattr("viewer.cluster.cluster_model.MAX_MOMENT_QUEUES", 16 * 10)
    monkeypatch.setattr("viewer.cluster.cluster_model.MIN_MOMENTS", 3)
    model = made.looked_at(*(made.large(second, 2, 8, 4) for second in range(15)))
    assert {len(moment) for moment in model.moments.values()} == {10}
    monkeypatch.setattr("viewer.cluster.cluster_model.MAX_MOMENT_QUEUES", 1)
    model.take(Reading(made.large(20, 2, 8, 4)))
    assert {len(item) for item in model.moments.values()} == {4}


def test_a_group_without_reports_has_no_readings():
    """After a broker's end, the timeline still showed owners of its queues, although no client had reported them."""
    model = made.looked_at(*(made.small(second) for second in range(5)))
    for second in range(5, 20):
        state = made.small(second)
        model.take(
            Reading(replace(state, brokers=tuple(replace(broker, words="no answer") for broker in state.brokers)))
        )
    assert len(model.moments["billing"]) == 5
    for second in range(20, 25):
        model.take(Reading(made.small(second)))
    line = timeline("billing", tuple(model.moments["billing"]))
    assert line.breaks == ((made.BEGUN + 4_000, made.BEGUN + 20_000),)
    assert all(piece.end - piece.begin == 4_000 for piece in line.pieces[made.A[0]])
