"""Rows of the picture: problems come first, unknown values are not 0, and system topics are left out."""

from __future__ import annotations

from dataclasses import replace

import sample_clusters as made

from engine.cluster.state import Queue, QueueEnds
from viewer.cluster.rows import (
    Figures,
    Index,
    Picture,
    broker_rows,
    group_rows,
    producer_rows,
    sum_if_all_known,
    topic_rows,
    user_queues,
)

FIGURES = Figures({made.A[0]: 100.0}, {"billing": {made.A[0]: 90.0}})


def test_topics_in_trouble_come_first_and_their_groups_that_share_queues():
    warned_topic, quiet_topic = topic_rows(Index(made.small(), FIGURES))
    assert (warned_topic.name, warned_topic.trouble, warned_topic.worst) == ("OrderPaid", "warn", 4_000)
    assert warned_topic.groups == ("billing", "audit")
    assert (quiet_topic.name, quiet_topic.trouble, quiet_topic.worst) == ("StockReserved", "", 0)
    row = warned_topic.queues[0]
    assert (row.group, row.next_offset, row.lag, row.owners) == ("billing", 19_999, 1, (made.C1.client_id,))
    assert (row.in_rate, row.out_rate, row.other_offsets) == (100.0, 90.0, ())


def test_the_opened_group_comes_before_others():
    (topic_row, _) = topic_rows(Index(made.small(), FIGURES), "audit")
    assert topic_row.groups == ("audit", "billing")
    assert topic_row.queues[0].group == "audit"
    assert topic_row.queues[0].other_offsets == (19_999,)


def test_a_queue_without_owner_is_an_error_only_if_all_clients_reported():
    owns = {**made.OWNS, made.C3: (made.B[0],)}
    row = next(
        queue for queue in topic_rows(Index(made.small(owns=owns), FIGURES))[0].queues if queue.queue == made.B[1]
    )
    assert (row.orphan, row.trouble) == (True, "error")
    state = made.small(owns=owns)
    silent = [
        replace(part, groups={**part.groups, "billing": replace(part.groups["billing"], owned={})})
        if part.groups
        else part
        for part in state.brokers
    ]
    quiet = topic_rows(Index(replace(state, brokers=tuple(silent)), FIGURES))[0]
    assert [item.orphan for item in quiet.queues] == [False] * 6


def test_groups_list_owned_queues_and_idle_clients():
    rows = {row.name: row for row in group_rows(Index(made.small(owns={**made.OWNS, made.C3: ()}), FIGURES), {}, {})}
    billing = rows["billing"]
    assert [len(client.owned or ()) for client in billing.clients] == [2, 2, 0]
    assert (billing.idle, billing.orphans, billing.trouble) == (1, 2, "error")
    assert rows["audit"].broadcast
    assert rows["audit"].lag is None
    assert rows["audit"].orphans == 0


def test_two_owners_are_trouble():
    rows = topic_rows(Index(made.small(owns={**made.OWNS, made.C2: (made.A[1], *made.A[2:])}), FIGURES))
    row = next(queue for queue in rows[0].queues if queue.queue == made.A[1])
    assert len(row.owners) == 2
    assert row.trouble == "warn"


def test_brokers_have_their_slaves_and_producers_their_brokers():
    state = made.small()
    rows = broker_rows(state, topic_rows(Index(state, FIGURES)))
    assert [(row.name, len(row.slaves), [name for name, _ in row.topics]) for row in rows] == [
        ("broker-a", 1, ["OrderPaid", "StockReserved"]),
        ("broker-b", 0, ["OrderPaid"]),
    ]
    senders = producer_rows(state, {})
    assert [row.client for row in senders] == [made.P1, made.P2]
    assert {(row.brokers, row.groups) for row in senders} == {(("broker-a", "broker-b"), ("order-service",))}


def test_system_topics_are_left_out():
    state = made.small()
    system_queues = [Queue(name, "broker-a", 0) for name in ("%RETRY%billing", "broker-a", "Shop", "%DLQ%billing")]
    broker = replace(
        state.brokers[0], queues={**state.brokers[0].queues, **{queue: QueueEnds(0, 1, 1) for queue in system_queues}}
    )
    complete = replace(state, brokers=(broker, *state.brokers[1:]))
    assert len(complete.queues) == 12
    assert not set(system_queues) & set(user_queues(complete))


def test_a_picture_is_large_if_single_queues_cannot_be_drawn():
    def picture(state):
        index = Index(state, Figures())
        topics = topic_rows(index)
        return Picture(state, broker_rows(state, topics), topics, group_rows(index, {}, {}), ())

    assert not picture(made.small()).large
    large = picture(made.large())
    assert large.large
    assert (large.queues, large.clients) == (1600, 200)
    assert large.troubles == (2, 2)


def test_a_sum_with_an_unknown_part_is_unknown():
    assert sum_if_all_known([1, 2]) == 3
    assert sum_if_all_known([1, None]) is None
    assert sum_if_all_known([]) == 0
