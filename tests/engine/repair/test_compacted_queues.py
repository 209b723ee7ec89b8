"""Damaged and lost files of compacted queues get the messages that the commit log has."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from planted_faults import patch

from engine.config import MessageStoreConfig
from engine.inspection import open_store
from engine.inspection.check.compaction import findings
from engine.mapped.disk import RealDisk
from engine.patching.apply import apply_patches
from engine.patching.patches import PatchList
from engine.repair.compacted_queues import _log_file_bytes, repair_compacted
from engine.repair.repair import Repair

pytestmark = pytest.mark.golden


@pytest.fixture
def store(golden, tmp_path) -> Path:
    root = tmp_path / "store"
    shutil.copytree(golden("broker-compaction-5.5.1"), root, ignore=shutil.ignore_patterns("timerwheel"))
    return root


def folder(root: Path, part: str, queue: str = "0") -> Path:
    return root / "compaction" / part / "StockLevels" / queue


def part(root: Path, name: str, number: int = 0) -> Path:
    return sorted(folder(root, name).iterdir())[number]


def mended(root: Path, config: MessageStoreConfig | None = None) -> Repair | None:
    with open_store(root, config) as opened:
        repair = repair_compacted(opened, list(findings(opened)))
    if repair is not None:
        apply_patches(root, PatchList(repair.patches), RealDisk())
    return repair


def rules(root: Path) -> set[str]:
    with open_store(root) as opened:
        return {item.id for item in findings(opened)}


def content(root: Path) -> dict[str, bytes]:
    files = (path for path in (root / "compaction").rglob("*") if path.is_file())
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


@pytest.mark.parametrize(
    ("file", "position", "data"),
    [
        (("compactionLog", 0), 1503, bytes(8)),
        (("compactionLog", 0), 1503 - 20, b"\xff" * 28),
        (("compactionLog", 1), 1283 + 100, b"\xff\xff"),
        (("compactionCq", 0), 46 * 3 + 28, (5).to_bytes(8, "big")),
        (("compactionCq", 1), 46 * 3, (7).to_bytes(8, "big")),
    ],
)
def test_damage_gets_its_bytes_back(store, file, position, data):
    """Damage that began in the properties of a message stayed in them: no CRC covers them."""
    before = content(store)
    patch(part(store, *file), position, data)
    assert mended(store) is not None
    assert rules(store) == {"CM01"}
    assert content(store) == before


def test_what_the_commit_log_has_deleted_is_left_out(store):
    """Consumers then go on behind it."""
    patch(part(store, "compactionLog", 0), 1503, bytes(8))
    for name in sorted((store / "commitlog").iterdir())[:-1]:
        name.unlink()
    repair = mended(store)
    assert "CM02" not in rules(store)
    assert "StockLevels/0/" in repair.costs


def test_a_lost_queue_folder_is_written_again(store):
    before = content(store)
    shutil.rmtree(folder(store, "compactionCq"))
    assert mended(store) is not None
    assert content(store) == before


def test_a_lost_file_of_the_log_gets_the_messages_that_its_queue_file_names(store):
    """Its queue file was removed, and its messages were missing in front of the others."""
    before = content(store)
    part(store, "compactionLog", 0).unlink()
    assert "CM02" in rules(store)
    assert mended(store) is not None
    assert content(store) == before


def test_a_lost_log_gets_the_messages_that_its_queue_names(store):
    before = content(store)
    shutil.rmtree(folder(store, "compactionLog"))
    assert "CM03" in rules(store)
    assert mended(store) is not None
    assert content(store) == before


def test_a_lost_queue_gets_all_messages_that_the_commit_log_has(store):
    for name in ("compactionLog", "compactionCq"):
        shutil.rmtree(folder(store, name))
    assert "CM03" in rules(store)
    assert mended(store) is not None
    assert rules(store) == {"CM01"}
    with open_store(store) as opened:
        queue = opened.compacted_queue("StockLevels", 0)
        assert [unit.queue_offset for unit in queue.units()] == list(range(400))
        assert len(list(queue.entries())) == 400
    other = folder(store, "compactionLog", "1")
    assert {path.stat().st_size for path in folder(store, "compactionLog").iterdir()} == {
        path.stat().st_size for path in other.iterdir()
    }


def test_without_any_file_only_a_configuration_says_how_long_they_are(store):
    """A broker does not start with files of another length."""
    shutil.rmtree(store / "compaction")
    assert mended(store) is None
    config = MessageStoreConfig(compaction_mapped_file_size=276_000, compaction_cq_mapped_file_size=46_000)
    assert mended(store, config) is not None
    assert rules(store) == {"CM01"}


@pytest.mark.parametrize(
    ("configured", "expected"), [(46_000, 50_600), (47_000, 46_000), (49_000, 50_600), (10_000, 23_000)]
)
def test_files_of_the_log_are_as_long_as_a_broker_makes_them(configured, expected):
    """A configured length that is a multiple of the queue file's gives one more of these: no message was served."""
    assert _log_file_bytes(configured, 4600) == expected


def test_a_healthy_store_is_left_alone(store):
    assert mended(store) is None
