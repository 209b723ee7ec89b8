"""Details of the selected item: exact figures, and "…" for unknown values."""

from __future__ import annotations

import pytest
import sample_clusters as made

from engine.cluster.state import Refusal
from viewer.cluster.cluster_model import ClusterModel, Selection
from viewer.cluster.details import details_of, title_of

MODEL = made.looked_at(made.small(0), made.small(5))


def texts(model: ClusterModel, chosen: Selection) -> str:
    return "\n".join(f"{detail.name} {detail.value} {detail.note}".strip() for detail in details_of(model, chosen))


def test_a_queue_shows_its_offsets_its_owner_and_each_group():
    actual_texts = texts(MODEL, Selection("queue", queue=made.B[0]))
    assert "Max offset 20,500" in actual_texts
    assert "Next offset 16,000 4,500 behind" in actual_texts
    assert "Owner C4" in actual_texts
    assert "Group audit broadcast · push · offsets in its own file" in actual_texts


@pytest.mark.parametrize(
    ("chosen", "title", "parts"),
    [
        (Selection(), "Nothing is chosen", ("Brokers 2", "Topics 2 8 queues", "Groups 3 5 consumers")),
        (Selection("names"), "Name servers", ("127.0.0.1:9876 answers", "broker-a 10.0.0.9:10911")),
        (Selection("broker", "broker-a"), "broker-a", ("master 10.0.0.9:10911 ours, 5.3.3", "slave 1", "In 500 /s")),
        (
            Selection("topic", "OrderPaid"),
            "OrderPaid",
            ("Queues 6 broker-a, broker-b", "Largest lag 4,500", "broker-b / 1 16,000 · 4,500 behind"),
        ),
        (
            Selection("group", "billing"),
            "billing",
            (
                "Model cluster · push",
                "Begins at CONSUME_FROM_LAST_OFFSET",
                "Subscribes OrderPaid *",
                "Behind 9,004",
                "C2",
            ),
        ),
        (
            Selection("client", made.C3.client_id, "billing"),
            "C4",
            ("Language JAVA 5.3.3 version 479", "Consumes 0 /s", "Owns 2 queues of 6 of its group"),
        ),
        (
            Selection("producer", made.P2.client_id),
            "P2",
            ("Language GO", "Group order-service", "Connected broker-b", "No admin request shows"),
        ),
    ],
)
def test_the_chosen_item_has_its_parts(chosen, title, parts):
    assert title_of(MODEL, chosen)[0] == title
    actual_texts = texts(MODEL, chosen)
    assert [part for part in parts if part not in actual_texts] == []


def test_a_removed_item_shows_no_details():
    for chosen in (
        Selection("queue", queue=replace_queue()),
        Selection("group", "x"),
        Selection("client", "x", "billing"),
        Selection("topic", "x"),
        Selection("broker", "x"),
        Selection("producer", "x"),
    ):
        assert details_of(MODEL, chosen) == []


def replace_queue():
    return made.B[0]._replace(queue_id=99)


def test_a_refused_request_is_listed():
    refusal = Refusal("10.0.0.9:10911", "GET_CONSUMER_RUNNING_INFO", "billing c@1", 3, "not supported")
    model = made.looked_at(made.small(refusals=(refusal,)))
    assert "Unknown GET_CONSUMER_RUNNING_INFO billing c@1 3 not supported" in texts(model, Selection())


def test_held_pulls_are_shown_if_the_broker_reports_them():
    assert "Held pulls 1 wait at the broker for a message" in texts(MODEL, Selection("queue", queue=made.A[0]))
    assert "Held pulls … RocketMQ's own broker does not report it" in texts(MODEL, Selection("queue", queue=made.B[0]))
