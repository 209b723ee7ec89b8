"""The forecast of retention equals what cleaning does: the same files, at the same time, for each rule."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from engine.codec.encode import Message
from engine.config import MessageStoreConfig, from_mapping
from engine.inspection import open_store
from engine.inspection.retention import Retention, retention
from engine.mapped.disk import RealDisk
from engine.message_store import MessageStore

HOUR = 3_600_000
SMALL = {
    "mappedFileSizeCommitLog": 4096,
    "mappedFileSizeConsumeQueue": 200,
    "maxHashSlotNum": 100,
    "maxIndexNum": 30,
    "deleteFileBatchMax": 1000,
}
NOON = int(time.mktime((2026, 3, 10, 12, 0, 0, 0, 0, -1)) * 1000)


class DiskOfGivenUse(RealDisk):
    """The real disk with a simulated fill level."""

    def __init__(self, used: float) -> None:
        super().__init__()
        self.used = used

    def usage(self, path: Path) -> float:
        return self.used


def store_with_ages(root: Path, config: MessageStoreConfig, ages: tuple[int, ...]) -> list[Path]:
    """Make a store with a log file for each of ``ages`` (hours before noon), and one newest file."""
    with MessageStore(root, config) as store:
        number = 0
        while len(list((root / "commitlog").glob("*"))) <= len(ages):
            store.put_message(Message("Orders", b"x" * 500, keys=f"k{number}"))
            number += 1
    files = sorted((root / "commitlog").iterdir())
    for path, age in zip(files, (*ages, *[0] * (len(files) - len(ages))), strict=True):
        when = (NOON - age * HOUR) / 1000
        os.utime(path, (when, when))
    return files


def forecast_of(root: Path, config: MessageStoreConfig, used: float) -> Retention:
    with open_store(root, config) as store:
        return retention(store, NOON, (used, used))


def cleaned(root: Path, config: MessageStoreConfig, used: float, now: int) -> list[str]:
    """Return the names of the files that a run of cleaning at ``now`` deletes."""
    names_before = {path.name for path in (root / "commitlog").iterdir()}
    times = {path: path.stat().st_mtime for path in (root / "commitlog").iterdir()}
    store = MessageStore(root, config, disk=DiskOfGivenUse(used), clock=lambda: now, services=False)
    try:
        for path, when in times.items():
            os.utime(path, (when, when))  # opening may have touched them
        for _ in range(200):
            if store.services.step("clean") == config.clean_resource_interval:
                break
    finally:
        store.abandon()
    return sorted(names_before - {path.name for path in (root / "commitlog").iterdir()})


CASES: list[Any] = [
    pytest.param({}, 0.30, (100, 90, 80, 5), id="the hour of deleteWhen"),
    pytest.param({"deleteWhen": "12"}, 0.30, (100, 90, 80, 5), id="the hour is now"),
    pytest.param({"deleteWhen": "02;15", "fileReservedTime": 85}, 0.30, (100, 90, 80, 5), id="two hours a day"),
    pytest.param({}, 0.80, (100, 90, 80, 5), id="over 75 percent"),
    pytest.param({}, 0.86, (100, 90, 80, 5), id="over 85 percent"),
    pytest.param({}, 0.95, (3, 2, 1), id="over 90 percent"),
    pytest.param({"cleanFileForciblyEnable": "false"}, 0.86, (100, 3), id="never at once"),
    pytest.param({}, 0.30, (10, 100, 90), id="an older file holds the others"),
]


@pytest.mark.parametrize(("settings", "used", "ages"), CASES)
def test_exactly_the_forecast_files_are_deleted(tmp_path, settings, used, ages):
    config = from_mapping({**SMALL, **settings})[0]
    root = tmp_path / "store"
    store_with_ages(root, config, ages)
    forecast = forecast_of(root, config, used)
    when = forecast.next_time
    assert when is not None
    if when > NOON:
        assert cleaned(root, config, used, when - 1) == []
    assert cleaned(root, config, used, when) == sorted(file.name for file in forecast.next_files)
