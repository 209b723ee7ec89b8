"""A file that is missing between others is replaced: placeholders for its messages, then a blank."""

from __future__ import annotations

from pathlib import Path

import pytest
import repair_rounds
from broken_stores import BROKEN
from handmade_stores import healthy

from engine.codec.message import Unit
from engine.codec.unit_scan import Damage
from engine.inspection.snapshot import open_store
from engine.mapped.disk import RealDisk
from engine.patching.apply import apply_patches
from engine.patching.patches import PatchList
from engine.repair.missing_files import repair_missing_files
from engine.repair.repair_plan import plan_repairs


def lost_of(root: Path, *names: int) -> None:
    """Remove files of a small store's log by their starts."""
    for name in names:
        (root / "commitlog" / f"{name:020d}").unlink()


@pytest.mark.parametrize("has_queues", [False, True])
def test_messages_behind_the_gap_keep_their_offsets(tmp_path, has_queues):
    store = healthy(count=90)
    root = store.write(tmp_path / "store", queues=has_queues)
    whole = repair_rounds.units_of(root)
    lost_of(root, 4096)
    with open_store(root) as opened:
        repair = repair_missing_files(opened)
    assert repair is not None
    (patch,) = repair.patches
    assert patch.file == f"commitlog/{4096:020d}"
    apply_patches(root, PatchList(repair.patches), RealDisk())
    assert (root / "commitlog" / f"{4096:020d}").stat().st_size == 4096
    units = repair_rounds.units_of(root)
    stand_ins = [unit for unit in units.values() if repair_rounds.stands_in(unit)]
    lost = [unit for unit in whole.values() if 4096 <= unit.offset < 8192]
    assert sorted((unit.topic, unit.queue_id, unit.queue_offset) for unit in stand_ins) == sorted(
        (unit.topic, unit.queue_id, unit.queue_offset) for unit in lost
    )
    assert {offset: unit for offset, unit in units.items() if not 4096 <= offset < 8192} == {
        offset: unit for offset, unit in whole.items() if not 4096 <= offset < 8192
    }
    with open_store(root) as opened:
        assert not [item for item in opened.units() if isinstance(item, Damage)]


def test_two_files_in_a_row_are_replaced(tmp_path):
    store = healthy(count=90)
    root = store.write(tmp_path / "store", queues=False)
    lost_of(root, 4096, 8192)
    with open_store(root) as opened:
        repair = repair_missing_files(opened)
    assert repair is not None
    assert [patch.file[-5:] for patch in repair.patches] == ["04096", "08192"]
    apply_patches(root, PatchList(repair.patches), RealDisk())
    with open_store(root) as opened:
        assert isinstance(opened.log.unit_at(8192), Unit)
        assert opened.log.max_offset == store.end


def test_a_log_without_a_gap_is_left_alone(tmp_path):
    root = healthy().write(tmp_path / "store")
    with open_store(root) as opened:
        assert repair_missing_files(opened) is None


def test_a_start_of_4_9_no_longer_waits_forever(tmp_path):
    """RP02: 4.9 does not come up where dispatch has to cross a gap."""
    store = healthy()
    root = store.write(tmp_path / "store")
    BROKEN["RP02"](root, store)
    plan = plan_repairs(root, None, "4.9")
    assert [repair.name for repair in plan.repairs] == ["missing-files"]
    assert [start.will_start for start in plan.current.starts] == [False, True]
    assert [start.will_start for start in plan.mended.starts] == [True, True]
    assert [start.misnumbered for start in plan.mended.starts] == [0, 0]


def test_a_gap_that_does_no_harm_is_left_alone(tmp_path):
    """With their entries consumers are led past it; placeholders would hand empty messages to older clients."""
    store = healthy()
    root = store.write(tmp_path / "store")
    BROKEN["CL07"](root, store)
    assert plan_repairs(root, None, "5.5").repairs == ()


def test_of_two_gaps_without_a_message_between_them_each_lost_one_is_replaced_once(tmp_path):
    """A queue with no message between two lost files got two placeholders for each one. These messages are also shorter
    than placeholders that say what they are, and no file was made at all.
    """
    store = healthy(count=0)
    store.put("Rare", 0)
    while len(store.log) < 4096 * 5:
        store.put("Rare", 0) if 4096 < len(store.log) < 4400 else store.put("Orders", 1)
    store.put("Rare", 0)
    root = store.write(tmp_path / "store", queues=False)
    lost_of(root, 4096, 12288)
    with open_store(root) as opened:
        repair = repair_missing_files(opened)
    assert repair is not None
    apply_patches(root, PatchList(repair.patches), RealDisk())
    places = [
        (unit.topic, unit.queue_id, unit.queue_offset)
        for unit in repair_rounds.units_of(root).values()
        if unit.topic == "Rare"
    ]
    assert len(places) == len(set(places)) > 2
