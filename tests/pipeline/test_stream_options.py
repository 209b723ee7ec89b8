"""Options of a followed log: where to begin, how much at once, and what a loss does."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from engine.errors import UsageError
from engine.pipeline.stream_options import Following

ASKED = SimpleNamespace(number=lambda _name, _least: 4096, yes=lambda _name, default: default)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, Following()),
        ({"startingOffsets": "latest"}, Following(latest=True)),
        ({"startingTimestamp": "1700000000000"}, Following(since=1_700_000_000_000)),
        ({"startingTimestamp": "2023-11-14T22:13:20Z"}, Following(since=1_700_000_000_000)),
        ({"startingTimestamp": "2023-11-14T22:13:20"}, Following(since=1_700_000_000_000)),
        ({"startingTimestamp": "2023-11-15T00:13:20+02:00"}, Following(since=1_700_000_000_000)),
        ({"maxBytesPerTrigger": "4096"}, Following(most=4096)),
    ],
)
def test_what_is_asked_for(given, wanted):
    assert Following.of(given, ASKED) == wanted


@pytest.mark.parametrize("given", [{"startingOffsets": "middle"}, {"startingTimestamp": "yesterday"},
                                   {"startingOffsets": "latest", "startingTimestamp": "5"}])  # fmt: skip
def test_what_cannot_be_is_refused(given):
    with pytest.raises(UsageError):
        Following.of(given, ASKED)
