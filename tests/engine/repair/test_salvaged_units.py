"""Holes of the log are filled with the messages that were there, from a replica or an image of a disk."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from broken_stores import BROKEN
from handmade_stores import healthy
from planted_faults import patch
from salvage_rounds import FILE_BYTES, PAGE, WrittenStore, text, write_store

from engine.cli.main import main
from engine.inspection.snapshot import open_store
from engine.mapped.disk import RealDisk
from engine.patching.apply import apply_patches
from engine.patching.patches import PatchList
from engine.repair.repair_plan import plan_repairs
from engine.repair.salvaged_units import repair_from


@pytest.fixture
def written(tmp_path: Path) -> WrittenStore:
    store = write_store(random.Random(5), tmp_path / "store", 3, crc_zero=0)
    shutil.copytree(store.root, tmp_path / "replica")
    return store


def middle(written: WrittenStore) -> int:
    return next(
        offset
        for offset, unit in written.units.items()
        if offset > 30_000 and len(unit) > 600 and unit[8:12] != bytes(4)
    )


def log_of(root: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted((root / "commitlog").iterdir()))


def test_a_hole_gets_the_message_of_the_replica(written: WrittenStore, tmp_path: Path) -> None:
    offset = middle(written)
    patch(written.files[0], offset, bytes(200))
    arguments = ["repair", str(written.root), "--from", str(tmp_path / "replica"), "--to", str(tmp_path / "mended")]
    assert main([*arguments, "--quiet"]) == 0
    assert log_of(tmp_path / "mended") == written.log


def test_the_patch_says_where_the_bytes_were_and_why_they_are_right(written: WrittenStore, tmp_path: Path) -> None:
    offset = middle(written)
    patch(written.files[0], offset, bytes(200))
    plan = plan_repairs(written.root, None, "5.3", sources=[tmp_path / "replica"])
    assert [repair.name for repair in plan.repairs] == ["real-messages"]
    (change,) = plan.patches
    assert str(tmp_path / "replica" / "commitlog" / f"{0:020d}") in change.why
    assert "body CRC" in change.why
    assert "its queue entry" in change.why
    assert not [finding for finding in plan.mended.findings if finding.id.startswith("CL")]


def test_a_missing_file_is_made_again_from_an_image(written: WrittenStore, tmp_path: Path) -> None:
    image, data = tmp_path / "image", written.files[1].read_bytes()
    image.write_bytes(text(random.Random(1), 512) + data[: 4 * PAGE] + text(random.Random(2), PAGE) + data[4 * PAGE :])
    written.files[1].unlink()
    with open_store(written.root) as store:
        repair = repair_from(store, [image], [], lambda _done, _total: None)
    assert repair is not None
    (change,) = repair.patches
    content = change.new
    assert len(content) + change.zeros == FILE_BYTES
    assert content == data[: len(content)]


def test_without_the_bytes_nothing_is_filled(written: WrittenStore, tmp_path: Path) -> None:
    """The image has a store of another time at the same offsets."""
    other = write_store(random.Random(9), tmp_path / "other", 3, host=2)
    patch(written.files[0], middle(written), bytes(200))
    with open_store(written.root) as store:
        assert repair_from(store, [other.root], [], lambda _done, _total: None) is None


def test_a_lost_end_of_the_log_comes_back(tmp_path: Path) -> None:
    """Queues know the messages, but their bytes are zero: without a replica only the entries can go (CL11)."""
    store = healthy()
    root, replica = store.write(tmp_path / "store"), store.write(tmp_path / "replica")
    BROKEN["CL11"](root, store)
    assert "real-messages" not in {repair.name for repair in plan_repairs(root, None, "5.3").repairs}
    plan = plan_repairs(root, None, "5.3", sources=[replica])
    assert plan.repairs[0].name == "real-messages"
    assert plan.mended.findings == ()
    apply_patches(root, PatchList(plan.patches), RealDisk())
    assert log_of(root) == log_of(replica)
