"""Painted widgets take extreme values without failing, and their keys and clicks say 64-bit offsets."""

from __future__ import annotations

import math

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QApplication, QWidget

from engine.inspection.slot_load import SlotLoad
from viewer.index.chain_canvas import ChainCanvas
from viewer.index.chain_layout import ChainCard, ChainLane
from viewer.index.hash_strip import HashStrip, StripPart
from viewer.index.slot_map import ChainHistogram, SlotMap, short_count
from viewer.look.theme import theme
from viewer.queues.entry_cells import ByteField, EntryBytes, EntryCells
from viewer.queues.queue_line import QueueFile, QueueFlag, QueueLine, QueueSpan, choose_flags
from viewer.widgets.recovery_line import LineFlag, Part, RecoveryLine, shares
from viewer.widgets.ruler import Ruler, RulerBand, RulerFlag, RulerGap, RulerView

HUGE = (1 << 63) - 1


@pytest.fixture
def shown(qtbot):
    app = QApplication.instance()
    assert isinstance(app, QApplication)
    theme.apply(app)

    def show(widget: QWidget, width: int = 900) -> QWidget:
        qtbot.addWidget(widget)
        widget.resize(width, widget.sizeHint().height())
        widget.show()
        widget.grab()
        return widget

    return show


def test_the_ruler_draws_nothing_and_everything(shown) -> None:
    ruler = shown(Ruler())
    ruler.show_view(RulerView())
    ruler.grab()
    flags = tuple(RulerFlag(f"flag {n}", HUGE - n, "posLog", n % 2 == 0, "12:00" if n % 3 else "") for n in range(8))
    view = RulerView(
        ((0, HUGE, "0"),), 0, HUGE, flags, (RulerBand(0, HUGE, "disk", "on disk"), RulerBand(5, 5, "pool", "")),
        (RulerGap(HUGE - 9, HUGE, "to dispatch", True),), ((HUGE // 2, "error"),),
    )  # fmt: skip
    ruler.show_view(view)
    ruler.grab()
    low, high = ruler.lens()
    assert low <= HUGE - 8
    assert high > HUGE


def test_enter_on_a_flag_of_the_ruler_goes_to_its_whole_offset(shown, qtbot) -> None:
    ruler = shown(Ruler())
    offset = (1 << 61) + 12345
    ruler.show_view(RulerView(((0, 1 << 62, "0"),), 0, offset, (RulerFlag("wrote", offset, "posLog2", True),)))
    with qtbot.waitSignal(ruler.offset_chosen) as told:
        qtbot.keyClick(ruler, Qt.Key.Key_Right)
        qtbot.keyClick(ruler, Qt.Key.Key_Return)
    assert told.args == [offset]


def test_the_wheel_zooms_the_ruler_and_f_fits_it(shown, qtbot) -> None:
    ruler = shown(Ruler())
    ruler.show_view(RulerView(((0, 1 << 30, "0"),), 0, 1 << 29, (RulerFlag("min", 0, "posMin", True),)))
    whole = ruler.lens()
    from PySide6.QtCore import QPointF
    from PySide6.QtGui import QWheelEvent

    event = QWheelEvent(
        QPointF(400, 150), QPointF(400, 150), QPoint(0, 0), QPoint(0, 120), Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    ruler.wheelEvent(event)
    low, high = ruler.lens()
    assert high - low < whole[1] - whole[0]
    qtbot.keyClick(ruler, Qt.Key.Key_F)
    assert ruler.lens() == whole


def test_a_click_on_the_queue_line_names_an_entry(shown, qtbot) -> None:
    line = shown(QueueLine())
    base = 5_000_000_000
    line.show_span(QueueSpan((QueueFile("0", base, base + 1000),), base, base + 1000))
    with qtbot.waitSignal(line.entry_chosen) as told:
        qtbot.mouseClick(line, Qt.MouseButton.LeftButton, pos=QPoint(450, 50))
    assert base + 400 < told.args[0] < base + 600
    line.show_window(base + 100, base + 200)
    with qtbot.waitSignal(line.entry_chosen) as told:
        qtbot.keyClick(line, Qt.Key.Key_Right)
    assert told.args == [base + 200]


def test_groups_of_one_place_share_a_flag_and_trouble_comes_first() -> None:
    groups = [QueueFlag(name, offset, role) for name, offset, role in (
        ("a", 10, "posBuild"), ("b", 10, "posBuild"), ("c", 5, "error"), ("d", 90, "posLog"),
    )]  # fmt: skip
    chosen = choose_flags(groups, 2)
    assert [(flag.name, flag.offset) for flag in chosen] == [("c", 5), ("a · b", 10)]


def test_cells_walk_by_arrow_keys(shown, qtbot) -> None:
    cells = shown(EntryCells())
    base = 1 << 40
    cells.show_entries({base: "ok", base + 1: "missing"}, (base, base + 500), {base + 3: ("group", "posBuild")})
    cells.choose(base)
    cells.grab()
    assert "ok" in cells.accessibleDescription()
    with qtbot.waitSignal(cells.entry_chosen) as told:
        qtbot.keyClick(cells, Qt.Key.Key_Down)
    assert told.args == [base + 32]
    with qtbot.waitSignal(cells.entry_chosen) as told:
        qtbot.mouseClick(cells, Qt.MouseButton.LeftButton, pos=cells._cell(5).center().toPoint())
    assert told.args == [base + 5]


def test_an_entry_that_is_cut_off_still_shows_its_fields(shown) -> None:
    widget = shown(EntryBytes(), 360)
    widget.show_entry(
        b"\x00\x01", [ByteField("physicalOffset", 0, 8, "id", "1"), ByteField("x", 8, 20, "frame", "", "note")]
    )
    widget.grab()
    assert "physicalOffset" in widget.accessibleDescription()


def load(cells: int = 896, slots: int = 5_000_000) -> SlotLoad:
    means = tuple(float(n % 20) for n in range(cells))
    return SlotLoad(slots, 20_000_000, 4_900_000, means, tuple(range(11)), 21, 7, 0, True)


def test_the_slot_map_names_the_first_slot_of_a_cell(shown, qtbot) -> None:
    widget = shown(SlotMap())
    widget.show_load(load())
    widget.choose(4_999_999, 3)
    widget.grab()
    with qtbot.waitSignal(widget.slot_chosen) as told:
        qtbot.mouseClick(widget, Qt.MouseButton.LeftButton, pos=QPoint(14, 10))
    assert told.args == [0]
    widget.show_load(load(3, 3))
    widget.choose(2)
    widget.grab()
    widget.show_load(None, "counting")
    widget.grab()
    assert widget.accessibleDescription() == "counting"


def test_the_histogram_marks_the_chosen_length(shown) -> None:
    widget = shown(ChainHistogram())
    widget.show_load(load(), 50)
    widget.grab()
    assert "10: 10" in widget.accessibleDescription()
    assert [short_count(n) for n in (999, 12_345, 4_900_000)] == ["999", "12k", "4.9M"]


def test_the_chain_follows_the_arrow_keys_to_a_unit(shown, qtbot) -> None:
    canvas = shown(ChainCanvas())
    cards = (ChainCard(2, 9, "hashDiffers", folded=4), ChainCard(6, 5, "match", "T#k", 1 << 50, "09:00:00"))
    canvas.show_lanes([
        ChainLane("b", "span", False, "passed over"),
        ChainLane("a", "span", True, "why", 7, 1, 9, cards, loop_to=9, end_note=("loop", "back to 9")),
        ChainLane("c", "span", True, "why", 7, 1, 9, cards, quiet="only other keys"),
    ])  # fmt: skip
    canvas.grab()
    with qtbot.waitSignal(canvas.chosen) as told:
        qtbot.keyClick(canvas, Qt.Key.Key_Right)
    assert told.args == [2]
    qtbot.keyClick(canvas, Qt.Key.Key_Right)
    assert "match" in canvas.accessibleDescription()
    with qtbot.waitSignal(canvas.followed) as told:
        qtbot.keyClick(canvas, Qt.Key.Key_Return)
    assert told.args == [6]


def test_what_is_there_is_never_too_thin_to_see() -> None:
    widths = shares([10**12, 1, 0, 5])
    assert math.isclose(sum(widths), 1.0)
    assert widths[1] > 0.01
    assert widths[2] == 0
    assert shares([0, 0]) == [0.0, 0.0]


def test_the_recovery_line_says_its_parts(shown) -> None:
    line = shown(RecoveryLine("line", "Line"))
    kinds = ("keep", "again", "drop", "gone", "zero")
    line.show_parts(
        [Part(0.2, kind, kind) for kind in kinds], [LineFlag(0.4, "end of log", "error")], [(0, "0"), (1, "9")]
    )
    line.grab()
    assert "end of log" in line.accessibleDescription()


def test_the_strip_shortens_the_key_before_anything_else(shown) -> None:
    strip = shown(HashStrip(), 500)
    strip.show_parts([StripPart("key text", "T#" + "k" * 500), StripPart("hash", "1,463,187,583", follows=True)])
    strip.grab()
    assert "1,463,187,583" in strip.accessibleDescription()


def test_every_canvas_follows_zoom_and_colours(shown) -> None:
    widgets = [shown(kind()) for kind in (Ruler, QueueLine, EntryCells, SlotMap, ChainHistogram, HashStrip)]
    widgets.append(shown(RecoveryLine("line", "Line")))
    heights = [widget.height() for widget in widgets]
    try:
        theme.set_zoom(150)
        theme.set_scheme("dark")
        for widget in widgets:
            widget.grab()
        assert widgets[0].minimumHeight() > heights[0]
    finally:
        theme.set_zoom(100)
        theme.set_scheme("light")
