"""A queue whose first file is of deleted messages, one of them that at offset 0 of the log."""

from __future__ import annotations

from pathlib import Path

import pytest
from handmade_stores import LOG_SIZE, HandmadeStore, healthy

from engine.inspection.deleted_first_message import find_stale_first_file
from engine.inspection.findings import check
from engine.inspection.snapshot import open_store
from engine.mapped.disk import RealDisk
from engine.patching.apply import apply_patches
from engine.patching.patches import PatchList
from engine.repair.repair_plan import plan_repairs
from engine.rules.findings import Finding

ENTRIES_OF_FILE = 20


def without_begin(store: HandmadeStore, root: Path, number: int) -> tuple[str, int]:
    """Delete the files of the log in front of the message with this number in the queue of the first message."""
    first = store.units[0]
    unit = next(
        unit
        for unit in store.units
        if (unit.topic, unit.queue_id, unit.queue_offset) == (first.topic, first.queue_id, number)
    )
    for file in (root / "commitlog").iterdir():
        if int(file.name) + LOG_SIZE <= unit.offset:
            file.unlink()
    return first.topic, first.queue_id


def rules(root: Path) -> list[str]:
    with open_store(root) as store:
        return [item.id for item in check(store) if isinstance(item, Finding) and item.severity in ("warn", "error")]


@pytest.mark.parametrize(("number", "is_stale"), [(ENTRIES_OF_FILE + 8, True), (ENTRIES_OF_FILE - 8, False)])
def test_a_broker_would_follow_the_entry_if_the_whole_file_is_deleted(tmp_path, number, is_stale):
    store = healthy(count=300)
    root = store.write(tmp_path / "store")
    topic, queue_id = without_begin(store, root, number)
    with open_store(root) as opened:
        queue = opened.topics()[topic][queue_id]
        assert (find_stale_first_file(queue, opened.log.min_offset) is not None) is is_stale


def test_the_file_is_removed(tmp_path):
    """The first file of the log was deleted, and a real broker of 5.5.1 gave a consumer of Orders the bytes of messages
    of other topics: for offset 0 it takes the first file that is left.
    """
    store = healthy(count=300)
    root = store.write(tmp_path / "store")
    topic, queue_id = without_begin(store, root, ENTRIES_OF_FILE + 8)
    assert "CQ04" in rules(root)
    plan = plan_repairs(root, None, "5.5")
    apply_patches(root, PatchList(plan.patches), RealDisk())
    assert not (root / "consumequeue" / topic / str(queue_id) / f"{0:020d}").exists()
    assert "CQ04" not in rules(root)
