"""The first steps of a data engineer with Spark, as notebooks write them."""

import pytest
from pyspark.errors import PySparkException

from engine.pipeline import register

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def path(golden):
    return str(golden("clean-5.3.3"))


@pytest.fixture(scope="module")
def log(spark, path):
    register(spark)
    return spark.read.format("rocketmq-commitlog").load(path)


def test_tables_by_sql(spark, log, path, tmp_path):
    """``CREATE TABLE`` succeeded and every ``SELECT`` failed: Spark writes the path as ``file:/…``."""
    sample = {
        "by_option": f"USING `rocketmq-commitlog` OPTIONS (path '{path}', splitBytes '1m')",
        "by_place": f"USING `rocketmq-commitlog` LOCATION '{path}'",
    }
    try:
        for name, how in sample.items():
            spark.sql(f"CREATE TABLE {name} {how}")
            sql = spark.sql(f"SELECT topic, count(*) AS count FROM {name} WHERE size > 200 GROUP BY topic")
            assert sorted(sql.collect()) == sorted(log.where("size > 200").groupBy("topic").count().collect())
            comments = {row.col_name: row.comment for row in spark.sql(f"DESCRIBE TABLE {name}").collect()}
            assert comments["storeTime"] == "when the broker stored it"
        spark.sql(f"CREATE TEMPORARY VIEW by_view USING `rocketmq-index` OPTIONS (path '{path}')")
        assert spark.sql("SELECT count(*) FROM by_view WHERE slot >= 0").collect()[0][0] > 0
    finally:
        spark.sql("DROP VIEW IF EXISTS by_view")
        for name in sample:
            spark.sql(f"DROP TABLE IF EXISTS {name}")


def test_several_paths_are_one_frame(spark, golden, log, path):
    other_path = str(golden("crash-flip-5.3.3"))
    frame = spark.read.format("rocketmq-commitlog").load([path, f"file:{other_path}"])
    counts = {row.store: row["count"] for row in frame.groupBy("store").count().collect()}
    assert counts.keys() == {path, other_path}
    assert counts[path] == log.count()


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kathmandu"])
def test_times_are_the_same_moment_in_every_zone(spark, log, zone):
    zone_before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        middle = log.selectExpr("percentile(storeTimestamp, 0.5)").collect()[0][0] // 1
        text = log.selectExpr(f"date_format(timestamp_millis({middle:.0f}), 'yyyy-MM-dd HH:mm:ss.SSS')").first()[0]
        for compare in ("=", "<", "<=", ">", ">="):
            by_time = log.where(f"storeTime {compare} timestamp'{text}'")
            assert by_time.count() == log.where(f"storeTimestamp {compare} {middle:.0f}").count()
        assert f"storeTimestamp >= {middle:.0f}" in by_time._jdf.queryExecution().executedPlan().toString()
        assert (
            log.where("unix_millis(storeTime) <> storeTimestamp OR unix_millis(bornTime) <> bornTimestamp").count() == 0
        )
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone_before)


def test_times_go_to_pandas(log):
    results = log.select("storeTime", "bornTime").limit(5).toPandas()
    assert [str(kind) for kind in results.dtypes] == ["datetime64[ns]"] * 2


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        pytest.param(lambda read, path: read.option("bdy", "true").load(path), "bdy is not an option", id="option"),
        pytest.param(lambda read, path: read.load(f"{path}/commitlog/x").count(), "expected a store", id="path"),
        pytest.param(lambda read, path: read.load().count(), r"name the store: load\(PATH\)", id="no path"),
        pytest.param(lambda read, path: read.load("hdfs://x/y"), "hdfs: is not read here", id="hdfs"),
        pytest.param(lambda read, path: read.option("columns", "x").load(path), "x is not a column", id="column"),
        pytest.param(
            lambda read, path: read.schema("queueId long, topic string").load(path).select("topic").explain(),
            "queueId is int, the given schema says bigint",
            id="schema",
        ),
    ],
)
def test_errors_are_one_line_at_planning(spark, log, path, ask, message):
    """Each was a stack of a thousand characters with the sentence inside; a wrong schema failed in a task."""
    with pytest.raises(PySparkException, match=f"engine.errors.*{message}") as caught:
        ask(spark.read.format("rocketmq-commitlog"), path)
    assert "Traceback" not in str(caught.value)
    assert len(str(caught.value).strip().splitlines()) <= 2  # the sentence, SQLSTATE
