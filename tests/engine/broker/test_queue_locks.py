"""Queues that one consumer of a group alone reads: granted, kept, given back, and over after a minute."""

from __future__ import annotations

import pytest

from engine.broker.queue_locks import LIVES_MS, QueueLocks, QueueName

FIRST, SECOND = QueueName("b", "T", 0), QueueName("b", "T", 1)


@pytest.fixture
def locks():
    clock = [1_000]
    made = QueueLocks(lambda: clock[0])
    made.clock = clock
    return made


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
