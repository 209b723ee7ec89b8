"""Each strategy allocates queues like Java's: recorded answers, and the rules that apply to all clients together."""

from __future__ import annotations

import lzma
from pathlib import Path

import allocation_cases
import pytest

from engine.client.rebalance import (
    Averagely,
    AveragelyByCircle,
    ByConfig,
    ByMachineRoom,
    ConsistentHash,
    MachineRoomNearby,
    plan_rebalance,
)
from engine.client.routes import MessageQueue

RECORD = Path(__file__).with_name("allocations-5.3.3.tsv.xz")
"""400 cases, and what RocketMQ's own client gave; ``tests/clients/test_allocations.py`` asks it anew."""


def queues(count: int, broker: str = "broker-a") -> list[MessageQueue]:
    return [MessageQueue("Orders", broker, number) for number in range(count)]


def test_allocations_match_javas() -> None:
    with lzma.open(RECORD, "rt", encoding="utf-8") as file:
        rows = [line.rstrip("\n").rpartition("\t") for line in file]
    assert len(rows) == 400
    assert [(case, allocation_cases.allocation_line(case)) for case, _, _ in rows] == [
        (case, reported) for case, _, reported in rows
    ]


@pytest.mark.parametrize("strategy", [Averagely(), AveragelyByCircle(), ConsistentHash()], ids=lambda item: item.name)
@pytest.mark.parametrize("clients", [1, 2, 3, 7, 20])
def test_every_queue_has_one_owner(strategy, clients: int) -> None:
    ids = sorted(f"10.0.0.{number}@{number}" for number in range(clients))
    all_queues = queues(16)
    assert sorted(queue for allocated in ids for queue in strategy.allocate(allocated, all_queues, ids)) == all_queues


def test_averagely_gives_neighbours_and_the_first_clients_one_more() -> None:
    all_queues = queues(5)
    assert [Averagely().allocate(client_id, all_queues, ["a", "b"]) for client_id in "ab"] == [
        all_queues[:3],
        all_queues[3:],
    ]
    assert [len(AveragelyByCircle().allocate(client_id, all_queues, ["a", "b"])) for client_id in "ab"] == [3, 2]
    assert Averagely().allocate("c", all_queues[:2], ["a", "b", "c"]) == []


def test_a_client_listed_twice_has_twice_the_positions_on_the_ring() -> None:
    """The second copy of an id got the same ring positions, so a client listed twice got fewer queues than with
    Java.
    """
    every, ids = queues(64), ["a", "b"]
    once = ConsistentHash().allocate("a", every, ids)
    allocate = ConsistentHash().allocate("a", every, ["a", "a", "b"])
    assert set(once) < set(allocate)
    assert ConsistentHash(20).allocate("a", every, ["a"]) == ConsistentHash(10).allocate("a", every, ["a", "a"])
    assert ConsistentHash(0).allocate("a", every, ids) == []


def test_configured_queues_are_given_to_anybody() -> None:
    assert ByConfig(tuple(queues(2))).allocate("x", [], []) == queues(2)


def test_rooms_without_clients_are_shared_by_all() -> None:
    near, far = queues(4, "hz@broker-a"), queues(4, "sh@broker-b")
    strategy = MachineRoomNearby(Averagely(), lambda queue: queue.broker[:2], lambda client: client[:2])
    ids = ["hz@1", "hz@2"]
    assert strategy.allocate("hz@2", near + far, ids) == near[2:] + far[2:]
    assert ByMachineRoom({"sh"}).allocate("hz@1", near + far, ids) == far[:2]


def test_a_client_that_is_not_listed_gets_nothing_and_empty_lists_are_refused() -> None:
    assert Averagely().allocate("x", queues(2), ["a"]) == []
    with pytest.raises(ValueError, match="mqAll"):
        Averagely().allocate("a", [], ["a"])
    with pytest.raises(ValueError, match="cidAll"):
        ConsistentHash().allocate("a", queues(2), [])
    with pytest.raises(ValueError, match="virtualNodeCnt"):
        ConsistentHash(-1)


QUEUES = [MessageQueue("T", broker, number) for broker in ("b", "a") for number in (1, 0)]
SORTED = sorted(QUEUES)


def test_lists_are_sorted_before_they_are_shared_out() -> None:
    plan = plan_rebalance("c2", QUEUES, ["c2", "c1", "c1"], [SORTED[0], SORTED[2]], Averagely())
    assert plan.queues == tuple(SORTED)
    assert plan.client_ids == ("c1", "c2")
    assert plan.owned == tuple(SORTED[2:])
    assert plan.released == (SORTED[0],)
    assert plan.added == (SORTED[3],)


def test_broadcast_takes_all() -> None:
    plan = plan_rebalance("c", QUEUES, ["c"], [], None)
    assert plan.added == plan.owned == tuple(SORTED)
