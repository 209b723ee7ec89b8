"""Queues, index and groups in a plan."""

from __future__ import annotations

import json

from handmade_stores import healthy
from recovery_plans import change_checkpoint, planned

INDEX_TIME = 16
"""Position of indexMsgTimestamp in the checkpoint."""


def test_a_start_after_a_crash_deletes_index_files_that_are_younger_than_the_checkpoint(tmp_path):
    healthy(80).write(tmp_path)
    change_checkpoint(tmp_path, INDEX_TIME, 1)
    kept = planned(tmp_path, "5.3")
    (tmp_path / "abort").touch()
    after_crash = planned(tmp_path, "5.3")
    assert kept.index_kept
    assert (kept.index_deleted, after_crash.index_kept) == ((), ())
    assert after_crash.index_deleted == kept.index_kept


def test_offsets_of_groups_behind_their_queue_are_named(tmp_path):
    healthy(80).write(tmp_path)
    queue = planned(tmp_path, "5.3").queues[0]
    (tmp_path / "config").mkdir(exist_ok=True)
    table = {"offsetTable": {f"{queue.topic}@readers": {str(queue.queue_id): queue.max_offset + 7}}}
    (tmp_path / "config" / "consumerOffset.json").write_text(json.dumps(table))
    (beyond,) = planned(tmp_path, "5.3").groups_beyond
    assert (beyond.group, beyond.offset, beyond.max_offset) == ("readers", queue.max_offset + 7, queue.max_offset)
