"""The formats in a plain session of this Python's Spark: every answer is compared with the rows themselves.

``python spark_session_check.py STORE`` ends with 0 and names the Spark, or with an exception. It needs no helper of the
tests: other Pythons run it.
"""

import sys
import tempfile
import warnings
from datetime import UTC, datetime

import pyspark
from pyspark.sql import SparkSession

from engine.pipeline import register

KINDS = {
    "rocketmq-commitlog": ("physicalOffset", ("topic = 'TopicA'", "queueId > 1 AND size < 300", "crc <> 'ok'")),
    "rocketmq-consumequeue": ("physicalOffset", ("topic = 'TopicA' AND queueOffset < 10", "size > 300")),
    "rocketmq-index": ("phyOffset", ("slot > 100", "storeTime > timestamp'2020-01-01 00:00:00'")),
}


def main(store: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        spark = plain(folder)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                register(spark)
            for name, (place, conditions) in KINDS.items():
                compare(spark, spark.read.format(name).load(store), place, conditions)
            by_sql(spark, store)
            followed(spark, store, folder)
        finally:
            spark.stop()
    print("agrees", pyspark.__version__)


def plain(folder: str) -> SparkSession:
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.local.dir": folder,
        "spark.log.level": "ERROR",
    }
    building = SparkSession.builder.master("local[1]")
    for name, value in settings.items():
        building = building.config(name, value)
    return building.getOrCreate()


def compare(spark, frame, place, conditions):
    """Compare reads, conditions, aggregates, unions, joins and caches of one frame, in one session, one after
    another.
    """
    data_frame = spark.createDataFrame(frame.toArrow())
    row_count = data_frame.count()
    assert row_count > 100
    assert frame.count() == row_count
    for condition in conditions:
        assert rows(frame.where(condition)) == rows(data_frame.where(condition)), condition
        assert frame.where(condition).count() + frame.where(f"NOT ({condition})").count() == row_count, condition
        counted = frame.where(condition).groupBy("type").count()
        assert rows(counted) == rows(data_frame.where(condition).groupBy("type").count()), condition
    lower_half, upper_half = (frame.where(f"{place} {half}").select(place) for half in ("< 100000", ">= 100000"))
    assert sorted(rows(lower_half.union(upper_half))) == sorted(rows(data_frame.select(place)))
    assert lower_half.join(upper_half, on=place).count() == 0
    assert frame.select("storeTime").where("storeTime IS NULL").count() == data_frame.where("storeTime IS NULL").count()
    assert "columns: [" in frame.select(place)._jdf.queryExecution().executedPlan().toString()
    cache = frame.select(place, "type").cache()
    assert cache.where(f"{place} < 100000").count() == lower_half.count()
    cache.unpersist()


def rows(frame):
    return sorted(str([_ordered(value) for value in row]) for row in frame.collect())


def _ordered(value):
    """Sort maps, which have no order: a frame made from rows may have another."""
    return sorted(value.items()) if isinstance(value, dict) else value


def by_sql(spark, store):
    spark.sql(f"CREATE TABLE log USING `rocketmq-commitlog` OPTIONS (path '{store}', splitBytes '64k')")
    (row,) = spark.sql("SELECT count(*), max(storeTime) FROM log WHERE topic = 'TopicA'").collect()
    assert row[0] > 100
    assert row[1] > datetime(2020, 1, 1, tzinfo=UTC).replace(tzinfo=None)


def followed(spark, store, folder):
    stream = spark.readStream.format("rocketmq-commitlog").load(store).select("topic", "physicalOffset")
    query = stream.writeStream.format("memory").queryName("followed").option("checkpointLocation", f"{folder}/to")
    query.trigger(availableNow=True).start().awaitTermination()
    read = spark.read.format("rocketmq-commitlog").load(store).select("topic", "physicalOffset")
    assert rows(spark.table("followed")) == rows(read)


if __name__ == "__main__":
    main(sys.argv[1])
