"""The timer wheel of a running store: slots in memory and in a sparse file.

The timer log of a running store: units across files, blanks between them, and expired files.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.codec.timer import NO_OFFSET, WHEEL_SIZE, WHEEL_SLOTS, TimerLogUnit
from engine.errors import StoreError, WrongFileSize
from engine.mapped.disk import RealDisk
from engine.store.timers.wheel import TimerLog, TimerWheel

DUE = 1_795_248_759_000
ROUND = WHEEL_SLOTS * 1000


def wheel_in(folder: Path) -> TimerWheel:
    wheel = TimerWheel(folder / "timerwheel", RealDisk(), 1000)
    wheel.load()
    return wheel


def test_a_slot_has_one_time_and_survives_once_it_is_flushed(tmp_path: Path) -> None:
    wheel = wheel_in(tmp_path)
    wheel.put(DUE, 0, 52, 2)
    wheel.flush()
    second_wheel = wheel_in(tmp_path)
    for known_values in (wheel, second_wheel):
        assert (
            known_values.slot(DUE).first_offset,
            known_values.slot(DUE + 999).last_offset,
            known_values.slot(DUE).count,
        ) == (0, 52, 2)
        assert known_values.slot(DUE + ROUND).last_offset == NO_OFFSET
    second_wheel.put(DUE + ROUND, 104, 104, 1)
    assert (second_wheel.slot(DUE).last_offset, second_wheel.slot(DUE + ROUND).last_offset) == (NO_OFFSET, 104)


def test_no_file_is_made_without_a_timer_and_the_file_is_sparse(tmp_path: Path) -> None:
    wheel = wheel_in(tmp_path)
    wheel.flush()
    assert not (tmp_path / "timerwheel").exists()
    wheel.put(DUE, 0, 0, 1)
    wheel.flush()
    stat = (tmp_path / "timerwheel").stat()
    assert (stat.st_size, stat.st_blocks * 512 < 1 << 20) == (WHEEL_SIZE, True)


@pytest.mark.parametrize("flushed", [True, False])
def test_the_next_used_slot_is_found_near_and_far(tmp_path: Path, flushed: bool) -> None:
    wheel = wheel_in(tmp_path)
    for later in (500_000, 30, 7_000):
        wheel.put(DUE + later * 1000, 0, 0, 1)
    if flushed:
        wheel.flush()
    results, current = [], DUE
    while (due := wheel.next_used(current, DUE + 600_000_000)) is not None:
        results.append((due - DUE) // 1000)
        current = due + 1000
    assert results == [30, 7_000, 500_000]
    assert wheel.next_used(DUE + 25_000, DUE + 31_000) == DUE + 30_000
    assert wheel.next_used(DUE + 25_000, DUE + 30_000) is None


def test_a_slot_that_names_units_behind_the_log_is_found(tmp_path: Path) -> None:
    wheel = wheel_in(tmp_path)
    wheel.put(DUE, 52, 520, 3)
    wheel.flush()
    wheel.put(DUE + 1000, 104, 104, 1)
    assert wheel.beyond(DUE, 521) is None
    assert wheel.beyond(DUE, 520) == 52
    assert wheel.beyond(DUE, 100) == 52
    assert wheel.beyond(DUE + 1000, 100) == 104


def test_a_wheel_of_another_length_is_refused(tmp_path: Path) -> None:
    (tmp_path / "timerwheel").write_bytes(bytes(64))
    with pytest.raises(WrongFileSize, match="expected 38,707,200 bytes, found 64"):
        wheel_in(tmp_path)


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
    for known_log in (log, log_in(tmp_path)):
        assert [row.offset for row in known_log.walk(0)] == places
        assert [item.offset for item in known_log.walk(FILE)] == places[3:]
        actual_unit = known_log.unit(FILE + 52)
        assert actual_unit is not None
        assert actual_unit.physical_offset == 400


def test_damage_before_other_files_is_no_reason_to_delete_them(tmp_path: Path) -> None:
    log, _ = filled(tmp_path, 8)
    log.flush()
    path = tmp_path / "timerlog" / f"{FILE:020d}"
    path.write_bytes(b"\0\0\0\7" + path.read_bytes()[4:])
    with pytest.raises(StoreError, match=r"a unit's length is 7, expected 52; files follow"):
        list(log_in(tmp_path).walk(0))


def test_files_of_deleted_messages_expire_except_the_last(tmp_path: Path) -> None:
    log, _ = filled(tmp_path, 8)
    assert log.delete_expired(200, 0) == 0
    assert log.delete_expired(201, 0) == 1
    assert log.files.min_offset == FILE
    assert log.delete_expired(10_000, 0) == 1
    assert log.files.min_offset == 2 * FILE


def test_messages_are_counted_by_their_time_in_the_file_and_since(tmp_path: Path) -> None:
    wheel = wheel_in(tmp_path)
    wheel.put(DUE, 0, 52, 2)
    wheel.put(DUE + 5_000, 104, 104, 1)
    wheel.flush()
    second_wheel = wheel_in(tmp_path)
    second_wheel.put(DUE + 5_000, 104, 156, 4)  # instead of the value in the file
    for known_values, second in ((wheel, 1), (second_wheel, 4)):
        assert known_values.count(DUE, DUE + 5_000) == 2
        assert known_values.count(DUE, DUE + 6_000) == 2 + second
        assert known_values.count(DUE + 1_000, DUE + 5_000) == 0
