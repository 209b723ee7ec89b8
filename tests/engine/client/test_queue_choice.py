"""Choosing a queue: in turn, by key, and avoiding slow brokers by the tables of both releases."""

from __future__ import annotations

import random

import pytest

from engine.client.queue_choice import TABLES, QueueChoice, by_key
from engine.client.routes import MessageQueue
from engine.releases import Release, rules_of


def queues(*brokers: str, each: int = 2) -> list[MessageQueue]:
    return [MessageQueue("T", broker, number) for broker in brokers for number in range(each)]


def choice(release: str = "5.3", *, avoid_slow: bool = True) -> QueueChoice:
    queue_choice = QueueChoice(release, avoid_slow=avoid_slow, chance=random.Random(1))
    queue_choice.turn("T", -1)
    return queue_choice


@pytest.mark.parametrize(
    ("release", "latency", "avoided"),
    [
        ("5.3", 549, 0),
        ("5.3", 550, 2000),
        ("5.3", 1800, 5000),
        ("5.3", 3000, 6000),
        ("5.3", 5000, 10_000),
        ("5.3", 15_000, 30_000),
        ("4.9", 49, 0),
        ("4.9", 549, 0),
        ("4.9", 550, 30_000),
        ("4.9", 1000, 60_000),
        ("4.9", 2000, 120_000),
        ("4.9", 3000, 180_000),
        ("4.9", 15_000, 600_000),
        ("5.3", 0, 0),
    ],
)
def test_slow_brokers_are_avoided_as_in_the_release(release: Release, latency: int, avoided: int) -> None:
    assert TABLES[rules_of(release).major].avoid_for(latency) == avoided
    sample = choice(release)
    sample.record_send("a", latency, 1_000_000)
    assert sample.is_available("a", 1_000_000 + avoided)
    assert avoided == 0 or not sample.is_available("a", 1_000_000 + avoided - 1)


@pytest.mark.parametrize(("release", "avoided"), [("5.3", 10_000), ("4.9", 600_000)])
def test_a_failure_counts_as_slow(release: str, avoided: int) -> None:
    sample = choice(release)
    sample.record_send("a", 1, 0, failed=True)
    assert sample.faults["a"].avoided_until == avoided


def test_queues_are_used_in_turn_and_a_retry_goes_to_another_broker() -> None:
    sample = choice(avoid_slow=False)
    every = queues("a", "b")
    assert [sample.choose(every, None, 0) for _ in range(5)] == [*every, every[0]]
    assert {sample.choose(every, "a", 0).broker for _ in range(8)} == {"b"}
    assert {sample.choose(queues("a"), "a", 0).broker for _ in range(8)} == {"a"}


def test_an_avoided_broker_is_skipped_until_its_time_ends() -> None:
    sample = choice()
    every = queues("a", "b")
    sample.record_send("a", 600, 0)
    assert {sample.choose(every, None, 1_999).broker for _ in range(8)} == {"b"}
    assert {sample.choose(every, None, 2_000).broker for _ in range(8)} == {"a", "b"}


def test_with_all_avoided_5_3_takes_what_can_be_reached() -> None:
    sample = choice()
    sample.record_send("a", 0, 0, failed=True, reachable=False)
    sample.record_send("b", 0, 0, failed=True, reachable=True)
    assert {sample.choose(queues("a", "b"), None, 1).broker for _ in range(8)} == {"b"}
    assert {sample.choose(queues("a", "b"), "b", 1).broker for _ in range(8)} == {"a", "b"}


def test_with_all_avoided_4_9_takes_the_better_half() -> None:
    sample = choice("4.9")
    for broker, latency in [("a", 700), ("b", 600), ("c", 4_000), ("d", 9_000)]:
        sample.record_send(broker, latency, 0)
    assert {sample.choose(queues(*"abcd"), None, 1).broker for _ in range(9)} == {"a", "b"}
    removed = choice("4.9")
    removed.record_send("x", 700, 0)
    removed.record_send("a", 700, 0)
    assert removed.choose(queues("a"), None, 1).broker == "a"


def test_a_key_has_java_s_queue() -> None:
    every = queues("a", each=4)
    assert by_key(every, "TagA").queue_id == 2598919 % 4
    assert by_key(every[:3], "polygenelubricants").queue_id == 2  # the hash of this key is the smallest int
    assert by_key(every, "").queue_id == 0
