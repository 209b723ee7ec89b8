from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QGuiApplication, QHelpEvent
from PySide6.QtWidgets import QToolTip

from viewer.widgets.byte_values import hex_text, python_literal
from viewer.widgets.hex_pages import HexField
from viewer.widgets.hex_view import HexView

FAR = (1 << 43) + 5
DATA = bytes(range(64)) * 100
FIELDS = [
    HexField("totalSize", 0, 4, "frame"),
    HexField("magicCode", 4, 4, "frame"),
    HexField("body", 8, 40, "body"),
    HexField("properties.KEYS", 48, 16, "props"),
]


def read(offset, size):
    """A file of 6,400 bytes that begins 1,000 bytes in front of FAR."""
    position = offset - (FAR - 1000)
    return DATA[max(0, position) : max(0, position + size)]


@pytest.fixture
def view(qtbot):
    hex_view = HexView()
    qtbot.addWidget(hex_view)
    hex_view.resize(840, 300)
    hex_view.show()
    hex_view.show_bytes(read, FAR, FIELDS, 64, FAR - 1000, FAR + 5400)
    return hex_view


def centre(view, offset):
    m = view._metrics()
    row, column = divmod(offset - view.origin, 16)
    return QPointF(m.hex_x(column) + m.cell / 2, m.head + (row - view._top) * m.row + m.row / 2)


def test_a_click_on_a_byte_chooses_its_field(view, qtbot):
    with qtbot.waitSignal(view.fieldChosen) as chosen:
        qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=centre(view, FAR + 5).toPoint())
    assert chosen.args == ["magicCode"]
    assert view.selection() == (FAR + 4, FAR + 8)
    assert view.cursor_offset == FAR + 5


@pytest.mark.parametrize("chosen", ["field", "fields", "span", "nothing"])
def test_the_focus_is_visible_on_a_chosen_byte(view, chosen):
    """Tab came from the tree of fields, whose chosen head lit its bytes, and nothing showed that the bytes had the
    focus: the cursor's frame had the colour of the ground below it.
    """
    if chosen == "field":
        view.choose_field("magicCode")
    elif chosen == "fields":
        view.choose_fields({"totalSize", "magicCode"})
    elif chosen == "span":
        view.choose_span(FAR + 8, FAR + 20)
    view.clearFocus()
    without = view.grab().toImage()
    view.hasFocus = lambda: True
    view.viewport().update()
    assert view.grab().toImage() != without


def test_shift_and_arrows_select_bytes_and_copy_them_in_three_forms(view, qtbot):
    qtbot.keyClick(view, Qt.Key.Key_Home, Qt.KeyboardModifier.ControlModifier)
    for _ in range(3):
        qtbot.keyClick(view, Qt.Key.Key_Right, Qt.KeyboardModifier.ShiftModifier)
    assert view.selection() == (FAR, FAR + 4)
    expected = read(FAR, 4)
    for form, text in (
        ("hex", hex_text(expected)),
        ("python", repr(expected)),
        ("text", expected.decode("utf-8", "replace")),
    ):
        with qtbot.waitSignal(view.copied):
            view.copy(form)
        assert QGuiApplication.clipboard().text() == text
    qtbot.keyClick(view, Qt.Key.Key_Down, Qt.KeyboardModifier.ShiftModifier)
    assert view.selection() == (FAR, FAR + 20)
    assert "20 bytes selected" in view.accessibleDescription()


def test_a_drag_selects_from_byte_to_byte(view, qtbot):
    qtbot.mousePress(view.viewport(), Qt.MouseButton.LeftButton, pos=centre(view, FAR + 18).toPoint())
    qtbot.mouseMove(view.viewport(), centre(view, FAR + 35).toPoint())
    view.mouseMoveEvent(_move(centre(view, FAR + 35)))
    qtbot.mouseRelease(view.viewport(), Qt.MouseButton.LeftButton, pos=centre(view, FAR + 35).toPoint())
    assert view.selection() == (FAR + 18, FAR + 36)


