"""The history of lag: sums by group and topic, gaps where a broker did not answer, bounded memory."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import sample_clusters as made

from engine.cluster.state import ClusterState
from viewer.cluster import lag_history
from viewer.cluster.lag_history import MAX_POINTS, TOTAL, LagHistory

BILLING = ("billing", "OrderPaid")


def history_of(*states: ClusterState, interval_s: float = 1.0) -> LagHistory:
    history = LagHistory()
    for state in states:
        history.take(state, interval_s)
    return history


def silent(state: ClusterState, name: str) -> ClusterState:
    """The state with the last answers of a broker that does not answer any more."""
    brokers = tuple(replace(part, words="time is up") if part.name == name else part for part in state.brokers)
    return replace(state, brokers=brokers)


def test_sums_are_those_of_the_queues_with_an_offset() -> None:
    history = history_of(made.small(), made.small(10), interval_s=10.0)
    sums = history.sums[BILLING]
    assert (sums.queues, sums.queue_count, sums.clients) == (6, 6, 3)
    assert sums.max_offsets == 6 * 21_000
    assert sums.lag == 4 * 1 + 2 * 5_000
    times, lags = history.points(BILLING)
    assert (len(times), lags) == (2, [4 + 2 * 4_000, 4 + 2 * 5_000])
    assert history.largest(BILLING) == 10_004
    assert history.points(TOTAL)[1][-1] == sum(item.lag or 0 for item in history.sums.values())


def test_a_broker_that_does_not_answer_leaves_a_gap_also_in_the_total() -> None:
    """The last offsets of a silent broker stay in the picture. The lag of its topics is not known, not unchanged."""
    history = history_of(made.small(), silent(made.small(1), "broker-b"), made.small(2))
    lags = history.points(BILLING)[1]
    assert [math.isnan(lag) for lag in lags] == [False, True, False]
    assert [math.isnan(lag) for lag in history.points(TOTAL)[1]] == [False, True, False]
    assert not any(math.isnan(lag) for lag in history.points(("ledger", "StockReserved"))[1])
    assert [row[3] for row in history.rows() if row[1:3] == BILLING][1] is None


def test_a_pause_of_reading_is_a_gap() -> None:
    history = history_of(made.small(), made.small(1), made.small(60))
    assert [math.isnan(lag) for lag in history.points(BILLING)[1]] == [False, False, True, False]


def test_a_group_that_comes_later_has_no_lag_before() -> None:
    early = made.small()
    brokers = tuple(replace(part, offsets={}) for part in early.brokers)
    history = history_of(replace(early, brokers=brokers), made.small(1))
    assert math.isnan(history.points(BILLING)[1][0])
    assert len(history.points(BILLING)[1]) == len(history.times_ms) == 2


def test_memory_is_bounded_and_the_largest_lag_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lag_history, "MAX_VALUES", 64 * 4)
    history = history_of(*(made.small(second) for second in range(700)))
    assert len(history.times_ms) <= MAX_POINTS // 10
    assert history.readings_a_point > 1
    assert history.largest(BILLING) == 4 + 2 * (4_000 + 100 * 699)
