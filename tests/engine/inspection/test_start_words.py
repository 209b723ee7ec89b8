"""What a plan says for people: blockers of several files together, and how many messages no start dispatches."""

from __future__ import annotations

from engine.inspection.start_words import folded, undispatched_words, what
from engine.store.recovery.plan import Blocker, Loss, QueueLoss


def test_blockers_that_say_the_same_are_told_once():
    same = [Blocker("CQ01", f"/s/{n}: expected 400 bytes", "log", f"/s/{n}") for n in range(3)]
    other = Blocker("CF01", "/s/topics.json: no JSON", "log", "/s/topics.json")
    assert [len(group) for group in folded([*same, other])] == [3, 1]
    assert what(same[0]) == ("CQ01", "expected 400 bytes")


def test_messages_queues_units_and_times():
    loss = Loss((QueueLoss("T", 0, 1200, 5, 9, 100, 0, 0), QueueLoss("T", 1, 1, 5, 5)), 0, 100, 9_000)
    said = undispatched_words(loss)
    assert said.startswith("1,201 messages of 2 queues will be in no queue after the next start")
    assert said.endswith("no later one will dispatch them: units 100 to 9,000")
    one = Loss((QueueLoss("T", 0, 1, 5, 5, 100, 1_700_000_000_000, 1_700_000_000_000),), 0, 100, 100)
    assert "1 message of 1 queue will be" in undispatched_words(one)
    assert ", stored 2023-11-14" in undispatched_words(one)
