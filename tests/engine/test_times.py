"""Times as text: UTC in sentences of the engine, the machine's zone on a terminal."""

from __future__ import annotations

import time

import pytest

from engine.times import local_time_text, time_text, with_local_times


@pytest.fixture
def _in_shanghai(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Asia/Shanghai")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (1 << 62, str(1 << 62)),
        (-(1 << 63), str(-(1 << 63))),
    ],
)
def test_times_beyond_any_calendar_stay_numbers(ms, text):
    assert time_text(ms) == text


@pytest.mark.usefixtures("_in_shanghai")
def test_times_in_a_sentence_are_shown_in_the_zone_of_the_machine():
    ms = 1_700_000_000_123
    assert local_time_text(ms) == "2023-11-15 06:13:20.123+08:00"
    assert local_time_text(1 << 62) == str(1 << 62)
    sentence = f"stored {time_text(ms)} to {time_text(ms + 1)} (CL01)"
    assert with_local_times(sentence) == (
        "stored 2023-11-15 06:13:20.123+08:00 to 2023-11-15 06:13:20.124+08:00 (CL01)"
    )


@pytest.mark.parametrize("text", ["no time", "2023-13-45T99:99:99.999Z", "2023-11-14T22:13:20Z"])
def test_other_text_stays(text):
    assert with_local_times(text) == text
