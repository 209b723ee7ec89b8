"""Following live logs: every unit once, over restarts, rolled files, new queues and new stores."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from followed_logs import Query, new_store, places, put, units_of
from pyspark.errors import StreamingQueryException

from engine.errors import UsageError
from engine.pipeline import lag, register

pytestmark = pytest.mark.spark
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
        first = query.read(start, end)
        put(store, 500, "Later")
        again = Query(tmp_path / "s")
        assert again.read(start, end) == first
        rest = again.read(end, again.source.latestOffset(end))
    assert places(first + rest) == units_of(tmp_path / "s")


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
    found = Counter()
    for broker in ("a", "b", "c"):
        with new_store(tmp_path / broker / "store") as store:
            put(store, 30)
            found.update(row["store"] for row in query.trigger())
    assert found == {f"{tmp_path}/{broker}/store": 30 for broker in ("a", "b", "c")}


@pytest.mark.parametrize("most", [1, 3000, 20_000, 1 << 30])
def test_a_batch_holds_about_as_many_bytes_as_are_allowed(tmp_path, most):
    """The first batch of an old store was all of it, whatever it held."""
    for broker, count in (("a", 300), ("b", 30)):
        with new_store(tmp_path / broker) as store:
            put(store, count)
    query = Query(f"{tmp_path}/*", maxBytesPerTrigger=str(most))
    rows, batches = [], 0
    while batch := query.trigger():
        assert sum(row["size"] for row in batch) <= most + 2 * 600
        rows += batch
        batches += 1
        if most == 1 and batches == 40:
            assert len(rows) == 70  # a unit of each store, as long as it has some
            return
    whole = Counter(unit for broker in "ab" for unit in units_of(tmp_path / broker))
    assert Counter(places(rows)) == whole
    assert batches >= min(sum(row["size"] for row in rows) // most, 10)


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
    (kept,) = query.at.values()
    assert 3 <= len(kept["marks"]) <= 8
    assert kept["marks"][0][0] == 0
    assert sum(kept["marks"][-1][:2]) == kept["offset"]


def test_progress_says_how_far_a_query_is_behind_and_a_loss_ends_it(spark, tmp_path):
    """Through Spark itself: batches of a limit up to what was there, lag by the offsets in each progress, and the
    sentence where the store was made anew.
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
    behind = [lag(progress)[path] for progress in query.recentProgress if progress["numInputRows"]]
    assert len(behind) > 2
    assert behind == sorted(behind, reverse=True)
    assert (behind[0] > 0, behind[-1]) == (True, 0)
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
    """The first driver is killed by a signal between two batches or in one; the second reads what is left, once."""
    path, out, checkpoint = (str(tmp_path / name) for name in ("fleet/*/store", "out", "checkpoint"))
    stop = threading.Event()
    writer = threading.Thread(target=write_until, args=(tmp_path / "fleet" / "a" / "store", stop))
    writer.start()
    try:
        (tmp_path / "own").mkdir()
        command = [sys.executable, "-c", FOLLOW, path, out, checkpoint]
        own = {**os.environ, "TMPDIR": str(tmp_path / "own")}  # what it leaves
        with subprocess.Popen(command, cwd=ROOT, env=own) as killed:
            until(lambda: len(list((tmp_path / "checkpoint" / "commits").glob("[0-9]*"))) >= 2, killed)
            java = Path(f"/proc/{killed.pid}/task/{killed.pid}/children").read_text().split()
            for process in (*map(int, java), killed.pid):
                os.kill(process, signal.SIGKILL)
        with new_store(tmp_path / "fleet" / "b" / "store") as other:
            put(other, 700, "Other")
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
    found = Counter(tuple(row) for row in spark.read.parquet(out).collect())
    assert found == Counter(unit for broker in "ab" for unit in units_of(tmp_path / "fleet" / broker / "store"))


def run_once(written, out):
    """Run the query to its end. Spark gives its Python ten seconds to start: where a busy machine needs more, it is one
    restart more.
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
    """Puts into ever more queues, over many files, until it is told to stop."""
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
