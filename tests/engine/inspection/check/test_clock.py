"""Times that a clock made wrong are told with dates, and nothing else is concluded from them."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from broken_stores import log
from handmade_stores import START, HandmadeStore

from engine.inspection.findings import check
from engine.inspection.snapshot import open_store
from engine.rules.findings import Finding, at_least

DAY = 86_400_000
NOW = START + DAY
FAR = 400 * DAY


def told(root: Path, least: str = "note", now: int = NOW) -> list[Finding]:
    with open_store(root) as opened:
        return [one for one in check(opened, now=now) if isinstance(one, Finding) and at_least(one.severity, least)]


@pytest.fixture
def old_files(monkeypatch):
    """Files of the log that were last written when their units were stored."""
    monkeypatch.setattr("engine.inspection.check.clock.latest_credible", lambda _store, now: now)


@pytest.fixture
def made() -> HandmadeStore:
    made = HandmadeStore()
    for number in range(60):
        made.put(keys=f"K{number}", body=b"a body" * 20)
    return made


def dated(root: Path, made: HandmadeStore, first: int, behind: int, by: int) -> None:
    """Units [first, behind) as a clock that is wrong by ``by`` ms dates them."""
    for unit in made.units[first:behind]:
        log(root, unit.offset + 56, struct.pack(">q", unit.store_timestamp + by))


def clock(found: list[Finding]) -> Finding:
    (one,) = (finding for finding in found if finding.id == "CL08")
    return one


def test_a_clock_that_ran_ahead_is_told_from_where_to_where_with_dates(made, tmp_path, old_files):
    root = made.write(tmp_path / "store")
    dated(root, made, 20, 30, FAR)
    found = clock(told(root, now=NOW + 2 * FAR))
    start, end = made.units[20].offset, made.units[30].offset
    assert found.message == (
        f"The broker's clock ran 400 days ahead: units {start:,} to {end:,} are dated 2024-12-18T22:13:20.210Z to "
        "2024-12-18T22:13:20.300Z, the next one 2023-11-14T22:13:20.310Z"
    )
    assert (found.severity, found.offset, found.evidence["from"], found.evidence["to"]) == ("warn", start, start, end)
    assert found.next_step.endswith("search by offset or key, not by time.")


def test_a_clock_that_ran_behind_is_not_taken_for_one_that_ran_ahead_before(made, tmp_path, old_files):
    root = made.write(tmp_path / "store")
    dated(root, made, 20, 30, -FAR)
    found = clock(told(root))
    assert "ran 400 days behind" in found.message
    assert found.evidence["happened"].startswith("the broker's clock was behind by 400 days, from ")
    assert found.evidence["from"] == made.units[20].offset


def test_a_log_that_begins_ahead_ends_there(made, tmp_path, old_files):
    root = made.write(tmp_path / "store")
    dated(root, made, 0, 30, FAR)
    found = clock(told(root, now=NOW + 2 * FAR))
    assert f"ran 400 days ahead: units up to {made.units[30].offset:,} are dated until 2024" in found.message


def test_a_tail_that_is_later_than_now_is_told(made, tmp_path, old_files):
    root = made.write(tmp_path / "store")
    dated(root, made, 50, 60, FAR)
    found = clock(told(root))
    assert (found.severity, found.offset) == ("warn", made.units[50].offset)
    assert "up to 399 days later than now: the broker's clock runs ahead" in found.message


def test_it_is_not_said_where_this_machine_is_behind_the_files(made, tmp_path):
    root = made.write(tmp_path / "store")
    assert told(root, now=START - FAR) == []


@pytest.mark.parametrize(("first", "behind"), [(20, 30), (50, 60)])
def test_the_checkpoint_is_not_held_against_a_time_that_is_wrong(first, behind, made, tmp_path, old_files):
    root = made.write(tmp_path / "store")
    assert len(list((root / "commitlog").iterdir())) > 2
    dated(root, made, first, behind, FAR)
    assert {one.id for one in told(root)} & {"CK02", "CK03"} == set()


def test_a_small_step_back_says_when_and_how_much(made, tmp_path):
    root = made.write(tmp_path / "store")
    log(root, made.units[20].offset + 56, struct.pack(">q", made.units[20].store_timestamp - 7_200_000))
    found = clock(told(root))
    assert found.message == (
        "Stored 2023-11-14T20:13:20.210Z, 2 h before an earlier unit; such steps: 1, the longest 2 h"
    )
    assert found.evidence["expected"] == "2023-11-14T22:13:20.200Z"


def test_a_broker_that_was_idle_for_days_has_no_wrong_clock(tmp_path, old_files):
    made = HandmadeStore()
    for _ in range(10):
        made.put(step=3 * DAY)
    root = made.write(tmp_path / "store")
    assert not [one for one in told(root, now=made.time) if one.id == "CL08"]


def test_a_checkpoint_ahead_is_told_in_dates(made, tmp_path):
    root = made.write(tmp_path / "store")
    made.write_checkpoint(root, made.time + 9_000_000, made.time)
    (found,) = (one for one in told(root) if one.id == "CK02")
    assert found.evidence["expected"] == "2023-11-14T22:13:20.600Z"
    assert found.evidence["found"]["physicMsgTimestamp"] == "2023-11-15T00:43:20.600Z"
    assert found.message.endswith("by 2.5 h")


def test_a_checkpoint_of_another_age_is_behind_by_years(made, tmp_path):
    """It said 29,920,807 minutes, which nobody can picture."""
    root = made.write(tmp_path / "store")
    made.write_checkpoint(root, 1000, 1000)
    (found,) = [one for one in told(root) if one.id == "CK03"]
    assert found.message == "The checkpoint is 53.9 years behind the newest unit"


@pytest.mark.parametrize(("hours", "words"), [(2, "2 h after"), (-2, "2 h before")])
def test_a_producer_whose_clock_differs_is_a_note(hours, words, tmp_path):
    made = HandmadeStore()
    made.time += hours * 3_600_000
    for _ in range(20):
        made.put()
    root = made.write(tmp_path / "store")
    (found,) = (one for one in told(root) if one.id == "CL13")
    assert (found.severity, found.evidence["host"], found.evidence["units"]) == ("note", "127.0.0.1", 20)
    assert f"are stored {words} they were created" in found.message


def test_messages_that_waited_say_nothing_about_clocks(tmp_path):
    made = HandmadeStore()
    for _ in range(20):
        made.put(step=600_000)
    assert not [one for one in told(made.write(tmp_path / "store")) if one.id == "CL13"]
