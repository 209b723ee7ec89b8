"""The file at which the walk of a recovery begins, and why."""

from __future__ import annotations

import pytest
from handmade_stores import healthy
from recovery_plans import change_checkpoint, planned


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
def test_a_start_after_a_crash_says_why_it_begins_at_a_file(tmp_path, release, settings, logics_offset, why):
    healthy(80).write(tmp_path)
    (tmp_path / "abort").touch()
    if logics_offset:
        change_checkpoint(tmp_path, 40, logics_offset)
    assert why in planned(tmp_path, release, **settings).why
