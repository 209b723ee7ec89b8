"""The ruler of positions."""

from __future__ import annotations

from PySide6.QtCore import QPoint, Qt

from viewer.look.broken import UnreadableRange
from viewer.widgets.ruler import Ruler, RulerBand, RulerFlag, RulerGap, RulerView

HUGE = (1 << 63) - 1


def test_the_ruler_draws_nothing_and_everything(shown) -> None:
    ruler = shown(Ruler())
    ruler.show_view(RulerView())
    ruler.grab()
    flags = tuple(RulerFlag(f"flag {n}", HUGE - n, "posLog", n % 2 == 0, "12:00" if n % 3 else "") for n in range(8))
    view = RulerView(
        ((0, HUGE, "0"),),
        0,
        HUGE,
        flags,
        (RulerBand(0, HUGE, "disk", "on disk"), RulerBand(5, 5, "pool", "")),
        (RulerGap(HUGE - 9, HUGE, "to dispatch", True),),
        ((HUGE // 2, "error"),),
    )
    ruler.show_view(view)
    ruler.grab()
    begin, end = ruler.lens()
    assert begin <= HUGE - 8
    assert end > HUGE


def test_enter_on_a_flag_of_the_ruler_goes_to_its_whole_offset(shown, qtbot) -> None:
    ruler = shown(Ruler())
    offset = (1 << 61) + 12345
    ruler.show_view(RulerView(((0, 1 << 62, "0"),), 0, offset, (RulerFlag("wrote", offset, "posLog2", True),)))
    with qtbot.waitSignal(ruler.offset_chosen) as blocker:
        qtbot.keyClick(ruler, Qt.Key.Key_Right)
        qtbot.keyClick(ruler, Qt.Key.Key_Return)
    assert blocker.args == [offset]


def test_the_wheel_zooms_the_ruler_and_f_fits_it(shown, qtbot) -> None:
    ruler = shown(Ruler())
    ruler.show_view(RulerView(((0, 1 << 30, "0"),), 0, 1 << 29, (RulerFlag("min", 0, "posMin", True),)))
    lens = ruler.lens()
    from PySide6.QtCore import QPointF
    from PySide6.QtGui import QWheelEvent

    event = QWheelEvent(
        QPointF(400, 150),
        QPointF(400, 150),
        QPoint(0, 0),
        QPoint(0, 120),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    ruler.wheelEvent(event)
    begin, end = ruler.lens()
    assert end - begin < lens[1] - lens[0]
    qtbot.keyClick(ruler, Qt.Key.Key_F)
    assert ruler.lens() == lens


def test_the_overview_reaches_to_the_end_of_a_missing_last_file(shown) -> None:
    ruler = shown(Ruler())
    ruler.show_view(RulerView(((0, 100, "0"),), 0, 90, broken=(UnreadableRange(100, 200, "missing"),)))
    assert ruler._whole() == (0, 200)
    ruler.grab()
