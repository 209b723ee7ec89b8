"""Queues that one consumer of a group alone reads: granted, kept, given back, and over after a minute."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from brokers import asking_broker, run

from engine.broker.queue_locks import LIVES_MS, QueueLocks, QueueName

FIRST, SECOND = QueueName("b", "T", 0), QueueName("b", "T", 1)


@pytest.fixture
def locks():
    clock = [1_000]
    queue_locks = QueueLocks(lambda: clock[0])
    queue_locks.clock = clock
    return queue_locks


def test_a_queue_is_one_client_s_of_a_group_at_a_time(locks):
    assert locks.lock("g", "one", [FIRST, SECOND]) == [FIRST, SECOND]
    assert locks.lock("g", "two", [FIRST, SECOND]) == []
    assert locks.lock("h", "two", [FIRST]) == [FIRST]  # another group's reading is its own
    locks.unlock("g", "two", [FIRST])
    assert locks.lock("g", "two", [FIRST]) == []
    locks.unlock("g", "one", [FIRST])
    assert locks.lock("g", "two", [FIRST, SECOND]) == [FIRST]


def test_a_lock_that_is_not_renewed_is_over(locks):
    locks.lock("g", "one", [FIRST])
    locks.clock[0] += LIVES_MS
    assert locks.is_held("g")
    assert locks.lock("g", "one", [FIRST]) == [FIRST]  # renewed
    locks.clock[0] += LIVES_MS + 1
    assert not locks.is_held("g")
    assert locks.lock("g", "two", [FIRST]) == [FIRST]
    assert not locks.is_held("nobody")


def body(client_id: str, *queues: int) -> bytes:
    expected = [{"brokerName": "broker-a", "queueId": number, "topic": "Orders"} for number in queues]
    return json.dumps({"clientId": client_id, "consumerGroup": "readers", "mqSet": expected}).encode()


def test_a_client_holds_what_is_free_until_it_says_otherwise(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:

            async def locked(client_id: str, *queues: int) -> list[int]:
                answer = await client.ask(41, body(client_id, *queues))
                return [record["queueId"] for record in json.loads(bytes(answer.body))["lockOKMQSet"]]

            assert await locked("one", 0, 1) == [0, 1]
            assert await locked("two", 0, 1, 2) == [2]
            assert (await client.ask(42, body("one", 0))).code == 0
            assert await locked("two", 0, 1) == [0]
            assert await locked("one", 0, 1) == [1]

    run(scenario)


def test_what_is_no_list_of_queues_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            for wrong in (b"", b"[]", b'{"mqSet":[1]}', b'{"mqSet":7}'):
                assert (await client.ask(41, wrong)).code == 1

    run(scenario)
