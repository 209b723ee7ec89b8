"""Rates by hour: ticks on whole hours, the picture as text, and the library loaded when it is first shown."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QColor

from viewer.look.formats import clock
from viewer.look.topic_colours import TopicColours
from viewer.pane.plot_library import plot_library
from viewer.pipeline import rates as module
from viewer.pipeline.rates import Legend, RatesPlot, series_colors, tick_places, tick_words
from viewer.pipeline.stats_figures import Rates, Series

DAY = 1_795_219_200.0  # a UTC midnight, in seconds
RATES = Rates(int(DAY * 1000), 3, (Series("T", (1.0, 4.0, 2.0)), Series("", (0.0, 1.0, 0.5))))


@pytest.mark.parametrize(("hours", "wide", "step"), [(6, 1200, 1), (24, 1200, 3), (24 * 14, 700, 72)])
def test_ticks_do_not_overlap_and_are_on_whole_hours(themed_app, hours, wide, step):
    ((spacing, places),) = tick_places(DAY, DAY + hours * 3600, wide)
    assert spacing >= 3600.0
    assert len(places) <= wide // module.TICK_ROOM + 1
    assert all(place % 3600 == 0 and DAY <= place <= DAY + hours * 3600 for place in places)
    if step <= 24:
        assert {int(clock(round(place * 1000))[:2]) % min(step, 24) for place in places} == {0}


@pytest.mark.parametrize(("seconds", "wide", "step"), [(100, 1200, 10), (100, 300, 60), (1800, 900, 300)])
def test_ticks_of_less_than_an_hour_are_on_round_seconds_and_minutes(themed_app, seconds, wide, step):
    """Plots of less than 100 s had no time labels at all."""
    ((spacing, places),) = tick_places(DAY + 3.0, DAY + 3.0 + seconds, wide)
    assert spacing == step
    assert places
    assert all(place % step == 0 for place in places)
    actual_tick_words = tick_words(places, 1.0, spacing)
    assert {len(item.split(" ")[-1]) for item in actual_tick_words} == {8 if step < 60 else 5}


def test_the_head_shows_the_length_of_a_bar(plot):
    plot.show_rates(Rates(int(DAY * 1000), 2, (Series("T", (1.0, 2.0)),), 10_000))
    assert plot.head.note.text() == "by 10 seconds, stacked"
    assert "00:00:10" in plot.spoken() or ":10;" in plot.spoken()
    plot.show_rates(RATES)
    assert plot.head.note.text() == "by hour, stacked"


def test_a_tick_shows_the_day_where_one_begins(themed_app):
    shown_words = tick_words([DAY - 7200, DAY - 3600, DAY, DAY + 3600], 1.0, 3600.0)
    at_midnight = [clock(round(time_s * 1000))[:5] == "00:00" for time_s in (DAY - 7200, DAY - 3600, DAY, DAY + 3600)]
    assert [" " in words for words in shown_words] == [True, *at_midnight[1:]]


def test_series_without_a_colour_are_grey(themed_app):
    colours = series_colors(["T", ""], TopicColours())
    assert colours[""] == module.C("text3")
    assert all(isinstance(color, QColor) for color in colours.values())


def test_the_legend_names_the_rest(themed_app, shown):
    legend = Legend()
    legend.show_names(("T", ""))
    assert legend.accessibleName() == "T, (all others)"
    wide = legend.sizeHint().width()
    legend.show_names(("T", "A topic with a longer name", ""))
    assert legend.sizeHint().width() > wide
    shown(legend)


@pytest.fixture
def plot(themed_app, qtbot, monkeypatch):
    rates_plot = RatesPlot()
    rates_plot.load_calls = []
    monkeypatch.setattr(plot_library, "load", lambda _plot, done, failed: rates_plot.load_calls.append((done, failed)))
    qtbot.addWidget(rates_plot)
    return rates_plot


def test_the_picture_has_a_text(plot):
    plot.show_rates(RATES)
    assert plot.accessibleDescription() == plot.spoken()
    assert "T 4 /s" in plot.spoken()
    assert "(all others) 1 /s" in plot.spoken()
    plot.measure.choose("bytes")
    assert plot.chosen == "bytes"
    assert "T 4 B/s" in plot.spoken()


def test_without_rates_there_is_a_reason(plot):
    plot.show_rates(None, "Nothing was counted.")
    assert plot.spoken() == ""
    assert plot.accessibleDescription() == "Nothing was counted."


def test_the_library_is_loaded_once_when_the_plot_is_shown(plot):
    plot.show_rates(RATES)
    assert plot.load_calls == []
    plot.show()
    plot.show_rates(RATES)
    assert len(plot.load_calls) == 1


def test_a_failed_library_is_loaded_again(plot):
    plot.show()
    plot.show_rates(RATES)
    plot.load_calls[0][1](ImportError("no"))
    plot.show_rates(RATES)
    assert len(plot.load_calls) == 2
