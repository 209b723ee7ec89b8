"""The abort file, which marks an open store (docs/formats/checkpoint.md, docs/formats/config-tables.md#rules)."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from simulated_disk import PowerLoss, SimulatedDisk

from engine.files.layout import StorePaths
from engine.mapped.abort_file import AbortFile

PATHS = StorePaths(Path("/store"))


def test_is_made_with_the_number_of_the_process_and_an_empty_backup():
    disk = SimulatedDisk()
    abort = AbortFile(disk, PATHS)
    assert not abort.present
    abort.create()
    assert abort.present
    assert abort.previous == str(os.getpid()).encode()
    assert disk.read_file(PATHS.abort_bak) == b""
    abort.delete()
    assert not abort.present
    assert abort.previous is None
    assert disk.exists(PATHS.abort_bak)


def test_after_a_crash_the_backup_has_the_dead_processs_number():
    disk = SimulatedDisk()
    AbortFile(disk, PATHS).create(77)
    abort = AbortFile(disk, PATHS)
    assert abort.previous == b"77"
    abort.create(78)
    assert disk.read_file(PATHS.abort_bak) == b"77"
    assert abort.previous == b"78"


def test_the_older_release_makes_an_empty_file_and_no_backup():
    disk = SimulatedDisk()
    abort = AbortFile(disk, PATHS, release="4.9")
    abort.create()
    assert abort.previous == b""
    assert disk.names(PATHS.root) == [("abort", 0)]


@pytest.mark.parametrize("release", ["4.9", "5.3"])
def test_survives_a_power_loss_as_soon_as_it_is_made_or_removed(release):
    for seed in range(30):
        disk = SimulatedDisk()
        abort = AbortFile(disk, PATHS, release)
        abort.create(5)
        disk_after = disk.after_power_loss(random.Random(seed))
        assert AbortFile(disk_after, PATHS, release).previous == abort.previous
        abort.delete()
        assert not AbortFile(disk.after_power_loss(random.Random(seed)), PATHS, release).present


def test_the_power_may_be_cut_at_any_moment():
    """During its creation the store may look open or closed, but after ``create`` returned it never looks closed."""
    for call in range(1, 20):
        disk = SimulatedDisk(crash_at=call)
        try:
            AbortFile(disk, PATHS).create(5)
        except PowerLoss:
            abort_after = AbortFile(disk.after_power_loss(random.Random(call)), PATHS)
            abort_after.create(6)
            assert (abort_after.present, abort_after.previous) == (True, b"6")
            continue
        for seed in range(30):
            abort_after = AbortFile(disk.after_power_loss(random.Random(seed)), PATHS)
            assert (abort_after.present, abort_after.previous) == (True, b"5")
        return
    pytest.fail("never done")
