"""Views come to the front part by part, and finally completely."""

from __future__ import annotations

from PySide6.QtWidgets import QApplication, QLabel, QScrollArea, QVBoxLayout, QWidget

from viewer.shell.view_stack import ViewStack, parts


def view_of(*heights: int) -> QWidget:
    view = QWidget()
    box = QVBoxLayout(view)
    for height in heights:
        part = QLabel("x")
        part.setFixedHeight(height)
        box.addWidget(part)
    return view


def stack_of(*views: QWidget) -> ViewStack:
    stack = ViewStack()
    for view in views:
        stack.addWidget(view)
    stack.resize(400, 400)
    stack.show()
    return stack


def test_a_view_seen_before_comes_part_by_part(themed_app: QApplication) -> None:
    first_view, second_view = view_of(100, 100, 100), view_of(150, 150)
    stack = stack_of(first_view, second_view)
    for view in (second_view, first_view):
        stack.setCurrentWidget(view)
        themed_app.processEvents()
    stack.setCurrentWidget(second_view)
    veiled = [part for part in second_view.findChildren(QLabel) if not part.updatesEnabled()]
    assert len(veiled) == 2
    for _ in range(50):
        themed_app.processEvents()
    assert all(part.updatesEnabled() for part in second_view.findChildren(QLabel))
    stack.close()


def test_fast_switching_leaves_no_part_hidden(themed_app: QApplication) -> None:
    first_view, second_view = view_of(100, 100, 100), view_of(150, 150)
    stack = stack_of(first_view, second_view)
    for number in range(7):
        stack.setCurrentWidget((first_view, second_view)[number % 2])
        if number < 2:
            themed_app.processEvents()
    assert all(part.updatesEnabled() for part in second_view.findChildren(QLabel))
    for _ in range(50):
        themed_app.processEvents()
    assert all(part.updatesEnabled() for part in first_view.findChildren(QLabel))
    stack.close()


def test_a_view_may_be_deleted_while_it_appears(themed_app: QApplication) -> None:
    first_view, second_view = view_of(100, 100, 100), view_of(150, 150)
    stack = stack_of(first_view, second_view)
    for view in (second_view, first_view, second_view):
        stack.setCurrentWidget(view)
        if view is first_view:
            themed_app.processEvents()
    stack.removeWidget(second_view)
    second_view.deleteLater()
    for _ in range(50):
        themed_app.processEvents()
    assert stack.currentWidget() is first_view
    stack.close()


def test_large_parts_are_split_and_small_ones_skipped(themed_app: QApplication) -> None:
    view = QWidget()
    box = QVBoxLayout(view)
    scroll, inner_view = QScrollArea(), view_of(80, 80, 2)
    scroll.setWidget(inner_view)
    scroll.setWidgetResizable(True)
    box.addWidget(scroll)
    stack = stack_of(view)
    themed_app.processEvents()
    assert [part.height() for part in parts(view)] == [80, 80]
    stack.close()
