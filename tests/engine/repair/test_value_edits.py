"""One number of a store changes; the commands' tests (test_set_values) have the broker's stores."""

from __future__ import annotations

import pytest
from handmade_stores import healthy

from engine.codec.checkpoint import PARTS
from engine.errors import StoreError, UsageError
from engine.inspection.snapshot import open_store
from engine.repair.value_edits import edit_checkpoint, edit_consumer_offset, edit_delay_offset


def test_a_value_of_the_checkpoint_changes_once(tmp_path) -> None:
    root = healthy().write(tmp_path / "store")
    name = PARTS[0].name
    with open_store(root) as store:
        edit = edit_checkpoint(store, name, 1_764_409_000_000)
        for field, number in (("nothing", 1), (name, -5), (name, 1 << 70)):
            with pytest.raises(UsageError):
                edit_checkpoint(store, field, number)
    with open_store(root, None, edit.patches) as store:
        assert edit_checkpoint(store, name, edit.new).patches == ()


def test_an_offset_needs_its_queue(tmp_path) -> None:
    root = healthy().write(tmp_path / "store")
    with open_store(root) as store:
        topic, queues = next(iter(store.topics().items()))
        queue_id = next(iter(queues))
        edit = edit_consumer_offset(store, "billing", topic, queue_id, 0)
        assert (edit.current, edit.bounds[1] >= 0, len(edit.patches)) == (None, True, 1)
        with pytest.raises(UsageError):
            edit_consumer_offset(store, "billing", topic, queue_id, 1 << 40)
        with pytest.raises(StoreError):
            edit_consumer_offset(store, "billing", "Nowhere", 0, 0)
        with pytest.raises(UsageError):
            edit_delay_offset(store, 0, 0)
        with pytest.raises(StoreError):
            edit_delay_offset(store, 1, 0)
