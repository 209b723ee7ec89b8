"""Sentences and figures: exact, with what nobody told as "…", and the whole as Markdown."""

from __future__ import annotations

from dataclasses import replace

import made_clusters as made
import pytest

from engine.cluster.state import ClusterState, Refusal
from viewer.cluster.cluster_model import ClusterModel, Reading, Selection
from viewer.cluster.words import (
    broker_origin,
    details_of,
    fault_words,
    held_words,
    markdown,
    queue_words,
    rate,
    refusal_words,
    status_sentence,
    title_of,
)

MODEL = made.looked_at(made.small(0), made.small(5))


def texts(model: ClusterModel, chosen: Selection) -> str:
    return "\n".join(f"{one.name} {one.value} {one.note}".strip() for one in details_of(model, chosen))


def test_rates_are_said_as_they_are_known():
    assert [rate(value) for value in (None, 0, 0.24, 12.4, 1200.0)] == ["…", "0 /s", "0.2 /s", "12 /s", "1,200 /s"]


def test_how_it_stands_is_one_sentence():
    said = status_sentence(MODEL)
    assert said.startswith("127.0.0.1:9876 · 2 topics, 8 queues on 2 brokers · 5 consumers in 3 groups · 2 producers")
    assert "billing is 9,004 behind" in said
    assert "3 requests in the last look" in said
    empty = ClusterModel()
    assert status_sentence(empty) == "No cluster is looked at."
    empty.begin((made.NAMES,))
    assert status_sentence(empty) == "Asking 127.0.0.1:9876 …"


def test_a_queue_tells_its_offsets_its_owner_and_each_group():
    said = texts(MODEL, Selection("queue", queue=made.B[0]))
    assert "Max offset 20,500" in said
    assert "Next offset 16,000 4,500 behind" in said
    assert "Owner C4" in said
    assert "Group audit broadcast · push · offsets in its own file" in said
    row = MODEL.find_queue(made.B[0])
    assert row is not None
    assert queue_words(MODEL, row) == (
        "OrderPaid / broker-b / 0 · max offset 20,500 · billing reads next 16,000 · 4,500 behind · C4 · in 100 /s · "
        "held pulls: nobody can ask a broker of RocketMQ's own"
    )


@pytest.mark.parametrize(
    ("chosen", "title", "parts"),
    [
        (Selection(), "Nothing is chosen", ("Brokers 2", "Topics 2 8 queues", "Groups 3 5 consumers")),
        (Selection("names"), "Name servers", ("127.0.0.1:9876 answers", "broker-a 10.0.0.9:10911")),
        (Selection("broker", "broker-a"), "broker-a", ("master 10.0.0.9:10911 ours, 5.3.3", "slave 1", "In 500 /s")),
        (
            Selection("topic", "OrderPaid"),
            "OrderPaid",
            ("Queues 6 broker-a, broker-b", "Worst behind 4,500", "broker-b / 1 16,000 · 4,500 behind"),
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
            ("Language GO", "Group order-service", "Connected broker-b", "told by no administrator's request"),
        ),
    ],
)
def test_what_is_chosen_is_taken_apart(chosen, title, parts):
    assert title_of(MODEL, chosen)[0] == title
    said = texts(MODEL, chosen)
    assert [part for part in parts if part not in said] == []


def test_a_thing_that_is_gone_tells_nothing():
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


def test_errors_say_what_was_expected():
    model = ClusterModel()
    model.begin(("127.0.0.1:1",))
    model.take(Reading(ClusterState(1, {"127.0.0.1:1": "Connect call failed ('127.0.0.1', 1)"}, ())))
    assert "Expected a name server that answers at HOST:PORT" in fault_words(model)
    model.take(Reading(ClusterState(1, {"127.0.0.1:1": "request type 106 not supported"}, ())))
    assert fault_words(model).endswith("Expected a name server: HOST:PORT, its port is usually 9876.")
    assert status_sentence(model) == fault_words(model)
    late = made.looked_at(made.small())
    late.take(Reading(made.small(5, name_servers={made.NAMES: "no answer"})))
    assert fault_words(late).startswith("No name server answers: 127.0.0.1:9876: no answer. What stands here is from")


def test_what_was_refused_is_told_with_its_code():
    one = Refusal("10.0.0.9:10911", "GET_CONSUMER_RUNNING_INFO", "billing c@1", 3, "not supported")
    assert refusal_words(one) == (
        "GET_CONSUMER_RUNNING_INFO billing c@1: 10.0.0.9:10911 answered code 3, not supported"
    )
    assert "no answer from" in refusal_words(replace(one, code=-1))
    model = made.looked_at(made.small(refusals=(one,)))
    assert "Not told GET_CONSUMER_RUNNING_INFO billing c@1 3 not supported" in texts(model, Selection())
    assert "1 request was refused" in status_sentence(model)


def test_markdown_has_every_broker_client_and_queue():
    text = markdown(MODEL)
    lines = text.splitlines()
    assert lines[0] == "# Cluster 127.0.0.1:9876"
    assert "| broker-a | slave 1 | 10.0.0.9:10921 | 5.3.3 |  |  |" in lines
    assert "| P1 | 10.0.0.1@101#1 | order-service | JAVA 5.3.3 | broker-a, broker-b |" in lines
    assert "| billing | cluster · push | C4 | 10.0.1.3@23#3 | JAVA 5.3.3 | 2 | 0 /s | 9,000 |" in lines
    assert "| OrderPaid | broker-b | 0 | 20,500 | billing | 16,000 | 4,500 | C4 | 100 /s | 0 /s |" in lines
    assert "| OrderPaid | broker-b | 0 | 20,500 | audit | … | … | broadcast: every client | 100 /s | … |" in lines
    widths = {line.count("|") for line in lines if line.startswith("| billing")}
    assert widths == {9}
    assert markdown(ClusterModel()) == ""


def test_whose_a_broker_is_and_what_it_holds():
    ours, slave, real = made.small().brokers
    assert [broker_origin(one) for one in (ours, slave, real)] == ["ours, 5.3.3", "ours, 5.3.3", "real, 5.3.3"]
    assert broker_origin(replace(real, at=0)) == "…"
    row = MODEL.find_queue(made.A[0])
    assert row is not None
    assert held_words(row) == "1 pull held"
    assert "Held pulls 1 wait at the broker for a message" in texts(MODEL, Selection("queue", queue=made.A[0]))
    assert "Held pulls … nobody can ask a broker of RocketMQ's own" in texts(MODEL, Selection("queue", queue=made.B[0]))
    assert "4 pulls held" in status_sentence(MODEL)
