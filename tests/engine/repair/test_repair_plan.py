"""Every repair that is offered takes its finding away and makes nothing worse; where nothing can be mended none is."""

from __future__ import annotations

import shutil
from pathlib import Path

import golden_stores
import pytest
from broken_stores import BROKEN, CONFIG
from handmade_stores import LOG_SIZE, healthy
from planted_faults import patch

from engine.inspection.snapshot import open_store
from engine.inspection.written_release import release_of
from engine.mapped.disk import RealDisk
from engine.patching.apply import apply_patches
from engine.patching.patches import PatchList
from engine.repair.repair_plan import lost_by, plan_repairs
from engine.rules import mendable

MENDED = (
    *("CL01", "CL02", "CL03", "CL05", "CL09", "CQ01", "CQ03", "CQ04", "CQ05", "CQ09", "CQ10", "CQ12", "CQ15", "CQ17"),
    *("CL11", "CQ13", "RP01", "CF18"),
    *("CK02", "CK04", "CK05", "IX01", "IX02", "IX03", "IX09", "DK01"),
    *("CF01", "CF02", "CF04", "CF07", "CF08", "CF09", "CQ11", "CQ14", "CM02", "IX06", "IX07", "IX11", "IX12"),
    *("TM01", "TM02", "TM03", "TM04", "TM05"),
)


@pytest.mark.parametrize("rule", MENDED)
def test_a_finding_is_gone_after_its_repair(tmp_path, rule):
    store = healthy()
    root = store.write(tmp_path / "store")
    BROKEN[rule](root, store)
    before = golden_stores.fingerprint(root)
    with open_store(root) as opened:
        release = release_of(opened)
    plan = plan_repairs(root, None, release)
    assert golden_stores.changes(before, golden_stores.fingerprint(root)) == []
    assert plan.repairs
    assert plan.current.findings
    assert plan.mended.findings == ()
    assert all(start.will_start for start in plan.mended.starts)
    assert [lost_by(start) for start in plan.mended.starts] == [0, 0]


@pytest.mark.full_form(keep=8)
@pytest.mark.parametrize("rule", sorted(BROKEN.keys() - set(MENDED)))
def test_no_repair_makes_anything_worse(tmp_path, rule):
    store = healthy()
    root = store.write(tmp_path / "store")
    BROKEN[rule](root, store)
    with open_store(root) as opened:
        release = release_of(opened)
    plan = plan_repairs(root, CONFIG.get(rule), release)
    assert not plan.mended.is_worse_than(plan.current)
    assert {finding.id for finding in plan.mended.findings} == plan.left.keys()
    for repair in plan.repairs:
        assert repair.rules & {finding.id for finding in plan.current.findings}


def test_a_healthy_store_gets_no_offer(tmp_path):
    root = healthy().write(tmp_path / "store")
    plan = plan_repairs(root, None, "5.5")
    assert plan.repairs == ()
    assert plan.record()["before"] == plan.record()["after"]


def test_only_what_is_asked_for_is_planned(tmp_path):
    store = healthy()
    root = store.write(tmp_path / "store")
    BROKEN["CL01"](root, store)
    BROKEN["CK05"](root, store)
    assert [repair.name for repair in plan_repairs(root, None, "5.5").repairs] == ["log", "checkpoint"]
    assert [repair.name for repair in plan_repairs(root, None, "5.5", only=["CK05"]).repairs] == ["checkpoint"]
    assert [repair.name for repair in plan_repairs(root, None, "5.5", only=["log"]).repairs] == ["log"]


OTHER_KINDS = {
    "CF03": "a table of offsets: no other file has them",
    "CF05": "the configuration is wrong, and no file",
    "CL06": "see test_dledger_entries",
    "CF19": "there is no .bak",
    "CL12": "the log is gone, and does not stand one folder deeper",
    "CF13": "a delay level, not a record of a pop",
    "CL07": "a gap that no start crosses",
    "CM03": "nothing shows how long the files are",
    "CQ06": "a start fills the file; see test_empty_queues",
    "CK06": "there is no .bak",
    "CQ16": "a sound row of a RocksDB",
    "CQ19": "see test_rocksdb_queues",
    "DK02": "a folder of a DLedger log",
    "DL01": "see test_dledger_entries",
    "DL03": "see test_dledger_entries",
    "IX08": "there is no file of the right length",
    "IX10": "there is no file of the right length",
    "RP02": "see test_missing_files",
    "RP03": "see test_missing_files",
}
"""Rules with repairs whose broken store shows a kind that none mends."""


def test_every_rule_is_mended_or_says_why_not():
    """A new rule needs a repair, or the reason why it has none."""
    with_repair = {rule for rule in mendable.LEFT if mendable.repairs_of(rule)}
    assert with_repair - set(MENDED) <= OTHER_KINDS.keys()
    assert set(MENDED) <= with_repair
    assert not OTHER_KINDS.keys() & set(MENDED)


def test_a_message_is_put_right_also_if_its_queue_is_lost(tmp_path):
    """A start that dispatches none of the queue's messages does not dispatch this one either: that is no harm."""
    store = healthy(count=60)
    store.time += 60_000
    for _ in range(60):
        store.put()
    root = store.write(tmp_path / "store")
    unit = next(unit for unit in store.units if unit.topic == "Orders" and unit.queue_id == 0 and unit.offset > 2000)
    shutil.rmtree(root / "consumequeue" / "Orders" / "0")
    log = root / "commitlog" / f"{unit.offset // LOG_SIZE * LOG_SIZE:020d}"
    patch(log, unit.offset % LOG_SIZE, bytes([log.read_bytes()[unit.offset % LOG_SIZE] ^ 4]))
    repairs = plan_repairs(root, None, "5.3")
    assert [repair.name for repair in repairs.repairs][:2] == ["log", "queues"]
    assert not {finding.id for finding in repairs.mended.findings} & {"CL01", "CQ03", "CQ10", "RP01"}


def test_log_files_get_their_names_back_also_where_a_start_leaves_some_messages_out(golden, tmp_path):
    """Two files of the log had each other's names, and a queue was lost as well. The renames were not offered, because
    a start left more messages of the files that it can read again out of that queue; placeholders took their places.
    """
    root = Path(shutil.copytree(golden("late-queue-flush-5.5.1"), tmp_path / "store"))
    whole = {file.name: file.read_bytes() for file in (root / "commitlog").iterdir()}
    name, other = (f"{offset:020d}" for offset in (1_572_864, 2_097_152))
    (root / "commitlog" / name).write_bytes(whole[other])
    (root / "commitlog" / other).write_bytes(whole[name])
    plan = plan_repairs(root, None, "5.5")
    assert [repair.name for repair in plan.repairs][:1] == ["files"]
    apply_patches(root, PatchList(plan.patches), RealDisk())
    assert {file.name: file.read_bytes() for file in (root / "commitlog").iterdir()} == whole
