"""Times as they are written in filters."""

from __future__ import annotations

from datetime import UTC, timedelta, timezone

from asked_units import unit

from engine.query import parse

CHINA = timezone(timedelta(hours=8))


PAID = unit()


def test_times_without_an_offset_are_the_readers():
    assert parse('storeTimestamp = "2026-11-20 17:41:07.250"', zone=CHINA).matches(PAID) is True
    assert parse('storeTimestamp = "2026-11-20 17:41:07.250"', zone=UTC).matches(PAID) is False
