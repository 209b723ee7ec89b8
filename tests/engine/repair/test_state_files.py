"""Checkpoint, tables, names and empty files are mended."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

import pytest
from broken_stores import BROKEN
from handmade_stores import healthy
from planted_faults import patch

from engine.codec.checkpoint import decode
from engine.codec.epoch_file import Epoch, encode
from engine.codec.message import Unit
from engine.inspection.findings import check
from engine.inspection.snapshot import StoreSnapshot, open_store
from engine.mapped.disk import RealDisk
from engine.patching.apply import apply_patches
from engine.patching.patches import PatchList
from engine.repair.repair import Repair
from engine.repair.repair_plan import lost_by, plan_repairs
from engine.repair.state_files import repair_checkpoint, repair_files, repair_start_of_dispatch, repair_tables
from engine.rules.findings import Finding


def found(store: StoreSnapshot) -> list[Finding]:
    return [item for item in check(store) if isinstance(item, Finding)]


def made(root: Path, repair: Repair | None) -> Repair:
    assert repair is not None
    apply_patches(root, PatchList(repair.patches), RealDisk())
    return repair


@pytest.mark.parametrize("rule", ["CK02", "CK04", "CK05"])
@pytest.mark.parametrize("release", ["4.9", "5.3", "5.5"])
def test_a_checkpoint_says_what_the_log_holds(tmp_path, rule, release):
    store = healthy()
    root = store.write(tmp_path / "store")
    BROKEN[rule](root, store)
    with open_store(root) as opened:
        made(root, repair_checkpoint(opened, found(opened), release))
    stored = decode((root / "checkpoint").read_bytes())
    assert stored.physic_msg_timestamp == store.time
    assert 0 < stored.logics_msg_timestamp <= store.time
    assert (stored.confirm_phy_offset or 0) <= store.units[-1].offset
    with open_store(root) as opened:
        assert rule not in {finding.id for finding in found(opened)}


def test_a_checkpoint_does_not_run_ahead_of_messages_that_no_queue_has(tmp_path):
    store = healthy()
    root = store.write(tmp_path / "store")
    BROKEN["RP01"](root, store)
    (root / "checkpoint").write_bytes(b"short")
    with open_store(root) as opened:
        findings = found(opened)
        made(root, repair_checkpoint(opened, findings, "5.3"))
    first = min(finding.evidence["firstUnit"] for finding in findings if finding.id in ("CQ10", "RP01"))
    time = next(unit.store_timestamp for unit in store.units if unit.offset == first)
    assert decode((root / "checkpoint").read_bytes()).logics_msg_timestamp < time


def test_a_checkpoint_that_alone_knows_of_the_lost_end_is_corrected(tmp_path):
    """A finding about the lost end of the log hid that the checkpoint is ahead, so that nothing corrected it. After the
    repair and a start of the broker, check found the checkpoint of another store (CK02).
    """
    store = healthy(count=300)
    root = store.write(tmp_path / "store")
    BROKEN["CL11"](root, store)
    plan = plan_repairs(root, None, "5.5")
    apply_patches(root, PatchList([item for item in plan.patches if item.name != "checkpoint"]), RealDisk())
    with (root / "checkpoint").open("r+b") as file:
        file.write(struct.pack(">q", store.units[-1].store_timestamp + 60_000))
        file.seek(32)
        file.write(struct.pack(">q", store.end + 500))
    with open_store(root) as opened:
        findings = found(opened)
        newest = max(unit.store_timestamp for unit in opened.log.walk() if isinstance(unit, Unit))
        assert {finding.id for finding in findings} & {"CL11", "CK02", "CK04"} == {"CL11"}
        made(root, repair_checkpoint(opened, findings, "5.5"))
    assert decode((root / "checkpoint").read_bytes()).physic_msg_timestamp == newest
    with open_store(root) as opened:
        assert not {finding.id for finding in found(opened)} & {"CL11", "CK02", "CK04"}


def test_text_after_a_table_is_cut(tmp_path):
    root = healthy().write(tmp_path / "store")
    (root / "config").mkdir()
    (root / "config" / "topics.json").write_text('{"topicConfigTable":{}} left over')
    with open_store(root) as opened:
        made(root, repair_tables(opened, found(opened)))
    assert (root / "config" / "topics.json").read_text().strip() == '{"topicConfigTable":{}}'


def test_a_table_comes_back_from_its_backup(tmp_path):
    root = healthy().write(tmp_path / "store")
    (root / "config").mkdir()
    (root / "config" / "topics.json").write_text('{"topicConfigTable":{')
    (root / "config" / "topics.json.bak").write_text('{"topicConfigTable":{"Orders":{}}}')
    with open_store(root) as opened:
        repair = made(root, repair_tables(opened, found(opened)))
    assert (root / "config" / "topics.json").read_text() == '{"topicConfigTable":{"Orders":{}}}'
    assert "what was changed after its .bak was written" in repair.costs


def test_a_table_without_a_backup_is_left_alone(tmp_path):
    root = healthy().write(tmp_path / "store")
    BROKEN["CF01"](root, healthy())
    with open_store(root) as opened:
        assert repair_tables(opened, found(opened)) is None


def test_a_log_file_gets_its_own_name_back(tmp_path):
    root = healthy().write(tmp_path / "store")
    file = root / "commitlog" / f"{4096:020d}"
    file.rename(file.with_name("copy-of-4096"))
    with open_store(root) as opened:
        made(root, repair_files(opened, found(opened)))
    assert file.exists()


def test_foreign_files_are_moved_out_of_log_and_queues(tmp_path):
    root = healthy().write(tmp_path / "store")
    foreign = ("commitlog/readme.txt", "consumequeue/Orders/0/x.bak")
    for name in foreign:
        (root / name).write_text("note")
    with open_store(root) as opened:
        made(root, repair_files(opened, found(opened)))
    assert [(root / "removed-by-repair" / name).read_text() for name in foreign] == ["note", "note"]
    with open_store(root) as opened:
        assert found(opened) == []


def test_an_empty_last_file_of_the_log_goes(tmp_path):
    root = healthy().write(tmp_path / "store")
    last = max((root / "commitlog").iterdir())
    empty = last.with_name(f"{int(last.name) + 4096:020d}")
    empty.touch()
    with open_store(root) as opened:
        made(root, repair_files(opened, found(opened)))
    assert not empty.exists()


@pytest.mark.parametrize("name", ["0", f"{4097:020d}"])
def test_a_file_of_the_log_gets_the_name_that_its_first_unit_says(tmp_path, name):
    store = healthy(count=90)
    root = store.write(tmp_path / "store")
    before = {path.name: path.read_bytes() for path in (root / "commitlog").iterdir()}
    own_name = f"{int(name) // 4096 * 4096:020d}"
    (root / "commitlog" / own_name).rename(root / "commitlog" / name)
    with open_store(root) as opened:
        made(root, repair_files(opened, found(opened)))
    assert {path.name: path.read_bytes() for path in (root / "commitlog").iterdir()} == before


def test_a_copy_of_another_file_is_not_renamed_over_it(tmp_path):
    store = healthy(count=90)
    root = store.write(tmp_path / "store")
    shutil.copy(root / "commitlog" / f"{0:020d}", root / "commitlog" / f"{4096:020d}")
    with open_store(root) as opened:
        assert repair_files(opened, found(opened)) is None


@pytest.mark.parametrize("start", [420, 1200])
def test_a_queue_file_under_another_number_gets_its_own_name_back(tmp_path, start):
    """repair wrote the file again beside the one with the wrong number, and the queue still had a gap and messages that
    belong elsewhere (CQ01, CL09). Now the file gets the name that its first message says.
    """
    root = healthy(count=90).write(tmp_path / "store")
    file = root / "consumequeue" / "Orders" / "1" / f"{400:020d}"
    file.rename(file.with_name(f"{start:020d}"))
    with open_store(root) as opened:
        made(root, repair_files(opened, found(opened)))
    assert file.exists()
    with open_store(root) as opened:
        assert found(opened) == []


def test_a_copy_of_a_queue_file_at_an_impossible_place_is_moved_out(tmp_path):
    root = healthy(count=90).write(tmp_path / "store")
    file = root / "consumequeue" / "Orders" / "1" / f"{400:020d}"
    copy = Path(shutil.copy(file, file.with_name(f"{420:020d}")))
    with open_store(root) as opened:
        made(root, repair_files(opened, found(opened)))
    assert (file.exists(), copy.exists()) == (True, False)
    with open_store(root) as opened:
        assert found(opened) == []


@pytest.mark.parametrize("is_closed", [False, True])
def test_a_start_fills_all_lost_queues_again(tmp_path, is_closed):
    """Without their files and a configuration nobody knows how long the broker's files are."""
    store = healthy(count=60)
    store.time += 60_000
    for _ in range(60):
        store.put()
    root = store.write(tmp_path / "store")
    shutil.rmtree(root / "consumequeue")
    patch(root / "checkpoint", 0, struct.pack(">qqq", *[store.time] * 3))
    if not is_closed:
        (root / "abort").touch()
    repairs = plan_repairs(root, None, "5.3")
    apply_patches(root, PatchList(repairs.patches), RealDisk())
    assert repairs.mended.start.will_start
    assert lost_by(repairs.mended.start) == 0
    names = [repair.name for repair in repairs.repairs]
    assert names == ([] if lost_by(repairs.current.start) == 0 else ["start-of-dispatch"])
    assert is_closed or names


