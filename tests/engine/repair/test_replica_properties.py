"""Zeros in the properties of a message: check names them, the index keeps its entries, a replica brings them back."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from handmade_stores import HandmadeStore

from engine.codec.block_texts import ZERO_RUN_BYTES
from engine.codec.message import Unit
from engine.inspection.snapshot import open_store
from engine.mapped.disk import RealDisk
from engine.patching.apply import apply_patches
from engine.patching.patches import PatchList
from engine.repair.repair_plan import RepairPlan, plan_repairs

pytestmark = pytest.mark.golden
ZEROS = 36


def damaged_copy(golden: Path, root: Path, damage: bytes = bytes(ZEROS)) -> tuple[Path, Unit]:
    """Return a copy of a store with ``damage`` in the middle of the properties of one message, and that message."""
    shutil.copytree(golden, root)
    with open_store(root) as store:
        unit = next(
            unit
            for unit in store.units(crc=False)
            if isinstance(unit, Unit)
            and unit.keys
            and len(unit.properties_raw) > ZEROS + 30
            and len(unit.properties_raw) - unit.properties_raw.index(b"UNIQ_KEY") > ZEROS + 20
            and unit.offset > 50_000
        )
        file = store.log.sequence.find(unit.offset)
        assert file is not None
        begin = unit.properties_raw.index(b"UNIQ_KEY") + 12
        path, position = Path(file.path), unit.end - file.start_offset - len(unit.properties_raw) + begin
    with path.open("r+b") as data:
        data.seek(position)
        data.write(damage)
    return root, unit


def plan(root: Path, *sources: Path) -> RepairPlan:
    return plan_repairs(root, None, "5.5", sources=sources)


def test_zeros_in_the_middle_of_properties_are_named_and_the_index_keeps_what_it_knows(golden, tmp_path: Path) -> None:
    """The zeros hid the keys of a message. check blamed the index, and repair wrote its entries again without them."""
    root, unit = damaged_copy(golden("broker-orders-5.5.1"), tmp_path / "store")
    answer = plan(root)
    found = {finding.id: finding for finding in answer.current.findings}
    assert found["CL04"].offset == unit.offset
    assert f"{ZEROS} of the" in found["CL04"].message
    assert answer.repairs == ()


def test_a_replica_brings_the_properties_back_byte_for_byte(golden, tmp_path: Path) -> None:
    replica = golden("broker-orders-5.5.1")
    root, unit = damaged_copy(replica, tmp_path / "store")
    answer = plan(root, replica)
    (change,) = answer.patches
    assert f"the same message with its properties is in {replica}" in change.why
    assert f"{unit.topic}/{unit.queue_id}/{unit.queue_offset}" in answer.repairs[0].gains
    assert [finding.id for finding in answer.mended.findings if finding.id in ("CL04", "IX06")] == []
    apply_patches(root, PatchList(answer.patches), RealDisk())
    for file in sorted((replica / "commitlog").iterdir()):
        assert (root / "commitlog" / file.name).read_bytes() == file.read_bytes()


def test_properties_that_only_the_index_doubts_come_back_too(golden, tmp_path: Path) -> None:
    """Other letters in a key are no damage that the log shows: repair made the index agree with them."""
    replica = golden("broker-orders-5.5.1")
    root, unit = damaged_copy(replica, tmp_path / "store", b"%" * ZEROS)
    assert plan(root).repairs == ()
    answer = plan(root, replica)
    assert [(finding.id, finding.offset) for finding in answer.current.findings] == [("CL04", unit.offset)]
    assert [repair.name for repair in answer.repairs] == ["real-messages"]
    assert f"{unit.topic}/{unit.queue_id}/{unit.queue_offset}" in answer.repairs[0].gains
    assert answer.mended.findings == ()


def test_a_damaged_index_file_that_remembers_lost_keys_is_not_written_again(golden, tmp_path: Path) -> None:
    """An entry of the same file was overwritten as well. repair wrote the file again, without the lost key."""
    root, unit = damaged_copy(golden("broker-orders-5.5.1"), tmp_path / "store")
    with open_store(root) as store:
        reader = next(file for file in store.index_files() if file.header.end_phy_offset >= unit.offset)
        assert reader.geometry is not None
        position = reader.geometry.entry_position(reader.last_entry // 2) + 4
    with Path(reader.path).open("r+b") as data:
        data.seek(position)
        data.write(b"\0" * 7 + b"\x03")
    answer = plan(root)
    assert {"CL04", "IX06"} <= {finding.id for finding in answer.current.findings}
    assert "index-entries" not in [repair.name for repair in answer.repairs]


def test_the_message_of_another_log_at_the_same_offset_is_not_taken(golden, tmp_path: Path) -> None:
    root, unit = damaged_copy(golden("broker-orders-5.5.1"), tmp_path / "store")
    other = Path(shutil.copytree(golden("broker-orders-5.5.1"), tmp_path / "other"))
    with open_store(other) as store:
        file = store.log.sequence.find(unit.offset)
        assert file is not None
        position = unit.offset - file.start_offset
    with (other / "commitlog" / Path(file.path).name).open("r+b") as data:
        data.seek(position + 48)
        data.write(b"\x01" * 4)  # another born host
    assert plan(root, other).repairs == ()


def test_a_few_zero_bytes_in_a_value_are_not_damage(tmp_path: Path) -> None:
    store = HandmadeStore()
    for count in (1, ZERO_RUN_BYTES - 1, ZERO_RUN_BYTES):
        store.put("Orders", keys=f"K{count}", more={"bits": "a" + "\0" * count + "b"})
    root = store.write(tmp_path / "s")
    findings = plan(root).current.findings
    assert [finding.id for finding in findings if finding.id == "CL04"] == ["CL04"]
