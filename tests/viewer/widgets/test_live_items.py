"""A live plot that is drawn: zoomed, dragged and fitted by the pointer."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication

from viewer.widgets.live_items import LivePlotWidget, columns_of


@pytest.fixture
def plot(qtbot):
    made = LivePlotWidget()
    qtbot.addWidget(made)
    made.resize(600, 200)
    made.show()
    return made


def test_a_wide_plot_has_a_column_for_two_px():
    assert columns_of(10) == 64
    assert columns_of(1000) > columns_of(600) > 64


def test_the_area_lies_inside_the_widget(plot):
    area = plot.area()
    assert plot.rect().contains(area)
    assert area.width() > 400
    assert not plot.grab().isNull()


def test_the_wheel_zooms_around_the_pointer_and_a_double_click_fits(plot, qtbot):
    zoomed, fitted = [], []
    plot.zoomed.connect(lambda *told: zoomed.append(told))
    plot.fitted.connect(lambda: fitted.append(True))
    at = QPointF(plot.area().center())
    wheel = QWheelEvent(at, plot.mapToGlobal(at), QPoint(), QPoint(0, 120), Qt.MouseButton.NoButton,
                        Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False)  # fmt: skip
    QApplication.sendEvent(plot, wheel)
    assert len(zoomed) == 1
    qtbot.mouseDClick(plot, Qt.MouseButton.LeftButton, pos=at.toPoint())
    assert fitted == [True]
