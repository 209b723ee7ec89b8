"""A copy of a store, and the command that copies one message out, in shell syntax."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
from pathlib import Path

import pytest

from engine import system
from engine.errors import StoreError
from engine.inspection import copy_out
from engine.inspection.copy_out import copy_one


def test_what_can_be_read_goes_into_a_new_store_and_the_rest_to_the_screen():
    assert shlex.split(copy_one("/a b", 42, readable=True)) == [
        "storescope",
        "copy",
        "/a b",
        "NEW",
        "--where",
        "physicalOffset == 42",
    ]
    assert shlex.split(copy_one("/a b", 42, readable=False)) == [
        "storescope",
        "message",
        "/a b",
        "42",
        "--json",
        "--body",
    ]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder like a store's with a file that has a hole, and a small one."""
    root = tmp_path / "store"
    (root / "commitlog").mkdir(parents=True)
    with (root / "commitlog" / f"{0:020d}").open("wb") as file:
        file.write(b"a" * 70_000)
        file.truncate(9 << 20)
        file.seek(8 << 20)
        file.write(b"b" * 5000)
    (root / "checkpoint").write_bytes(bytes(4096))
    return root


def shared(reading: int, writing: int) -> bool:
    """Do what a file system that shares blocks does, as far as a program sees it."""
    os.pwrite(writing, os.pread(reading, os.fstat(reading).st_size, 0), 0)
    return True


def contents(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("clones", [False, True], ids=["copied", "shared"])
@pytest.mark.parametrize("with_manifest", [False, True])
@pytest.mark.parametrize("by_system", [False, True])
def test_a_copy_has_all_bytes_and_holes(source, tmp_path, monkeypatch, clones, with_manifest, by_system):
    """Each way leads to the same copy: shared blocks, bytes that the system copies, and bytes that are read."""
    monkeypatch.setattr(system, "clone_blocks", shared if clones else lambda _reading, _writing: False)
    if not by_system:
        monkeypatch.setattr(system, "copy_range", lambda *_: 0)
    done: list[int] = []
    plan = copy_out.plan_copy(source, tmp_path / "copy")
    copied = copy_out.copy_out(plan, done.append, with_manifest=with_manifest)
    files = contents(tmp_path / "copy")
    manifest = files.pop(copy_out.MANIFEST, None)
    assert files == contents(source)
    assert (manifest is not None) == (copied.manifest is not None) == with_manifest
    if manifest is not None:
        digests = {entry["path"]: entry["sha256"] for entry in json.loads(manifest)["files"]}
        assert digests == {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    assert copied.shared == (copied.bytes if clones else 0)
    assert done == sorted(done)
    assert done[-1] == plan.bytes
    for name in files:
        assert (tmp_path / "copy" / name).stat().st_mtime_ns == (source / name).stat().st_mtime_ns
    log = tmp_path / "copy" / "commitlog" / f"{0:020d}"
    assert clones or log.stat().st_blocks * 512 < 1 << 20, "the hole is left"


def test_a_write_that_takes_a_part_goes_on(source, tmp_path, monkeypatch):
    """A disk that is nearly full takes a part of what it is given, without an error."""
    write = system.pwrite
    monkeypatch.setattr(system, "copy_range", lambda *_: 0)
    monkeypatch.setattr(system, "pwrite", lambda file, data, position: write(file, data[:7000], position))
    copy_out.copy_out(copy_out.plan_copy(source, tmp_path / "copy"), with_manifest=False)
    assert contents(tmp_path / "copy") == contents(source)


def test_a_write_into_the_copy_does_not_change_the_source(source, tmp_path):
    """No file of the copy is a second name of one of the source, also where the file system shares blocks."""
    files_before = contents(source)
    copy_out.copy_out(copy_out.plan_copy(source, tmp_path / "copy"), with_manifest=False)
    for path in (tmp_path / "copy").rglob("*"):
        if path.is_file():
            assert path.stat().st_nlink == 1
            path.write_bytes(b"!")
    assert contents(source) == files_before


@pytest.mark.parametrize("clones", [False, True], ids=["copied", "shared"])
def test_without_room_nothing_is_begun(source, tmp_path, monkeypatch, clones):
    """A copy filled the disk of a broker before it failed."""
    monkeypatch.setattr(system, "clone_blocks", shared if clones else lambda _reading, _writing: False)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: shutil._ntuple_diskusage(1 << 30, (1 << 30) - 5, 5))
    plan = copy_out.plan_copy(source, tmp_path / "copy")
    assert 70_000 < plan.allocated < 1 << 20 < plan.bytes
    if clones:
        assert copy_out.copy_out(plan).shared == plan.bytes
        return
    with pytest.raises(StoreError, match="5 bytes are free: nothing was copied"):
        copy_out.copy_out(plan)
    assert not (tmp_path / "copy").exists()


def test_a_stop_in_the_middle_of_a_file_leaves_nothing(source, tmp_path):
    """Progress was reported after each file, so a stop waited for a gigabyte."""

    def stop(done: int) -> None:
        if 0 < done < 9 << 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copy_out.copy_out(copy_out.plan_copy(source, tmp_path / "copy"), stop)
    assert not (tmp_path / "copy").exists()
