"""The rebalance lanes over time: flags lead to steps, the wheel zooms, and every state is painted."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise

import pytest
import sample_clusters as made
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from viewer.cluster.cluster_model import Selection
from viewer.cluster.deliveries import Delivery
from viewer.cluster.drawing import client_colour
from viewer.cluster.lanes_canvas import LanesCanvas
from viewer.cluster.rebalance import timeline
from viewer.look.theme import theme


@pytest.fixture
def canvas(shown) -> LanesCanvas:
    made_canvas = LanesCanvas()
    model = made_canvas.model = made.looked_at(*made.rebalanced())
    line = timeline("billing", tuple(model.moments["billing"]))
    made_canvas.show_line(line, (line.begin, line.end), 1)
    return shown(made_canvas, width=1000)


def test_lanes_are_chosen_and_flags_lead_to_steps(canvas, qtbot):
    chosen, steps = [], []
    canvas.chosen.connect(chosen.append)
    canvas.stepChosen.connect(steps.append)
    (lanes,) = canvas.columns()
    assert [selection.kind for _, selection in lanes] == ["client"] * 3 + ["queue"] * 6
    for box, lane_selection in lanes:
        qtbot.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=box.center().toPoint())
        assert chosen[-1] == lane_selection
    for box, number in canvas._flag_boxes():
        qtbot.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=box.center().toPoint())
        assert steps[-1] == number
    assert len(steps) == 3


def test_no_time_of_the_axis_is_cut_by_the_edge(canvas):
    """The label "14:00:50" ended after its last colon if the window's end was nearly a round time."""
    line = canvas.line
    for extra in range(0, 10_000, 1_000):
        canvas.show_line(line, (line.begin, line.end + extra), 1)
        ticks = canvas._ticks()
        assert len([text for _, _, text in ticks if text]) >= len(ticks) - 1 > 3
        assert all(box.right() <= canvas.width() for _, box, label in ticks if label)


def test_labels_of_the_axis_do_not_overlap_at_any_width(canvas):
    """Nine labels overlapped in 390 px."""
    line = canvas.line
    for wide in (400, 590, 800, 1600):
        canvas.resize(wide, canvas.height())
        for length in (9_000, 30_000, 60_000, 600_000):
            canvas.show_line(line, (line.begin, line.begin + length), 1)
            boxes = [box for _, box, _ in canvas._ticks()]
            assert all(previous_box.right() < next_box.left() for previous_box, next_box in pairwise(boxes)), (
                wide,
                length,
            )


def test_texts_below_a_queue_do_not_overlap(canvas):
    """The text "Two owners" overlapped "68 twice" and its ticks."""
    model = canvas.model = made.looked_at(*made.rebalanced(), *readings_with_two_owners(60, 70))
    line = timeline("billing", tuple(model.moments["billing"]))
    handed = [
        Delivery(made.BEGUN + position, name, "billing", made.A[0], n)
        for n in range(90)
        for position, name in ((61_000 + n * 100, "a"), (61_050 + n * 100, "b"))
    ]
    model.deliveries.add(handed)
    for begin in (0, 50, 60):
        canvas.show_line(line, (made.BEGUN + begin * 1000, line.end), 1)
        words_below = canvas.words_below(made.A[0])
        assert words_below[0][1].endswith(" twice")
        assert not any(box_a.intersects(box_b) for (box_a, *_), (box_b, *_) in combinations(words_below, 2))
        assert all(box.right() <= canvas.width() for box, *_ in words_below)
        assert canvas.grab().toImage().size().width() == canvas.width()
    canvas.show_line(line, (made.BEGUN, line.end), 1)
    assert [words for _, words, _ in canvas.words_below(made.A[2])] == ["no owner 3.0 s"]


def readings_with_two_owners(begin: int, end: int):
    """Return readings in which a queue has two owners."""
    return [made.small(second, owns={made.C1: made.A, made.C2: made.A[:1]}) for second in range(begin, end)]


def test_brackets_walk_the_steps_and_the_wheel_zooms(canvas):
    emitted, zooms = [], []
    canvas.stepRequested.connect(emitted.append)
    canvas.zoomed.connect(lambda factor, time_ms: zooms.append((factor, time_ms)))
    for key in (Qt.Key.Key_BracketLeft, Qt.Key.Key_BracketRight, Qt.Key.Key_Left):
        QTest.keyClick(canvas, key)
    assert emitted == [-1, 1, -1]
    for turn, modifier in (
        (120, Qt.KeyboardModifier.NoModifier),
        (-120, Qt.KeyboardModifier.NoModifier),
        (120, Qt.KeyboardModifier.ControlModifier),
    ):
        position = QPointF(600, 100)
        event = QWheelEvent(
            position,
            position,
            QPoint(),
            QPoint(0, turn),
            Qt.MouseButton.NoButton,
            modifier,
            Qt.ScrollPhase.NoScrollPhase,
            False,
        )
        QApplication.sendEvent(canvas, event)
    assert [factor for factor, _ in zooms] == [0.8, 1.25]
    assert canvas.line.begin < zooms[0][1] < canvas.line.end


def test_a_lane_is_in_its_owners_colour_and_a_gap_is_hatched(canvas):
    picture = canvas.grab().toImage()
    box = canvas.box_of(Selection("queue", queue=made.A[2]))
    assert box is not None
    y = round(box.top()) + 12

    def colour_at(second: float):
        return picture.pixelColor(round(canvas._x(made.BEGUN + second * 1000)), y)

    assert colour_at(8) == client_colour(canvas.model.badge(made.C2.client_id).place)
    assert colour_at(30) == client_colour(canvas.model.badge(made.C1.client_id).place)
    assert colour_at(17.4) not in (colour_at(8), colour_at(30))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_state_is_painted(canvas, scheme):
    theme.set_scheme(scheme)
    line = canvas.line
    moments = list(line.moments)
    two = tuple(("a", "b") for _ in moments[0].queues)
    odd = [
        [],
        [replace(moment, is_complete=False, owners=tuple(() for _ in moment.queues)) for moment in moments[:5]],
        [replace(item, owners=two, clients=("a", "b")) for item in moments[:5]],
        [*moments[:3], *moments[30:33]],
        moments[:1],
    ]
    for some in odd:
        shown = timeline("billing", some)
        canvas.show_line(shown, (shown.begin, shown.end), 0 if shown.steps else None)
        assert canvas.grab().width() == 1000
    canvas.show_line(line, (line.begin - 5_000, line.begin + 2_000), None)
    assert canvas.grab().width() == 1000
    theme.set_scheme("light")
