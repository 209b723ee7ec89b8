"""Whole stores and fleets of stores on Spark: data sources, and jobs from data frame to data frame.

Spark is imported only when it is used: reading a split, and planning, do not need it.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from engine.pipeline.stream_offsets import lag

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["lag", "register"]

OLDEST_SPARK = 4


def register(spark: SparkSession) -> None:
    """Make the formats ``rocketmq-commitlog``, ``rocketmq-consumequeue`` and ``rocketmq-index`` known to ``spark``.

    Also turns on that filters and columns reach these formats, with a separate plan for each query
    (:mod:`engine.pipeline.spark_internals`), and sends the engine's codecs to the executors of a cluster. If this Spark
    does not support that, a warning says so, and whole rows are read. Raises :class:`~engine.pipeline.java.CannotStart`
    if Spark is older than 4, is Spark Connect, or would start a different Python from this one for its workers.
    """
    from engine.pipeline import commitlog_source, index_source, queue_source
    from engine.pipeline.java import CannotStart
    from engine.pipeline.java_session import is_local
    from engine.pipeline.shipping import ship_engine
    from engine.pipeline.spark_internals import one_read_each
    from engine.pipeline.workers_python import check_workers_python

    if int(spark.version.partition(".")[0]) < OLDEST_SPARK:
        raise CannotStart(f"the formats need Spark {OLDEST_SPARK}, found {spark.version}")
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        raise CannotStart(
            "the formats need a session with its own Java (builder.master(URL)), found one of Spark Connect"
        )
    if is_local(spark):
        check_workers_python(spark)
    sources: list[type] = [commitlog_source.CommitLogSource, queue_source.QueueSource, index_source.IndexSource]
    try:
        one_read_each.inject(spark)
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    except one_read_each.NoPlace as error:
        warning = f"this Spark ({spark.version}) hands the formats no columns and no conditions, all is read: {error}"
        warnings.warn(warning, stacklevel=2)
        sources = [
            commitlog_source.PlainCommitLogSource,
            queue_source.PlainQueueSource,
            index_source.PlainIndexSource,
        ]
    for source in sources:
        spark.dataSource.register(source)
    ship_engine(spark)
