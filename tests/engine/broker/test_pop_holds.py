"""Who waits for a message: asked again in order, and never longer than he said."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from brokers import run

from engine.broker import pop_holds as module
from engine.broker.pop_holds import HeldPop, Key, PopHolds
from engine.remoting.codes import Refused
from engine.remoting.connection import Connection
from engine.remoting.frame import Command

KEY = Key("Orders", "popping", -1)


class Peer(Connection):
    """A connection that keeps what is sent over it."""

    def __init__(self) -> None:
        super().__init__(lambda _request, _connection: None)
        self.got: list[Command] = []

    def send(self, command: Command) -> None:
        self.got.append(command)


def table(most: int = 10, most_at: int = 10) -> PopHolds:
    return PopHolds(lambda: 1_000, lambda: (most, most_at))


def held(peer: Peer, code: int, until: int = 60_000, again: Callable[[], Command | None] | None = None) -> HeldPop:
    return HeldPop(Command(200050), peer, KEY, until, again or (lambda: Command(code)))


def test_whose_time_ends_first_is_asked_first() -> None:
    async def told() -> None:
        holds, peer = table(), Peer()
        for code, until in ((1, 70_000), (2, 60_000), (3, 60_000)):
            holds.hold(held(peer, code, until), {})
        assert (len(holds), holds.count(KEY), holds.keys) == (3, 3, [KEY])
        while holds.wake_first(KEY):
            pass
        assert [one.code for one in peer.got] == [2, 3, 1]
        assert (len(holds), holds.keys) == (0, [])

    run(told)


def test_who_finds_nothing_may_wait_on() -> None:
    async def told() -> None:
        holds, peer = table(), Peer()

        def again() -> None:
            holds.hold(one, {})

        one = held(peer, 0, again=again)
        holds.hold(one, {})
        assert holds.wake_first(KEY)
        assert (len(holds), peer.got) == (1, [])
        holds.release(one)
        assert not holds.release(one)

    run(told)


def test_who_does_not_read_is_handed_nothing_and_others_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client whose pops waited read none of its answers. Each message that came was handed to it, and was invisible
    for everybody else.
    """
    monkeypatch.setattr(module, "CONGESTED_S", 0.01)

    async def told() -> None:
        holds, deaf, peer = table(), Peer(), Peer()
        holds.hold(held(deaf, 1), {("Orders", 0): 5})
        deaf.is_congested = True
        assert not holds.wake_first(KEY)
        assert not list(holds.grown(lambda _queue: 6))
        holds.hold(held(peer, 2), {})
        assert [pop.connection for pop, *_ in holds.grown(lambda _queue: 6)] == [peer]
        assert holds.wake_first(KEY)
        assert ([one.code for one in peer.got], deaf.got) == ([2], [])
        holds.wake(holds._held[KEY].waiting[0])
        assert (deaf.got, len(holds)) == ([], 1)
        deaf.is_congested = False
        while len(holds):
            await asyncio.sleep(0.005)
        assert [one.code for one in deaf.got] == [1]

    run(told)


def test_a_refusal_is_an_answer() -> None:
    async def told() -> None:
        holds, peer = table(), Peer()

        def again() -> Command:
            raise Refused(17, "no such topic", {"popTime": "0"})

        holds.hold(held(peer, 0, again=again), {})
        holds.wake_first(KEY)
        (answer,) = peer.got
        assert (answer.code, answer.remark, answer.fields) == (17, "no such topic", {"popTime": "0"})

    run(told)


def test_only_queues_that_have_grown_wake() -> None:
    async def told() -> None:
        holds, peer = table(), Peer()
        one = held(peer, 0)
        holds.hold(one, {("Orders", 0): 5, ("Orders", 1): 7})
        ends = {("Orders", 0): 5, ("Orders", 1): 9}
        assert list(holds.grown(ends.__getitem__)) == [(one, ("Orders", 1), 7, 9)]
        assert list(holds.grown(ends.__getitem__)) == []
        holds.release(one)

    run(told)


def test_there_is_room_for_so_many() -> None:
    async def told() -> None:
        holds, peer = table(most=2, most_at=0), Peer()
        assert not holds.is_full(KEY)
        holds.hold(held(peer, 0), {})
        assert holds.is_full(KEY)
        assert not holds.is_full(Key("Other", "popping", -1))
        holds.hold(HeldPop(Command(200050), peer, Key("Other", "popping", -1), 60_000, lambda: None), {})
        assert holds.is_full(Key("Third", "popping", -1))
        holds.forget(peer)
        assert len(holds) == 0

    run(told)


def test_a_hold_ends_a_little_before_its_time() -> None:
    holds = table()
    assert [holds.is_late(until) for until in (1_049, 1_050)] == [True, False]


def test_at_the_end_everybody_is_asked_once_more() -> None:
    async def told() -> None:
        holds, peer = table(), Peer()
        holds.hold(held(peer, 210), {})
        holds.end()
        assert holds.ended
        assert [one.code for one in peer.got] == [210]

    run(told)
