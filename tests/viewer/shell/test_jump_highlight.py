"""Where a jump ended: a frame around the chosen row, and none where motion is to be reduced."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

import pytest
from panes import until
from PySide6.QtCore import Qt

from viewer.look.theme import theme
from viewer.runtime import places
from viewer.shell import jump_highlight
from viewer.shell.jump_highlight import JumpFrame
from viewer.widgets.record_view import RecordView

HORIZONTAL = Qt.Orientation.Horizontal
ROW = places.queue("OrderEvents", 0, 3)


def frames(window):
    return [frame for frame in window.findChildren(JumpFrame) if frame.isVisibleTo(frame.parentWidget())]


@pytest.fixture
def frame_geometries(monkeypatch):
    """Every frame that was made, also those that have gone."""
    geometries = []

    class RecordedJumpFrame(JumpFrame):
        def __init__(self, *args):
            super().__init__(*args)
            geometries.append(self.geometry())

    monkeypatch.setattr(jump_highlight, "JumpFrame", RecordedJumpFrame)
    return geometries


async def looked(window):
    """Until the jump's row was looked for to the end."""
    await until(lambda: not window.workspace.jumps._timer.isActive(), "the row was looked for")


def test_the_row_of_a_jump_is_framed_for_a_moment(run, window, golden, frame_geometries, monkeypatch):
    monkeypatch.setattr(jump_highlight, "LASTS_MS", 50)
    monkeypatch.setattr(theme, "motion", True)

    async def jump():
        assert await window.open(golden("broker-orders"))
        await window.settled()
        before = len(frame_geometries)
        window.go(ROW)
        await until(lambda: len(frame_geometries) > before, "the row is framed")
        await until(lambda: not frames(window), "the frame goes by itself")
        assert len(frame_geometries) == before + 1

    run(jump())


def test_nothing_moves_where_that_is_wanted(run, window, golden, frame_geometries, monkeypatch):
    monkeypatch.setattr(theme, "motion", False)
    assert run(window.open(golden("broker-orders")))
    run(window.settled())
    window.go(ROW)
    run(window.settled())
    run(looked(window))
    assert frame_geometries == []


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


def test_the_frame_waits_for_a_read_that_takes_long(run, window, golden, frame_geometries, monkeypatch):
    """A slow disk is no reason to leave the frame out."""
    monkeypatch.setattr(jump_highlight, "LOOKS", 2)
    monkeypatch.setattr(theme, "motion", True)

    async def jump():
        assert await window.open(golden("broker-orders"), "log:0")
        await window.settled()
        units = window.findChild(RecordView, "units.table").model()
        column = next(n for n in range(units.columnCount()) if units.headerData(n, HORIZONTAL) == "Physical offset")
        second = int(units.index(1, column).data().replace(",", ""))
        before, may_end = len(frame_geometries), threading.Event()
        read = asyncio.ensure_future(window.jobs.quick(lambda: may_end.wait(60)))
        await until(lambda: not window.jobs.quick_idle, "the read has begun")
        window.go(replace(places.log(second), field="bodyCRC"))
        await asyncio.sleep(10 * jump_highlight.LOOK_MS / 1000)
        assert len(frame_geometries) == before
        may_end.set()
        await read
        await until(lambda: len(frame_geometries) > before, "the row is framed")

    run(jump())
