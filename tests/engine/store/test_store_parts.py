"""The parts of an open store: work that waits for the disk, and the limit of dispatch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.config import from_mapping
from engine.message_store import Message, MessageStore


@pytest.fixture
def parts(tmp_path):
    config, _ = from_mapping({"mappedFileSizeCommitLog": 4096, "maxHashSlotNum": 5, "maxIndexNum": 30})
    with MessageStore(tmp_path / "s", config, services=False) as store:
        for _ in range(3):
            store.put_message(Message("T", b"x"))
        yield store.parts


def test_under_async_flush_all_units_may_be_dispatched(parts):
    assert not parts.sync_flush
    assert parts.confirm_offset() == parts.files.max_offset > 0


def test_under_sync_flush_only_flushed_units_are_dispatched_except_by_4_9(parts):
    sync = replace(parts, config=replace(parts.config, flush_disk_type="SYNC_FLUSH"))
    assert sync.sync_flush
    assert sync.confirm_offset() == parts.files.flushed_where < parts.files.max_offset
    assert replace(sync, release="4.9").confirm_offset() == parts.files.max_offset


def test_queues_share_the_disk_of_their_folder(parts):
    assert parts.queue_folder == parts.paths.consumequeue
