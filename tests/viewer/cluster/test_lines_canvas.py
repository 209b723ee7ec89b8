"""The small cluster picture: the item under the pointer, the arrow keys, and painting in every state."""

from __future__ import annotations

import pytest
import sample_clusters as made
from PySide6.QtCore import QPointF, Qt
from PySide6.QtTest import QTest

from viewer.cluster.cluster_model import Selection
from viewer.cluster.lines_canvas import LinesCanvas
from viewer.look.theme import theme


@pytest.fixture
def canvas(shown) -> LinesCanvas:
    made_canvas = LinesCanvas()
    made_canvas.model = made.looked_at(made.small(0), made.small(5))
    made_canvas.show_picture()
    shown(made_canvas, width=1200)
    return made_canvas


def chosen_by(canvas: LinesCanvas) -> list[Selection]:
    results: list[Selection] = []
    canvas.chosen.connect(lambda item: (results.append(item), canvas.model.choose(item)))
    return results


def test_each_item_is_found_at_its_position(canvas):
    for column in canvas.columns():
        for box, item in column:
            assert canvas.item_at(box.center()) == item
    assert canvas.item_at(QPointF(300, 500)).kind == ""
    assert "4,500 behind" in canvas.words_under(canvas.box_of(Selection("queue", queue=made.B[0])).center())


def test_a_click_chooses_and_enter_follows(canvas, qtbot):
    chosen, followed = chosen_by(canvas), []
    canvas.itemFollowed.connect(followed.append)
    box = canvas.box_of(Selection("client", made.C3.client_id, "billing"))
    qtbot.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=box.center().toPoint())
    assert chosen == [Selection("client", made.C3.client_id, "billing")]
    QTest.keyClick(canvas, Qt.Key.Key_Return)
    assert followed == chosen
    qtbot.mouseDClick(canvas, Qt.MouseButton.LeftButton, pos=box.center().toPoint())
    assert len(followed) == 2


def test_arrows_go_along_columns_and_lines(canvas):
    chosen = chosen_by(canvas)
    QTest.keyClick(canvas, Qt.Key.Key_Down)
    assert chosen[-1].kind == "names"
    QTest.keyClick(canvas, Qt.Key.Key_Down)
    QTest.keyClick(canvas, Qt.Key.Key_Down)
    QTest.keyClick(canvas, Qt.Key.Key_Down)
    assert (chosen[-1].kind, chosen[-1].queue) == ("queue", made.A[0])
    QTest.keyClick(canvas, Qt.Key.Key_Right)
    assert chosen[-1] == Selection("client", made.C1.client_id, "billing")
    QTest.keyClick(canvas, Qt.Key.Key_Left)
    assert chosen[-1].queue == made.A[0]
    QTest.keyClick(canvas, Qt.Key.Key_Left)
    assert chosen[-1].kind == "producer"
    QTest.keyClick(canvas, Qt.Key.Key_Right)
    assert chosen[-1] == Selection("broker", "broker-a")
    QTest.keyClick(canvas, Qt.Key.Key_Right)
    assert chosen[-1].kind == "group"
    QTest.keyClick(canvas, Qt.Key.Key_End)
    assert chosen[-1].kind == "client"
    QTest.keyClick(canvas, Qt.Key.Key_Home)
    assert chosen[-1] == Selection("group", "billing")
    QTest.keyClick(canvas, Qt.Key.Key_Left)
    assert chosen[-1] == Selection("topic", "OrderPaid")


@pytest.mark.parametrize("dark", [False, True])
def test_every_state_is_painted(canvas, dark):
    theme.set_scheme("dark" if dark else "light")
    image_before = canvas.grab().toImage()
    removed = {**made.OWNS, made.C3: (made.B[0],), made.C2: (made.A[1], *made.A[2:])}
    for state in (made.small(6, owns=removed), made.small(7, owns={made.C1: ()}), made.small(20, owns={})):
        canvas.model.take(reading_of(state))
        for column in canvas.columns():
            canvas.model.choose(column[0][1] if column else Selection())
            canvas.show_picture()
            assert canvas.grab().toImage() != image_before
    theme.set_scheme("light")


def reading_of(state):
    from viewer.cluster.cluster_model import Reading

    return Reading(state, made.ASKED)
