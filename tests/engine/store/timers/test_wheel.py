"""The wheel of a store that runs: slots in memory and in a sparse file."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.codec.timer import NO_OFFSET, WHEEL_SIZE, WHEEL_SLOTS
from engine.errors import WrongFileSize
from engine.mapped.disk import RealDisk
from engine.store.timers.wheel import TimerWheel

DUE = 1_795_248_759_000
ROUND = WHEEL_SLOTS * 1000


def wheel_in(folder: Path) -> TimerWheel:
    wheel = TimerWheel(folder / "timerwheel", RealDisk(), 1000)
    wheel.load()
    return wheel


def test_a_slot_is_of_one_time_and_outlives_the_wheel_once_it_is_flushed(tmp_path: Path) -> None:
    wheel = wheel_in(tmp_path)
    wheel.put(DUE, 0, 52, 2)
    wheel.flush()
    again = wheel_in(tmp_path)
    for known in (wheel, again):
        assert (known.slot(DUE).first, known.slot(DUE + 999).last, known.slot(DUE).count) == (0, 52, 2)
        assert known.slot(DUE + ROUND).last == NO_OFFSET
    again.put(DUE + ROUND, 104, 104, 1)
    assert (again.slot(DUE).last, again.slot(DUE + ROUND).last) == (NO_OFFSET, 104)


def test_no_file_is_made_for_nothing_and_a_made_one_is_sparse(tmp_path: Path) -> None:
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
    found, at = [], DUE
    while (due := wheel.next_used(at, DUE + 600_000_000)) is not None:
        found.append((due - DUE) // 1000)
        at = due + 1000
    assert found == [30, 7_000, 500_000]
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
