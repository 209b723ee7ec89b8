"""The layout of the pictures: lines end at their queue and owner, widths follow rates, cells follow the lag."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import sample_clusters as made

from viewer.cluster.cluster_model import Selection
from viewer.cluster.plan import (
    CARD,
    CARD_HEIGHT,
    EDGE,
    FAR_BEHIND,
    FEW,
    MIDDLE,
    MIN_MIDDLE,
    MIN_SIDE,
    NO_OWNER,
    QUEUE_HEIGHT,
    ROW,
    SOME_BEHIND,
    UNKNOWN,
    cell_codes,
    cells_plan,
    in_order,
    lines_plan,
    widths,
)
from viewer.cluster.rows import ClientRow, GroupRow, Picture

MODEL = made.looked_at(made.small(0), made.small(5))
LARGE = made.looked_at(made.large(0), made.large(5))


def test_widths_have_half_pixel_steps_between_thin_and_thick():
    assert widths([None, 0, 200, 400, 1_000, 90_000]).tolist() == [1.5, 1.5, 1.5, 3.0, 7.5, 8.0]


def test_a_line_goes_from_its_queue_to_the_card_of_its_owner():
    plan = lines_plan(MODEL.picture, 1152)
    cards = {row.client.client_id: y for row, y in plan.clients if row.group == "billing"}
    for number, broker_origin in enumerate(plan.right_bands.client_ids):
        if plan.right_bands.dashed[number]:
            continue
        assert plan.right_bands.x0[number] == plan.width - MIDDLE
        assert plan.right_bands.y0[number] in plan.queue_y
        if broker_origin in cards:
            assert cards[broker_origin] <= plan.right_bands.y1[number] <= cards[broker_origin] + CARD_HEIGHT
    assert len(plan.right_bands) == 6 + 2 + 2, "a line a queue, and one a topic and broker of a broadcast group"
    assert len(plan.left_bands) == 4, "each producer is connected to both brokers"


def test_lines_are_shortened_before_anything_is_cut():
    """A view of 1180 px, minus its folded side column and a scroll bar, cut the right edge of the consumers' cards."""
    plan = lines_plan(MODEL.picture, 1180 - 32 - 12)
    assert plan.width == 1136
    assert plan.right_edge + CARD + EDGE == plan.width
    assert plan.middle == MIN_MIDDLE
    assert set(plan.right_bands.x0.tolist()) == {plan.side + plan.middle}
    assert set(plan.left_bands.x1.tolist()) == {plan.side - 4}
    assert lines_plan(MODEL.picture, 0).side == MIN_SIDE
    assert lines_plan(MODEL.picture, 2000).side == MIDDLE


def test_items_are_stacked_and_only_visible_ones_are_returned():
    plan = lines_plan(MODEL.picture, 0)
    assert (np.diff(plan.queue_y) >= QUEUE_HEIGHT).all()
    visible = plan.visible_queues(float(plan.queue_y[2]) - 1, float(plan.queue_y[2]) + 1)
    assert list(visible) == [2]
    assert plan.right_bands.crossing(0, plan.height).size == len(plan.right_bands)
    assert plan.right_bands.crossing(plan.height + 10, plan.height + 20).size == 0
    assert lines_plan(Picture(), 900).right_bands.crossing(0, 1000).size == 0


def test_brokers_that_do_not_answer_are_known():
    state = made.small(6)
    silent = tuple(
        replace(broker, words="no answer") if broker.name == "broker-b" else broker for broker in state.brokers
    )
    model = made.looked_at(made.small(0), made.small(5), replace(state, brokers=silent))
    assert [item.name for item in lines_plan(model.picture, 1200).unreachable] == ["broker-b"]
    assert lines_plan(MODEL.picture, 1200).unreachable == ()


def test_cells_show_lag_and_queues_without_owner():
    topics = LARGE.picture.topics
    codes = cell_codes(topics)
    assert codes.shape == (100, 16)
    assert topics[0].name == "Topic003"
    assert sorted(set(codes[0].tolist())) == [FEW, NO_OWNER]
    assert (codes[1] == FAR_BEHIND).sum() == 4
    assert SOME_BEHIND not in codes
    assert cell_codes(()).size == 0
    quiet = made.looked_at(made.small()).picture.topics
    assert UNKNOWN not in cell_codes(quiet)


def test_the_opened_group_shows_its_clients_with_lines_to_the_chosen_topic():
    plan = cells_plan(LARGE.picture, 1500, Selection("topic", "Topic000"))
    assert isinstance(plan.groups[0], GroupRow)
    assert [isinstance(row, ClientRow) for row in plan.groups[:6]] == [False, True, True, True, True, False]
    number = [row.name for row in plan.topics].index("Topic000")
    assert len(plan.bands) == 4
    assert (abs(plan.bands.y0 - (number + 0.5) * ROW) < ROW / 2).all()
    assert plan.bands.y1.tolist() == [(n + 0.5) * ROW for n in (1, 2, 3, 4)]
    assert plan.trouble_end == 2
    assert list(plan.visible_rows(0, 3 * ROW - 1)) == [0, 1, 2]


def test_narrow_tables_give_way_before_cells_do():
    assert cells_plan(LARGE.picture, 1200, Selection()).shown_cells >= 16
    assert cells_plan(LARGE.picture, 1500, Selection()).shown_cells >= 16


def test_topics_keep_their_order_until_one_has_a_problem():
    topics = LARGE.picture.topics
    names = [row.name for row in topics]
    turned = [*names[:2], *reversed(names[2:])]
    assert [row.name for row in in_order(topics, turned)] == turned
    assert [row.name for row in in_order(topics, names[::-1])] == names
    assert [row.name for row in in_order(topics, names[1:])] == names
