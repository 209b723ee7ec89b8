"""The end of a jump: a frame around the chosen row, and none with reduced motion."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

import pytest
from panes import wait_until
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
    """Record every frame, also those that have disappeared."""
    geometries = []

    class RecordedJumpFrame(JumpFrame):
        def __init__(self, *args):
            super().__init__(*args)
            geometries.append(self.geometry())

    monkeypatch.setattr(jump_highlight, "JumpFrame", RecordedJumpFrame)
    return geometries


async def looked(window):
    """Wait until the search for the jump's row ends."""
    await wait_until(lambda: not window.workspace.jumps._timer.isActive(), "the row was looked for")


def test_the_row_of_a_jump_is_framed_for_a_moment(run, window, golden, frame_geometries, monkeypatch):
    monkeypatch.setattr(jump_highlight, "DURATION_MS", 50)
    monkeypatch.setattr(theme, "motion", True)

    async def jump():
        assert await window.open(golden("broker-orders"))
        await window.settled()
        frames_before = len(frame_geometries)
        window.go(ROW)
        await wait_until(lambda: len(frame_geometries) > frames_before, "the row is framed")
        await wait_until(lambda: not frames(window), "the frame goes by itself")
        assert len(frame_geometries) == frames_before + 1

    run(jump())


def test_no_frame_with_reduced_motion(run, window, golden, frame_geometries, monkeypatch):
    monkeypatch.setattr(theme, "motion", False)
    assert run(window.open(golden("broker-orders")))
    run(window.settled())
    window.go(ROW)
    run(window.settled())
    run(looked(window))
    assert frame_geometries == []


def test_a_second_jump_removes_the_first_frame(run, window, golden, monkeypatch):
    monkeypatch.setattr(jump_highlight, "DURATION_MS", 600_000)
    monkeypatch.setattr(theme, "motion", True)
    assert run(window.open(golden("broker-orders")))
    run(window.settled())
    window.go(ROW)
    run(wait_until(lambda: len(frames(window)) == 1, "the row is framed"))
    window.go(places.queue("OrderEvents", 0, 2))
    assert not frames(window)
    run(wait_until(lambda: len(frames(window)) == 1, "the second row is framed"))


def test_the_frame_waits_for_a_slow_read(run, window, golden, frame_geometries, monkeypatch):
    """A slow disk must not prevent the frame."""
    monkeypatch.setattr(jump_highlight, "MAX_POLLS", 2)
    monkeypatch.setattr(theme, "motion", True)

    async def jump():
        assert await window.open(golden("broker-orders"), "log:0")
        await window.settled()
        units = window.findChild(RecordView, "units.table").model()
        column = next(n for n in range(units.columnCount()) if units.headerData(n, HORIZONTAL) == "Physical offset")
        second = int(units.index(1, column).data().replace(",", ""))
        frames_before, may_end = len(frame_geometries), threading.Event()
        read = asyncio.ensure_future(window.jobs.quick(lambda: may_end.wait(60)))
        await wait_until(lambda: not window.jobs.quick_idle, "the read has begun")
        window.go(replace(places.log(second), field="bodyCRC"))
        await asyncio.sleep(10 * jump_highlight.POLL_INTERVAL_MS / 1000)
        assert len(frame_geometries) == frames_before
        may_end.set()
        await read
        await wait_until(lambda: len(frame_geometries) > frames_before, "the row is framed")

    run(jump())
