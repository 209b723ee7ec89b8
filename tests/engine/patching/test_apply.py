"""Patches are made in the store under a backup: a stop at any call leaves a store that the backup restores."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from every_patch import every_kind, write_store
from golden_stores import fingerprint
from undo_cases import KillAtCall, KilledByTest, kept_in, same

from engine.cli.main import main
from engine.mapped.backup import BackupDisk, BackupWriter
from engine.patching import patched_disk
from engine.patching.apply import apply_patches

CALLS = ("open", "write_file", "replace", "delete", "sync_folder", "set_size")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return write_store(tmp_path / "store")


def test_every_kind_of_patch_is_made(store: Path, monkeypatch) -> None:
    monkeypatch.setattr(patched_disk, "MAX_IN_MEMORY_BYTES", 4096)
    monkeypatch.setattr("engine.patching.apply.MAX_IN_MEMORY_BYTES", 4096)
    writer = BackupWriter(store, "repair", [store / "commitlog"], rewrites_log=True)
    disk = BackupDisk(writer)
    apply_patches(store, every_kind(store), disk)
    disk.close()
    writer.finish()
    names = sorted(str(path.relative_to(store)) for path in store.rglob("*") if path.is_file())
    new_log = f"commitlog/{1 << 20:020d}"
    assert names == [
        new_log,
        "config/checkpoint.old",
        "config/new.json",
        "config/new/deep/table",
        "config/topics.json",
    ]
    assert (store / new_log).read_bytes() == b"headmore" + bytes(8184)
    assert (store / "config/checkpoint.old").read_bytes()[8:16] == b"12345678"
    assert (store / "config/topics.json").read_bytes() == b"{ }"


def test_a_stop_at_any_call_is_undone(store: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(patched_disk, "MAX_IN_MEMORY_BYTES", 4096)
    monkeypatch.setattr("engine.patching.apply.MAX_IN_MEMORY_BYTES", 4096)
    for number in range(1, 40):
        root = tmp_path / f"copy{number}"
        shutil.copytree(store, root)
        files_before = fingerprint(root)
        patches = every_kind(root)
        writer = BackupWriter(root, "repair", [root / "commitlog"], rewrites_log=True)
        disk = BackupDisk(writer)
        kill = KillAtCall(number)
        for name in CALLS:
            monkeypatch.setattr(disk, name, kill.wrap(getattr(disk, name)))
        try:
            apply_patches(root, patches, disk)
            ended = True
        except KilledByTest:
            ended = False
        disk.close()
        writer.close()  # as when the process is gone: no last line
        (folder,) = kept_in(tmp_path)
        assert main(["recover", str(root), "--undo", str(folder), "--yes"]) == 0
        assert same(root, files_before) == [], number
        shutil.rmtree(root)
        shutil.rmtree(folder)
        if ended:
            assert number > 10
            return
    raise AssertionError("there are more calls than were tried")
