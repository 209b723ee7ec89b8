"""A log file that is longer than its neighbours: the walk continues where the next file begins."""

from __future__ import annotations

import pytest
from handmade_stores import healthy

from engine.codec.columns import UnitColumns
from engine.codec.message import Unit
from engine.codec.unit_scan import Damage
from engine.inspection.block_scan import scan_log
from engine.inspection.snapshot import open_store


@pytest.mark.parametrize("extra", [1, 512, 5000])
def test_bytes_behind_a_files_blank_do_not_move_the_walk(extra, tmp_path):
    """A file that a copy had lengthened hid the first units of the next file, because the walk began too late."""
    new_store = healthy()
    root = new_store.write(tmp_path)
    with min((root / "commitlog").iterdir()).open("ab") as file:
        file.write(bytes(extra))
    expected = [unit.offset for unit in new_store.units]
    with open_store(root) as store:
        items = list(store.units())
        assert [item.offset for item in items if isinstance(item, Unit)] == expected
        assert not any(isinstance(item, Damage) for item in items)
        offsets: list[int] = []
        for block in scan_log(store.log):
            if isinstance(block, UnitColumns):
                offsets.extend(block["offset"][block["kind"] == 0].tolist())
        assert offsets == expected
