"""Held pops: they are retried in order, and never wait longer than requested."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from brokers import run_scenario

from engine.broker import pop_holds
from engine.broker.pop_holds import HeldPop, PopHolds, PopKey
from engine.remoting.codes import Refused
from engine.remoting.connection import Connection
from engine.remoting.frame import Command

KEY = PopKey("Orders", "popping", -1)


class Peer(Connection):
    """A connection that records what is sent over it."""

    def __init__(self) -> None:
        super().__init__(lambda _request, _connection: None)
        self.got: list[Command] = []

    def send(self, command: Command) -> None:
        self.got.append(command)


def table(max_total: int = 10, max_per_key: int = 10) -> PopHolds:
    return PopHolds(lambda: 1_000, lambda: (max_total, max_per_key))


def held_pop(
    peer: Peer, code: int, expires_ms: int = 60_000, retry: Callable[[], Command | None] | None = None
) -> HeldPop:
    return HeldPop(Command(200050), peer, KEY, expires_ms, retry or (lambda: Command(code)))


def test_the_pop_that_expires_first_is_woken_first() -> None:
    async def scenario() -> None:
        held_pops, peer = table(), Peer()
        for code, until in ((1, 70_000), (2, 60_000), (3, 60_000)):
            held_pops.hold(held_pop(peer, code, until), {})
        assert (len(held_pops), held_pops.count(KEY), held_pops.keys) == (3, 3, [KEY])
        while held_pops.wake_first(KEY):
            pass
        assert [command.code for command in peer.got] == [2, 3, 1]
        assert (len(held_pops), held_pops.keys) == (0, [])

    run_scenario(scenario)


def test_a_woken_pop_without_messages_may_wait_again() -> None:
    async def scenario() -> None:
        held_pops, peer = table(), Peer()

        def retry() -> None:
            held_pops.hold(waiting_pop, {})

        waiting_pop = held_pop(peer, 0, retry=retry)
        held_pops.hold(waiting_pop, {})
        assert held_pops.wake_first(KEY)
        assert (len(held_pops), peer.got) == (1, [])
        held_pops.release(waiting_pop)
        assert not held_pops.release(waiting_pop)

    run_scenario(scenario)


def test_a_congested_client_gets_no_messages_and_others_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client with waiting pops did not read its answers. Each new message was handed to it and became invisible to
    all other clients.
    """
    monkeypatch.setattr(pop_holds, "CONGESTED_RETRY_S", 0.01)

    async def scenario() -> None:
        held_pops, congested_peer, peer = table(), Peer(), Peer()
        held_pops.hold(held_pop(congested_peer, 1), {("Orders", 0): 5})
        congested_peer.is_congested = True
        assert not held_pops.wake_first(KEY)
        assert not list(held_pops.grown(lambda _queue: 6))
        held_pops.hold(held_pop(peer, 2), {})
        assert [pop.connection for pop, *_ in held_pops.grown(lambda _queue: 6)] == [peer]
        assert held_pops.wake_first(KEY)
        assert ([command.code for command in peer.got], congested_peer.got) == ([2], [])
        held_pops.wake(held_pops._held[KEY].waiting[0])
        assert (congested_peer.got, len(held_pops)) == ([], 1)
        congested_peer.is_congested = False
        while len(held_pops):
            await asyncio.sleep(0.005)
        assert [command.code for command in congested_peer.got] == [1]

    run_scenario(scenario)


def test_a_refusal_is_an_answer() -> None:
    async def scenario() -> None:
        held_pops, peer = table(), Peer()

        def retry() -> Command:
            raise Refused(17, "no such topic", {"popTime": "0"})

        held_pops.hold(held_pop(peer, 0, retry=retry), {})
        held_pops.wake_first(KEY)
        (answer,) = peer.got
        assert (answer.code, answer.remark, answer.fields) == (17, "no such topic", {"popTime": "0"})

    run_scenario(scenario)


def test_only_queues_that_have_grown_wake() -> None:
    async def scenario() -> None:
        held_pops, peer = table(), Peer()
        waiting_pop = held_pop(peer, 0)
        held_pops.hold(waiting_pop, {("Orders", 0): 5, ("Orders", 1): 7})
        ends = {("Orders", 0): 5, ("Orders", 1): 9}
        assert list(held_pops.grown(ends.__getitem__)) == [(waiting_pop, ("Orders", 1), 7, 9)]
        assert list(held_pops.grown(ends.__getitem__)) == []
        held_pops.release(waiting_pop)

    run_scenario(scenario)


def test_held_pops_are_limited() -> None:
    async def scenario() -> None:
        held_pops, peer = table(max_total=2, max_per_key=0), Peer()
        assert not held_pops.is_full(KEY)
        held_pops.hold(held_pop(peer, 0), {})
        assert held_pops.is_full(KEY)
        assert not held_pops.is_full(PopKey("Other", "popping", -1))
        held_pops.hold(HeldPop(Command(200050), peer, PopKey("Other", "popping", -1), 60_000, lambda: None), {})
        assert held_pops.is_full(PopKey("Third", "popping", -1))
        held_pops.forget(peer)
        assert len(held_pops) == 0

    run_scenario(scenario)


def test_a_hold_ends_a_little_before_its_time() -> None:
    held_pops = table()
    assert [held_pops.is_late(until) for until in (1_049, 1_050)] == [True, False]


def test_at_the_end_every_held_pop_is_answered() -> None:
    async def scenario() -> None:
        held_pops, peer = table(), Peer()
        held_pops.hold(held_pop(peer, 210), {})
        held_pops.end()
        assert held_pops.ended
        assert [command.code for command in peer.got] == [210]

    run_scenario(scenario)
