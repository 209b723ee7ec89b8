"""Bytes after an end of the log, counted in stores with known units."""

from __future__ import annotations

import struct

import pytest
from handmade_stores import LOG_SIZE, healthy

from engine.config import from_mapping
from engine.inspection import recovery
from engine.inspection.snapshot import open_store
from engine.mapped.read_only import DescriptorCache, FileSequence
from engine.store.recovery import planning as recovery_dropped
from engine.store.recovery.planning import DroppedBytes


@pytest.fixture
def healthy_store():
    return healthy(80)


@pytest.fixture
def files(healthy_store, tmp_path):
    cache = DescriptorCache()
    healthy_store.write(tmp_path)
    yield FileSequence((tmp_path / "commitlog",), cache).files
    cache.close()


@pytest.mark.parametrize("kept_units", [0, 1, 17, 40, 79, 80])
@pytest.mark.parametrize("chunk", [256, 1000, 8 << 20])
def test_every_unit_after_the_end_counts(kept_units, chunk, healthy_store, files, monkeypatch):
    monkeypatch.setattr(recovery_dropped, "CHUNK", chunk)
    end = healthy_store.units[kept_units].offset if kept_units < 80 else healthy_store.end
    dropped = DroppedBytes(files, end)
    assert dropped.units == 80 - kept_units
    assert dropped.data_end == healthy_store.end
    assert (dropped.bytes > 0) == (kept_units < 80)


def test_damage_in_between_is_skipped(healthy_store, files, tmp_path):
    unit = healthy_store.units[30]
    path = tmp_path / "commitlog" / f"{unit.offset // LOG_SIZE * LOG_SIZE:020d}"
    with path.open("r+b") as file:
        file.seek(unit.offset % LOG_SIZE + 4)
        file.write(b"xxxx")
    assert DroppedBytes(files, healthy_store.units[20].offset).units == 59


def planned(root, release, **settings):
    """Return the plan of a golden store with some configuration settings."""
    with open_store(root, from_mapping({"timerWheelEnable": False, **settings})[0]) as store:
        return recovery.plan(store, release)


@pytest.mark.golden
@pytest.mark.parametrize("release", ["5.4", "5.5"])
def test_a_start_reads_the_configured_number_of_files(golden, release):
    root = golden("queues-gone-past-ten-files-5.5.1")
    files = sorted(path.name for path in (root / "commitlog").iterdir())
    for max_files, first_file, limit in ((3, files[-3], 3), (0, files[-10], 10), (17, files[0], None)):
        plan = planned(root, release, commitLogRecoverMaxNum=max_files)
        assert (plan.start_file, plan.file_limit) == (first_file, limit)
    assert planned(root, "5.3", commitLogRecoverMaxNum=3).start_file == files[0]


@pytest.mark.golden
def test_after_a_crash_5_5_begins_at_the_offset_and_5_4_at_the_time(golden):
    root = golden("late-queue-flush-5.5.1")
    by_offset, by_time = planned(root, "5.5"), planned(root, "5.4")
    assert "the checkpoint's logicsPhysicalOffset" in by_offset.why
    assert "the checkpoint's time less 3 s" in by_time.why
    assert by_offset.start_offset > by_time.start_offset
    assert by_offset.limit_timestamp is None


@pytest.mark.golden
def test_an_accelerated_start_begins_within_its_file_and_refuses_without_an_offset(golden):
    plain = planned(golden("late-queue-flush-5.5.1"), "5.5")
    quick = planned(golden("late-queue-flush-5.5.1"), "5.5", enableAcceleratedRecovery=True)
    assert quick.start_file == plain.start_file
    assert quick.start_offset > plain.start_offset
    refused = planned(golden("broker-crash-5.5.1"), "5.5", enableAcceleratedRecovery=True)
    assert [blocker.finding for blocker in refused.blockers] == ["CK05"]
    assert planned(golden("broker-crash-5.5.1"), "5.4", enableAcceleratedRecovery=True).will_start


def changed_checkpoint(root, position, value):
    with (root / "checkpoint").open("r+b") as file:
        file.seek(position)
        file.write(struct.pack(">q", value))


@pytest.mark.parametrize(
    ("position", "value", "note"),
    [
        (32, 1 << 20, "The checkpoint's confirm offset 1,048,576 is after the end of the log"),
        (0, -5, "The checkpoint holds numbers that no broker writes: "),
    ],
)
def test_odd_numbers_of_the_checkpoint_are_noted(healthy_store, tmp_path, position, value, note):
    healthy_store.write(tmp_path)
    changed_checkpoint(tmp_path, position, value)
    notes = planned(tmp_path, "5.3").notes
    assert [text for text in notes if text.startswith(note)]


@pytest.mark.parametrize(
    ("release", "settings", "logics_offset", "why"),
    [
        ("5.4", {}, 0, "no later file's first unit was stored at or before"),
        ("5.5", {}, 4200, "4,200 (the checkpoint's logicsPhysicalOffset)"),
        ("5.5", {"enableAcceleratedRecovery": True}, 4200, "with enableAcceleratedRecovery the walk begins there"),
        ("5.5", {"commitLogRecoverMaxNum": 1}, 3, "1 file"),
        ("5.5", {"messageIndexSafe": True}, 4200, "and no later than the index"),
    ],
)
def test_a_start_after_a_crash_says_why_it_begins_at_a_file(
    healthy_store, tmp_path, release, settings, logics_offset, why
):
    healthy_store.write(tmp_path)
    (tmp_path / "abort").touch()
    if logics_offset:
        changed_checkpoint(tmp_path, 40, logics_offset)
    assert why in planned(tmp_path, release, **settings).why
