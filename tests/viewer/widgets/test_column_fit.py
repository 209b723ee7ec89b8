from __future__ import annotations

import pytest

from viewer.look.formats import shorten_middle
from viewer.widgets.column_fit import (
    BODY,
    NAME,
    SENTENCE,
    WHOLE,
    KeptColumns,
    Need,
    apart,
    fitted,
    kept_columns,
)

OFFSET, TOPIC, WHY, TEXT = (
    Need(120, 120, WHOLE),
    Need(200, 80, NAME),
    Need(300, 88, SENTENCE),
    Need(500, 72, BODY),
)
ALL = [OFFSET, TOPIC, WHY, TEXT]


@pytest.mark.parametrize(
    ("room", "widths"),
    [
        pytest.param(2000, [120, 200, 300, 500], id="room for all"),
        pytest.param(900, [120, 200, 300, 280], id="the body gives way"),
        pytest.param(600, [120, 200, 208, 72], id="then the sentence"),
        pytest.param(450, [120, 170, 88, 72], id="then the name"),
        pytest.param(100, [120, 80, 88, 72], id="the offset never"),
    ],
)
def test_bodies_give_way_before_sentences_and_these_before_names(room, widths):
    assert fitted(ALL, room) == widths


def test_of_two_names_the_longer_one_gives_way():
    short, long = Need(90, 64, NAME), Need(400, 64, NAME)
    assert fitted([short, long], 300) == [90, 210]
    assert fitted([short, long], 160) == [80, 80]


def test_a_very_long_name_gives_way_before_the_heads_of_others():
    head, name = Need(140, 60, WHOLE), Need(900, 80, NAME, easy=220)
    assert fitted([head, name], 400) == [140, 260]
    assert fitted([head, name], 300) == [80, 220]
    assert fitted([head, name], 200) == [60, 140]


def test_a_head_longer_than_its_figures_gives_way_before_a_name():
    assert fitted([Need(140, 60, WHOLE), Need(200, 80, NAME, easy=220)], 280) == [80, 200]


def test_names_are_not_cut_to_where_two_of_them_look_alike():
    names = ["orders-of-shop-1-paid-eu", "orders-of-shop-2-paid-eu", "K1"]

    def cut(name, keep):
        return shorten_middle(name, keep)

    width = apart(names, 24, 5, cut, step=1)
    assert len({cut(name, width) for name in names}) == 3
    assert len({cut(name, width - 1) for name in names}) == 2
    assert apart(["a" * 30, "a" * 15 + "b" + "a" * 14], 30, 5, lambda name, _keep: name[:3]) == 30


@pytest.mark.parametrize(
    "value", [None, 5, [], {"widths": [1], "order": "x", "added": {"a": 1}}, {"widths": {"a": "b"}}]
)
def test_what_is_no_record_of_columns_counts_as_nothing_done(value):
    assert kept_columns(value) == KeptColumns()


def test_what_was_done_to_columns_comes_back():
    done = KeptColumns({"topic": 240}, ["queueId", "topic"], ["bornHost"])
    assert kept_columns(done.record()) == done
    assert KeptColumns().record() == {}
