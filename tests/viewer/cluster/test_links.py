"""Queues, offsets and groups of a cluster as places of the open store."""

from __future__ import annotations

from types import SimpleNamespace

import sample_clusters as made

from viewer.cluster.cluster_model import Selection
from viewer.cluster.links import item_links, link_of, term_of, topic_of, why_not
from viewer.requests.fields import request_filter
from viewer.runtime import places
from viewer.runtime.places import Place

MODEL = made.looked_at(made.small(0), made.small(5))
STORE = SimpleNamespace(name="store-a", survey=SimpleNamespace(topics=[SimpleNamespace(name="OrderPaid")]))
QUEUE = Selection("queue", group="billing", queue=made.B[1])


def test_a_queue_leads_to_the_entry_that_is_read_next():
    assert link_of(STORE, MODEL, QUEUE) == places.queue("OrderPaid", 1, 16_000)  # type: ignore[arg-type]
    selection = Selection("queue", queue=made.B[1]._replace(queue_id=9))
    assert link_of(STORE, MODEL, selection) == places.queue("OrderPaid", 9)  # type: ignore[arg-type]
    assert link_of(STORE, MODEL, Selection("topic", "OrderPaid")) == places.queue("OrderPaid")  # type: ignore[arg-type]
    assert link_of(STORE, MODEL, Selection("client", "c", "billing")) == Place("groups", name="billing")  # type: ignore[arg-type]


def test_a_missing_topic_has_no_link_and_a_reason():
    missing_queue = Selection("queue", queue=made.S[0])
    assert link_of(STORE, MODEL, missing_queue) is None  # type: ignore[arg-type]
    assert why_not(STORE, missing_queue) == "The open store has no topic StockReserved."  # type: ignore[arg-type]
    assert link_of(None, MODEL, QUEUE) is None
    assert why_not(None, QUEUE).startswith("No store is open")
    assert why_not(STORE, Selection("broker", "broker-a")) == "This leads nowhere in a store."  # type: ignore[arg-type]
    assert topic_of(Selection("group", "billing")) == ""


def test_links_are_texts_with_places():
    actual_item_links = item_links(STORE, MODEL, QUEUE)  # type: ignore[arg-type]
    assert actual_item_links[1][1] == places.filtered("only", 'topic = "OrderPaid" and queueId = 1')
    assert actual_item_links[2][0].startswith(
        "Its requests are shown live only if the lab of this window serves the cluster."
    )
    assert actual_item_links[2][1] is None
    readers = item_links(STORE, MODEL, Selection("group", "billing"))  # type: ignore[arg-type]
    assert readers[0][0] == "Group billing in the open store, store-a", "which may be another than the cluster's"
    assert item_links(STORE, MODEL, Selection()) == []  # type: ignore[arg-type]
    assert item_links(None, MODEL, QUEUE)[0][1] is None


def test_requests_about_an_item_are_a_filter_if_the_lab_records():
    model = made.looked_at(made.small(0))
    model.of_lab = True
    assert item_links(None, model, QUEUE)[-1][1] == Place(
        "requests", name=places.REQUESTS_LIVE, part='topic = "OrderPaid" and queueId = 1'
    )
    terms = [
        (Selection("topic", "OrderPaid"), 'topic = "OrderPaid"'),
        (Selection("group", "billing"), 'group = "billing"'),
        (Selection("client", made.C1.client_id, "billing"), 'peer = "10.0.1.1:50201"'),
        (Selection("producer", made.P1.client_id), 'peer = "10.0.0.1:50101"'),
        (Selection("producer", "nobody"), ""),
    ]
    for chosen, term in terms:
        assert term_of(model, chosen) == term
        assert request_filter(term or "held")
