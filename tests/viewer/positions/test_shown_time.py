"""The shown time of the live plots, without a window."""

from __future__ import annotations

import pytest
from sample_position_looks import START, look

from viewer.positions.shown_time import MAX_SPAN_S, MIN_SPAN_S, SPAN, ShownTime
from viewer.runtime.live_history import LiveHistory, fill

BEGIN_S = START / 1000
END_S = BEGIN_S + 9.9
"""Of a hundred looks, ten a second."""


def looks(count: int) -> LiveHistory:
    return fill(LiveHistory(), [look(number) for number in range(count)])


@pytest.fixture
def time() -> ShownTime:
    shown_time = ShownTime()
    shown_time.open(looks(100))
    return shown_time


def test_before_the_first_sample_nothing_is_shown():
    assert ShownTime().reading() is None
    assert ShownTime().at_end


def test_the_newest_sample_is_shown_until_a_pause(time: ShownTime):
    assert (time.range().end, time.range().span, time.note()) == (END_S, SPAN, "live")
    time.pause()
    time.history.add(look(120))
    assert (time.range().end, time.at_end, time.paused) == (END_S, False, True)
    assert time.reading().time_ms == START + 9900
    assert time.note().endswith("before live")
    time.pause()
    assert (time.range().end, time.at_end, time.paused) == (BEGIN_S + 12, True, False)


def test_the_place_under_the_pointer_stays_where_it_is_while_zooming(time: ShownTime):
    time.go_to(START + 9000)
    place = time.range().end - 3.0
    time.zoom(0.5, -3.0)
    assert time.range().span == SPAN / 2
    assert place == pytest.approx(time.range().end - 3.0 * 0.5)


@pytest.mark.parametrize(("factor", "span"), [(1e-9, MIN_SPAN_S), (1e9, MAX_SPAN_S)])
def test_zooming_has_its_ends_and_stays_live(time: ShownTime, factor: float, span: float):
    time.zoom(factor, 0.0)
    assert time.range().span == span
    assert time.at_end


def test_dragging_ends_at_both_ends_of_the_history(time: ShownTime):
    time.drag(-4.0)
    assert time.range().end == pytest.approx(END_S - 4.0)
    time.drag(-1000.0)
    assert time.range().end == BEGIN_S
    time.drag(1000.0)
    assert time.at_end


def test_the_cursor_follows_the_pointer_until_it_is_pinned(time: ShownTime):
    assert time.point(-2.0)
    assert time.cursor == pytest.approx(END_S - 2.0)
    time.pick(-3.0)
    assert not time.point(-1.0)
    assert time.cursor == pytest.approx(END_S - 3.0)
    time.pick(-1.0)
    assert time.point(None)
    assert time.cursor is None


def test_playing_at_the_end_restarts_and_becomes_live_there(time: ShownTime):
    time.play()
    assert (time.playing, time.paused, time.range().end) == (True, False, BEGIN_S)
    time.play_on()
    assert time.range().end == pytest.approx(BEGIN_S + 0.1)
    time.play()
    assert (time.playing, time.paused) == (False, True)
    time.go_to(START + 9_850)
    time.play()
    time.play_on()
    assert (time.playing, time.at_end) == (False, True)


def test_pausing_while_it_plays_stops_where_it_is(time: ShownTime):
    time.play()
    time.play_on()
    time.pause()
    assert (time.playing, time.paused) == (False, True)
    assert time.range().end == pytest.approx(BEGIN_S + 0.1)


def test_a_recording_has_no_end_to_follow(time: ShownTime):
    time.show_recording("seen.jsonl", looks(20))
    end_s = BEGIN_S + 1.9
    assert (time.range().end, time.at_end, time.note()) == (end_s, False, "recording seen.jsonl")
    time.pause()
    assert time.range().end == end_s
    time.drag(1000.0)
    assert time.range().end == end_s
    time.play()
    for _ in range(30):
        time.play_on()
    assert (time.playing, time.range().end) == (False, end_s)
    time.go_live()
    assert (time.shown, time.at_end, time.recording_name) == (time.history, True, "")


def test_another_store_begins_live_without_a_cursor(time: ShownTime):
    time.show_recording("seen.jsonl", looks(20))
    time.pick(-1.0)
    time.play()
    other_history = looks(5)
    time.open(other_history)
    assert (time.shown, time.at_end, time.cursor, time.playing) == (other_history, True, None, False)
    assert time.range().span == SPAN
    assert time.point(-0.1)
