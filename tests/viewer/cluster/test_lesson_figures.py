"""Figures of lessons, counted by hand from a few events."""

from __future__ import annotations

import pytest

from engine.client.events import (
    Committed,
    Delivered,
    QueueAcquired,
    Rebalanced,
    Sent,
    SentBack,
    Started,
    Stopped,
    TransactionEnded,
)
from engine.client.routes import MessageQueue
from viewer.cluster.clients_process import Options
from viewer.cluster.lesson_figures import (
    GIVEN_UP,
    Record,
    again_after_kill,
    broadcast,
    dead_letters,
    disagreement,
    first_names,
    latencies,
    range_text,
    seconds,
    transactions,
)

G = "lesson"
Q = [MessageQueue("T", "a", number) for number in range(4)]


@pytest.fixture
def record() -> Record:
    return Record(G, "T", groups={G, f"{G}-dead", f"{G}-given-up"})


def sent(time_ms: int, queue: MessageQueue, offset: int, key: str, client_id: str = "p", ms: float = 1.0) -> Sent:
    return Sent(time_ms, client_id, G, queue, offset, f"id-{key}", key, "SEND_OK", 1, 1, 10, ms)


def delivered(
    time_ms: int, client_id: str, queue: MessageQueue, offset: int, key: str, times: int = 0, group: str = G
) -> Delivered:
    return Delivered(time_ms, client_id, group, queue, offset, f"id-{key}", key, times, time_ms)


def figures_of(figures) -> dict[str, str]:
    return {figure.name: figure.figure for figure in figures}


def test_a_record_keeps_only_its_own_events(record):
    record.take([sent(1, Q[0], 0, "k"), Started(1, "x", "another")])
    assert [type(event) for event in record.events] == [Sent]


def test_uncommitted_messages_are_redelivered_after_a_kill(record):
    assert again_after_kill(record) == []
    record.take([delivered(n, "c1", Q[0], n, f"k{n}") for n in range(10)])
    record.take(
        [
            Stopped(20, "c1", G, unregistered=False),
            QueueAcquired(30, "c2", G, Q[0], 7),
            QueueAcquired(31, "c2", G, MessageQueue("%RETRY%lesson", "a", 0), 0),
            *(delivered(40 + n, "c2", Q[0], n, f"k{n}") for n in range(7, 12)),
        ]
    )
    results = again_after_kill(record)
    assert figures_of(results) == {"Again by key": "3", "Not committed": "3"}
    assert results[0].note == "3 by queue and offset, since it was killed"
    assert results[1].note.endswith("in 1 queue")


