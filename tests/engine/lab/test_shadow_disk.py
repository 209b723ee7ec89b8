"""One file of a shadow disk: bytes are copied with their holes."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from engine.lab.shadow_disk import CHUNK, ShadowDisk, copy_data, data_spans
from engine.mapped.power_loss import PAGE, PageFates, PowerLoss, surviving_changes


def test_data_is_copied_to_its_place_and_holes_stay_holes(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    with source.open("wb") as file:
        file.truncate(8 * CHUNK)
        file.seek(5 * CHUNK)
        file.write(b"x" * 100)
    copy_data(source, target)
    readable = os.open(source, os.O_RDONLY)
    try:
        spans = data_spans(readable, 0, 8 * CHUNK)
    finally:
        os.close(readable)
    assert any(start <= 5 * CHUNK < end for start, end in spans)
    copied = target.read_bytes()
    assert copied[5 * CHUNK : 5 * CHUNK + 100] == b"x" * 100
    assert not any(copied[: 5 * CHUNK])
    assert target.stat().st_blocks * 512 <= 2 * CHUNK


SIZE = 4 * PAGE


@pytest.fixture
def disk(tmp_path: Path) -> ShadowDisk:
    return ShadowDisk(tmp_path / "store", tmp_path / "durable")


def files_after_power_loss(disk: ShadowDisk, target: Path, keep: float, seed: int = 1) -> dict[str, bytes]:
    """Return the files that a power loss leaves, by their path in the store."""
    rng = random.Random(seed)
    names = dict(disk.durable_names)
    for change in surviving_changes(disk.pending, rng, keep):
        change.apply(names)
    results = {}
    for path, shadow in names.items():
        inside = Path(path).relative_to(disk.root)
        shadow.found_after(target / inside, rng, keep, PageFates())
        results[inside.as_posix()] = (target / inside).read_bytes()
    return results


def test_exactly_the_flushed_bytes_survive(disk: ShadowDisk, tmp_path: Path) -> None:
    file = disk.open(disk.root / "consumequeue/a/0/0", SIZE)
    file.write(0, b"flushed")
    file.flush(0, 7)
    file.write(7, b" and not")
    assert files_after_power_loss(disk, tmp_path / "none", 0.0)["consumequeue/a/0/0"].rstrip(b"\0") == b"flushed"
    assert files_after_power_loss(disk, tmp_path / "all", 1.0)["consumequeue/a/0/0"].startswith(b"flushed")


def test_bytes_written_through_the_map_are_tracked_too(disk: ShadowDisk, tmp_path: Path) -> None:
    file = disk.open(disk.root / "index/1", SIZE)
    view = file.view
    view[:5] = b"first"
    file.flush(0, SIZE)
    view[:5] = b"later"
    view[PAGE : PAGE + 4] = b"more"
    saved = files_after_power_loss(disk, tmp_path / "none", 0.0)["index/1"]
    assert (saved[:5], saved[PAGE : PAGE + 4]) == (b"first", bytes(4))
    view.release()


def test_a_log_file_keeps_its_flushed_length(disk: ShadowDisk, tmp_path: Path) -> None:
    file = disk.open(disk.root / "commitlog/00000000000000000000", SIZE)
    file.view[: 2 * PAGE] = b"x" * (2 * PAGE)
    file.flush(0, PAGE + 10)
    saved = files_after_power_loss(disk, tmp_path / "none", 0.0)["commitlog/00000000000000000000"]
    assert saved == b"x" * (PAGE + 10) + bytes(SIZE - PAGE - 10)


def test_warming_a_new_log_file_up_makes_only_zeros_durable(disk: ShadowDisk, tmp_path: Path) -> None:
    """SYNC_FLUSH flushes the zeros of a warmed-up file. Later appends are not durable by that."""
    file = disk.open(disk.root / "commitlog/00000000000000000000", SIZE)
    file.view[::PAGE] = bytes(4)
    file.flush(0, SIZE)
    file.view[:4] = b"unit"
    assert not any(files_after_power_loss(disk, tmp_path / "none", 0.0)["commitlog/00000000000000000000"])


def test_a_file_with_an_unsynced_name_may_be_missing(disk: ShadowDisk, tmp_path: Path) -> None:
    disk.open(disk.root / "index/1", SIZE).write(0, b"there")
    assert files_after_power_loss(disk, tmp_path / "none", 0.0) == {}
    assert list(files_after_power_loss(disk, tmp_path / "all", 1.0)) == ["index/1"]


def test_a_deleted_file_exists_until_its_folder_is_synced(disk: ShadowDisk, tmp_path: Path) -> None:
    path = disk.root / "commitlog/00000000000000000000"
    file = disk.open(path, SIZE)
    file.view[:4] = b"unit"
    file.flush(0, 4)
    file.delete()
    assert not path.exists()
    assert files_after_power_loss(disk, tmp_path / "before", 0.0)["commitlog/00000000000000000000"][:4] == b"unit"
    disk.sync_folder(path.parent)
    assert files_after_power_loss(disk, tmp_path / "after", 0.0) == {}
    assert list((tmp_path / "durable").iterdir()) == []


def test_a_table_is_the_old_or_the_new_one(disk: ShadowDisk, tmp_path: Path) -> None:
    table, new = disk.root / "config/topics.json", disk.root / "config/topics.json.tmp"
    disk.write_file(table, b"old", sync=True)
    disk.write_file(new, b"new one", sync=True)
    disk.replace(new, table)
    assert files_after_power_loss(disk, tmp_path / "none", 0.0)["config/topics.json"] == b"old"
    assert files_after_power_loss(disk, tmp_path / "all", 1.0)["config/topics.json"] == b"new one"
    disk.sync_folder(table.parent)
    assert files_after_power_loss(disk, tmp_path / "synced", 0.0) == {"config/topics.json": b"new one"}


def test_files_present_when_the_disk_is_opened_count_as_durable(tmp_path: Path) -> None:
    queue = tmp_path / "store/consumequeue/a/0/0"
    queue.parent.mkdir(parents=True)
    queue.write_bytes(b"old".ljust(SIZE, b"\0"))
    disk = ShadowDisk(tmp_path / "store", tmp_path / "durable")
    disk.open(queue, SIZE).write(0, b"new")
    assert files_after_power_loss(disk, tmp_path / "none", 0.0)["consumequeue/a/0/0"][:3] == b"old"


def test_pages_are_lost_torn_or_kept(disk: ShadowDisk, tmp_path: Path) -> None:
    size = 64 * PAGE
    file = disk.open(disk.root / "index/1", size)
    file.view[:] = b"y" * size
    disk.sync_folder(disk.root / "index")
    fates = PageFates()
    disk.durable_names[file.path].found_after(tmp_path / "found", random.Random(3), 0.5, fates)
    content = (tmp_path / "found").read_bytes()
    total = sum(content[position : position + PAGE] == b"y" * PAGE for position in range(0, size, PAGE))
    assert (fates.dirty, fates.survived) == (64, total + fates.torn)
    assert 0 < fates.torn < fates.survived < 64


def test_after_the_power_loss_nothing_reaches_the_disk(disk: ShadowDisk) -> None:
    file = disk.open(disk.root / "index/1", SIZE)
    disk.cut_power()
    for call in (
        lambda: file.write(0, b"x"),
        lambda: file.flush(0, 1),
        file.delete,
        lambda: disk.write_file(disk.root / "abort", b"", sync=True),
        lambda: disk.sync_folder(disk.root),
        lambda: disk.open(disk.root / "index/2", SIZE),
    ):
        with pytest.raises(PowerLoss):
            call()


def test_the_disk_reports_the_configured_size(tmp_path: Path) -> None:
    disk = ShadowDisk(tmp_path / "store", tmp_path / "durable", 100 * PAGE)
    file = disk.open(tmp_path / "store/index/1", 64 * PAGE)
    file.write(0, b"z" * 64 * PAGE)
    assert disk.total(tmp_path) == 100 * PAGE
    assert 0.64 <= disk.usage(tmp_path / "store") <= 0.70


def test_a_moved_folder_has_the_old_or_the_new_name(disk: ShadowDisk, tmp_path: Path) -> None:
    for name in ("0", "1"):
        file = disk.open(disk.root / "consumequeue/a" / name, SIZE)
        file.write(0, b"entries")
        file.flush(0, 7)
    disk.sync_folder(disk.root / "consumequeue/a")
    disk.move_folder(disk.root / "consumequeue/a", disk.root / "consumequeue/.deleted/a")
    assert {*files_after_power_loss(disk, tmp_path / "none", 0.0)} == {"consumequeue/a/0", "consumequeue/a/1"}
    moved = files_after_power_loss(disk, tmp_path / "all", 1.0)
    assert {*moved} == {"consumequeue/.deleted/a/0", "consumequeue/.deleted/a/1"}
    assert moved["consumequeue/.deleted/a/0"].startswith(b"entries")
    disk.delete(disk.root / "consumequeue/.deleted/a/0")
    disk.sync_folder(disk.root / "consumequeue")
    assert {*files_after_power_loss(disk, tmp_path / "synced", 0.0)} == {"consumequeue/.deleted/a/1"}
