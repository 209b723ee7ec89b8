"""Rows that wrap: the end of a line, the parts that grow, the height of the widget."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QLabel, QLineEdit, QSizePolicy, QWidget

from viewer.widgets.basics import PaneHead
from viewer.widgets.boxes import column, fixed_row, wrapped_row
from viewer.widgets.flow import Flow


def part(width: int, name: str = "") -> QLabel:
    label = QLabel(name)
    label.setFixedSize(width, 20)
    return label


def growing(least: int) -> QWidget:
    field = QWidget()
    field.setMinimumWidth(least)
    field.setFixedHeight(20)
    field.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
    return field


@pytest.fixture
def host(shown):
    root = QWidget()
    flow = Flow(gap=10, line_gap=5)
    root.setLayout(flow)
    for number in range(6):
        flow.addWidget(part(100, str(number)))
    return shown(root)


def test_lines_break_where_the_next_part_does_not_fit(host):
    flow = host.layout()
    one_line, two_lines, six_lines = (flow.heightForWidth(width) for width in (2000, 340, 100))
    assert one_line < two_lines < six_lines
    host.resize(340, two_lines)
    flow.setGeometry(host.rect())
    tops = [flow.itemAt(number).geometry().top() for number in range(6)]
    assert tops[:3] == [tops[0]] * 3
    assert tops[3:] == [tops[3]] * 3
    assert tops[3] > tops[0]
    assert flow.itemAt(6) is None


def test_a_row_takes_further_lines_and_gives_them_back(shown, qtbot):
    parts = [part(100) for _ in range(4)]
    line = wrapped_row(*parts, gap=10)
    host = shown(column(line, None))
    for width, tops in ((500, 1), (250, 2), (120, 4), (500, 1)):
        host.resize(width, 300)
        qtbot.waitUntil(lambda tops=tops: len({widget.y() for widget in parts}) == tops)
        assert line.height() >= max(widget.geometry().bottom() for widget in parts)
        assert all(widget.geometry().right() < width for widget in parts)
    parts[0].hide()
    host.resize(340, 300)
    qtbot.waitUntil(lambda: len({widget.y() for widget in parts[1:]}) == 1)


def test_an_expanding_widget_takes_the_rest_of_its_line(shown):
    field, button = growing(60), part(100)
    host = shown(wrapped_row(part(50), field, button, gap=10))
    host.resize(400, 20)
    assert (field.width(), button.geometry().right()) == (230, 399)
    host.resize(180, 20)
    host.layout().activate()
    assert (field.width(), button.y() > field.y()) == (120, True)


def test_a_name_with_its_field_leaves_the_width_to_what_expands(shown):
    """Names with their fields shared what was left of a form with the field for the key, which had no room."""
    name, field, key = part(40), QLineEdit(), growing(60)
    field.setFixedWidth(80)
    host = shown(wrapped_row(key, fixed_row(name, field, gap=10), gap=10))
    host.resize(400, field.sizeHint().height())
    assert (key.width(), field.parentWidget().width()) == (260, 130)


def test_a_stretching_gap_puts_the_rest_at_the_right(shown):
    first, last = part(50), part(60)
    host = shown(wrapped_row(first, None, last, gap=10))
    host.resize(300, 20)
    assert (first.x(), last.geometry().right()) == (0, 299)


def test_a_head_of_a_pane_cuts_its_note_before_it_wraps_its_tools(shown, qtbot):
    tools = [part(90), part(90)]
    head = PaneHead("Findings", "a note that has a few words", *tools)
    host = shown(column(head, None))
    host.resize(600, 200)
    qtbot.waitUntil(lambda: head.width() == 600)
    assert (head.height(), tools[1].geometry().right()) == (32, 591)
    host.resize(320, 200)
    qtbot.waitUntil(lambda: head.width() == 320)
    assert head.height() == 32
    host.resize(200, 200)
    qtbot.waitUntil(lambda: head.height() > 32)
    assert head.title.width() >= head.title.sizeHint().width()
    assert all(tool.geometry().right() < 200 for tool in tools)