def test_the_plan_says_that_4_9_loses_the_times_of_delayed_messages(tmp_path):
    """RocketMQ 4.9 reads its delay levels after it has recovered the log. All messages that waited were delivered at
    once, and check called the entries wrong, of which the plan had said nothing.
    """
    store = healthy(count=60)
    root = store.write(tmp_path / "store")
    shutil.rmtree(root / "consumequeue")
    with open_store(root) as opened:
        costs = [repair_start_of_dispatch(opened, found(opened), release).costs for release in ("4.9", "5.3")]
    assert ["delay levels at once" in text for text in costs] == [True, False]


def test_the_plan_says_what_a_new_rocksdb_of_the_broker_leaves_out(tmp_path):
    """Where a RocksDB of queues was gone and the configuration was not given, the plan offered a start that reads the
    log again. A real 5.5.1 then left out the message at offset 0, and the plan named no such cost.
    """
    root = healthy(count=60).write(tmp_path / "store")
    shutil.rmtree(root / "consumequeue")
    with open_store(root) as opened:
        costs = [repair_start_of_dispatch(opened, found(opened), release).costs for release in ("4.9", "5.5")]
    assert ["a new one of the broker leaves out" in text for text in costs] == [False, True]


def test_an_index_file_gets_its_name_back(tmp_path):
    store = healthy()
    root = store.write(tmp_path / "store")
    names = {path.name for path in (root / "index").iterdir()}
    BROKEN["IX11"](root, store)
    with open_store(root) as opened:
        made(root, repair_files(opened, found(opened)))
    assert len(names) - 1 == len(names & {path.name for path in (root / "index").iterdir()})
    with open_store(root) as opened:
        assert "IX11" not in {finding.id for finding in found(opened)}


