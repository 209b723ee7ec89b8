"""Where a jump ended: a frame around the chosen row, and none where motion is to be reduced."""

from __future__ import annotations

import asyncio

from viewer.look.theme import theme
from viewer.runtime import places
from viewer.shell import jump_highlight
from viewer.shell.jump_highlight import JumpFrame


def frames(window):
    return window.findChildren(JumpFrame)


async def jumped(window, place):
    window.go(place)
    await window.settled()
    seen = 0
    for _ in range(40):
        await asyncio.sleep(0.03)
        seen = max(seen, len(frames(window)))
    return seen


def test_the_row_of_a_jump_is_framed_for_a_moment(run, window, golden, monkeypatch):
    monkeypatch.setattr(jump_highlight, "LASTS_MS", 200)
    monkeypatch.setattr(theme, "motion", True)
    assert run(window.open(golden("broker-orders")))
    run(window.settled())
    assert run(jumped(window, places.queue("OrderEvents", 0, 3))) == 1
    assert frames(window) == []


def test_nothing_moves_where_that_is_wanted(run, window, golden, monkeypatch):
    monkeypatch.setattr(theme, "motion", False)
    assert run(window.open(golden("broker-orders")))
    run(window.settled())
    assert run(jumped(window, places.queue("OrderEvents", 0, 3))) == 0
