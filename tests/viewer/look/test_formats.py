from __future__ import annotations

from datetime import timedelta, timezone

import pytest

from viewer.look import formats
from viewer.look.assets import set_language


@pytest.fixture
def shanghai():
    formats.set_zone(timezone(timedelta(hours=8)))
    yield
    formats.set_zone(None)


@pytest.mark.usefixtures("shanghai")
def test_times_are_shown_in_one_zone():
    assert formats.clock(1_763_603_000_225) == "09:43:20.225"
    assert formats.full_moment(1_763_603_000_225) == "2025-11-20 09:43:20.225 +08:00"


@pytest.mark.parametrize("value", [-(1 << 63), (1 << 63) - 1, 1 << 60])
def test_an_invalid_time_is_shown_as_a_number(value):
    assert formats.clock(value) == f"{value:,}"
    assert formats.day(value) == ""


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1,023 B"),
        (1024, "1.00 KiB"),
        (1 << 30, "1.00 GiB"),
        (41_000_000_000, "38.2 GiB"),
        (1 << 60, "1.00 EiB"),
    ],
)
def test_sizes_keep_three_figures(count, text):
    assert formats.size(count) == text


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (4, "4 ms"),
        (12_500, "12.5 s"),
        (11_520_000, "3 h 12 min"),
        (-3000, "−3.0 s"),
        (7 * 86_400_000, "7 d 0 h"),
        (29_920_807 * 60_000, "56.9 y"),
    ],
)
def test_durations_have_at_most_two_parts(ms, text):
    assert formats.span(ms) == text


def test_control_characters_become_visible_and_stay_on_one_line():
    assert formats.plain("a\nb\x7f\u202ec") == "a␊b␡·c"
    assert formats.plain("订单 ok") == "订单 ok"


def test_names_are_shortened_in_their_middle():
    assert formats.shorten_middle("RMQ_SYS_TRANS_HALF_TOPIC", 11) == "RMQ_S…TOPIC"


def test_durations_are_in_chinese() -> None:
    """ "6 d 18 h" was beside Chinese text."""
    set_language("zh_CN")
    try:
        spans = [formats.span(ms) for ms in (4, 192_000, 11_520_000, 583_200_000)]
    finally:
        set_language("en")
    assert spans == ["4 ms", "3 分 12 秒", "3 小时 12 分", "6 天 18 小时"]
    assert formats.span(583_200_000) == "6 d 18 h"


def test_a_span_of_one_number_is_that_number() -> None:
    """A single entry was shown as "79 – 79", a range."""
    assert [formats.number_span(79, 79), formats.number_span(79, 1080)] == ["79", "79–1,080"]
