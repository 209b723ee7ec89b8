"""Line of the files of a log: retention deletes, keeps or waits."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt

from viewer.space.space_line import Block, LineFlag, SpaceLine
from viewer.widgets.log_line import LineFile, LogLine

LEFT = Qt.MouseButton.LeftButton


GIB = 1 << 30


BLOCKS = [
    Block(f"{n * GIB:020d}", n * GIB, (n + 1) * GIB, "goes" if n < 2 else "keep", "08:10", f"file {n}", (1.0, 0.5, 0.0))
    for n in range(8)
]


@pytest.fixture
def line(qtbot):
    space_line = SpaceLine()
    qtbot.addWidget(space_line)
    space_line.resize(900, 120)
    space_line.show()
    files = tuple(LineFile(block.name, block.start, block.end) for block in BLOCKS)
    flags = [
        LineFlag("2 files go", 0, "error", "2 GiB"),
        LineFlag("billing reads here", 5 * GIB, "posTime", "safe", -1),
    ]
    space_line.show_files(LogLine(0, 8 * GIB, 8 * GIB, files), BLOCKS, flags)
    space_line.grab()
    return space_line


def test_the_line_shows_what_is_deleted_and_which_groups_read(line):
    assert "2 files go 2 GiB" in line.accessibleDescription()
    assert "billing reads here safe" in line.accessibleDescription()
    assert line.words_under(QPointF(line._x(5 * GIB), 10)) == "billing reads here safe"
    assert line.words_under(QPointF(line._x(3 * GIB) + 4, 70)) == "file 3"


def test_flags_that_would_touch_lose_their_notes_then_the_last_go(line):
    flags = [LineFlag(f"flag {n} of many", n * (GIB // 8), "error", "a long note about it") for n in range(6)]
    for width in (1600, 500, 260, 60):
        line.resize(width, 120)
        line.show_files(line._line, BLOCKS, flags)
        line.grab()
        placed = line._placed_flags()
        assert placed
        boxes = [(p.level, p.left, p.left + w.width) for _, w, p in placed]
        for n, (level, left_edge, right_edge) in enumerate(boxes):
            assert (
                not [o for o in boxes[n + 1 :] if o[0] == level and o[1] < right_edge and left_edge < o[2]]
                or len(boxes) == 1
            )
    assert "flag 5 of many" in line.accessibleDescription()


def test_files_are_chosen_and_followed(line, qtbot):
    with qtbot.waitSignal(line.fileChosen) as chosen:
        qtbot.mouseClick(line, LEFT, pos=QPoint(round(line._x(3 * GIB)) + 5, 70))
    assert chosen.args[0] == BLOCKS[3]
    for key in (Qt.Key.Key_Right, Qt.Key.Key_End, Qt.Key.Key_Home, Qt.Key.Key_Left):
        qtbot.keyClick(line, key)
    assert line.chosen == BLOCKS[0]
    with qtbot.waitSignal(line.fileFollowed) as followed:
        qtbot.keyClick(line, Qt.Key.Key_Return)
    assert followed.args[0] == BLOCKS[0]


def test_the_page_cache_lies_under_the_files(line):
    picture = line.grab().toImage()
    ratio = line.devicePixelRatioF()
    y = round((62 + 22 + 3 + 2) * ratio)
    width = line._x(GIB) - line._x(0)
    cached = picture.pixelColor(round((line._x(0) + width * 0.1) * ratio), y)
    empty = picture.pixelColor(round((line._x(0) + width * 0.85) * ratio), y)
    assert cached != empty


def test_a_line_without_files_says_why(qtbot):
    space_line = SpaceLine()
    qtbot.addWidget(space_line)
    space_line.show_files(LogLine(0, 0, 0), (), (), "The log has no files.")
    space_line.grab()
    assert space_line.words_under(QPointF(5, 5)) == "The log has no files."
