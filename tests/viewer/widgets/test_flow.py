"""Parts laid out as words are: from left to right, the next line where they do not fit."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QLabel, QWidget

from viewer.widgets.flow import Flow


@pytest.fixture
def host(shown):
    root = QWidget()
    flow = Flow(gap=10, line_gap=5)
    root.setLayout(flow)
    for number in range(6):
        part = QLabel(str(number))
        part.setFixedSize(100, 20)
        flow.addWidget(part)
    return shown(root)


def test_lines_break_where_the_next_part_does_not_fit(host):
    flow = host.layout()
    one, two, six = (flow.heightForWidth(width) for width in (2000, 340, 100))
    assert one < two < six
    host.resize(340, two)
    flow.setGeometry(host.rect())
    tops = [flow.itemAt(number).geometry().top() for number in range(6)]
    assert tops[:3] == [tops[0]] * 3
    assert tops[3:] == [tops[3]] * 3
    assert tops[3] > tops[0]
    assert flow.itemAt(6) is None


def test_a_part_that_is_taken_is_none_any_more(host):
    flow = host.layout()
    assert flow.takeAt(0).widget().text() == "0"
    assert flow.count() == 5
    assert flow.takeAt(9) is None
