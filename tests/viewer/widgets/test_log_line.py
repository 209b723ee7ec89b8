"""The log as one line of bytes."""

from __future__ import annotations

import pytest

from engine.inspection import open_store
from viewer.widgets.log_line import LinePin, LogLine, TopicMix, joined, line_of, sample, sample_places, worst_pins


@pytest.fixture
def flipped(golden):
    with open_store(golden("crash-flip-5.3.3")) as store:
        yield store


def test_the_line_maps_offsets_to_shares_and_back(flipped):
    line = line_of(flipped.log)
    for offset in (line.low, line.low + 12_345, line.written - 1):
        assert abs(line.offset(line.share(offset)) - offset) <= 2
    assert line.share(line.high) == 1.0
    far = LogLine(1 << 50, (1 << 50) + (1 << 40), (1 << 50) + (1 << 40))
    assert abs(far.offset(far.share((1 << 50) + 999_999_999)) - (1 << 50) - 999_999_999) < 1 << 12


def test_samples_cover_the_line_once_and_name_topics(flipped):
    line = line_of(flipped.log)
    places = sample_places(line, 40)
    assert min(begin for begin, _ in places) == line.low
    assert sum(end - begin for begin, end in places) == line.written - line.low
    mix = sample(flipped.log, *places[0])
    assert abs(sum(part for _, part in mix.shares) - 1) < 1e-9


def test_the_worst_of_overlapping_pins_is_drawn():
    pins = [LinePin(1, "warn"), LinePin(2, "error"), LinePin(90, "note")]
    assert [(x, pin.kind) for x, pin in worst_pins(pins, [10.0, 12.0, 50.0], 6)] == [(10.0, "error"), (50.0, "note")]


def test_joined_samples_keep_every_byte_and_its_share() -> None:
    mixes = [TopicMix(n * 10, n * 10 + 10, (("a", 1.0),) if n % 2 else (("a", 0.5), ("b", 0.5)), n) for n in range(8)]
    samples = joined([mixes[3], *mixes[:3], *mixes[4:]], 20)
    assert [(mix.start, mix.end, mix.time) for mix in samples] == [
        (0, 20, 0),
        (20, 40, 2),
        (40, 60, 4),
        (60, 80, 6),
    ]
    assert all(dict(mix.shares) == {"a": 0.75, "b": 0.25} for mix in samples)
    apart = [TopicMix(0, 10, ()), TopicMix(20, 30, (("a", 1.0),), 5)]
    assert joined(apart, 100) == apart, "what does not touch stays apart"
    assert joined([TopicMix(0, 10, ()), TopicMix(10, 20, (("a", 1.0),), 5)], 20) == [TopicMix(0, 20, (("a", 1.0),), 5)]
