"""What a client gives up and takes, from the lists that it sees."""

from __future__ import annotations

from engine.client.allocation import Averagely
from engine.client.rebalance import plan_rebalance
from engine.client.routes import MessageQueue

QUEUES = [MessageQueue("T", broker, number) for broker in ("b", "a") for number in (1, 0)]
SORTED = sorted(QUEUES)


def test_lists_are_sorted_before_they_are_shared_out() -> None:
    plan = plan_rebalance("c2", QUEUES, ["c2", "c1", "c1"], [SORTED[0], SORTED[2]], Averagely())
    assert plan.queues == tuple(SORTED)
    assert plan.client_ids == ("c1", "c2")
    assert plan.owned == tuple(SORTED[2:])
    assert plan.given_up == (SORTED[0],)
    assert plan.taken == (SORTED[3],)


def test_broadcast_takes_all() -> None:
    plan = plan_rebalance("c", QUEUES, ["c"], [], None)
    assert plan.taken == plan.owned == tuple(SORTED)
