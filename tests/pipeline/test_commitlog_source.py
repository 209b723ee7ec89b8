"""The data sources give the same rows as the engine's own commands.

Streams over live logs give every unit once, over restarts, rolled files, new queues and new stores.
"""

import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from followed_stores import Query, new_store, places, put, units_of
from golden_stores import third_of_names
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from pyspark.errors import StreamingQueryException
from pyspark.sql.datasource import EqualTo, GreaterThan, In, LessThanOrEqual, StringStartsWith
from raw_units import raw_log
from spark_rows import assert_same

from engine.codec.message import Unit
from engine.codec.unit_scan import Blank, Stop
from engine.errors import UsageError
from engine.inspection import records
from engine.inspection.snapshot import open_store
from engine.pipeline import lag, register, schema
from engine.pipeline.commitlog_source import CommitLogReader
from engine.pipeline.index_source import IndexReader
from engine.pipeline.options import LogOptions, Options
from engine.pipeline.queue_source import QueueReader

pytestmark = pytest.mark.spark
TINY = ("broker-lmq", "crash-flip-5.3.3")
"""Stores that are read in splits of a few units too."""


def all_rows(reader):
    return [row for partition in reader.partitions() for batch in reader.read(partition) for row in batch.to_pylist()]


def log_rows(path, filters=(), **options):
    log_options = LogOptions({"path": str(path), **options})
    reader = CommitLogReader(log_options, list(log_options.columns))
    assert list(reader.pushFilters(list(filters))) == list(filters)
    return all_rows(reader)


def engine_records(store, bodies=False):
    """Yield the records of ``storescope units --json``, without the end."""
    for item in store.units():
        file = store.log.sequence.find(item.offset)
        if isinstance(item, Unit):
            yield records.unit(item, file.name if file else None)
        elif isinstance(item, Blank):
            yield records.blank(item, file.name)
        elif not isinstance(item, Stop):
            yield records.damage(item, file.name if file else None)


@pytest.mark.full_form(keep=6)
@pytest.mark.parametrize("name", third_of_names(2))
def test_units_of_golden_stores_field_for_field(golden, name):
    path = golden(name)
    with open_store(path) as store:
        expected = list(engine_records(store))
    for split_bytes in ("67108864", "100000", *(("3001",) if name in TINY else ())):
        rows = log_rows(path, blanks="true", splitBytes=split_bytes)
        assert_same(rows, expected, {"store", "broker"})
        assert {row["store"] for row in rows} == {str(path)}


def source_rows(kind, path, filters=(), **options):
    source, columns = {"cq": (QueueReader, schema.CQ), "index": (IndexReader, schema.INDEX)}[kind]
    reader = source(Options({"path": str(path), **options}, columns), list(columns))
    assert list(reader.pushFilters(list(filters))) == list(filters)
    return all_rows(reader)


def test_bodies_as_they_are_stored(golden):
    with open_store(golden("clean-5.3.3")) as store:
        bodies = [item.body for item in store.units() if isinstance(item, Unit)]
    rows = log_rows(golden("clean-5.3.3"), body="true")
    assert [row["body"] for row in rows] == bodies
    assert "body" not in log_rows(golden("clean-5.3.3"))[0]


def test_only_the_columns_that_are_asked_for(golden):
    rows = log_rows(golden("clean-5.3.3"), columns="topic, size")
    assert list(rows[0]) == ["topic", "size"]
    with pytest.raises(UsageError, match="colour is not a column; the columns are type, physicalOffset"):
        LogOptions({"path": "x", "columns": "colour"})
    with pytest.raises(
        UsageError, match="splitBytes: expected a number from 1 on, or a size like 64k, 128m, 1g, found many"
    ):
        LogOptions({"path": "x", "splitBytes": "many"})
    with pytest.raises(UsageError, match="crc: expected true or false, found perhaps"):
        LogOptions({"path": "x", "crc": "perhaps"})


def test_without_crc_bodies_are_unchecked(golden):
    assert {row["crc"] for row in log_rows(golden("clean-5.3.3"), crc="false")} == {"unchecked"}


