"""The timer log of a store that runs: units over files, blanks between, what expires."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.codec.timer import TimerLogUnit
from engine.errors import StoreError
from engine.mapped.disk import RealDisk
from engine.store.timers.log import TimerLog

FILE = 52 * 3 + 16 + 20
"""Room for three units, and a blank of 36 bytes."""


def log_in(folder: Path) -> TimerLog:
    log = TimerLog(folder / "timerlog", RealDisk(), FILE)
    log.load()
    return log


def unit(number: int) -> TimerLogUnit:
    return TimerLogUnit(0, -1, 1, 1_795_248_757_000, 2_000, number * 100, 90, 5)


def filled(folder: Path, count: int) -> tuple[TimerLog, list[int]]:
    log = log_in(folder)
    return log, [log.append(unit(number)) for number in range(count)]


def test_units_roll_over_files_and_are_walked_and_read_again(tmp_path: Path) -> None:
    log, places = filled(tmp_path, 8)
    assert places == [0, 52, 104, FILE, FILE + 52, FILE + 104, 2 * FILE, 2 * FILE + 52]
    assert log.flush() == 2 * FILE + 104
    for known in (log, log_in(tmp_path)):
        assert [one.offset for one in known.walk(0)] == places
        assert [one.offset for one in known.walk(FILE)] == places[3:]
        found = known.unit(FILE + 52)
        assert found is not None
        assert found.physical_offset == 400


def test_damage_before_other_files_is_no_reason_to_delete_them(tmp_path: Path) -> None:
    log, _ = filled(tmp_path, 8)
    log.flush()
    path = tmp_path / "timerlog" / f"{FILE:020d}"
    path.write_bytes(b"\0\0\0\7" + path.read_bytes()[4:])
    with pytest.raises(StoreError, match=r"a unit's length says 7, expected 52; files follow"):
        list(log_in(tmp_path).walk(0))


def test_files_whose_messages_are_gone_expire_and_the_last_never(tmp_path: Path) -> None:
    log, _ = filled(tmp_path, 8)
    assert log.delete_expired(200, 0) == 0
    assert log.delete_expired(201, 0) == 1
    assert log.files.min_offset == FILE
    assert log.delete_expired(10_000, 0) == 1
    assert log.files.min_offset == 2 * FILE
