"""Only queues that a finding names lose their first file."""

from __future__ import annotations

from handmade_stores import healthy

from engine.inspection.snapshot import open_store
from engine.repair.queue_begins import repair_queue_begins


def test_nothing_is_removed_without_a_finding(tmp_path):
    root = healthy().write(tmp_path / "store")
    with open_store(root) as store:
        assert repair_queue_begins(store, [], ()) is None
