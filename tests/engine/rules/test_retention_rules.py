"""Pure rules of retention: when files are deleted, and what prevents it."""

from __future__ import annotations

import time

import pytest

from engine.config import MessageStoreConfig, from_mapping
from engine.rules.retention_rules import (
    HOUR_MS,
    DiskLevels,
    delete_hours,
    forecast,
    grade_of,
    is_due,
    is_hour,
    levels,
    next_hour,
    pressure,
)

LEVELS = DiskLevels(0.75, 0.85, 0.90)
DAY = 24 * HOUR_MS


def time_of_day(hour: int, minute: int = 0) -> int:
    return int(time.mktime((2026, 3, 10, hour, minute, 0, 0, 0, -1)) * 1000)


def test_the_levels_are_limited_to_rocketmqs_bounds():
    assert levels(MessageStoreConfig()) == LEVELS
    wild = from_mapping({"diskSpaceWarningLevelRatio": 99, "diskSpaceCleanForciblyRatio": 1})[0]
    assert (levels(wild).warn, levels(wild).force) == (0.90, 0.30)


CASES = [
    pytest.param(0.10, 0.10, "none", "log", id="room"),
    pytest.param(0.75, 0.75, "none", "log", id="at the level is not over it"),
    pytest.param(0.76, 0.10, "max", "log", id="log over 75"),
    pytest.param(0.10, 0.76, "max", "queues", id="queues over 75"),
    pytest.param(0.86, 0.10, "force", "log", id="log over 85"),
    pytest.param(0.91, 0.10, "warn", "log", id="log over 90"),
    pytest.param(0.10, 0.91, "warn", "queues", id="queues over 90"),
    pytest.param(-1.0, 0.10, "unknown", "log", id="unknown counts as full"),
    pytest.param(0.10, -1.0, "unknown", "queues", id="unknown queues"),
]


@pytest.mark.parametrize(("log", "queues", "rule", "of"), CASES)
def test_the_rule_in_force(log, queues, rule, of):
    actual_pressure = pressure(log, queues, LEVELS)
    assert (actual_pressure.rule, actual_pressure.of) == (rule, of)
    assert actual_pressure.needed == (rule != "none")
    assert actual_pressure.at_once == (rule in {"force", "warn"})
    assert actual_pressure.refused == (rule == "warn")


def test_a_shared_disk_is_judged_by_its_share():
    assert pressure(0.5, 0.5, LEVELS, 0.2).rule == "none"
    assert pressure(0.5, 0.5, LEVELS, 0.78).rule == "share"
    assert pressure(0.5, 0.5, LEVELS, 0.81).rule == "shareForce"
    assert pressure(0.86, 0.5, LEVELS, 0.1).rule == "force"


def test_grades_begin_above_their_level():
    assert [grade_of(used, LEVELS) for used in (0.85, 0.86, 0.90, 0.91)] == ["", "force", "force", "warn"]


def test_invalid_hours_are_ignored():
    assert delete_hours("04") == (4,)
    assert delete_hours("04; 16;x;") == (4, 16)
    assert delete_hours("never") == ()


def test_the_next_hour_is_now_or_the_first_to_come():
    assert next_hour(time_of_day(4, 30), (4,)) == time_of_day(4, 30)
    assert next_hour(time_of_day(3, 10), (4,)) == time_of_day(4)
    assert next_hour(time_of_day(5), (4, 16)) == time_of_day(16)
    assert next_hour(time_of_day(5), (4,)) == time_of_day(4) + DAY
    assert next_hour(time_of_day(5), (25,)) is None
    assert is_hour(time_of_day(4, 59), (4,))


def test_a_file_is_due_at_its_age_to_the_millisecond():
    assert not is_due(time_of_day(4), time_of_day(4) + 72 * HOUR_MS - 1, 72)
    assert is_due(time_of_day(4), time_of_day(4) + 72 * HOUR_MS, 72)


def forecast_rows(modified: list[int], now: int, log: float = 0.1, **options: object) -> list[tuple[str, int | None]]:
    rule = pressure(log, 0.1, LEVELS)
    expected = {"reserved_hours": 72, "hours": (4,), "rule": rule} | options
    return [(item.held_by, item.goes_at) for item in forecast(modified, now, **expected)]


def test_each_file_has_a_reason_and_a_time_of_deletion():
    now = time_of_day(12)
    old, young, new = now - 80 * HOUR_MS, now - 60 * HOUR_MS, now
    tomorrow = time_of_day(4) + DAY
    assert forecast_rows([old, young, new], now) == [("hour", tomorrow), ("age", tomorrow), ("newest", None)]
    assert forecast_rows([young, old, new], now)[1] == ("order", tomorrow)
    assert forecast_rows([old, new], time_of_day(4, 20) + 0) == [("goes", time_of_day(4, 20)), ("newest", None)]


def test_over_75_percent_the_hour_does_not_count_but_the_age_does():
    now = time_of_day(12)
    assert forecast_rows([now - 80 * HOUR_MS, now - HOUR_MS, now], now, log=0.80) == [
        ("goes", now),
        ("age", now + 71 * HOUR_MS),
        ("newest", None),
    ]


def test_over_85_percent_only_the_newest_file_stays():
    now = time_of_day(12)
    assert forecast_rows([now, now, now], now, log=0.86) == [("goes", now), ("goes", now), ("newest", None)]
    assert forecast_rows([now, now], now, log=0.86, forcibly=False)[0][0] == "age"


def test_without_an_hour_no_file_is_deleted():
    now = time_of_day(12)
    assert forecast_rows([now - 80 * HOUR_MS, now, now], now, hours=()) == [
        ("off", None),
        ("off", None),
        ("newest", None),
    ]
