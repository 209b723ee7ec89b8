"""What the README shows of Spark works as it stands there, with a session that a reader calls ``spark``."""

from __future__ import annotations

import shutil
from pathlib import Path

import readme

from engine.inspection.samples import sample


def test_the_examples_with_a_session_work(spark, tmp_path: Path, monkeypatch) -> None:
    """Each finds the sample store under the names that the README's examples use."""
    monkeypatch.chdir(tmp_path)
    for name in ("STORE", "store", "orders-store", "fleet/broker-a/store", "fleet/broker-b/store"):
        shutil.copytree(sample("orders", tmp_path / "cache"), tmp_path / name)
    for block in readme.python_blocks(spark=True):
        readme.run_block(block, {"spark": spark})
    for expression in readme.expressions(spark=True):
        readme.value_of(expression, {"spark": spark})