def test_two_strategies_give_a_queue_two_owners_and_another_none(record):
    record.clients = {"c1": Options(), "c2": Options(strategy="AVG_BY_CIRCLE")}
    for client, owned in (("c1", (Q[0], Q[1])), ("c2", (Q[1], Q[3]))):
        record.take(
            [
                Rebalanced(5, client, G, "T", tuple(Q), ("c1", "c2"), owned, owned, ()),
                Rebalanced(6, client, G, "%RETRY%lesson", (), ("c1", "c2"), (), (), ()),
            ]
        )
    record.take([sent(7, Q[n % 4], n // 4, f"k{n}") for n in range(8)])
    record.take(
        [delivered(8, "c1", Q[0], 0, "k0"), delivered(8, "c1", Q[1], 0, "k1"), delivered(9, "c2", Q[1], 0, "k1")]
    )
    actual_disagreement = disagreement(record, {"c1": "C1", "c2": "C2"}.__getitem__)
    assert figures_of(actual_disagreement) == {
        "With two owners": "1",
        "With no owner": "1",
        "Delivered twice": "1",
        "Read by nobody": "2",
        "Lists of clients": "the same",
    }
    assert actual_disagreement[0].note == "a q1: C1 C2"
    assert actual_disagreement[1].note == "a q2"
    assert actual_disagreement[4].note == "C1: C1 C2, AVG → a q0, a q1 · C2: C1 C2, AVG_BY_CIRCLE → a q1, a q3"
    assert [item.kind for item in actual_disagreement] == ["warn"] * 4 + ["ok"]


def test_a_producer_that_avoids_the_slow_broker_finishes_sooner(record):
    slow, quick = MessageQueue("T", "slow", 0), MessageQueue("T", "quick", 0)
    record.clients = {"p1": Options(), "p2": Options(avoid_slow_brokers=True)}
    record.take(
        [
            sent(1_000, slow, 0, "a", "p1", 600),
            sent(1_002, quick, 0, "b", "p1", 2),
            sent(1_602, slow, 1, "c", "p1", 600),
            sent(1_604, quick, 1, "d", "p1", 2),
        ]
    )
    record.take(
        [sent(9_000, slow, 2, "e", "p2", 600), *(sent(9_002 + n, quick, 2 + n, f"f{n}", "p2", 1) for n in range(3))]
    )
    actual_latencies = latencies(record)
    assert figures_of(actual_latencies) == {
        "Without avoidance": "1.20 s",
        "With avoidance": "0.60 s",
        "quick q0": "2 → 3",
        "slow q0": "2 → 1",
    }
    assert actual_latencies[0].note == "4 sends one after the other, 2 of them to slow"
    assert [item.kind for item in actual_latencies] == ["warn", "ok", "ok", "warn"]
    assert actual_latencies[3].note == "median ms of a send: 600.0 without avoidance, 600.0 with it"


def test_each_consumer_of_a_broadcast_is_counted_separately(record):
    record.clients = {"c1": Options(), "named": Options(client_id="named")}
    record.take([sent(n, Q[0], n, f"k{n}") for n in range(6)])
    record.take([Started(10, "c1", G), Started(10, "named", G)])
    record.take([delivered(11, "c1", Q[0], n, f"k{n}") for n in range(6)])
    record.take([delivered(11, "named", Q[0], n, f"k{n}") for n in range(4)])
    record.take(
        [Committed(12, "named", G, Q[0], 4), Stopped(12, "named", G, unregistered=True), Started(20, "named", G)]
    )
    record.take([delivered(21, "named", Q[0], n, f"k{n}") for n in (3, 4, 5)])
    results = broadcast(record, str)
    assert figures_of(results) == {
        "Sent": "6",
        "c1": "6 of 6",
        "named": "6 of 6",
        "After its return": "3",
        "Kept by brokers": "0",
    }
    assert results[2].note == "1 more than once"
    assert results[3].note == "named began again at the offsets in its file (4 in 1 queue); 1 came again"
    assert [item.kind for item in results] == ["ok", "ok", "warn", "warn", "ok"]


def test_refused_messages_are_followed_through_their_waits_to_the_dead_letters(record):
    retry, dead = MessageQueue("%RETRY%lesson", "a", 0), MessageQueue("%DLQ%lesson", "a", 0)
    record.take([sent(n, Q[0], n, f"k{n}") for n in range(5)])
    record.take([delivered(100, "c", Q[0], n, f"k{n}") for n in range(5)])
    record.take(
        [
            SentBack(100, "c", G, Q[0], 0, "x", 0, by_broker=True),
            delivered(1_150, "c", retry, 0, "k0", 1),
            SentBack(1_150, "c", G, retry, 0, "x", 1, by_broker=True),
            delivered(3_200, "c", retry, 1, "k0", 2),
            SentBack(3_200, "c", G, retry, 1, "x", 2, by_broker=True),
            delivered(3_300, "d", dead, 0, "k0", 3, f"{G}-dead"),
            delivered(3_300, "d", dead, 1, "strange", 3, f"{G}-dead"),
        ]
    )
    actual_dead_letters = dead_letters(record)
    assert figures_of(actual_dead_letters) == {
        "Taken at once": "4 of 5",
        "Refused": "1",
        "Wait 1": "1.05 s",
        "Wait 2": "2.05 s",
        "Dead letters": "1",
    }
    assert actual_dead_letters[1].note == "each delivered 3 times"
    assert actual_dead_letters[2].note == "level 3, from %RETRY%lesson; reconsumeTimes 1"
    assert actual_dead_letters[4].note.startswith("read from %DLQ%lesson, reconsumeTimes 3.")


def test_unended_transactions_are_checked_and_discarded(record):
    given_up = MessageQueue(GIVEN_UP, "a", 0)
    record.take([sent(100, Q[0], n, f"k{n}") for n in range(4)])
    record.take(
        [
            TransactionEnded(101, "p", G, "T", f"id-k{n}", "COMMIT" if n % 2 == 0 else "UNKNOWN", checked=False)
            for n in range(4)
        ]
    )
    record.take(
        [
            TransactionEnded(600 + 500 * step, "p", G, "T", f"id-k{n}", "UNKNOWN", checked=True)
            for step in range(3)
            for n in (1, 3)
        ]
    )
    record.take([delivered(110, "c", Q[0], n, f"k{n}") for n in (0, 2)])
    record.take([delivered(2_100, "g", given_up, n, f"k{n}", group=f"{G}-given-up") for n in (1, 3)])
    actual_transactions = transactions(record)
    assert figures_of(actual_transactions) == {"Half messages": "4", "Delivered": "2", "Checks": "6", "Given up": "2"}
    assert actual_transactions[0].note == "2 committed at once, 2 never finished"
    assert actual_transactions[1].note == "of the unfinished ones: 0"
    assert actual_transactions[2].note == "3 for each, 0.50 s apart: the producer says UNKNOWN"
    assert actual_transactions[3].note.startswith("after 2.00 s, in TRANS_CHECK_MAX_TIME_TOPIC.")


def test_without_events_there_are_no_figures(record):
    for results in (
        latencies(record),
        broadcast(record, str),
        dead_letters(record),
        transactions(record),
        disagreement(record, str),
    ):
        assert all(item.figure in {"0", "0 of 0", "0.00 s", "0 different"} for item in results)


def test_short_numbers_and_names():
    assert range_text([], str) == "…"
    assert range_text([1, 2], lambda n: f"{n}") == "1–2"
    assert seconds(12_345) == "12.3 s"
    assert first_names(["a", "b", "c", "d"]) == "a, b, c and 1 more"


def test_a_run_that_has_ended_counts_nothing_more(record):
    record.closed = True
    record.take([sent(1, Q[0], 0, "k")])
    assert record.events == []
