"""The entries of index files are written again from the log, with the bytes that RocketMQ wrote."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from broken_stores import BROKEN
from handmade_stores import healthy
from planted_faults import patch

from engine.codec.message import Unit
from engine.inspection.findings import check
from engine.inspection.snapshot import open_store
from engine.mapped.disk import RealDisk
from engine.patching.apply import apply_patches
from engine.patching.patches import PatchList
from engine.repair.index_entries import repair_index_entries
from engine.repair.repair import Repair
from engine.rules.findings import Finding


def mended(root: Path) -> Repair | None:
    with open_store(root) as store:
        repair = repair_index_entries(store, [item for item in check(store) if isinstance(item, Finding)])
    if repair is not None:
        apply_patches(root, PatchList(repair.patches), RealDisk())
    return repair


def contents(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (root / "index").iterdir()}


@pytest.mark.golden
@pytest.mark.parametrize("name", ["clean-4.9.8", "clean-5.3.3", "broker-tags-5.5.1"])
@pytest.mark.parametrize("damage", ["overwritten", "cut", "empty"])
def test_a_damaged_file_gets_the_bytes_that_rocketmq_wrote(golden, tmp_path, name, damage):
    root = Path(shutil.copytree(golden(name), tmp_path / "store"))
    written = contents(root)
    files = sorted((root / "index").iterdir())
    for file in files[1:-1:4] if len(files) > 2 else files[:1]:
        size = file.stat().st_size
        match damage:
            case "overwritten":
                patch(file, size - 2000, b"\x5a" * 700)
            case "cut":
                os.truncate(file, size - 300)
            case "empty" if len(files) > 2:
                os.truncate(file, 0)
    if contents(root) != written:
        assert mended(root) is not None
        assert contents(root) == written


def test_two_damaged_files_in_a_row_are_left_alone(golden, tmp_path):
    """Where one ends and the other begins is not known."""
    root = Path(shutil.copytree(golden("clean-5.3.3"), tmp_path / "store"))
    for file in sorted((root / "index").iterdir())[2:4]:
        os.truncate(file, 0)
    assert mended(root) is None


def test_an_index_whose_files_are_not_in_order_is_left_alone(tmp_path):
    store = healthy()
    root = store.write(tmp_path / "store")
    BROKEN["IX11"](root, store)
    assert mended(root) is None


def test_entries_behind_the_end_of_the_log_go(tmp_path):
    """New messages would stand there, and queries by the lost keys find them."""
    store = healthy()
    root = store.write(tmp_path / "store")
    before = max((root / "index").iterdir()).read_bytes()
    BROKEN["IX07"](root, store)
    assert mended(root) is not None
    assert max((root / "index").iterdir()).read_bytes() == before


@pytest.mark.golden
def test_entries_behind_the_end_go_also_where_the_last_message_lost_its_keys(golden, tmp_path: Path) -> None:
    """The end of a log was lost within the properties of a message. The last index file kept the entries of all lost
    messages, because it alone has the keys of that one; 5.5.1 then led queries by them to new messages.
    """
    root = Path(shutil.copytree(golden("clean-5.3.3"), tmp_path / "store"))
    with open_store(root) as store:
        reader, log_file = store.index_files()[-1], store.log.files[-1]
        offset = reader.header.begin_phy_offset + (reader.header.end_phy_offset - reader.header.begin_phy_offset) // 2
        last = next(unit for unit in store.units(crc=False) if isinstance(unit, Unit) and unit.offset > offset)
    position = last.end - 20 - log_file.start_offset
    patch(Path(log_file.path), position, bytes(log_file.size - position))
    assert mended(root) is not None
    with open_store(root) as store:
        reader = store.index_files()[-1]
        offsets = [entry.phy_offset for _, entry in reader.entries()]
        assert (reader.header.end_phy_offset, reader.header.end_timestamp) == (last.offset, last.store_timestamp)
        assert offsets[-1] == last.offset
        assert not [item for item in check(store) if isinstance(item, Finding) and item.id == "IX07"]


def test_nothing_is_done_where_the_log_is_damaged(golden, tmp_path):
    """The keys of the damaged messages are not known."""
    root = Path(shutil.copytree(golden("clean-5.3.3"), tmp_path / "store"))
    file = sorted((root / "index").iterdir())[0]
    patch(file, file.stat().st_size - 2000, b"\x5a" * 700)
    with open_store(root) as store:
        offset = store.index_files()[0].header.begin_phy_offset
    patch(root / "commitlog" / f"{0:020d}", offset + 10, bytes(3000))
    assert mended(root) is None
