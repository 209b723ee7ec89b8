"""The three formats through Spark itself: golden stores of every flavour as one fleet, frame against frame.

test_commitlog_source reads all golden stores with many split sizes, without Spark's share of the work.
"""

from pathlib import Path

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal
from pyspark.errors import PySparkException
from pyspark.testing import assertDataFrameEqual

from engine.codec.message import Unit
from engine.codec.unit_scan import Blank, Stop
from engine.inspection import records
from engine.inspection.snapshot import open_store
from engine.pipeline import register, schema, session

pytestmark = pytest.mark.spark
NAMES = (
    "batchcq-5.3.3",
    "broker-transactions",
    "clean-4.9.8",
    "crash-flip-5.3.3",
    "first-files-deleted-5.3.3",
    "ipv6-and-unicode-5.3.3",
    "lmq-5.3.3",
    "multi-queue-ext-5.3.3",
    "propcrc-5.3.3",
)


@pytest.fixture(scope="module")
def fleet(golden, tmp_path_factory):
    """Return a pattern that all these stores match, each below the name of its broker."""
    folder = tmp_path_factory.mktemp("fleet")
    for name in NAMES:
        (folder / name).mkdir()
        (folder / name / "store").symlink_to(golden(name))
    return f"{folder}/*/store"


def engine_records(golden, kind):
    """Return the records of the engine's commands for every store, with ``broker``."""
    for name in NAMES:
        with open_store(golden(name)) as store:
            for record in {"units": units, "queues": entries, "index": index_entries}[kind](store):
                yield {**record, "broker": name}


def units(store):
    for item in store.units():
        file = store.log.sequence.find(item.offset)
        if isinstance(item, Unit):
            yield records.unit(item, file.name if file else None)
        elif not isinstance(item, Stop | Blank):
            yield records.damage(item, file.name if file else None)


def entries(store):
    for topic, queues in store.topics().items():
        for number, queue in queues.items():
            for entry in queue.entries():
                yield {**records.cq(entry), "topic": topic, "queueId": number}


def index_entries(store):
    for reader in store.index_files():
        for number, entry in reader.entries():
            yield records.index_entry(reader.name, number, reader.slots, reader.header, entry)


def framed(rows, columns, order):
    """Return a frame of plain values in the order of the files."""
    sample = [{name: plain(name, row.get(name)) for name in columns} for row in rows]
    frame = pd.DataFrame(sample, columns=columns, dtype="O")
    return frame.sort_values(order, kind="stable", ignore_index=True)


def plain(name, value):
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return dict(value) if name == "properties" and value is not None else value


@pytest.mark.parametrize(
    ("kind", "columns", "order"),
    [
        pytest.param("commitlog", schema.UNIT, ["broker", "physicalOffset"], id="units"),
        pytest.param("consumequeue", schema.CQ, ["broker", "topic", "queueId", "queueOffset"], id="queues"),
        pytest.param("index", schema.INDEX, ["broker", "file", "entry"], id="index"),
    ],
)
def test_every_column_of_a_fleet_is_the_engines(golden, fleet, spark, kind, columns, order):
    register(spark)
    format_ = spark.read.format(f"rocketmq-{kind}").option("splitBytes", str(700_000))
    beside = ("body", "store", *schema.TIMES, *(("file",) if kind == "consumequeue" else ()))  # no record of a command
    chosen = [name for name in columns if name not in beside]
    record = framed(format_.load(fleet).select(chosen).toArrow().to_pylist(), chosen, order)
    expected = framed(
        engine_records(golden, {"commitlog": "units", "consumequeue": "queues", "index": "index"}[kind]), chosen, order
    )
    assert_frame_equal(record, expected)
    assert record["broker"].nunique() >= 7


def test_spark_s_log_names_the_bytes_left_unread_by_filters(golden, fleet, spark):
    register(spark)
    name = "first-files-deleted-5.3.3"
    frame = spark.read.format("rocketmq-commitlog").option("columns", "physicalOffset,size,topic,broker").load(fleet)
    first_offset = frame.where(frame.broker == name).agg({"physicalOffset": "min"}).collect()[0][0]
    chosen = frame.where((frame.broker == name) & (frame.physicalOffset < first_offset + 50_000))
    with open_store(golden(name)) as store:
        expected = [
            (unit.offset, unit.size, unit.topic, name)
            for unit in store.units(stop=first_offset + 50_000)
            if isinstance(unit, Unit)
        ]
    assertDataFrameEqual(chosen, spark.createDataFrame(expected, chosen.schema))
    log = Path(session._Current.running.log.name)
    assert "bytes are left unread: nothing of the offset asked for lies there" in log.read_text("utf-8", "replace")


@pytest.mark.parametrize("kind", ["commitlog", "consumequeue", "index"])
@pytest.mark.parametrize("nowhere", ["broker = 'nowhere'", "physicalOffset < 0", "storeTimestamp < 5"])
def test_conditions_that_nothing_meets_give_no_row(fleet, spark, kind, nowhere):
    """Every file is left unread, so that nothing is planned."""
    register(spark)
    frame = spark.read.format(f"rocketmq-{kind}").load(fleet)
    name = nowhere.split()[0]
    assert frame.where(nowhere if name in frame.columns else "broker = ''").count() == 0


@pytest.mark.parametrize(
    ("kind", "place"), [("commitlog", "physicalOffset"), ("consumequeue", "physicalOffset"), ("index", "phyOffset")]
)
def test_a_frame_answers_each_query_by_itself(golden, spark, kind, place):
    """Spark keeps the plan at the frame: the next query, or the other half of one, would miss rows."""
    register(spark)
    frame = spark.read.format(f"rocketmq-{kind}").load(str(golden("clean-5.3.3")))
    places = sorted(row[0] for row in frame.select(place).collect())
    middle = places[len(places) // 2]
    below = sum(position < middle for position in places)
    lower_half, upper_half = frame.where(frame[place] < middle), frame.where(frame[place] >= middle)
    frame.createOrReplaceTempView("things")
    text = f"(SELECT count(*) FROM things WHERE {place} < {middle}), (SELECT count(*) FROM things)"
    assert 0 < below < len(places)
    assert (lower_half.count(), frame.count(), upper_half.count()) == (below, len(places), len(places) - below)
    assert sorted(row[0] for row in lower_half.union(upper_half).select(place).collect()) == places
    assert lower_half.crossJoin(upper_half.groupBy().count()).count() == below
    assert tuple(spark.sql(f"SELECT {text}").collect()[0]) == (below, len(places))
    assert (lower_half.union(frame).count(), frame.count()) == (below + len(places), len(places))


def test_a_schema_that_is_given_names_the_columns(golden, spark):
    register(spark)
    path = str(golden("clean-5.3.3"))
    load = spark.read.format("rocketmq-commitlog").schema("queueOffset bigint, topic string").load(path)
    with open_store(path) as store:
        rows = [(unit.queue_offset, unit.topic) for unit in store.units() if isinstance(unit, Unit)]
    assertDataFrameEqual(load, spark.createDataFrame(rows, load.schema))


def test_a_path_without_a_store_is_named_in_the_error(spark, tmp_path):
    register(spark)
    with pytest.raises(PySparkException, match="expected a store"):
        spark.read.format("rocketmq-commitlog").load(str(tmp_path)).count()
