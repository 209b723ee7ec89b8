"""Each scan of a query is read once, in a Spark that has a place for the rule."""

from __future__ import annotations

import re
import warnings

import pytest

from engine.pipeline import register
from engine.pipeline.spark_internals import one_read_each

pytestmark = pytest.mark.spark


def plan_of(frame):
    """Return the words of each scan in the executed plan."""
    return re.findall(r"\(Python\) (columns: .*)", frame._jdf.queryExecution().executedPlan().toString())


def test_a_spark_without_a_place_for_the_rule_reads_all_and_says_so(golden, spark, monkeypatch):
    """Spark 4.0 could not read at all: now the formats do not use a place that it lacks, and lose no row."""
    monkeypatch.setattr(one_read_each, "_INJECTED", "spark.storescope.nothing")
    monkeypatch.setattr(one_read_each, "_RULE", "public class Other {}")
    try:
        with pytest.warns(UserWarning, match=r"this Spark \(4.* hands the formats no columns and no conditions"):
            register(spark)
        for kind, (store, condition) in {
            "commitlog": ("clean-5.3.3", "topic = 'TopicA'"),
            "consumequeue": ("clean-5.3.3", "topic = 'TopicA'"),
            "index": ("clean-5.3.3", "phyOffset > 100000"),
        }.items():
            frame = spark.read.format(f"rocketmq-{kind}").load(str(golden(store)))
            counts = frame.where(condition).count(), frame.where(f"NOT ({condition})").count()
            assert all(counts)
            assert sum(counts) == frame.count()
            assert all("conditions: []" in words for words in plan_of(frame.where(condition)))
    finally:
        monkeypatch.undo()
        with warnings.catch_warnings():
            register(spark)
