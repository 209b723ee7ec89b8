"""Times of a wrong clock are reported with dates, and no other finding is derived from them."""

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


def findings_of(root: Path, least: str = "note", now: int = NOW) -> list[Finding]:
    with open_store(root) as opened:
        return [
            finding
            for finding in check(opened, now=now)
            if isinstance(finding, Finding) and at_least(finding.severity, least)
        ]


@pytest.fixture
def old_files(monkeypatch):
    """Files of the log that were last written when their units were stored."""
    monkeypatch.setattr("engine.inspection.check.clock.latest_credible", lambda _store, now: now)


@pytest.fixture
def small_store() -> HandmadeStore:
    store = HandmadeStore()
    for number in range(60):
        store.put(keys=f"K{number}", body=b"a body" * 20)
    return store


def shift_timestamps(root: Path, store: HandmadeStore, first_index: int, end_index: int, shift_ms: int) -> None:
    """Shift the timestamps of units [first_index, end_index) by ``shift_ms``, like a wrong clock."""
    for unit in store.units[first_index:end_index]:
        log(root, unit.offset + 56, struct.pack(">q", unit.store_timestamp + shift_ms))


def clock(findings: list[Finding]) -> Finding:
    (clock_finding,) = (finding for finding in findings if finding.id == "CL08")
    return clock_finding


def test_a_clock_that_ran_ahead_is_reported_with_its_range_and_dates(small_store, tmp_path, old_files):
    root = small_store.write(tmp_path / "store")
    shift_timestamps(root, small_store, 20, 30, FAR)
    finding = clock(findings_of(root, now=NOW + 2 * FAR))
    start, end = small_store.units[20].offset, small_store.units[30].offset
    assert finding.message == (
        f"The broker's clock ran 400 days ahead: units {start:,} to {end:,} are dated 2024-12-18T22:13:20.210Z to "
        "2024-12-18T22:13:20.300Z, the next one 2023-11-14T22:13:20.310Z"
    )
    assert (finding.severity, finding.offset, finding.evidence["from"], finding.evidence["to"]) == (
        "warn",
        start,
        start,
        end,
    )
    assert finding.next_step.endswith("search by offset or key, not by time.")


def test_a_clock_that_ran_behind_is_not_reported_as_one_that_ran_ahead(small_store, tmp_path, old_files):
    root = small_store.write(tmp_path / "store")
    shift_timestamps(root, small_store, 20, 30, -FAR)
    finding = clock(findings_of(root))
    assert "ran 400 days behind" in finding.message
    assert finding.evidence["happened"].startswith("the broker's clock was behind by 400 days, from ")
    assert finding.evidence["from"] == small_store.units[20].offset


def test_a_log_that_begins_ahead_ends_there(small_store, tmp_path, old_files):
    root = small_store.write(tmp_path / "store")
    shift_timestamps(root, small_store, 0, 30, FAR)
    actual_clock = clock(findings_of(root, now=NOW + 2 * FAR))
    assert (
        f"ran 400 days ahead: units up to {small_store.units[30].offset:,} are dated until 2024" in actual_clock.message
    )


def test_a_tail_later_than_now_is_reported(small_store, tmp_path, old_files):
    root = small_store.write(tmp_path / "store")
    shift_timestamps(root, small_store, 50, 60, FAR)
    finding = clock(findings_of(root))
    assert (finding.severity, finding.offset) == ("warn", small_store.units[50].offset)
    assert "up to 399 days later than now: the broker's clock runs ahead" in finding.message


def test_no_finding_if_this_machine_is_behind_the_files(small_store, tmp_path):
    root = small_store.write(tmp_path / "store")
    assert findings_of(root, now=START - FAR) == []


@pytest.mark.parametrize(("first_index", "end_index"), [(20, 30), (50, 60)])
def test_the_checkpoint_is_not_compared_with_a_wrong_time(first_index, end_index, small_store, tmp_path, old_files):
    root = small_store.write(tmp_path / "store")
    assert len(list((root / "commitlog").iterdir())) > 2
    shift_timestamps(root, small_store, first_index, end_index, FAR)
    assert {finding.id for finding in findings_of(root)} & {"CK02", "CK03"} == set()


def test_a_small_step_back_is_reported_with_time_and_size(small_store, tmp_path):
    root = small_store.write(tmp_path / "store")
    log(root, small_store.units[20].offset + 56, struct.pack(">q", small_store.units[20].store_timestamp - 7_200_000))
    finding = clock(findings_of(root))
    assert finding.message == (
        "Stored 2023-11-14T20:13:20.210Z, 2 h before an earlier unit; such steps: 1, the longest 2 h"
    )
    assert finding.evidence["expected"] == "2023-11-14T22:13:20.200Z"


def test_a_broker_that_was_idle_for_days_has_no_wrong_clock(tmp_path, old_files):
    store = HandmadeStore()
    for _ in range(10):
        store.put(step=3 * DAY)
    root = store.write(tmp_path / "store")
    assert not [finding for finding in findings_of(root, now=store.time) if finding.id == "CL08"]


def test_a_checkpoint_ahead_is_reported_with_dates(small_store, tmp_path):
    root = small_store.write(tmp_path / "store")
    small_store.write_checkpoint(root, small_store.time + 9_000_000, small_store.time)
    (finding,) = (item for item in findings_of(root) if item.id == "CK02")
    assert finding.evidence["expected"] == "2023-11-14T22:13:20.600Z"
    assert finding.evidence["found"]["physicMsgTimestamp"] == "2023-11-15T00:43:20.600Z"
    assert finding.message.endswith("by 2.5 h: physicMsgTimestamp")


def test_a_checkpoint_of_another_age_is_behind_by_years(small_store, tmp_path):
    """The finding reported 29,920,807 minutes, a number that means nothing to a reader."""
    root = small_store.write(tmp_path / "store")
    small_store.write_checkpoint(root, 1000, 1000)
    (results,) = [finding for finding in findings_of(root) if finding.id == "CK03"]
    assert results.message == "The checkpoint is 53.9 years behind the newest unit"


@pytest.mark.parametrize(("hours", "words"), [(2, "2 h after"), (-2, "2 h before")])
def test_a_producer_whose_clock_differs_is_a_note(hours, words, tmp_path):
    store = HandmadeStore()
    store.time += hours * 3_600_000
    for _ in range(20):
        store.put()
    root = store.write(tmp_path / "store")
    (finding,) = (item for item in findings_of(root) if item.id == "CL13")
    assert (finding.severity, finding.evidence["host"], finding.evidence["units"]) == ("note", "127.0.0.1", 20)
    assert f"are stored {words} they were created" in finding.message


def test_delayed_messages_cause_no_clock_finding(tmp_path):
    store = HandmadeStore()
    for _ in range(20):
        store.put(step=600_000)
    assert not [finding for finding in findings_of(store.write(tmp_path / "store")) if finding.id == "CL13"]


def test_a_time_that_no_clock_can_have_was_overwritten(small_store, tmp_path):
    """Random bytes in one unit became a clock that ran 39,984,074 years behind."""
    root = small_store.write(tmp_path / "store")
    unit = small_store.units[20]
    log(root, unit.offset + 56, struct.pack(">q", -1_261_799_645_106_487_702))
    finding = clock(findings_of(root, now=NOW))
    assert "-1261799645106487702, which no clock can have: these bytes were overwritten" in finding.message
    assert finding.next_step.endswith("ompare the head of the message with a replica's.")