def test_the_epoch_table_comes_back_from_its_backup(tmp_path):
    root = healthy().write(tmp_path / "store")
    (root / "epochFileCheckpoint.bak").write_bytes(encode([Epoch(1, 0)]))
    (root / "epochFileCheckpoint").write_bytes(b"")
    with open_store(root) as opened:
        made(root, repair_tables(opened, found(opened)))
    assert (root / "epochFileCheckpoint").read_bytes() == encode([Epoch(1, 0)])


def test_the_rows_in_front_of_damage_are_kept_if_there_is_no_backup(tmp_path):
    root = healthy().write(tmp_path / "store")
    (root / "config").mkdir()
    text = '{"offsetTable":{"Orders@g":{0:5},"Orders@h":{0:6'
    (root / "config" / "consumerOffset.json").write_text(text)
    with open_store(root) as opened:
        repair = made(root, repair_tables(opened, found(opened)))
    assert "the rows behind the damage are lost" in repair.costs
    with open_store(root) as opened:
        assert "CF01" not in {finding.id for finding in found(opened)}
    assert "Orders@g" in (root / "config" / "consumerOffset.json").read_text()


def test_a_log_that_stands_one_folder_too_deep_moves_up(tmp_path):
    """Such a store was copied once too often below itself: a start would delete every queue."""
    root = healthy().write(tmp_path / "store")
    names = {path.name: path.read_bytes() for path in (root / "commitlog").iterdir()}
    deeper = root / "commitlog" / "commitlog"
    deeper.mkdir()
    for name in names:
        (root / "commitlog" / name).rename(deeper / name)
    with open_store(root) as opened:
        repair = made(root, repair_files(opened, found(opened)))
    assert "commitlog/commitlog stays" in repair.costs
    assert list(deeper.iterdir()) == []
    deeper.rmdir()
    assert {path.name: path.read_bytes() for path in (root / "commitlog").iterdir()} == names
    with open_store(root) as opened:
        assert "CL12" not in {item.id for item in found(opened)}