def _move(point):
    from PySide6.QtCore import QEvent
    from PySide6.QtGui import QMouseEvent

    button = Qt.MouseButton.LeftButton
    return QMouseEvent(QEvent.Type.MouseMove, point, point, button, button, Qt.KeyboardModifier.NoModifier)


def test_the_byte_under_the_cursor_is_spoken_with_its_place_in_the_field(view, qtbot):
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=centre(view, FAR + 7).toPoint())
    value = read(FAR + 7, 1)[0]
    assert view.accessibleDescription() == f"byte 4 of magicCode, 0x{value:02X}, offset {FAR + 7:,}"


def test_choosing_a_field_from_code_emits_nothing(view, qtbot):
    emitted = []
    view.fieldChosen.connect(emitted.append)
    view.choose_field("properties.KEYS")
    assert view.selection() == (FAR + 48, FAR + 64)
    assert emitted == []
    view.choose_field("no such field")
    assert view.chosen_field == ""


def test_the_cursor_reaches_the_bytes_around_the_unit_and_goes_no_further(view, qtbot):
    for _ in range(200):
        qtbot.keyClick(view, Qt.Key.Key_PageUp)
    assert view.cursor_offset == FAR - 1000
    for _ in range(400):
        qtbot.keyClick(view, Qt.Key.Key_PageDown)
    assert view.cursor_offset == FAR + 64 + 1024 - 1
    assert view.grab().width() == 840


def test_unread_bytes_are_marked_and_old_answers_dropped(qtbot):
    waiting = []
    view = HexView(runner=lambda work, done, failed: waiting.append((work, done)))
    qtbot.addWidget(view)
    view.resize(840, 200)
    view.show()
    view.show_bytes(read, FAR, FIELDS, 64)
    assert "…" in view.spoken()
    view.grab()
    old, waiting[:] = list(waiting), []
    view.show_bytes(lambda offset, size: b"\xee" * size, FAR, FIELDS, 64)
    for work, done in waiting + old:
        done(work())
    assert "0xEE" in view.spoken()


def test_an_empty_view_copies_and_says_nothing(qtbot):
    view = HexView()
    qtbot.addWidget(view)
    view.copy()
    assert view.spoken() == ""
    view.grab()


def test_python_source_of_bytes_gives_the_bytes_again():
    data = bytes(range(200))
    assert eval(python_literal(data)) == data


def test_bytes_that_patches_change_glow_and_tell_their_old_value(view, qtbot):
    plain = view.grab().toImage()
    point = centre(view, FAR + 9).toPoint()
    view.set_changes({FAR + 9: 0x88, FAR + 10: None})
    assert view.grab().toImage() != plain
    view.choose_span(FAR + 9, FAR + 10)
    assert view.spoken().endswith(", 0x88 without the patches")
    view.choose_span(FAR + 10, FAR + 11)
    assert view.spoken().endswith(", added by a patch")
    help_event = QHelpEvent(QEvent.Type.ToolTip, point, view.viewport().mapToGlobal(point))
    view.viewportEvent(help_event)
    assert QToolTip.text() == "0x88 without the patches"
    view.set_changes({})
    view.viewportEvent(help_event)
    assert view.spoken().endswith(f"offset {FAR + 10:,}")


def test_a_typed_digit_asks_for_other_bytes_where_changes_are_offered(view, qtbot):
    asked = []
    view.changeRequested.connect(lambda *request: asked.append(request))
    view.choose_field("magicCode")
    qtbot.keyClick(view, "a")
    assert asked == []
    view.offers_changes = True
    qtbot.keyClick(view, "a")
    view.ask_change()
    view.choose_span(FAR + 8, FAR + 11)
    qtbot.keyClick(view, "7")
    qtbot.keyClick(view, "c", Qt.KeyboardModifier.ControlModifier)
    assert asked == [(FAR + 4, FAR + 5, "a"), (FAR + 4, FAR + 8, ""), (FAR + 8, FAR + 11, "7")]
