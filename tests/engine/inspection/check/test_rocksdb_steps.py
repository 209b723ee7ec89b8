"""Steps on a store with its queues in a RocksDB."""

from __future__ import annotations

import pytest

from engine.inspection.check.rocksdb_steps import for_rocksdb
from engine.inspection.snapshot import open_store
from engine.rules.catalogue import RULES

pytestmark = pytest.mark.golden


@pytest.mark.parametrize(
    ("name", "folder"), [("rocks-5.5.1", "consumequeue"), ("rocks-separate-5.5.1", "consumequeue_rocksdb")]
)
def test_a_step_that_builds_queue_files_becomes_one_that_a_broker_carries_out(golden, name, folder):
    found = [RULES[rule].finding("x") for rule in ("CQ03", "IX06", "CL03")]
    with open_store(golden(name)) as store:
        queue, index, log = for_rocksdb(store, found)
    assert queue.command == f"mv {{store}}/{folder} {{store}}.{folder}.old && touch {{store}}/abort"
    assert "commitLogRecoverMaxNum" in queue.next_step
    assert index.command.startswith("mv {store}/index {store}.index.old && ")
    assert log == found[2]


def test_steps_of_a_store_with_queue_files_stay(golden):
    found = RULES["CQ03"].finding("x")
    with open_store(golden("clean-5.5.1")) as store:
        assert list(for_rocksdb(store, [found])) == [found]
