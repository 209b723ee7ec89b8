"""Pulls that wait: by queue, until they are answered or their connection has ended."""

from __future__ import annotations

from engine.broker.held_pulls import HeldPull, HeldPulls
from engine.remoting.frame import Command


def pull(connection, queue=("T", 0), offset=5):
    return HeldPull(Command(11), connection, queue, offset, 10_000, lambda: None)


def test_who_waits_at_a_queue_until_it_is_answered():
    held, one, two = HeldPulls(), pull("a"), pull("b")
    for each in (one, two, pull("a", ("T", 1))):
        held.hold(each)
    assert (len(held), held.queues) == (3, [("T", 0), ("T", 1)])
    assert held.at(("T", 0)) == [one, two]
    held.release(one)
    held.release(one)
    assert (held.at(("T", 0)), len(list(held))) == ([two], 2)
    held.release(two)
    assert held.queues == [("T", 1)]
    assert held.at(("T", 0)) == []


def test_nothing_waits_for_a_connection_that_has_ended():
    held, other = HeldPulls(), pull("b")
    for each in (pull("a"), pull("a", ("T", 1)), other):
        held.hold(each)
    held.forget("a")
    held.forget("a")
    assert list(held) == [other]


def test_who_waits_is_counted_by_group():
    held = HeldPulls()
    for number, group in enumerate(("readers", "readers", "audit")):
        one = pull(number)
        one.request.fields["consumerGroup"] = group
        held.hold(one)
    held.hold(pull("x", ("T", 1)))
    assert held.by_group() == {("T", 0): {"readers": 2, "audit": 1}, ("T", 1): {"": 1}}
