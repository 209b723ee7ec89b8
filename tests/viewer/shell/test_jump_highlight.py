"""Where a jump ended: a frame around the chosen row, and none where motion is to be reduced."""

from __future__ import annotations

import pytest
from panes import until

from viewer.look.theme import theme
from viewer.runtime import places
from viewer.shell import jump_highlight
from viewer.shell.jump_highlight import JumpFrame

ROW = places.queue("OrderEvents", 0, 3)


def frames(window):
    return [frame for frame in window.findChildren(JumpFrame) if frame.isVisibleTo(frame.parentWidget())]


@pytest.fixture
def made(monkeypatch):
    """Every frame that was made, also those that have gone."""
    found = []

    class Noted(JumpFrame):
        def __init__(self, *args):
            super().__init__(*args)
            found.append(self.geometry())

    monkeypatch.setattr(jump_highlight, "JumpFrame", Noted)
    return found


async def looked(window):
    """Until the jump's row was looked for to the end."""
    await until(lambda: not window.workspace.jumps._timer.isActive(), "the row was looked for")


def test_the_row_of_a_jump_is_framed_for_a_moment(run, window, golden, made, monkeypatch):
    monkeypatch.setattr(jump_highlight, "LASTS_MS", 50)
    monkeypatch.setattr(theme, "motion", True)

    async def jump():
        assert await window.open(golden("broker-orders"))
        await window.settled()
        before = len(made)
        window.go(ROW)
        await until(lambda: len(made) > before, "the row is framed")
        await until(lambda: not frames(window), "the frame goes by itself")
        assert len(made) == before + 1

    run(jump())


def test_nothing_moves_where_that_is_wanted(run, window, golden, made, monkeypatch):
    monkeypatch.setattr(theme, "motion", False)
    assert run(window.open(golden("broker-orders")))
    run(window.settled())
    window.go(ROW)
    run(window.settled())
    run(looked(window))
    assert made == []


def test_a_second_jump_takes_the_frame_of_the_first_away(run, window, golden, monkeypatch):
    monkeypatch.setattr(jump_highlight, "LASTS_MS", 600_000)
    monkeypatch.setattr(theme, "motion", True)
    assert run(window.open(golden("broker-orders")))
    run(window.settled())
    window.go(ROW)
    run(until(lambda: len(frames(window)) == 1, "the row is framed"))
    window.go(places.queue("OrderEvents", 0, 2))
    assert not frames(window)
    run(until(lambda: len(frames(window)) == 1, "the second row is framed"))
