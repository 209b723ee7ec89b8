"""A person opens the directory of a broker that is writing: the real RocketMQ store, in a process of its own."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import golden_stores
import pytest
from running_broker import RunningBroker, ScreenWatch, locks_held, plan_of, quantile, written_descriptors
from walker import Run, Walker

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]
FOLLOWED = 10.0
"""Seconds after which nobody would say that rows follow; how few they are is measured (tests/bench)."""
WATCHED = 4.0


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RunningBroker]:
    """Start a broker with some thousand messages at a few hundred a second; it stays open when they are stored."""
    running_broker = RunningBroker(tmp_path, plan_of(15_000), hold_ms=2)
    try:
        running_broker.wait_for(200)
        yield running_broker
    finally:
        running_broker.end()


def test_a_running_broker_is_followed_and_not_disturbed(run: Run, walker: Walker, broker: RunningBroker) -> None:
    """Acknowledged messages reach the screen without a click; we hold no lock and no file for writing, and change
    no byte.
    """

    async def walk() -> None:
        await walker.open(broker.store)
        assert "running" in walker.window.session.survey.state[1]
        await walker.act("view.follow")
        table = walker.window.pane("log").table
        screen = ScreenWatch(table)
        await walker.until(lambda: len(screen.shown) > 2, "rows come", 200)
        since = time.monotonic()
        while time.monotonic() < since + WATCHED:
            count_before = len(screen.shown)
            await walker.until(
                lambda count_before=count_before: len(screen.shown) > count_before or not is_growing(broker),
                "more rows",
            )
        latencies = screen.latencies(list(broker.acknowledged), since)
        latencies = latencies[: max(1, len(latencies) - 200)]  # the last ones may not have had their turn
        assert len(latencies) > 100
        assert quantile(latencies, 0.99) < FOLLOWED, f"p99 {quantile(latencies, 0.99):.3f} s of {len(latencies)}"
        assert not locks_held(os.getpid(), broker.store)
        assert not written_descriptors(os.getpid(), broker.store)
        assert broker.refused == 0

    run(walk())
    broker.stop()
    ends = [end for end, _ in broker.acknowledged]
    assert ends == sorted(ends)
    count_before = golden_stores.fingerprint(broker.store)

    async def closed() -> None:
        await walker.until(lambda: not walker.window.session.tail.last.live, "the broker's end is seen")
        assert walker.window.session.tail.last.positions.wrote.offset == ends[-1]

    run(closed())
    assert not golden_stores.changes(count_before, golden_stores.fingerprint(broker.store))


def test_positions_of_a_running_broker_move_and_say_what_files_cannot(
    run: Run, walker: Walker, broker: RunningBroker
) -> None:
    """Four plots over time; flushed, confirm and the pool are unknown, with the reason."""

    async def walk() -> None:
        await walker.open(broker.store, at="positions")
        pane = walker.window.pane("positions")
        await walker.until(lambda: len(pane.over_time.history) > 8 and pane.over_time.bar.isVisible(), "looks come")
        first_offset = pane.over_time.history.last.positions.wrote.offset
        await walker.until(lambda: pane.over_time.history.last.positions.wrote.offset > first_offset, "wrote moves")
        reported = {row.key: row for row in pane.now.table.rows}
        assert reported["flushed"].offset is None
        assert "memory" in reported["flushed"].why
        assert reported["confirm"].offset is None
        assert "unknown" in pane.beside.losses.findChildren(type(pane.beside.died))[1].text()
        assert "messages/s" in pane.over_time.group.accessibleDescription()
        pane.over_time.pause()
        end = pane.over_time.range().end
        await walker.until(lambda: pane.over_time.history.span[1] / 1000 > end + 0.5, "looks go on")
        assert pane.over_time.range().end == end
        pane.over_time.go_live()

    run(walk())


def is_growing(broker: RunningBroker) -> bool:
    """Return True if the broker has acknowledged something in the last second."""
    return bool(broker.acknowledged) and time.monotonic() - broker.acknowledged[-1][1] < 1.0
