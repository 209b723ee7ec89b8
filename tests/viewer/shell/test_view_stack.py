"""Views come to the front part by part, and all of them is there in the end."""

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
    first, second = view_of(100, 100, 100), view_of(150, 150)
    stack = stack_of(first, second)
    for view in (second, first):
        stack.setCurrentWidget(view)
        themed_app.processEvents()
    stack.setCurrentWidget(second)
    veiled = [part for part in second.findChildren(QLabel) if not part.updatesEnabled()]
    assert len(veiled) == 2
    for _ in range(50):
        themed_app.processEvents()
    assert all(part.updatesEnabled() for part in second.findChildren(QLabel))
    stack.close()


def test_one_who_leafs_fast_leaves_no_part_behind(themed_app: QApplication) -> None:
    first, second = view_of(100, 100, 100), view_of(150, 150)
    stack = stack_of(first, second)
    for number in range(7):
        stack.setCurrentWidget((first, second)[number % 2])
        if number < 2:
            themed_app.processEvents()
    assert all(part.updatesEnabled() for part in second.findChildren(QLabel))
    for _ in range(50):
        themed_app.processEvents()
    assert all(part.updatesEnabled() for part in first.findChildren(QLabel))
    stack.close()


def test_a_view_that_is_deleted_while_it_comes_harms_nothing(themed_app: QApplication) -> None:
    first, second = view_of(100, 100, 100), view_of(150, 150)
    stack = stack_of(first, second)
    for view in (second, first, second):
        stack.setCurrentWidget(view)
        if view is first:
            themed_app.processEvents()
    stack.removeWidget(second)
    second.deleteLater()
    for _ in range(50):
        themed_app.processEvents()
    assert stack.currentWidget() is first
    stack.close()


def test_large_parts_are_taken_apart_and_small_ones_left_out(themed_app: QApplication) -> None:
    view = QWidget()
    box = QVBoxLayout(view)
    scroll, held = QScrollArea(), view_of(80, 80, 2)
    scroll.setWidget(held)
    scroll.setWidgetResizable(True)
    box.addWidget(scroll)
    stack = stack_of(view)
    themed_app.processEvents()
    assert [part.height() for part in parts(view)] == [80, 80]
    stack.close()
