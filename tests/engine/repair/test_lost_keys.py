"""Keys of lost messages lead to the units that took their places: no query reads between two units."""

from __future__ import annotations

import pytest
import repair_rounds
from handmade_stores import LOG_SIZE, healthy

from engine.codec.message import Unit
from engine.inspection.findings import check
from engine.inspection.snapshot import open_store
from engine.mapped.disk import RealDisk
from engine.patching.apply import apply_patches
from engine.patching.patches import PatchList
from engine.repair.repair_plan import plan_repairs
from engine.rules.findings import Finding


@pytest.mark.parametrize("is_gone", [True, False])
def test_every_index_entry_leads_to_a_unit(tmp_path, is_gone):
    store = healthy(count=90)
    root = store.write(tmp_path / "store", queues=False)
    file = root / "commitlog" / f"{LOG_SIZE:020d}"
    if is_gone:
        file.unlink()
    else:
        file.write_bytes(bytes(LOG_SIZE))
    apply_patches(root, PatchList(plan_repairs(root, None, "5.3").patches), RealDisk())
    units = repair_rounds.units_of(root)
    lost = [unit for unit in store.units if LOG_SIZE <= unit.offset < 2 * LOG_SIZE]
    assert {unit.offset for unit in lost} - units.keys(), "each placeholder has the place of its message"
    with open_store(root) as opened:
        entries = [entry for file in opened.index_files() for _, entry in file.entries()]
        assert all(isinstance(opened.log.unit_at(entry.phy_offset), Unit) for entry in entries)
        redirected = [entry for entry in entries if LOG_SIZE <= entry.phy_offset < 2 * LOG_SIZE]
        assert len(redirected) >= len(lost)
        assert all(repair_rounds.stands_in(units[entry.phy_offset]) for entry in redirected)
        assert not {item.id for item in check(opened) if isinstance(item, Finding)} & {"IX01", "IX06", "IX07"}