def test_mappings_of_static_topics_come_back_from_their_backup(tmp_path):
    store = healthy()
    root = store.write(tmp_path / "store")
    BROKEN["CF19"](root, store)
    table = root / "config" / "topicQueueMapping.json"
    mappings = json.loads(table.read_text("utf-8"))
    del mappings["topicQueueMappingInfoMap"]["Orders"]["hostedQueues"]["1"]
    with open_store(root) as opened:
        assert repair_tables(opened, found(opened)) is None
    backup = table.with_name(table.name + ".bak")
    backup.write_bytes(table.read_bytes())  # this one contradicts itself as well
    with open_store(root) as opened:
        assert repair_tables(opened, found(opened)) is None
    backup.write_text(json.dumps(mappings), "utf-8")
    with open_store(root) as opened:
        made(root, repair_tables(opened, found(opened)))
    assert table.read_bytes() == backup.read_bytes()
    with open_store(root) as opened:
        assert "CF19" not in {item.id for item in found(opened)}


def test_subscription_groups_come_back_from_their_backup(tmp_path):
    root = healthy().write(tmp_path / "store")
    table = root / "config" / "subscriptionGroup.json"
    table.parent.mkdir(exist_ok=True)
    rows = {"g": {"groupName": "g", "consumeEnable": True}}
    table.with_name(table.name + ".bak").write_text(json.dumps({"subscriptionGroupTable": rows}), "utf-8")
    table.write_text('{"dataVersion":{"counter":1},"subscriptionGr', "utf-8")
    repairs = plan_repairs(root, None, "5.5")
    assert [repair.name for repair in repairs.repairs] == ["tables"]
    made(root, repairs.repairs[0])
    assert json.loads(table.read_text("utf-8"))["subscriptionGroupTable"] == rows


def test_a_copy_of_a_log_file_behind_the_log_is_moved_out_of_it(tmp_path):
    """The last file of the log was a copy of the first one. The repair let the log go on into it, and a start read its
    messages a second time.
    """
    store = healthy()
    root = store.write(tmp_path / "store")
    files = sorted((root / "commitlog").iterdir())
    size = files[0].stat().st_size
    copy = files[-1].with_name(f"{int(files[-1].name) + size:020d}")
    shutil.copyfile(files[0], copy)
    plan = plan_repairs(root, None, "5.5")
    assert [repair.name for repair in plan.repairs] == ["files"]
    assert plan.mended.findings == ()
    apply_patches(root, PatchList(plan.patches), RealDisk())
    assert not copy.exists()
