"""Steps of findings can be done in stores with a DLedger log, and in stores with queues in a RocksDB."""

from __future__ import annotations

import shutil

import pytest
from dledger_damage import copy_store

from engine.inspection.check.build_steps import for_rocksdb
from engine.inspection.findings import check
from engine.inspection.snapshot import open_store
from engine.rules.catalogue import RULES
from engine.rules.findings import Finding

pytestmark = pytest.mark.golden


def test_a_step_that_builds_queues_is_one_that_reads_a_dledger_log(golden, tmp_path):
    """``dispatch --to`` was the step, and refuses such a store."""
    root = copy_store(golden("dledger-crash-5.5.1"), tmp_path / "store")
    (root / "abort").unlink()
    shutil.rmtree(root / "consumequeue" / "CartUpdates")
    with open_store(root) as store:
        commands = {item.command for item in check(store) if isinstance(item, Finding) and item.command}
    assert any(command.startswith("storescope pipeline rebuild ") for command in commands)
    assert not any(command.startswith("storescope dispatch ") for command in commands)


@pytest.mark.parametrize(
    ("name", "folder"), [("rocks-5.5.1", "consumequeue"), ("rocks-separate-5.5.1", "consumequeue_rocksdb")]
)
def test_a_step_that_builds_queue_files_becomes_one_that_a_broker_carries_out(golden, name, folder):
    findings = [RULES[rule].finding("x") for rule in ("CQ03", "IX06", "CL03")]
    with open_store(golden(name)) as store:
        queue, index, log = for_rocksdb(store, findings)
    assert queue.command == f"mv {{store}}/{folder} {{store}}.{folder}.old && touch {{store}}/abort"
    assert "commitLogRecoverMaxNum" in queue.next_step
    assert index.command.startswith("mv {store}/index {store}.index.old && ")
    assert log == findings[2]


def test_steps_of_a_store_with_queue_files_stay(golden):
    findings = RULES["CQ03"].finding("x")
    with open_store(golden("clean-5.5.1")) as store:
        assert list(for_rocksdb(store, [findings])) == [findings]
