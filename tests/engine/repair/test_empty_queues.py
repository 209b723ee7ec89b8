"""A queue keeps no last file of zeros that a start takes for an entry; its numbers stay."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from engine.inspection.snapshot import open_store
from engine.mapped.disk import RealDisk
from engine.patching.apply import apply_patches
from engine.patching.patches import PatchList
from engine.repair.empty_queues import repair_empty_queues
from engine.repair.repair_plan import plan_repairs

FILE_SIZE = 6000
Golden = Callable[[str], Path]


def add_empty_file(root: Path, start: int) -> Path:
    folder = root / "consumequeue/SCHEDULE_TOPIC_XXXX/9"
    folder.mkdir(exist_ok=True)
    file = folder / f"{start:020d}"
    file.write_bytes(bytes(FILE_SIZE))
    return file


def test_the_only_file_of_a_queue_goes(golden: Golden, tmp_path: Path) -> None:
    root = Path(shutil.copytree(golden("clean-5.5.1"), tmp_path / "store"))
    file = add_empty_file(root, 0)
    plan = plan_repairs(root, None, "5.5")
    assert [finding.id for finding in plan.current.findings] == ["CQ06"]
    assert plan.mended.findings == ()
    apply_patches(root, PatchList(plan.patches), RealDisk())
    assert not file.exists()


def test_the_file_that_numbers_a_queue_stays(golden: Golden, tmp_path: Path) -> None:
    """Only its name has the number of the queue's next message."""
    root = Path(shutil.copytree(golden("clean-5.5.1"), tmp_path / "store"))
    add_empty_file(root, FILE_SIZE)
    plan = plan_repairs(root, None, "5.5")
    assert plan.repairs == ()
    assert "set-offset" in plan.left["CQ06"]


def test_a_log_that_begins_later_leads_consumers_past_the_entry(golden: Golden, tmp_path: Path) -> None:
    """A broker of 5.3.3 moved the minimum of such a queue to its end, and answered the pull."""
    root = Path(shutil.copytree(golden("first-files-deleted-5.3.3"), tmp_path / "store"))
    add_empty_file(root, FILE_SIZE)
    assert plan_repairs(root, None, "5.3").current.findings == ()


def test_nothing_is_removed_without_a_finding(golden: Golden, tmp_path: Path) -> None:
    root = Path(shutil.copytree(golden("clean-5.5.1"), tmp_path / "store"))
    add_empty_file(root, 0)
    with open_store(root) as store:
        assert repair_empty_queues(store, [], ()) is None
