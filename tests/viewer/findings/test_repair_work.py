"""A copy is mended as planned; the store itself is only read, and a stop leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import golden_stores
import pytest
from broken_stores import BROKEN
from controls import FakeControl, StoppedByTest
from handmade_stores import healthy

from engine.patching.patches import loads
from viewer.findings import repair_work


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A store with a damaged log and a wrong checkpoint."""
    store = healthy()
    path = store.write(tmp_path / "store")
    BROKEN["CL01"](path, store)
    BROKEN["CK05"](path, store)
    return path


def test_a_mended_copy_has_no_finding_and_the_store_is_unchanged(root, tmp_path) -> None:
    before = golden_stores.fingerprint(root)
    plan = repair_work.plan(FakeControl(), root, None, ())
    assert [repair.name for repair in plan.repairs] == ["log", "checkpoint"]
    copy = repair_work.mend_copy(FakeControl(), root, None, plan.patches, tmp_path / "mended")
    repair_work.save_patches(plan.patches, tmp_path / "patches.json")
    assert repair_work.plan(FakeControl(), copy, None, ()).current.findings == ()
    assert tuple(loads((tmp_path / "patches.json").read_bytes())) == plan.patches
    assert golden_stores.changes(before, golden_stores.fingerprint(root)) == []
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["mended", "patches.json", "store"]


def test_a_stop_concludes_nothing_and_leaves_no_copy(root, tmp_path) -> None:
    plan = repair_work.plan(FakeControl(), root, None, ("checkpoint",))
    with pytest.raises(StoppedByTest):
        repair_work.plan(FakeControl(1), root, None, ())
    with pytest.raises(StoppedByTest):
        repair_work.mend_copy(FakeControl(2), root, None, plan.patches, tmp_path / "mended")
    assert [entry.name for entry in tmp_path.iterdir()] == ["store"]
