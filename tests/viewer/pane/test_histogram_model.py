"""The model of the time histogram: zoom and keys stay within the time, and the words name what bars do not show."""

from __future__ import annotations

import pytest
from histogram_data import BEGIN, minute

from engine.inspection.histogram.time_bins import WIDTHS_MS
from engine.query import parse
from viewer.pane import histogram_model as module
from viewer.pane.histogram_model import MIN_SPAN_MS, HistogramModel, filter_term, tick_words, width_words
from viewer.runtime.histogram_work import HistogramData

END = BEGIN + 60_000


@pytest.fixture
def model() -> HistogramModel:
    model = HistogramModel()
    model.take(minute())
    return model


def test_all_bars_are_shown_first_and_a_gap_is_no_bar(model: HistogramModel) -> None:
    assert (model.begin, model.end) == model.whole == (BEGIN, END)
    assert len(model.bars()) == 50
    assert model.bar_at(BEGIN + 25_000) is None
    bar = model.bar_at(BEGIN + 31_999)
    assert bar is not None
    assert (bar.begin, bar.messages, bar.bytes, bar.first) == (BEGIN + 31_000, 33, 2950, 310_000)
    assert model.value(bar) == 33
    model.shows_bytes = True
    assert model.value(bar) == 2950


def test_zooming_keeps_the_time_under_the_pointer_and_the_limits(model: HistogramModel) -> None:
    model.zoom(0.5, BEGIN + 30_000)
    assert (model.begin, model.end) == (BEGIN + 15_000, BEGIN + 45_000)
    assert len(model.bars()) == 20
    for _ in range(40):
        model.zoom(0.5, BEGIN + 59_999)
    assert model.end - model.begin == MIN_SPAN_MS
    assert model.end <= END
    model.pan(10**9)
    assert model.end == END
    for _ in range(40):
        model.zoom(2, BEGIN)
    assert (model.begin, model.end) == (BEGIN, END)


def test_a_zoomed_part_is_read_in_narrower_bars_with_room_on_both_sides(model: HistogramModel) -> None:
    assert model.missing_part() is None
    model.show(BEGIN + 40_000, BEGIN + 41_000)
    part = model.missing_part()
    assert part is not None
    assert (part.begin, part.end, part.width) == (BEGIN + 39_500, BEGIN + 41_500, 5)
    assert (part.start, part.stop) == (390_000, 419_000)
    model.take_detail(part, HistogramData(5, [BEGIN + 40_010], ["Orders"], [[3]], [[30]], [5], [9], [1], [1], 3))
    assert [bar.begin for bar in model.bars()] == [BEGIN + 40_010]
    assert model.missing_part() is None
    model.pan(5000)
    assert model.shown is model.overview, "the narrow bars do not reach there"


def test_new_bars_of_a_growing_log_leave_a_zoomed_part_alone(model: HistogramModel) -> None:
    model.show(BEGIN + 1000, BEGIN + 5000)
    model.take(minute())
    assert (model.begin, model.end) == (BEGIN + 1000, BEGIN + 5000)
    model.show_all()
    longer = minute()
    longer.starts[-1] = END + 30_000
    model.take(longer)
    assert model.end == END + 31_000


def test_keys_go_from_bar_to_bar_over_the_gap_and_choose_a_range(model: HistogramModel) -> None:
    model.step(1)
    assert model.framed == BEGIN
    for _ in range(20):
        model.step(1)
    assert model.framed == BEGIN + 30_000
    model.frame_end(last=True)
    assert model.framed == BEGIN + 59_000
    model.step(1)
    assert model.framed == BEGIN + 59_000
    model.brush_to(-1)
    model.brush_to(-1)
    assert model.brush == (BEGIN + 57_000, END)
    model.show(BEGIN, BEGIN + 5000)
    model.framed = BEGIN + 4000
    model.step(1)
    assert model.begin <= model.framed < model.end, "the picture follows the frame"


def test_the_words_say_what_the_bars_do_not(model: HistogramModel) -> None:
    model.overview = minute(damaged=100, unread=2048, steps_back=2, largest_step_ms=3000, far=1, is_complete=False)
    assert model.notes() == [
        "2.00 KiB could not be read",
        "100 B damaged",
        "store time goes back 2 times, by up to 3.0 s",
        "1 message far from this time",
    ]
    assert "most at" in model.summary()
    bar = model.bar_at(BEGIN)
    assert bar is not None
    assert "Orders: 1 message · 5.86 KiB" in model.bar_words(bar)
    assert "born to stored: half within 2 ms, 99 % within 2 ms" in model.bar_words(bar)
    assert model.head_words() == "Messages over time · bars of 1 s, at most 61"
    model.clear("nothing")
    assert model.summary() == "nothing"
    assert model.head_words() == "Messages over time"


def test_a_brushed_range_is_a_filter_to_the_millisecond() -> None:
    test = parse(filter_term(BEGIN + 7, BEGIN + 19)).compile(None)
    assert [test({"storeTimestamp": BEGIN + ms}) for ms in (6, 7, 18, 19)] == [False, True, True, False]


def test_widths_are_those_of_the_engine_and_have_words() -> None:
    assert set(module._WIDTHS) <= set(WIDTHS_MS)
    assert [width_words(width) for width in (1, 500, 5000, 600_000, 6 * 3_600_000, 7 * 86_400_000)] == [
        *("1 ms", "500 ms", "5 s", "10 min", "6 h", "7 d")
    ]
    assert tick_words(BEGIN, 1000) == "22:13:20"
    assert tick_words(BEGIN, 5) == "22:13:20.000"
    assert tick_words(BEGIN, 86_400_000) == "2023-11-14"
