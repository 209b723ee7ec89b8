"""Queue locks: one consumer of a group holds a queue; locks are granted, released, and expire after a minute."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from brokers import asking_broker, run_scenario

from engine.broker.queue_locks import LOCK_DURATION_MS, QueueLocks, QueueName

QUEUE_0, QUEUE_1 = QueueName("b", "T", 0), QueueName("b", "T", 1)


@pytest.fixture
def locks():
    clock = [1_000]
    queue_locks = QueueLocks(lambda: clock[0])
    queue_locks.clock = clock
    return queue_locks


def test_one_client_of_a_group_holds_a_queue_at_a_time(locks):
    assert locks.lock("g", "one", [QUEUE_0, QUEUE_1]) == [QUEUE_0, QUEUE_1]
    assert locks.lock("g", "two", [QUEUE_0, QUEUE_1]) == []
    assert locks.lock("h", "two", [QUEUE_0]) == [QUEUE_0]  # each group has its own locks
    locks.unlock("g", "two", [QUEUE_0])
    assert locks.lock("g", "two", [QUEUE_0]) == []
    locks.unlock("g", "one", [QUEUE_0])
    assert locks.lock("g", "two", [QUEUE_0, QUEUE_1]) == [QUEUE_0]


def test_a_lock_expires_unless_it_is_renewed(locks):
    locks.lock("g", "one", [QUEUE_0])
    locks.clock[0] += LOCK_DURATION_MS
    assert locks.is_held("g")
    assert locks.lock("g", "one", [QUEUE_0]) == [QUEUE_0]  # renewed
    locks.clock[0] += LOCK_DURATION_MS + 1
    assert not locks.is_held("g")
    assert locks.lock("g", "two", [QUEUE_0]) == [QUEUE_0]
    assert not locks.is_held("nobody")


def body(client_id: str, *queues: int) -> bytes:
    expected = [{"brokerName": "broker-a", "queueId": number, "topic": "Orders"} for number in queues]
    return json.dumps({"clientId": client_id, "consumerGroup": "readers", "mqSet": expected}).encode()


def test_a_client_locks_free_queues_until_it_unlocks_them(tmp_path: Path) -> None:
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

    run_scenario(scenario)


def test_a_body_without_a_list_of_queues_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            for wrong in (b"", b"[]", b'{"mqSet":[1]}', b'{"mqSet":7}'):
                assert (await client.ask(41, wrong)).code == 1

    run_scenario(scenario)
