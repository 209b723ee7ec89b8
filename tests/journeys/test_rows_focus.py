"""Tab and F6 lead through every view: they reach everything usable in reading order, visibly, and leave it again."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget
from walker import Run, Walker

from viewer.shell.views import BY_KIND
from viewer.widgets.basics import Link

pytestmark = pytest.mark.journey
MOST = 200
RING = 3


def name(part: QWidget) -> str:
    """Return the name of the part, or its position."""
    parent_widget: QWidget | None = part
    while parent_widget is not None and not parent_widget.objectName():
        parent_widget = parent_widget.parentWidget()
    return f"{type(part).__name__} {parent_widget.objectName() if parent_widget is not None else '?'}"


def area(walker: Walker, part: QWidget) -> QRect:
    """Return the rectangle of the part in the window."""
    return QRect(part.mapTo(walker.window, QPoint(0, 0)), part.size())


def is_above(walker: Walker, later: QWidget, earlier: QWidget) -> bool:
    """Return True if the part that comes next is higher, and not in a column to the right."""
    area_of_earlier, area_of_later = area(walker, earlier), area(walker, later)
    return area_of_later.bottom() < area_of_earlier.top() and area_of_later.left() < area_of_earlier.right()


async def tour(walker: Walker) -> tuple[list[QWidget], set[str]]:
    """Return the parts that Tab stops at in one round, and those that look the same with the focus and without."""
    window, parts, unseen = walker.window, [], set()
    while (part := window.focusWidget()) is not None and part not in parts:
        parts.append(part)
        assert len(parts) < MOST
        around = area(walker, part).adjusted(-RING, -RING, RING, RING)
        pane = window.panes[window.view]
        looked = len(parts) > 1 and pane.isAncestorOf(part)
        with_focus = window.grab(around).toImage() if looked else None
        QTest.keyClick(part, Qt.Key.Key_Tab)
        assert window.focusWidget() is not part, f"{name(part)} does not let go"
        if with_focus is not None and window.grab(around).toImage() == with_focus:
            unseen.add(name(part))
    assert window.focusWidget() in parts[:2], "Tab comes round to where it began"
    return parts, unseen


def round_by_f6(walker: Walker, pane: QWidget) -> tuple[list[QWidget], set[str]]:
    """Return the parts of a view that F6 stops at in one round, and those that look the same with the focus and
    without.
    """
    window, stops, unseen = walker.window, [], set()
    for _ in range(MOST):
        QTest.keyClick(window, Qt.Key.Key_F6)
        part = window.focusWidget()
        if part is None or part in stops:
            break
        stops.append(part)
        if pane.isAncestorOf(part):
            around = area(walker, part).adjusted(-RING, -RING, RING, RING)
            with_focus = window.grab(around).toImage()
            window.top.goto.setFocus()
            without_focus = window.grab(around).toImage()
            part.setFocus(Qt.FocusReason.ShortcutFocusReason)
            if with_focus == without_focus:
                unseen.add(name(part))
    return [part for part in stops if pane.isAncestorOf(part)], unseen


NAMES = tuple(BY_KIND)


@pytest.mark.full_form(keep=2)
@pytest.mark.parametrize("views", [NAMES[:4], NAMES[4:8], NAMES[8:]], ids="".join)
def test_tab_reaches_everything_in_reading_order(
    run: Run, walker: Walker, orders: Path, views: tuple[str, ...]
) -> None:
    async def walk() -> None:
        window = walker.window
        await walker.open(orders)
        window.activateWindow()
        await walker.until(window.isActiveWindow, "the window is active", 60)
        wrong: list[str] = []
        for view in views:
            window.show_view(view)
            await walker.rest()
            await asyncio.sleep(0.05)
            pane = window.panes[view]
            pane.setFocus()
            observed, unseen = await tour(walker)
            wrong += [f"{view}: {part_name} shows no focus" for part_name in sorted(unseen)]
            QTest.keyClick(window.rail.buttons["log"], Qt.Key.Key_Escape)
            if not pane.isAncestorOf(window.focusWidget()):
                wrong.append(f"{view}: Escape on the rail does not lead back into it")
            stops, unseen = round_by_f6(walker, pane)
            wrong += [f"{view}: F6 does not enter it"] if not stops else []
            wrong += [f"{view}: {part_name} shows no focus by F6" for part_name in sorted(unseen)]
            for part in pane.findChildren(QWidget):
                can_have_focus = part.focusPolicy() & Qt.FocusPolicy.TabFocus and part.isVisible() and part.isEnabled()
                if can_have_focus and part not in observed:
                    wrong.append(f"{view}: {name(part)} is not reached")
            wrong += [
                f"{view}: {name(later)} comes behind {name(earlier)}"
                for earlier, later in pairwise(part for part in observed if not isinstance(part, Link))
                if pane.isAncestorOf(earlier) and pane.isAncestorOf(later) and is_above(walker, later, earlier)
            ]
            assert {name(window.side.findChildren(QWidget, "store.tree")[0])} <= {name(part) for part in observed} or (
                not pane.wants_tree
            )
        assert not wrong, wrong

    run(walk())
