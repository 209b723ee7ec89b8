"""The state around log, queues and index: abort file, checkpoint, tables."""

from __future__ import annotations

import pytest
from handmade_stores import HandmadeStore

from engine.errors import StoreError
from engine.inspection import open_store
from engine.inspection.check import state
from engine.mapped import undo
from engine.mapped.backup import BackupWriter, find_backups
from engine.mapped.store_lock import StoreLock
from engine.repair.mend_in_place import mend_in_place


@pytest.fixture
def small_store():
    store = HandmadeStore()
    for _ in range(90):
        store.put(step=60_000)
    return store


def ids(findings):
    return [(finding.id, finding.severity) for finding in findings]


def checkpoint(root, source, newest=None, end=None):
    newest = source.units[-1].store_timestamp if newest is None else newest
    with open_store(root) as handmade:
        return list(state.checkpoint(handmade, newest, source.end if end is None else end, newest))


def test_an_abort_file_means_that_the_store_was_not_closed(small_store, tmp_path):
    with open_store(small_store.write(tmp_path / "closed")) as store:
        assert list(state.abort(store)) == []
    with open_store(small_store.write(tmp_path / "crashed", abort=True)) as store:
        (finding,) = state.abort(store)
    assert (finding.id, "nobody holds the lock" in finding.message) == ("AB01", True)


def test_a_change_that_was_interrupted_is_named_with_its_undo(small_store, tmp_path):
    """After a kill or a power loss nothing said that a store was half mended, and a broker started on it."""
    root = small_store.write(tmp_path / "store")
    writer = BackupWriter(root, "set-checkpoint")
    (root / "lock").touch()
    writer.before_change(root / "checkpoint")
    with open_store(root) as store, StoreLock(root / "lock"):
        assert list(state.interrupted_change(store)) == [], "the command is at work"
    with open_store(root) as store:
        (finding,) = state.interrupted_change(store)
    assert (finding.id, finding.file) == ("AB02", str(writer.folder))
    assert finding.message.startswith("The command set-checkpoint was interrupted")
    assert finding.command == f"storescope repair {{store}} --undo {writer.folder}"
    with pytest.raises(StoreError, match="set-checkpoint was interrupted before"):
        mend_in_place(root, None, ())
    undo._note(find_backups(root)[0], "begun")
    with open_store(root) as store:
        (finding,) = state.interrupted_change(store)
        assert finding.message.startswith("The undo of set-checkpoint was interrupted")
    undo.restore(find_backups(root)[0], root)
    with open_store(root) as store:
        assert list(state.interrupted_change(store)) == []


def test_a_change_that_ended_and_a_start_that_did_not_are_no_finding(small_store, tmp_path):
    """What a start does is completed by the next one: only a change by hand is left half done."""
    root = small_store.write(tmp_path / "store")
    BackupWriter(root, "repair").finish()
    writer = BackupWriter(root, "recover")
    writer.before_change(root / "checkpoint")
    writer.close()
    with open_store(root) as store:
        assert list(state.interrupted_change(store)) == []


def test_a_correct_checkpoint_has_no_finding(small_store, tmp_path):
    assert checkpoint(small_store.write(tmp_path / "s"), small_store) == []


def test_a_checkpoint_missing_cut_ahead_zero_or_far_behind(small_store, tmp_path):
    newest = small_store.units[-1].store_timestamp
    root = small_store.write(tmp_path / "gone", checkpoint=False)
    assert ids(checkpoint(root, small_store)) == [("CK05", "note")]
    assert ids(checkpoint(small_store.write(tmp_path / "crashed", checkpoint=False, abort=True), small_store)) == [
        ("CK05", "warn")
    ]
    (root / "checkpoint").write_bytes(b"\0" * 100)
    assert "CK05" in {item.id for item in checkpoint(root, small_store)}
    small_store.write_checkpoint(root, newest + 5_000, newest)
    (finding,) = checkpoint(root, small_store)
    assert (finding.id, finding.evidence["aheadMs"]) == ("CK02", 5_000)
    small_store.write_checkpoint(root, 0, newest)
    assert ids(checkpoint(root, small_store))[0][0] == "CK01"
    small_store.write_checkpoint(root, newest - 3_600_000, newest)
    (finding,) = checkpoint(root, small_store)
    assert (finding.id, finding.evidence["behindMs"]) == ("CK03", 3_600_000)


def test_a_table_that_no_broker_can_load(small_store, tmp_path):
    root = small_store.write(tmp_path / "s")
    (root / "config").mkdir()
    (root / "config" / "topics.json").write_text("{broken")
    with open_store(root) as store:
        (results,) = state.config(store)
    assert results.file == str(root / "config" / "topics.json")
