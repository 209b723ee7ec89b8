"""Rows of queues in a RocksDB are mended from the log, by a new write-ahead log: no file that is there changes."""

from __future__ import annotations

import shutil
from pathlib import Path

import golden_stores
import made_rocksdb
import pytest

from engine.cli.main import main
from engine.inspection.findings import check
from engine.inspection.snapshot import open_store
from engine.mapped.disk import RealDisk
from engine.patching.apply import apply_patches
from engine.patching.patches import PatchList
from engine.repair.repair import Repair
from engine.repair.repair_plan import plan_repairs
from engine.repair.rocksdb_queues import repair_rocksdb_queues
from engine.rules.findings import Finding, at_least

pytestmark = pytest.mark.golden


@pytest.fixture
def root(golden, tmp_path):
    made_rocksdb.binding()
    return Path(shutil.copytree(golden("rocks-5.5.1"), tmp_path / "store"))


def mended(root: Path) -> Repair | None:
    with open_store(root) as store:
        repair = repair_rocksdb_queues(store, [item for item in check(store) if isinstance(item, Finding)])
    if repair is not None:
        apply_patches(root, PatchList(repair.patches), RealDisk())
    return repair


@pytest.mark.parametrize("kind", made_rocksdb.SPOILED)
def test_the_rows_become_what_they_were(root, kind):
    before = made_rocksdb.read_rows(root / "consumequeue")
    made_rocksdb.spoil_queues(root / "consumequeue", kind, "TopicB", 1)
    files = golden_stores.fingerprint(root)
    assert mended(root) is not None
    changes = golden_stores.changes(files, golden_stores.fingerprint(root))
    assert [change for change in changes if not change.endswith(".log: appeared")] == ["consumequeue: changed"]
    after = made_rocksdb.read_rows(root / "consumequeue")
    assert after["default"] == before["default"]
    ends = {key: value for key, value in after["offset"].items() if b"max" in key}
    assert {key: value for key, value in before["offset"].items() if key in ends} == ends
    with open_store(root) as store:
        assert not [item for item in check(store) if isinstance(item, Finding) and at_least(item.severity, "warn")]


def test_a_valid_store_gets_no_offer(root):
    assert mended(root) is None


def test_a_placeholder_has_the_tag_code_of_its_row(root, tmp_path, capsys):
    """A damaged message without a readable rest: the placeholder has no tag, and its row says so."""
    with open_store(root) as store:
        entry = store.queues.by_topic()["TopicA"][0].entry(51)
        assert entry is not None
    (log,) = (root / "commitlog").iterdir()
    data = bytearray(log.read_bytes())
    data[entry.physical_offset : entry.physical_offset + entry.size] = bytes(entry.size)
    log.write_bytes(data)
    files = golden_stores.fingerprint(root)
    assert main(["repair", str(root), "--apply", "--yes", "--quiet"]) == 0
    with open_store(root) as store:
        row = store.queues.by_topic()["TopicA"][0].entry(51)
        assert row is not None
        assert (row.physical_offset, row.size, row.tags_code) == (entry.physical_offset, entry.size, 0)
        rules = {item.id for item in check(store) if isinstance(item, Finding) and at_least(item.severity, "warn")}
    assert rules <= {"AB01"}
    (backup,) = tmp_path.glob("store.kept-*")
    assert main(["repair", str(root), "--undo", str(backup), "--yes", "--quiet"]) == 0
    assert golden_stores.changes(files, golden_stores.fingerprint(root)) == []
    capsys.readouterr()


def test_rows_beside_queues_in_files_follow_the_log_as_well(golden, tmp_path):
    """Placeholders have no tag: the files said so, and the RocksDB beside them still had the tags of the messages."""
    made_rocksdb.binding()
    root = Path(shutil.copytree(golden("combine-5.5.1"), tmp_path / "store"))
    with open_store(root) as store:
        entries = [store.queues.used_files()[topic][0].entry(40) for topic in ("TopicA", "TopicB", "orders")]
    (log,) = (root / "commitlog").iterdir()
    data = bytearray(log.read_bytes())
    for entry in entries:
        assert entry is not None
        data[entry.physical_offset : entry.physical_offset + entry.size] = bytes(entry.size)
    log.write_bytes(data)
    plan = plan_repairs(root, None, "5.5")
    assert not plan.mended.findings
    assert any(patch.file.startswith("consumequeue/0") for patch in plan.patches)
