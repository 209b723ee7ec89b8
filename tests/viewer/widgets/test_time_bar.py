"""The slider over the time that is held, by hand and by keys."""

from __future__ import annotations

from PySide6.QtCore import QPoint, Qt

from viewer.widgets.time_bar import Tick, TimeBar, TimeTrack

START = 1_795_280_000_000


def test_hand_and_keys_move_it(qtbot) -> None:
    track = TimeTrack()
    qtbot.addWidget(track)
    track.resize(416, 44)
    track.show()
    span = (START, START + 40_000)
    track.show_time(span, span[1], [Tick(START + 1000, "warn", "flush paused"), Tick(START + 1100, "ok", "goes on")])
    moved = []
    track.moved.connect(moved.append)
    qtbot.mousePress(track, Qt.MouseButton.LeftButton, pos=QPoint(208, 16))
    assert abs(moved[-1] - (START + 20_000)) < 200
    for key, position in (
        (Qt.Key.Key_Home, span[0]),
        (Qt.Key.Key_End, span[1]),
        (Qt.Key.Key_Left, span[1] - 1000),
        (Qt.Key.Key_PageUp, span[1] - 10_000),
        (Qt.Key.Key_Right, span[1]),
    ):
        qtbot.keyClick(track, key)
        assert moved[-1] == position
    track.grab()


def test_every_tool_has_a_name(qtbot) -> None:
    bar = TimeBar("positions")
    qtbot.addWidget(bar)
    for tool in (bar.record, bar.pause, bar.play, bar.end, bar.load):
        assert tool.objectName().startswith("positions.")
        assert tool.accessibleName()
    bar.grab()
