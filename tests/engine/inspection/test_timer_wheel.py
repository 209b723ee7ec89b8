"""Snapshots of the timer wheel that a real broker left: which one a start takes, and how many messages wait in each."""

from __future__ import annotations

import pytest

from engine.files.layout import wheel_snapshot_position
from engine.inspection.snapshot import open_store
from engine.inspection.timer_wheel import wheel_infos, wheel_taken

pytestmark = pytest.mark.golden


def test_the_newest_snapshot_is_taken(golden):
    with open_store(golden("wheel-snapshots-5.5.1")) as store:
        taken = wheel_taken(store)
        infos = [(wheel.position, wheel.messages, wheel.is_taken) for wheel in wheel_infos(store)]
    assert taken is not None
    assert (taken.name, taken.position) == ("timerwheel.3276", 3276)
    assert [info[::2] for info in infos] == [(2184, False), (3276, True)]
    assert infos[1][1] == 40


def test_a_store_without_snapshots_has_the_plain_wheel(golden):
    with open_store(golden("broker-pop")) as store:
        taken = wheel_taken(store)
        assert wheel_infos(store) == []
    assert taken is not None
    assert (taken.name, taken.position) == ("timerwheel", None)


@pytest.mark.parametrize(
    ("name", "position"),
    [
        ("timerwheel", None),
        ("timerwheel.0", 0),
        ("timerwheel.52.tmp", None),
        ("timerwheel.-52", None),
        ("timerlog.52", None),
        ("timerwheel." + "9" * 19, None),
    ],
)
def test_the_name_of_a_snapshot_has_its_position(name, position):
    assert wheel_snapshot_position(name) == position
