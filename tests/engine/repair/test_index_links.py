"""Chains of index files are mended from the hashes of their entries."""

from __future__ import annotations

from pathlib import Path

import pytest
from broken_stores import BROKEN
from handmade_stores import healthy

from engine.inspection.findings import check
from engine.inspection.snapshot import open_store
from engine.mapped.disk import RealDisk
from engine.patching.apply import apply_patches
from engine.patching.patches import PatchList
from engine.repair.index_links import repair_index
from engine.repair.repair import Repair
from engine.rules import catalogue
from engine.rules.findings import Finding


def mended(root: Path) -> Repair | None:
    with open_store(root) as store:
        repair = repair_index(store, [item for item in check(store) if isinstance(item, Finding)])
    if repair is not None:
        apply_patches(root, PatchList(repair.patches), RealDisk())
    return repair


@pytest.mark.parametrize("rule", ["IX01", "IX02", "IX03", "IX09"])
def test_the_index_becomes_what_it_was(tmp_path, rule):
    store = healthy()
    root = store.write(tmp_path / "store")
    written = {path.name: path.read_bytes() for path in (root / "index").iterdir()}
    BROKEN[rule](root, store)
    assert mended(root) is not None
    assert {path.name: path.read_bytes() for path in (root / "index").iterdir()} == written


@pytest.mark.parametrize("rule", ["IX06", "IX07", "IX08", "IX10", "IX11"])
def test_a_file_whose_entries_are_in_doubt_is_left_alone(tmp_path, rule):
    store = healthy()
    root = store.write(tmp_path / "store")
    BROKEN[rule](root, store)
    assert mended(root) is None


@pytest.mark.golden
@pytest.mark.parametrize("name", ["clean-4.9.8", "clean-5.3.3", "clean-5.5.1", "broker-tags-5.5.1"])
def test_the_chains_of_the_real_store_follow_from_its_entries(golden, name):
    """So nothing is changed in a file that RocketMQ wrote, whatever was reported about it."""
    with open_store(golden(name)) as store:
        files = store.index_files()
        reported = [catalogue.IX09.finding("", reader.path, 0, {}) for reader in files]
        assert repair_index(store, reported) is None
    assert files
