"""The strip of the time histogram with real keys and a real pointer, and what it draws."""

from __future__ import annotations

import pytest
from histogram_data import BEGIN, minute
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication

from viewer.pane.time_histogram import TimeHistogram

MIDDLE = 50


@pytest.fixture
def strip(qtbot) -> TimeHistogram:
    strip = TimeHistogram("test.histogram")
    qtbot.addWidget(strip)
    strip.resize(624, strip.sizeHint().height())
    strip.show()
    strip.model.take(minute())
    strip.look_again()
    return strip


def point(strip: TimeHistogram, second: float) -> QPoint:
    return QPointF(strip.x_of(BEGIN + 1000 * second), MIDDLE).toPoint()


def turn_wheel(strip: TimeHistogram, second: float, delta: int, modifiers=Qt.KeyboardModifier.NoModifier) -> bool:
    place = QPointF(point(strip, second))
    event = QWheelEvent(
        place,
        QPointF(strip.mapToGlobal(place.toPoint())),
        QPoint(),
        QPoint(0, delta),
        Qt.MouseButton.NoButton,
        modifiers,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(strip, event)
    return event.isAccepted()


def test_a_drag_chooses_a_range_and_a_click_the_first_unit_of_a_bar(strip, qtbot) -> None:
    ranges, offsets = [], []
    strip.rangeBrushed.connect(lambda begin, end: ranges.append((begin, end)))
    strip.offsetChosen.connect(offsets.append)
    qtbot.mousePress(strip, Qt.MouseButton.LeftButton, pos=point(strip, 10))
    qtbot.mouseMove(strip, point(strip, 15))
    qtbot.mouseMove(strip, point(strip, 20))
    assert strip.model.brush is not None
    strip.grab()
    qtbot.mouseRelease(strip, Qt.MouseButton.LeftButton, pos=point(strip, 20))
    ((begin, end),) = ranges
    assert abs(begin - BEGIN - 10_000) < 200
    assert abs(end - BEGIN - 20_000) < 200
    assert strip.model.brush is None
    qtbot.mouseClick(strip, Qt.MouseButton.LeftButton, pos=point(strip, 40.5))
    assert offsets == [400_000]
    qtbot.mouseClick(strip, Qt.MouseButton.LeftButton, pos=point(strip, 25))
    assert offsets == [400_000], "no message was stored there"


def test_the_wheel_zooms_and_a_double_click_shows_all(strip, qtbot) -> None:
    with qtbot.waitSignal(strip.moved):
        assert turn_wheel(strip, 30, 120)
    assert strip.model.end - strip.model.begin < 40_000
    assert abs(strip.time_at(strip.x_of(BEGIN + 30_000)) - BEGIN - 30_000) < 200
    begin = strip.model.begin
    turn_wheel(strip, 30, -120, Qt.KeyboardModifier.ShiftModifier)
    assert strip.model.begin > begin
    assert not turn_wheel(strip, 30, 120, Qt.KeyboardModifier.ControlModifier), "that is the window's zoom"
    qtbot.mouseDClick(strip, Qt.MouseButton.LeftButton, pos=point(strip, 35))
    assert not strip.model.is_zoomed


def test_keys_do_what_the_pointer_does(strip, qtbot) -> None:
    ranges, offsets, undone = [], [], []
    strip.rangeBrushed.connect(lambda begin, end: ranges.append((begin, end)))
    strip.offsetChosen.connect(offsets.append)
    strip.undoRequested.connect(lambda: undone.append(True))
    for key in (Qt.Key.Key_Home, Qt.Key.Key_Right, Qt.Key.Key_Right):
        qtbot.keyClick(strip, key)
    qtbot.keyClick(strip, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert offsets == [20_000]
    qtbot.keyClick(strip, Qt.Key.Key_Return)
    assert (ranges.pop(), offsets) == ((BEGIN + 2000, BEGIN + 3000), [20_000])
    assert "3 messages" in strip.accessibleDescription()
    for _ in range(2):
        qtbot.keyClick(strip, Qt.Key.Key_Right, Qt.KeyboardModifier.ShiftModifier)
    strip.grab()
    qtbot.keyClick(strip, Qt.Key.Key_Return)
    assert ranges == [(BEGIN + 2000, BEGIN + 5000)]
    qtbot.keyClick(strip, Qt.Key.Key_Left, Qt.KeyboardModifier.ShiftModifier)
    qtbot.keyClick(strip, Qt.Key.Key_Escape)
    assert strip.model.brush is None
    assert not undone
    qtbot.keyClick(strip, Qt.Key.Key_Escape)
    assert undone == [True]
    qtbot.keyClick(strip, Qt.Key.Key_Plus)
    assert strip.model.is_zoomed
    qtbot.keyClick(strip, Qt.Key.Key_Minus)
    qtbot.keyClick(strip, Qt.Key.Key_0)
    assert not strip.model.is_zoomed
    qtbot.keyClick(strip, Qt.Key.Key_Space)
    assert strip.model.shows_bytes


def test_the_menu_of_a_bar_filters_goes_there_zooms_and_copies(strip, qtbot) -> None:
    ranges, offsets, undone = [], [], []
    strip.rangeBrushed.connect(lambda begin, end: ranges.append((begin, end)))
    strip.offsetChosen.connect(offsets.append)
    strip.undoRequested.connect(lambda: undone.append(True))

    def choose(second: float, text: str) -> bool:
        menu, _ = strip.menu._make(QPointF(point(strip, second)))
        action = next(action for action in menu.actions() if action.text() == text)
        was_enabled = action.isEnabled()
        action.trigger()
        menu.deleteLater()
        return was_enabled

    assert choose(40.5, "Filter by the time of this bar")
    assert choose(40.5, "Go to its first message")
    assert choose(40.5, "Take the last range back")
    assert (ranges, offsets, undone) == ([(BEGIN + 40_000, BEGIN + 41_000)], [400_000], [True])
    assert not choose(40.5, "Show the whole time")
    assert choose(40.5, "Zoom in")
    assert choose(40.5, "Show the whole time")
    assert not strip.model.is_zoomed
    assert choose(40.5, "Bytes instead of messages")
    assert strip.model.shows_bytes
    assert choose(40.5, "Copy the bars as a table")
    head, _, *rows = QApplication.clipboard().text().splitlines()
    assert head.startswith("| From | To | Messages | Bytes | Orders |")
    assert len(rows) == len(strip.model.bars())
    strip.model.framed = None
    menu, _ = strip.menu._make(None)
    assert [action.isEnabled() for action in menu.actions()[:2]] == [False, False], "no bar is framed"


def test_without_bars_enter_and_a_click_ask_to_fill_it(strip, qtbot) -> None:
    strip.model.clear("Enter reads the log")
    asked = []
    strip.fillRequested.connect(lambda: asked.append(True))
    qtbot.keyClick(strip, Qt.Key.Key_Return)
    qtbot.mouseClick(strip, Qt.MouseButton.LeftButton, pos=QPoint(100, MIDDLE))
    assert len(asked) == 2
    strip.look_again()
    assert strip.accessibleDescription() == "Enter reads the log"
    strip.grab()


def test_bars_are_as_high_as_their_values_and_a_gap_stays_empty(strip) -> None:
    image = strip.grab().toImage()

    def height(second: float) -> int:
        x = point(strip, second).x()
        color = strip.color_of("Orders").rgb()
        ground = image.pixel(point(strip, 25).x(), 40)
        return sum(image.pixel(x, y) != ground for y in range(20, 74)) if color else 0

    low, high, gap = height(5.5), height(55.5), height(25)
    assert gap == 0
    assert low < high


def test_the_tip_describes_the_bar_under_the_pointer(strip) -> None:
    assert "Orders" in strip.words_under(QPointF(point(strip, 5.5)))
    assert strip.words_under(QPointF(point(strip, 25))).startswith("Messages over time")
