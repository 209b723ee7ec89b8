"""The README's examples with Spark work as printed, with a session that a reader calls ``spark``."""

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
    for expression in readme.expressions(spark=True):
        readme.value_of(expression, {"spark": spark})


def test_the_questions_to_a_fleet_are_answered(spark, golden, tmp_path: Path, capsys) -> None:
    """A broker deleted a topic, another lost its queues: the recipes find the known facts about these stores."""
    brokers = {"orders": "broker-orders", "retries": "broker-retries", "gone": "queues-gone-5.3.3"}
    for broker, name in brokers.items():
        (tmp_path / broker).mkdir()
        (tmp_path / broker / "store").symlink_to(golden(name))
    (block,) = readme.python_blocks(spark=True)
    block = block.replace("/mnt/fleet", str(tmp_path)).replace("/tmp/followed", str(tmp_path / "followed"))
    names = readme.run_block(block, {})
    lost = {row.broker: row["count"] for row in names["lost"].groupBy("broker").count().collect()}
    assert lost == {"gone": 2558, "orders": 5}
    lags = {(row.topic, row.queueId, row.group): row.behind for row in names["behind"].where("behind > 0").collect()}
    assert (lags["OrderEvents", "0", "warehouse"], lags["AuditTrail", "1", "ledger"]) == (37, 30)
    assert names["twice"].count() > 0
    assert names["rate"].count() > 0
    assert spark.table("new").count() == names["units"].count()
    assert "|orders|" in capsys.readouterr().out.replace(" ", "")
