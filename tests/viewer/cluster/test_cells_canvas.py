"""The large cluster picture: row positions, cell colours, the map, and the opened topic."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sample_clusters as made
from PySide6.QtCore import QPointF, Qt
from PySide6.QtTest import QTest

from viewer.cluster.cells_canvas import CellsCanvas, CellsHead, QueueMap, TopicQueues, cell_colour
from viewer.cluster.cluster_model import Selection
from viewer.cluster.plan import CELL_STEP, CELLS_AT, FAR_BEHIND, ROW
from viewer.look.theme import C


@pytest.fixture
def model():
    return made.looked_at(made.large(0), made.large(5))


@pytest.fixture
def canvas(shown, model) -> CellsCanvas:
    made_canvas = CellsCanvas()
    made_canvas.model = model
    made_canvas.show_picture()
    shown(made_canvas, width=1500)
    return made_canvas


def test_a_row_is_a_number_and_a_cell_a_queue(canvas):
    plan = canvas.plan
    assert canvas.item_at(QPointF(plan.middle_at + 40, ROW / 2)) == Selection("topic", "Topic003")
    cell = canvas.item_at(QPointF(plan.middle_at + CELLS_AT + CELL_STEP * 4 + 3, ROW / 2))
    assert (cell.kind, cell.queue) == ("queue", plan.topics[0].queues[4].queue)
    assert canvas.item_at(QPointF(plan.groups_at + 40, ROW / 2)) == Selection("group", plan.groups[0].name)
    assert canvas.item_at(QPointF(20, ROW / 2)).kind == "producer"
    assert canvas.item_at(QPointF(plan.senders_width + 5, ROW / 2)).kind == ""
    assert canvas.item_at(QPointF(20, ROW * 500)).kind == ""
    box = canvas.box_of(cell)
    assert box is not None
    assert canvas.item_at(box.center()) == cell
    assert "no owner" in canvas.words_under(box.center())


def test_the_arrows_go_from_topics_to_queues_and_owners(canvas):
    results: list[Selection] = []

    def choose(selection: Selection) -> None:
        results.append(selection)
        canvas.model.choose(selection)
        canvas.show_picture()

    canvas.chosen.connect(choose)
    QTest.keyClick(canvas, Qt.Key.Key_Down)
    assert results[-1] == Selection("topic", "Topic003")
    QTest.keyClick(canvas, Qt.Key.Key_Down)
    QTest.keyClick(canvas, Qt.Key.Key_Right)
    assert results[-1] == Selection("group", "group-00")
    QTest.keyClick(canvas, Qt.Key.Key_Down)
    assert results[-1].kind == "client"
    QTest.keyClick(canvas, Qt.Key.Key_Left)
    assert results[-1].kind == "queue"
    QTest.keyClick(canvas, Qt.Key.Key_Left)
    assert results[-1] == Selection("topic", "Topic000")
    QTest.keyClick(canvas, Qt.Key.Key_Left)
    assert results[-1].kind == "producer"
    QTest.keyClick(canvas, Qt.Key.Key_Right)
    assert results[-1].kind == "topic"


def test_cells_are_painted_in_the_colour_of_their_state(canvas):
    picture = canvas.grab().toImage()
    number = [row.name for row in canvas.plan.topics].index("Topic000")
    codes = canvas.plan.cells[number].tolist()
    x = canvas.plan.middle_at + CELLS_AT + codes.index(FAR_BEHIND) * CELL_STEP + 4
    assert picture.pixelColor(round(x), number * ROW + 12) == C("warn")
    assert cell_colour(FAR_BEHIND) == C("warn")


def test_the_map_leads_to_topics_and_the_opened_topic_to_queues(shown, model, canvas):
    head, map_, opened = CellsHead(), QueueMap(), TopicQueues()
    for part in (head, map_, opened):
        part.model = model
        shown(part, width=1500)
    head.show_plan(canvas.plan, 0)
    map_.show_cells(canvas.plan, 0, 20)
    opened.show_topic(model, model.find_topic("Topic000"))
    assert head.grab().toImage() != map_.grab().toImage()
    results: list[Selection] = []
    for part in (map_, opened):
        part.chosen.connect(lambda selection: (results.append(selection), model.choose(selection)))
    for column in (*map_.columns(), *opened.columns()):
        for box, item in column:
            assert item == (map_ if item.kind == "topic" else opened).item_at(box.center())
    QTest.keyClick(map_, Qt.Key.Key_Right)
    QTest.keyClick(map_, Qt.Key.Key_Right)
    assert results[-1] == Selection("topic", "Topic000")
    QTest.keyClick(opened, Qt.Key.Key_Right)
    assert results[-1].kind == "queue"
    QTest.keyClick(opened, Qt.Key.Key_Down)
    QTest.keyClick(opened, Qt.Key.Key_Left)
    assert results[-1].queue.topic == "Topic000"
    opened.show_topic(model, None)
    assert list(opened.columns()) == []
    assert opened.grab().width() == 1500


def test_pulls_that_are_held_stand_beside_the_queues_of_the_chosen_topic(shown):
    """The small picture had marks for held pulls, the large one had none."""

    def with_held_pulls(second: int):
        state = made.large(second)
        return replace(
            state,
            brokers=tuple(
                replace(part, held_pulls={queue: {"group-00": 2} for queue in part.queues}) for part in state.brokers
            ),
        )

    def picture(*states):
        model = made.looked_at(*states)
        canvas = TopicQueues()
        shown(canvas, width=1500)
        canvas.show_topic(model, model.find_topic("Topic000"))
        return canvas, canvas.grab().toImage()

    without, plain = picture(made.large(0), made.large(5))
    canvas, marked = picture(with_held_pulls(0), with_held_pulls(5))
    assert plain != marked
    assert sum(map(len, canvas.columns())) == sum(map(len, without.columns())), "there is room for them"
    assert all(row.held_pulls == 2 for row in canvas._rows)
