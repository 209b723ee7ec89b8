"""Steps of findings in a store with a DLedger log can be done there."""

from __future__ import annotations

import shutil

import pytest
from dledger_damage import copy_store

from engine.inspection.findings import check
from engine.inspection.snapshot import open_store
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
