"""Whole stores and fleets of them on Spark: data sources, and jobs from data frame to data frame.

Spark itself is imported when it is asked for: reading a split, and planning, need none of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register"]


def register(spark: SparkSession) -> None:
    """Make the formats ``rocketmq-commitlog``, ``rocketmq-consumequeue`` and ``rocketmq-index`` known to ``spark``.

    Turns on that filters reach them, where each query is planned anew (:mod:`engine.pipeline.one_read_each`), and gives
    executors of a cluster the engine's codecs. Raises :class:`~engine.pipeline.java.CannotStart` where Spark is not 4.
    """
    from engine.pipeline import one_read_each
    from engine.pipeline.commitlog_source import CommitLogSource
    from engine.pipeline.index_source import IndexSource
    from engine.pipeline.queue_source import QueueSource
    from engine.pipeline.session import ship_engine

    one_read_each.inject(spark)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    for source in (CommitLogSource, QueueSource, IndexSource):
        spark.dataSource.register(source)
    ship_engine(spark)