PUSHED = [
    pytest.param([EqualTo(("topic",), "TopicA")], id="topic"),
    pytest.param([In(("topic",), ("TopicA", "TopicB")), EqualTo(("queueId",), 1)], id="topics and queue"),
    pytest.param(
        [GreaterThan(("physicalOffset",), 100_000), LessThanOrEqual(("physicalOffset",), 300_000)], id="place"
    ),
    pytest.param([LessThanOrEqual(("queueOffset",), 20), EqualTo(("topic",), "TopicA")], id="queue offset"),
    pytest.param([GreaterThan(("size",), 400), EqualTo(("crc",), "ok")], id="size and crc"),
    pytest.param([EqualTo(("topic",), "no such topic")], id="nothing"),
]
MEETS = {
    "EqualTo": lambda value, expected: value == expected,
    "In": lambda value, expected: value in expected,
    "GreaterThan": lambda value, expected: value > expected,
    "GreaterThanOrEqual": lambda value, expected: value >= expected,
    "LessThanOrEqual": lambda value, expected: value <= expected,
}


def meets(row, filters):
    """Return True if Spark, which tests all conditions again, would keep a row."""
    return all(
        row[condition.attribute[0]] is not None
        and MEETS[type(condition).__name__](row[condition.attribute[0]], condition.value)
        for condition in filters
    )


@pytest.mark.parametrize("pushed", PUSHED)
@pytest.mark.parametrize("name", ["first-files-deleted-5.3.3", "crash-late-5.3.3", "queues-gone-5.3.3"])
def test_filters_spare_rows_and_lose_none(golden, name, pushed):
    everything = log_rows(golden(name))
    topics = sorted({row["topic"] for row in everything if row["topic"]})
    chosen = [swapped(item, topics) for item in pushed]
    rows = log_rows(golden(name), chosen)
    assert [row for row in rows if meets(row, chosen)] == [row for row in everything if meets(row, chosen)]
    assert len(rows) < len(everything)


def swapped(condition, topics):
    """Return the filter with real topics of the store instead of TopicA and TopicB."""
    names_ = {"TopicA": topics[0], "TopicB": topics[-1]}
    if condition.attribute != ("topic",):
        return condition
    if isinstance(condition, In):
        return In(condition.attribute, tuple(names_[value] for value in condition.value))
    return EqualTo(condition.attribute, names_.get(condition.value, condition.value))


def test_filters_that_are_not_understood_are_left_to_spark(golden):
    everything = log_rows(golden("clean-5.3.3"))
    assert log_rows(golden("clean-5.3.3"), [StringStartsWith(("topic",), "T")]) == everything


def test_queues_and_times_leave_parts_of_a_log_unread(tmp_path, capsys):
    size, count = 40 << 20, 3
    (tmp_path / "commitlog").mkdir()
    places = {}
    for number in range(count):
        topic, base = f"T{number}", number * size
        log = raw_log(
            *(
                {
                    "topic": topic.encode(),
                    "body": bytes(500_000),
                    "queue_id": 0,
                    "queue_offset": n,
                    "stored": 1_700_000_000_000 + number * 3_600_000 + n,
                }
                for n in range(60)
            ),
            base=base,
        )
        (tmp_path / "commitlog" / f"{base:020d}").write_bytes(log.ljust(size, b"\0"))
        unit = len(log) // 60
        folder = tmp_path / "consumequeue" / topic / "0"
        folder.mkdir(parents=True)
        entries = b"".join(struct.pack(">qiq", base + n * unit, unit, 0) for n in range(60))
        (folder / f"{0:020d}").write_bytes(entries.ljust(6000, b"\0"))
        places[topic] = [base + n * unit for n in range(60)]
    for filters, trust in (
        ([EqualTo(("topic",), "T1")], {}),
        ([EqualTo(("topic",), "T1")], {"queues": "trust"}),
        ([LessThanOrEqual(("storeTimestamp",), 1_700_000_600_000)], {"times": "trust"}),
    ):
        options = LogOptions({"path": str(tmp_path), "columns": "topic,physicalOffset,storeTimestamp", **trust})
        reader = CommitLogReader(options, list(options.columns))
        reader.pushFilters(filters)
        rows = all_rows(reader)
        topic = "T1" if filters[0].attribute == ("topic",) else "T0"
        assert [row["physicalOffset"] for row in rows if row["topic"] == topic] == places[topic]
        assert sum(part.bytes for part in reader.plan().skipped) > size
        assert "bytes are left unread: nothing of the" in capsys.readouterr().err


