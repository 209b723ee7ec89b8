"""The effects of each running flag."""

from __future__ import annotations

import pytest

from engine.store import running_flags as rf


def test_without_a_flag_everything_is_permitted() -> None:
    flags = rf.RunningFlags()
    assert (flags.readable, flags.writeable, flags.queue_writeable, flags.why) == (True, True, True, "")


@pytest.mark.parametrize(
    ("flag", "readable", "writeable", "queue_writeable"),
    [
        (rf.NOT_READABLE, False, True, True),
        (rf.NOT_WRITEABLE, True, False, False),
        (rf.QUEUE_WRITE_ERROR, True, False, False),
        (rf.INDEX_WRITE_ERROR, True, False, False),
        (rf.DISK_FULL, True, False, True),
        (rf.FENCED, True, False, True),
        (rf.LOGIC_DISK_FULL, True, False, False),
    ],
)
def test_each_flag(flag: int, readable: bool, writeable: bool, queue_writeable: bool) -> None:
    flags = rf.RunningFlags()
    assert flags.raise_flag(flag, "because")
    assert (flags.readable, flags.writeable, flags.queue_writeable) == (readable, writeable, queue_writeable)
    assert flags.why == f"{rf.NAMES[flag]}: because"
    assert flags.clear(flag)
    assert flags.bits == 0


def test_the_first_reason_is_kept() -> None:
    flags = rf.RunningFlags()
    flags.raise_flag(rf.DISK_FULL, "first")
    assert not flags.raise_flag(rf.DISK_FULL, "second")
    assert flags.why == "disk full: first"
    assert flags.clear(rf.DISK_FULL)
    assert not flags.clear(rf.DISK_FULL)
