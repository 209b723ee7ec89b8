"""The disk that keeps what is changed, call by call."""

from __future__ import annotations

import golden_stores
from undone_stores import undone

from engine.codec.encode import Message
from engine.config import from_mapping
from engine.mapped.disk import Disk, DiskFile, RealDisk
from engine.mapped.keeping import Keeper
from engine.mapped.keeping_disk import KeepingDisk, KeepingFile
from engine.message_store import MessageStore

READS = {
    "lock",
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
    assert {name for name in calls - READS if name not in vars(KeepingDisk)} == set()
    calls = {name for name in vars(DiskFile) if not name.startswith("_")}
    assert {name for name in calls - FILE_READS if name not in vars(KeepingFile)} == set()
    assert "_map" in vars(KeepingFile)  # the view
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
    keeper = Keeper(root, "test", [root / "commitlog"])
    disk = KeepingDisk(keeper)
    with MessageStore(root, config, services=False, disk=disk) as store:
        for _ in range(300):
            assert store.put_message(Message("Orders", b"x" * 300, keys="k")).ok
    disk.close()
    keeper.finish()
    undone(root, before)