def test_other_brokers_stores_are_not_read(golden, tmp_path):
    for name in ("clean-4.9.8", "clean-5.3.3"):
        (tmp_path / name).symlink_to(golden(name).parent)
    path = f"{tmp_path}/*/{golden('clean-4.9.8').name}"
    rows_of_both = log_rows(path)
    of_one = [row for row in rows_of_both if row["broker"] == "clean-5.3.3"]
    assert 0 < len(of_one) < len(rows_of_both)
    assert log_rows(path, [EqualTo(("broker",), "clean-5.3.3")]) == of_one
    assert log_rows(path, [In(("store",), (of_one[0]["store"],))]) == of_one
    assert source_rows("cq", path, [EqualTo(("broker",), "nobody")]) == []
    assert source_rows("index", path, [EqualTo(("broker",), "nobody")]) == []


@settings(max_examples=8, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(st.integers(0, 1 << 32), st.integers(30_000, 1 << 20))
@example(231, 30_000)  # a file cut short: what is missing up to the next belongs to no file
@example(956_100, 836_752)  # a store time in a year that no column of times holds
def test_rows_of_a_damaged_log_are_the_engines(golden, tmp_path_factory, seed, split_bytes):
    """Faults at random places of the log of a real broker, and splits of any length."""
    path = tmp_path_factory.mktemp("damaged") / "store"
    shutil.copytree(golden("ipv6-and-unicode-5.3.3"), path)
    rng = random.Random(seed)
    for file in sorted((path / "commitlog").iterdir()):
        data = bytearray(file.read_bytes())
        for _ in range(rng.randrange(4)):
            position, size = rng.randrange(len(data)), rng.choice((1, 8, 300, 5000))
            data[position : position + size] = rng.choice(
                (b"\0" * size, rng.randbytes(size), data[position + 1 : position + 1 + size])
            )
        file.write_bytes(data[: len(data) if rng.random() < 0.9 else rng.randrange(len(data))])
    with open_store(path) as store:
        expected = list(engine_records(store))
    assert_same(log_rows(path, blanks="true", splitBytes=str(split_bytes)), expected, {"store", "broker"})


ROOT = Path(__file__).parents[2]
FOLLOW = """
import sys
from engine.pipeline import register, session
path, out, checkpoint = sys.argv[1:]
spark = session.start("local[1]")
register(spark)
frame = spark.readStream.format("rocketmq-commitlog").option("columns", "physicalOffset,topic,queueId").load(path)
frame.writeStream.format("parquet").option("checkpointLocation", checkpoint).start(out).awaitTermination()
"""
"""A program that follows logs until it is killed."""


@pytest.mark.parametrize("split_bytes", [1 << 26, 7001])
def test_triggers_beside_a_writer_give_every_unit_once(tmp_path, split_bytes):
    query, rows = Query(tmp_path / "s", splitBytes=str(split_bytes)), []
    assert query.trigger() == []  # no store yet
    with new_store(tmp_path / "s") as store:
        for number, count in enumerate((1, 0, 40, 400, 3)):
            put(store, count, f"Topic{number}", number + 1)
            rows += query.trigger()
            assert query.trigger() == []
            assert len(places(rows)) == sum((1, 0, 40, 400, 3)[: number + 1])
        put(store, 30)
    rows += query.trigger()
    assert places(rows) == units_of(tmp_path / "s")
    assert len(list((tmp_path / "s" / "commitlog").iterdir())) > 2


def test_a_batch_that_is_asked_for_again_has_the_same_rows(tmp_path):
    query = Query(tmp_path / "s")
    with new_store(tmp_path / "s") as store:
        put(store, 300)
        start, end = {}, query.source.latestOffset({})
        first_rows = query.read(start, end)
        put(store, 500, "Later")
        second_query = Query(tmp_path / "s")
        assert second_query.read(start, end) == first_rows
        remainder = second_query.read(end, second_query.source.latestOffset(end))
    assert places(first_rows + remainder) == units_of(tmp_path / "s")


def test_latest_begins_behind_what_is_there_and_once_ends_at_what_was_there(tmp_path):
    with new_store(tmp_path / "s") as store:
        put(store, 20)
        query, once = Query(tmp_path / "s", startingOffsets="latest"), Query(tmp_path / "s")
        once.source.prepareForTriggerAvailableNow()
        put(store, 5, "Later")
        assert {row["topic"] for row in once.trigger()} == {"Orders"}
        assert once.trigger() == []
        assert [row["topic"] for row in query.trigger()] == ["Later"] * 5
    with pytest.raises(UsageError, match="startingOffsets: expected earliest or latest, found middle"):
        Query(tmp_path, startingOffsets="middle")


def test_stores_that_come_later_are_followed_too(tmp_path):
    query = Query(f"{tmp_path}/*/store")
    counts = Counter()
    for broker in ("a", "b", "c"):
        with new_store(tmp_path / broker / "store") as store:
            put(store, 30)
            counts.update(row["store"] for row in query.trigger())
    assert counts == {f"{tmp_path}/{broker}/store": 30 for broker in ("a", "b", "c")}


@pytest.mark.parametrize("max_bytes", [1, 3000, 20_000, 1 << 30])
def test_a_batch_holds_about_as_many_bytes_as_are_allowed(tmp_path, max_bytes):
    """The first batch of an old store was the whole store, whatever its size."""
    for broker, count in (("a", 300), ("b", 30)):
        with new_store(tmp_path / broker) as store:
            put(store, count)
    query = Query(f"{tmp_path}/*", maxBytesPerTrigger=str(max_bytes))
    rows, batches = [], 0
    while batch := query.trigger():
        assert sum(row["size"] for row in batch) <= max_bytes + 2 * 600
        rows += batch
        batches += 1
        if max_bytes == 1 and batches == 40:
            assert len(rows) == 70  # a unit of each store, as long as it has some
            return
    counts = Counter(unit for broker in "ab" for unit in units_of(tmp_path / broker))
    assert Counter(places(rows)) == counts
    assert batches >= min(sum(row["size"] for row in rows) // max_bytes, 10)


def test_a_query_begins_at_a_time(tmp_path):
    with new_store(tmp_path / "a" / "store") as store:
        put(store, 500)
        time.sleep(0.01)
        then = int(time.time() * 1000)
        put(store, 400, "Later")
    query = Query(f"{tmp_path}/*/store", startingTimestamp=str(then))
    assert Counter(row["topic"] for row in query.trigger()) == {"Later": 400}
    with new_store(tmp_path / "b" / "store") as store:
        put(store, 20, "Other")
    assert Counter(row["topic"] for row in query.trigger()) == {"Other": 20}
    assert query.trigger() == []
    for early, count in (("1970-01-02T00:00:00Z", 920), ("2970-01-01", 0)):
        assert len(Query(f"{tmp_path}/*/store", startingTimestamp=early).trigger()) == count
    with pytest.raises(UsageError, match="startingTimestamp: expected ms since the epoch, or a time like"):
        Query(tmp_path, startingTimestamp="yesterday")
    with pytest.raises(UsageError, match="expected startingOffsets or startingTimestamp, found both"):
        Query(tmp_path, startingTimestamp="1", startingOffsets="latest")


def test_marks_of_a_long_query_stay_few(tmp_path):
    query = Query(tmp_path / "s")
    with new_store(tmp_path / "s") as store:
        for _ in range(60):
            put(store, 3)
            assert len(query.trigger()) == 3
    (record,) = query.at.values()
    assert 3 <= len(record["marks"]) <= 8
    assert record["marks"][0][0] == 0
    assert sum(record["marks"][-1][:2]) == record["offset"]


def test_progress_says_how_far_a_query_is_behind_and_a_loss_ends_it(spark, tmp_path):
    """Through Spark itself: batches with a limit up to the existing end, lag by the offsets in each progress, and the
    sentence after the store was created anew.
    """
    register(spark)
    with new_store(tmp_path / "s") as store:
        put(store, 300)
    path, out = str(tmp_path / "s"), str(tmp_path / "out")
    frame = (
        spark.readStream.format("rocketmq-commitlog")
        .option("columns", "physicalOffset,topic,queueId,store")
        .option("maxBytesPerTrigger", "20000")
        .load(path)
    )
    written = frame.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = written.trigger(availableNow=True).start(out)
    assert query.awaitTermination(250)
    lags = [lag(progress)[path] for progress in query.recentProgress if progress["numInputRows"]]
    assert len(lags) > 2
    assert lags == sorted(lags, reverse=True)
    assert (lags[0] > 0, lags[-1]) == (True, 0)
    assert lag(query.lastProgress) == {path: 0}
    assert spark.read.parquet(out).count() == 300
    shutil.rmtree(tmp_path / "s")
    with new_store(tmp_path / "s") as store:
        put(store, 20)
    with pytest.raises(StreamingQueryException, match="another log stands here than the one that was read up to"):
        written.trigger(availableNow=True).start(out).awaitTermination(250)


@pytest.mark.timeout(900)
@pytest.mark.spark_full
def test_a_killed_query_goes_on_with_a_live_writer_and_loses_and_doubles_nothing(spark, tmp_path):
    """A signal kills the first driver between two batches or in one; the second reads the remaining units, each
    once.
    """
    path, out, checkpoint = (str(tmp_path / name) for name in ("fleet/*/store", "out", "checkpoint"))
    stop = threading.Event()
    writer = threading.Thread(target=write_until, args=(tmp_path / "fleet" / "a" / "store", stop))
    writer.start()
    try:
        (tmp_path / "own").mkdir()
        command = [sys.executable, "-c", FOLLOW, path, out, checkpoint]
        environment = {**os.environ, "TMPDIR": str(tmp_path / "own")}  # what it leaves
        with subprocess.Popen(command, cwd=ROOT, env=environment) as killed:
            until(lambda: len(list((tmp_path / "checkpoint" / "commits").glob("[0-9]*"))) >= 2, killed)
            java = Path(f"/proc/{killed.pid}/task/{killed.pid}/children").read_text().split()
            for process in (*map(int, java), killed.pid):
                os.kill(process, signal.SIGKILL)
        with new_store(tmp_path / "fleet" / "b" / "store") as other_store:
            put(other_store, 700, "Other")
    finally:
        stop.set()
        writer.join()
    # As if the kill had come when a batch was planned and written, but not yet told to be done.
    newest = max((tmp_path / "checkpoint" / "commits").glob("[0-9]*"), key=lambda file: int(file.name))
    newest.unlink()
    (newest.parent / f".{newest.name}.crc").unlink(missing_ok=True)
    register(spark)
    frame = spark.readStream.format("rocketmq-commitlog").option("columns", "physicalOffset,topic,queueId").load(path)
    written = frame.writeStream.format("parquet").option("checkpointLocation", checkpoint)
    run_once(written.trigger(availableNow=True), out)
    counts = Counter(tuple(row) for row in spark.read.parquet(out).collect())
    assert counts == Counter(unit for broker in "ab" for unit in units_of(tmp_path / "fleet" / broker / "store"))


def run_once(written, out):
    """Run the query to its end. Spark gives its Python ten seconds to start: if a busy machine needs more, it restarts
    once more.
    """
    for attempt in range(3):
        try:
            assert written.start(out).awaitTermination(250)
        except StreamingQueryException as error:
            if attempt == 2 or "failed to connect back" not in str(error):
                raise
        else:
            return


def write_until(path, stop):
    """Put into more and more queues, over many files, until the event is set."""
    with new_store(path) as store:
        number = 0
        while not stop.is_set():
            put(store, 20, f"Topic{number // 5 % 40}", 4)
            number += 1
            time.sleep(0.2)
        put(store, 100, "Last")


def until(condition, process, seconds=250):
    """Wait for ``condition`` as long as ``process`` runs."""
    for _ in range(seconds * 10):
        assert process.poll() is None, "the query ended by itself"
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError("the query made no progress")
