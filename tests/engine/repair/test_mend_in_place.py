"""A store is mended in place with a backup, or stays as it is."""

from __future__ import annotations

from pathlib import Path

import golden_stores
import pytest
from broken_stores import BROKEN
from handmade_stores import healthy

from engine.errors import StoreError, StoreLocked
from engine.inspection.snapshot import open_store
from engine.mapped import undo
from engine.mapped.backup import find_backups
from engine.mapped.store_lock import StoreLock
from engine.patching.patches import BadPatch, WriteBytes
from engine.repair.mend_in_place import mend_in_place, refuse_to_write
from engine.repair.repair_plan import plan_repairs


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A store with a damaged log and a wrong checkpoint."""
    store = healthy()
    path = store.write(tmp_path / "store")
    BROKEN["CL01"](path, store)
    BROKEN["CK05"](path, store)
    return path


def test_a_store_is_mended_and_restored(root) -> None:
    before = golden_stores.fingerprint(root)
    plan = plan_repairs(root, None, "5.3")
    mended = mend_in_place(root, None, plan.patches)
    assert mended.patches == len(plan.patches)
    assert plan_repairs(root, None, "5.3").current.findings == ()
    (backup,) = find_backups(root)
    assert (backup.folder, backup.command, backup.undone) == (mended.folder, "repair", False)
    undo.restore(backup, root)
    assert golden_stores.changes(before, golden_stores.fingerprint(root)) == []
    assert find_backups(root)[0].undone


def test_a_stop_or_a_patch_that_does_not_fit_leaves_the_store_as_it_was(root) -> None:
    before = golden_stores.fingerprint(root)
    patches = plan_repairs(root, None, "5.3").patches

    def stop(done: int, _total: int) -> None:
        if done == 1:
            raise StoreError("stopped")

    with pytest.raises(StoreError, match="stopped"):
        mend_in_place(root, None, patches, stop)
    with pytest.raises(BadPatch):
        mend_in_place(root, None, [WriteBytes(file="checkpoint", offset=0, old=b"\1" * 8, new=bytes(8), why="")])
    assert golden_stores.changes(before, golden_stores.fingerprint(root)) == []
    assert find_backups(root) == []


def test_a_store_that_is_open_is_refused(root) -> None:
    with StoreLock(root / "lock"), open_store(root) as store:
        with pytest.raises(StoreLocked):
            refuse_to_write(store)
        with pytest.raises(StoreLocked):
            mend_in_place(root, None, ())
    assert find_backups(root) == []
