"""A capsule as a disk: names, times and bytes of the store that it was made of."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from handmade_stores import healthy

from engine.capsule.capsule_disk import CapsuleDisk
from engine.inspection.capsule_making import make_capsule
from engine.inspection.snapshot import open_store
from engine.mapped.reading import Reading, read_through


@pytest.fixture
def made(tmp_path):
    root = healthy().write(tmp_path / "store")
    capsule = tmp_path / "x.capsule"
    with open_store(root) as store:
        make_capsule(store, capsule, 1_700_000_000_000)
    return root, capsule


@pytest.fixture
def disk(made):
    disk = CapsuleDisk(made[1])
    yield disk
    disk.close()


def test_folders_and_files_are_those_of_the_store(made, disk):
    root, capsule = made
    for path in [root, *sorted(root.rglob("*"))]:
        info, expected = disk.status(str(capsule / path.relative_to(root)), True), path.stat()
        assert (info.st_mode, info.st_mtime_ns, info.st_blocks) == (
            expected.st_mode,
            expected.st_mtime_ns,
            expected.st_blocks,
        )
        if path.is_dir():
            names = {entry.name for entry in disk.entries(str(capsule / path.relative_to(root)))}
            assert names == {child.name for child in path.iterdir()}
        else:
            assert info.st_size == expected.st_size
    assert stat.S_ISDIR(disk.status(str(capsule), True).st_mode)


def test_files_without_units_have_their_bytes(made, disk):
    root, capsule = made
    with read_through(disk):
        reading = Reading()
    for path in (path for path in sorted(root.rglob("*")) if path.is_file() and path.parent.name != "commitlog"):
        assert reading.small(capsule / path.relative_to(root), 1 << 20) == path.read_bytes()


def test_what_is_not_there_is_absent(made, disk, tmp_path):
    capsule = made[1]
    for name in ("none", "commitlog/none", "checkpoint/below"):
        with pytest.raises(FileNotFoundError):
            disk.status(str(capsule / name), True)
    (tmp_path / "file").write_bytes(b"x")
    assert disk.status(str(tmp_path / "file"), True).st_size == 1
    assert disk.is_plain(str(tmp_path / "file"))
    assert not disk.is_plain(str(capsule / "checkpoint"))


def test_a_file_is_read_in_pieces(made, disk):
    root, capsule = made
    descriptor = disk.open(str(capsule / "checkpoint"))
    data = (root / "checkpoint").read_bytes()
    view = memoryview(bytearray(100))
    assert disk.read_into(descriptor, view, 10) == 100
    assert bytes(view) == data[10:110]
    assert disk.read(descriptor, 1 << 20, len(data) - 3) == data[-3:]
    assert disk.read(descriptor, 10, len(data)) == b""


def test_a_capsule_of_version_1_is_read(tmp_path):
    """Version 2 writes what differs from the units; capsules that lie at reports have all entries."""
    root = healthy().write(tmp_path / "store")
    disk = CapsuleDisk(Path(__file__).with_name("version-1.capsule"))
    for number, entry in enumerate(disk.directory.files):
        if entry.path.startswith(("consumequeue/", "index/")) and stat.S_ISREG(entry.mode):
            assert disk.file_bytes(number, entry.size, 0) == (root / entry.path).read_bytes()
    disk.close()
