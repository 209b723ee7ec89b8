"""Where a jump ended: a frame around the chosen row, and none where motion is to be reduced."""

from __future__ import annotations

import asyncio
import time

from viewer.look.theme import theme
from viewer.runtime import places
from viewer.shell import jump_highlight
from viewer.shell.jump_highlight import JumpFrame


def frames(window):
    return [frame for frame in window.findChildren(JumpFrame) if frame.isVisibleTo(frame.parentWidget())]


async def jumped(window, place, seconds):
    """Whether a frame is seen within ``seconds`` of the jump."""
    window.go(place)
    await window.settled()
    end = time.monotonic() + seconds
    while not frames(window) and time.monotonic() < end:
        await asyncio.sleep(0.01)
    return len(frames(window))


async def gone(window):
    while frames(window):
        await asyncio.sleep(0.01)


def test_the_row_of_a_jump_is_framed_for_a_moment(run, window, golden, monkeypatch):
    monkeypatch.setattr(jump_highlight, "LASTS_MS", 1000)
    monkeypatch.setattr(theme, "motion", True)
    assert run(window.open(golden("broker-orders")))
    run(window.settled())
    assert run(jumped(window, places.queue("OrderEvents", 0, 3), 60)) == 1
    run(gone(window))


def test_nothing_moves_where_that_is_wanted(run, window, golden, monkeypatch):
    monkeypatch.setattr(theme, "motion", False)
    assert run(window.open(golden("broker-orders")))
    run(window.settled())
    assert run(jumped(window, places.queue("OrderEvents", 0, 3), 1)) == 0


def test_a_second_jump_takes_the_frame_of_the_first_away(run, window, golden, monkeypatch):
    monkeypatch.setattr(jump_highlight, "LASTS_MS", 600_000)
    monkeypatch.setattr(theme, "motion", True)
    assert run(window.open(golden("broker-orders")))
    run(window.settled())
    assert run(jumped(window, places.queue("OrderEvents", 0, 3), 60)) == 1
    window.go(places.queue("OrderEvents", 0, 2))
    assert not frames(window)
    assert run(jumped(window, places.queue("OrderEvents", 0, 5), 60)) == 1
