"""Opening and closing a store: the lock, a missing log, and a clean end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.config import from_mapping
from engine.errors import StoreLocked
from engine.files.layout import StorePaths
from engine.mapped.disk import RealDisk
from engine.message_store import Message, MessageStore
from engine.services import opening
from engine.store.recovery.empty_log import LogIsEmpty

CONFIG, _ = from_mapping({"mappedFileSizeCommitLog": 4096, "maxHashSlotNum": 5, "maxIndexNum": 30})


@pytest.fixture
def disk():
    real_disk = RealDisk()
    yield real_disk
    real_disk.close()


@pytest.fixture
def root(tmp_path):
    with MessageStore(tmp_path / "s", CONFIG) as store:
        for number in range(20):
            store.put_message(Message("T", b"%d" % number))
        assert store.wait_dispatched(10_000)
    return tmp_path / "s"


def test_the_lock_keeps_a_second_one_out(root, disk):
    with MessageStore(root, CONFIG), pytest.raises(StoreLocked):
        opening.take_lock(StorePaths(root), CONFIG, disk, "5.3")


def test_a_missing_log_is_detected_before_any_file_is_made(root, disk):
    for file in (root / "commitlog").iterdir():
        file.unlink()
    (root / "lock").unlink()
    missed = opening.without_log(StorePaths(root), CONFIG, disk, "5.3")
    assert missed is not None
    names_before = sorted(path.name for path in root.iterdir())
    with pytest.raises(LogIsEmpty):
        opening.take_lock(StorePaths(root), CONFIG, disk, "5.3")
    assert sorted(path.name for path in root.iterdir()) == names_before


def test_a_complete_store_has_no_missing_log(root, disk):
    assert opening.without_log(StorePaths(root), CONFIG, disk, "5.3") is None
    opening.note_empty_log(StorePaths(root), CONFIG, disk, "5.3")
    assert not StorePaths(root).confirmed_empty_log.exists()


def test_a_clean_end_removes_abort_and_a_slave_accepts_no_messages(root):
    store = MessageStore(root, CONFIG)
    assert (root / "abort").exists()
    store.close()
    assert not (root / "abort").exists()
    slave = replace(CONFIG, broker_role="SLAVE")
    with MessageStore(root, slave) as opened:
        assert opened.put_message(Message("T", b"x")).status.name == "SERVICE_NOT_AVAILABLE"
