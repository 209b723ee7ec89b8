"""The real disk that saves files before they change: every call that changes something calls BackupWriter first."""

from __future__ import annotations

from pathlib import Path

import golden_stores
import pytest
from undone_stores import made, undone

from engine.codec.encode import Message
from engine.config import from_mapping
from engine.mapped.backup import BackupWriter
from engine.mapped.backup_disk import BackupDisk, BackupFile
from engine.mapped.disk import Disk, DiskFile, RealDisk
from engine.message_store import MessageStore


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return made(tmp_path / "store")


# The disk that keeps what is changed, call by call.

READS = {
    "lock",
    "linked_file",
    "names",
    "entries",
    "folders",
    "read_file",
    "exists",
    "modified",
    "usage",
    "total",
    "sync_folder",
    "close",
}
"""What changes nothing; how the lock's file was is kept before anything else."""


FILE_READS = {"view", "is_mapped", "read", "read_into", "lend", "extents", "flush", "close"}


def test_every_call_of_the_disk_that_changes_something_keeps():
    """A call that is added to the protocol is either named here as one that changes nothing, or it keeps."""
    calls = {name for name in vars(Disk) if not name.startswith("_")}
    assert {name for name in calls - READS if name not in vars(BackupDisk)} == set()
    calls = {name for name in vars(DiskFile) if not name.startswith("_")}
    assert {name for name in calls - FILE_READS if name not in vars(BackupFile)} == set()
    assert "_map" in vars(BackupFile)  # the view
    assert set(vars(RealDisk)) >= READS


def test_an_append_of_a_store_that_keeps_comes_back(tmp_path):
    """Views of the log are not copied: what is written behind its end is kept where room is made for it."""
    config = from_mapping({"mappedFileSizeCommitLog": 1 << 16, "mappedFileSizeConsumeQueue": 400})[0]
    root = tmp_path / "store"
    with MessageStore(root, config, services=False) as store:
        assert store.put_message(Message("Orders", b"x" * 300, keys="k")).ok
    log = root / "commitlog" / f"{0:020d}"
    data = bytearray(log.read_bytes())
    data[60_000:60_100] = b"y" * 100
    log.write_bytes(data)
    before = golden_stores.fingerprint(root)
    keeper = BackupWriter(root, "test", [root / "commitlog"])
    disk = BackupDisk(keeper)
    with MessageStore(root, config, services=False, disk=disk) as store:
        for _ in range(300):
            assert store.put_message(Message("Orders", b"x" * 300, keys="k")).ok
    disk.close()
    keeper.finish()
    undone(root, before)
