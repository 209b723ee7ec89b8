"""Stores in an object storage: the same rows as from a disk, read by ranges, with no copy on any disk."""

import pytest
from pyspark.testing import assertDataFrameEqual
from s3_server import KEYS, s3_server, upload

from engine.errors import NotAStore
from engine.pipeline import register, schema, storage
from engine.pipeline.files import find_stores
from engine.pipeline.options import LogOptions, Options
from engine.pipeline.splits import plan
from engine.pipeline.unit_rows import rows_of

pytestmark = pytest.mark.spark
NAMES = ("crash-flip-5.3.3", "multi-queue-ext-5.3.3")


@pytest.fixture(scope="module")
def server(golden):
    """Run a server that holds two stores as ``fleet/NAME/store``."""
    with s3_server() as url:
        for name in NAMES:
            upload(golden(name), "fleet", f"{name}/store", url)
        yield url


@pytest.fixture
def s3(server, monkeypatch):
    """Set the environment that names the server, and return its address."""
    for name, value in {**KEYS, "AWS_ENDPOINT_URL": server, "AWS_REGION": "us-east-1"}.items():
        monkeypatch.setenv(name, value)
    storage._arrow_root.cache_clear()
    yield server
    storage._arrow_root.cache_clear()


def rows(path, **options):
    log_options = LogOptions({"path": path, **options})
    splits = plan(log_options.stores(), log_options.split_bytes).splits
    actual_rows = [row for batch in rows_of(splits, log_options.columns, log_options) for row in batch.to_pylist()]
    return [{**row, "store": None, "broker": None} for row in actual_rows]


def test_a_fleet_in_a_bucket_is_found_by_its_pattern(s3):
    stores = find_stores("s3://fleet/*/store")
    assert [(place.path, place.broker) for place in stores] == [(f"s3://fleet/{name}/store", name) for name in NAMES]
    assert find_stores("s3a://fleet/" + NAMES[0])[0].path == f"s3a://fleet/{NAMES[0]}/store"
    with pytest.raises(NotAStore, match="expected a store"):
        find_stores("s3://fleet/nobody")


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_those_of_the_disk(s3, golden, name):
    for split_bytes in ("67108864", "200000"):
        present_rows = rows(f"s3://fleet/{name}/store", splitBytes=split_bytes, blanks="true", body="true")
        assert present_rows == rows(str(golden(name)), splitBytes=split_bytes, blanks="true", body="true")


@pytest.mark.spark_full
def test_spark_reads_a_bucket_without_a_shared_disk(s3, golden, spark, monkeypatch):
    """Planner and workers take the server from their environment; the frame equals that from the disk."""
    for name, value in {**KEYS, "AWS_ENDPOINT_URL": s3, "AWS_REGION": "us-east-1"}.items():
        monkeypatch.setitem(spark.sparkContext.environment, name, value)
    register(spark)  # what is registered keeps the environment of its workers
    for kind, columns in (("rocketmq-commitlog", schema.UNIT), ("rocketmq-consumequeue", schema.CQ)):
        names = [name for name in columns if name not in ("body", "store", "broker", "properties")]
        from_bucket = spark.read.format(kind).option("columns", ",".join(names)).load(f"s3://fleet/{NAMES[1]}")
        from_disk = spark.read.format(kind).option("columns", ",".join(names)).load(str(golden(NAMES[1])))
        assertDataFrameEqual(from_bucket.where("physicalOffset < 200000"), from_disk.where("physicalOffset < 200000"))


def test_options_are_the_same_for_all_storages():
    assert Options({"path": "s3://x", "columns": "topic"}, schema.CQ).columns == {"topic": "string"}
