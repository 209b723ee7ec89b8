"""Sentences and figures of the cluster view: exact, with "…" for unknown values."""

from __future__ import annotations

from dataclasses import replace

import sample_clusters as made

from engine.cluster.state import ClusterState, Refusal
from viewer.cluster.cluster_model import ClusterModel, Reading
from viewer.cluster.words import (
    broker_origin,
    fault_words,
    held_words,
    queue_words,
    rate,
    refusal_words,
    status_sentence,
)

MODEL = made.looked_at(made.small(0), made.small(5))


def test_rates_are_printed_as_far_as_known():
    assert [rate(value) for value in (None, 0, 0.24, 12.4, 1200.0)] == ["…", "0 /s", "0.2 /s", "12 /s", "1,200 /s"]


def test_the_status_is_one_sentence():
    actual_status_sentence = status_sentence(MODEL)
    assert actual_status_sentence.startswith(
        "127.0.0.1:9876 · 2 topics, 8 queues on 2 brokers · 5 consumers in 3 groups · 2 producers"
    )
    assert "billing is 9,004 behind" in actual_status_sentence
    assert "3 requests in the last reading" in actual_status_sentence
    empty = ClusterModel()
    assert status_sentence(empty) == "No cluster is connected."
    empty.begin((made.NAMES,))
    assert status_sentence(empty) == "Asking 127.0.0.1:9876 …"


def test_a_queue_is_described_in_one_line():
    row = MODEL.find_queue(made.B[0])
    assert row is not None
    assert queue_words(MODEL, row) == (
        "OrderPaid / broker-b / 0 · max offset 20,500 · billing reads 16,000 next · 4,500 behind · C4 · in 100 /s · "
        "held pulls: RocketMQ's own broker does not report them"
    )


def test_errors_name_the_expected_value():
    model = ClusterModel()
    model.begin(("127.0.0.1:1",))
    model.take(Reading(ClusterState(1, {"127.0.0.1:1": "Connect call failed ('127.0.0.1', 1)"}, ())))
    assert "Expected a name server that answers at HOST:PORT" in fault_words(model)
    model.take(Reading(ClusterState(1, {"127.0.0.1:1": "request type 106 not supported"}, ())))
    assert fault_words(model).endswith("Expected a name server: HOST:PORT, its port is usually 9876.")
    assert status_sentence(model) == fault_words(model)
    late = made.looked_at(made.small())
    late.take(Reading(made.small(5, name_servers={made.NAMES: "no answer"})))
    assert fault_words(late).startswith("No name server answers: 127.0.0.1:9876: no answer. The figures are from")


def test_refusals_are_printed_with_their_code():
    refusal = Refusal("10.0.0.9:10911", "GET_CONSUMER_RUNNING_INFO", "billing c@1", 3, "not supported")
    assert refusal_words(refusal) == (
        "GET_CONSUMER_RUNNING_INFO billing c@1: 10.0.0.9:10911 answered code 3, not supported"
    )
    assert "no answer from" in refusal_words(replace(refusal, code=-1))
    model = made.looked_at(made.small(refusals=(refusal,)))
    assert "1 request was refused" in status_sentence(model)


def test_a_brokers_owner_and_held_pulls():
    ours, slave, real = made.small().brokers
    assert [broker_origin(item) for item in (ours, slave, real)] == ["ours, 5.3.3", "ours, 5.3.3", "real, 5.3.3"]
    assert broker_origin(replace(real, time_ms=0)) == "…"
    row = MODEL.find_queue(made.A[0])
    assert row is not None
    assert held_words(row) == "1 pull held"
    assert "4 pulls held" in status_sentence(MODEL)
