"""A RocksDB of queues that cannot be read is moved away, and built again from the log."""

from __future__ import annotations

import shutil
from pathlib import Path

import golden_stores
import made_rocksdb
import pytest

from engine.codec import rocksdb_queue_rows as codec
from engine.config import MessageStoreConfig
from engine.errors import CannotRead
from engine.inspection.snapshot import open_store
from engine.repair import rocksdb_database, rocksdb_queues
from engine.repair.mend_in_place import mend_in_place
from engine.repair.repair_plan import lost_by, plan_repairs

pytestmark = pytest.mark.golden


@pytest.fixture
def root(golden, tmp_path):
    made_rocksdb.binding()
    return Path(shutil.copytree(golden("rocks-5.5.1"), tmp_path / "store"))


def overwrite(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[20:60] = bytes(40)
    path.write_bytes(data)


DAMAGE = {
    "missing table": lambda folder: (folder / "000019.sst").unlink(),
    "broken table": lambda folder: overwrite(folder / "000011.sst"),
    "no manifest": lambda folder: (folder / "MANIFEST-000015").unlink(),
    "no current file": lambda folder: (folder / "CURRENT").unlink(),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_the_rows_are_those_of_the_log(root, kind):
    before = made_rocksdb.read_rows(root / "consumequeue")
    DAMAGE[kind](root / "consumequeue")
    files = golden_stores.fingerprint(root)
    plan = plan_repairs(root, None, "5.5")
    assert [repair.name for repair in plan.repairs] == ["rocksdb"]
    assert not plan.current.start.will_start
    assert plan.mended.start.will_start
    assert not plan.mended.findings
    assert golden_stores.changes(files, golden_stores.fingerprint(root)) == []
    mend_in_place(root, None, plan.patches)
    after = made_rocksdb.read_rows(root / "consumequeue")
    assert after[codec.ENTRY_FAMILY] == before[codec.ENTRY_FAMILY]
    ends = {key: value for key, value in before[codec.BOUND_FAMILY].items() if b"\x01max\x01" in key}
    assert {key: after[codec.BOUND_FAMILY].get(key) for key in ends} == ends
    moved = root / "removed-by-repair" / "consumequeue"
    assert {path.name for path in moved.iterdir()} <= {
        name.removeprefix("consumequeue/") for name in files if name.startswith("consumequeue/")
    }
    with open_store(root) as store:  # nothing is concluded from what was moved
        assert [part.folder for part in store.undecoded if part.forbids_writing] == ["consumequeue"]


def test_a_start_fills_it_where_the_rows_are_too_many(root, monkeypatch):
    for module in (rocksdb_database, rocksdb_queues):
        monkeypatch.setattr(module, "MAX_ROWS", 100)
    DAMAGE["missing table"](root / "consumequeue")
    plan = plan_repairs(root, None, "5.5")
    assert {"abort", "consumequeue/CURRENT"} <= {patch.file for patch in plan.patches}
    mend_in_place(root, None, plan.patches)
    assert set(made_rocksdb.read_rows(root / "consumequeue")[codec.ENTRY_FAMILY]) == set()
    (start,) = plan.mended.starts
    assert start.will_start
    assert lost_by(start) == 0


def test_a_whole_database_of_another_layout_is_left(root):
    """Nothing is known about it, so nothing of it is moved."""
    rows = made_rocksdb.read_rows(root / "consumequeue")
    made_rocksdb.make_database(root / "consumequeue", {"default": rows["default"], "other": {}})
    with pytest.raises(CannotRead, match="column family"):
        plan_repairs(root, None, "5.5")


def test_damage_in_the_log_is_mended_as_well(root):
    with open_store(root) as store:
        unit = next(iter(store.log.walk(store.log.min_offset + 300_000)))
    DAMAGE["missing table"](root / "consumequeue")
    (log,) = (root / "commitlog").iterdir()
    data = bytearray(log.read_bytes())
    data[unit.offset : unit.offset + 60] = bytes(60)
    log.write_bytes(data)
    plan = plan_repairs(root, None, "5.5")
    assert [repair.name for repair in plan.repairs][:2] == ["rocksdb", "log"]
    assert plan.mended.start.will_start
    assert lost_by(plan.mended.start) == 0


def test_a_database_that_is_gone_is_built_if_the_configuration_names_it(root):
    """Files of queues were offered, which such a broker does not read. It makes a database itself, but leaves the
    message at offset 0 of the log out.
    """
    before = made_rocksdb.read_rows(root / "consumequeue")
    shutil.rmtree(root / "consumequeue")
    config = MessageStoreConfig(store_type="defaultRocksDB", given=frozenset({"storeType"}))
    plan = plan_repairs(root, config, "5.5")
    assert [lost_by(start) for start in plan.current.starts] == [1]
    assert not plan.mended.findings
    assert [lost_by(start) for start in plan.mended.starts] == [0]
    mend_in_place(root, config, plan.patches)
    assert made_rocksdb.read_rows(root / "consumequeue")[codec.ENTRY_FAMILY] == before[codec.ENTRY_FAMILY]


def test_a_start_that_fills_it_begins_with_the_first_message(root, monkeypatch):
    """The end of dispatch was 0 in the new database, and a start dispatches only messages behind it: the message at
    offset 0 of the log was served to nobody.
    """
    for module in (rocksdb_database, rocksdb_queues):
        monkeypatch.setattr(module, "MAX_ROWS", 100)
    DAMAGE["no manifest"](root / "consumequeue")
    mend_in_place(root, None, plan_repairs(root, None, "5.5").patches)
    bounds = made_rocksdb.read_rows(root / "consumequeue")[codec.BOUND_FAMILY]
    assert codec.decode_dispatched(bounds[codec.CHECKPOINT_KEY]) == -1
