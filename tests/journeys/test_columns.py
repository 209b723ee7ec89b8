"""At 1280 × 720 and 1600 × 1000 every view shows its numbers, offsets, times and states whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from walker import PLACES, Run, Walker

from viewer.widgets.record_view import RecordView
from viewer.widgets.table_columns import WHOLE, rank_of

pytestmark = pytest.mark.journey


def tables(walker: Walker) -> Iterator[RecordView]:
    """Return the tables with rows in the current view."""
    for table in walker.window.panes[walker.window.view].findChildren(RecordView):
        if table.isVisible() and table.table.rows and table.width() > 40:
            yield table


def cut(table: RecordView) -> list[str]:
    """Return visible cells that are narrower than their text, in columns that must not be shortened."""
    head, top = table.horizontalHeader(), table.verticalScrollBar().value()
    actual_texts = []
    for number in range(top, min(len(table.table.rows), top + table.visible_rows())):
        look, texts = table.table.look(number), table.table.texts(number)
        until = look.words_from if look is not None and look.words else len(texts)
        for n, column in enumerate(table.kind.columns[:until]):
            if rank_of(column) == WHOLE and column.title and texts[n] and not head.isSectionHidden(n):
                needed = table.painter.cell_width(column, table.table.rows[number], texts[n])
                if head.sectionSize(n) < needed:
                    actual_texts.append(
                        f"{table.objectName()} {column.key} {texts[n]}: {head.sectionSize(n)} < {needed}"
                    )
    return actual_texts


@pytest.mark.full_form(keep=1)
@pytest.mark.parametrize("size", [(1280, 720), (1600, 1000)])
def test_no_number_offset_time_or_state_is_cut(run: Run, walker: Walker, orders: Path, size: tuple[int, int]) -> None:
    async def walk() -> None:
        walker.window.resize(*size)
        await walker.open(orders)
        names = set()
        for view in PLACES:
            assert await walker.window.go_to_text(view)
            await walker.rest()
            for table in tables(walker):
                names.add(table.objectName())
                assert cut(table) == [], view
                assert table.horizontalScrollBar().maximum() == 0, (view, table.objectName())
        assert {"units.table", "queue.table", "groups.table", "positions.now"} <= names
        walker.window.resize(1600, 1000)
        await walker.rest()

    run(walk())


def test_a_head_is_dragged_widened_and_reset(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        table = walker.table("units.table")
        head, name = table.horizontalHeader(), table.objectName()
        tags = walker.heads(name).index("Tag")
        width_before = head.sectionSize(tags)
        edge = QPoint(head.sectionViewportPosition(tags) + width_before - 1, head.height() // 2)
        port = head.viewport()
        QTest.mousePress(port, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, edge)
        QTest.mouseMove(port, edge + QPoint(40, 0))
        QTest.mouseRelease(port, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, edge + QPoint(40, 0))
        await walker.rest()
        assert head.sectionSize(tags) > width_before + 20
        assert walker.window.settings.columns(name) is not None
        edge = QPoint(head.sectionViewportPosition(tags) + head.sectionSize(tags) - 1, head.height() // 2)
        QTest.mouseDClick(port, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, edge)
        await walker.rest()
        assert abs(head.sectionSize(tags) - width_before) <= 2
        table.fitting.reset()
        assert walker.window.settings.columns(name) is None

    run(walk())


def test_the_columns_of_a_dialog_s_table_come_back_with_it(run: Run, walker: Walker, orders: Path) -> None:
    """Columns were forgotten with the dialog: only tables of views were restored."""

    async def walk() -> None:
        await walker.open(orders)
        walker.table("units.table").setCurrentIndex(walker.table("units.table").model().index(3, 2))
        for name, command in (("operations.table", "view.operations"), ("frequency.table", "frequency.open")):
            await walker.act(command)
            await walker.rest()
            table = walker.table(name)
            head = table.horizontalHeader()
            width, last_column = head.sectionSize(0) + 31, head.count() - 1
            head.resizeSection(0, width)
            head.moveSection(head.visualIndex(last_column), 1)
            table.window().close()
            await walker.rest()
            await walker.act(command)
            await walker.rest()
            second_table = walker.table(name)
            assert abs(second_table.horizontalHeader().sectionSize(0) - width) <= 1, name
            assert second_table.horizontalHeader().visualIndex(last_column) == 1, name
            second_table.fitting.reset()
            assert walker.window.settings.columns(name) is None
            second_table.window().close()
            await walker.rest()

    run(walk())
