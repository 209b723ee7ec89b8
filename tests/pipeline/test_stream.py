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
from pyspark.errors import StreamingQueryException

from engine.codec.encode import Message
from engine.codec.message import Unit
from engine.config import from_mapping
from engine.errors import UsageError
from engine.inspection.snapshot import open_store
from engine.message_store import MessageStore
from engine.pipeline import register
from engine.pipeline.options import LogOptions
from engine.pipeline.stream_source import CommitLogStream

pytestmark = pytest.mark.spark
FILE = 1 << 15
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


def new_store(path):
    sizes = {"mappedFileSizeCommitLog": FILE, "mappedFileSizeConsumeQueue": 20 * 200}
    return MessageStore(path, from_mapping(sizes)[0])


def put(store, count, topic="Orders", queues=3):
    for number in range(count):
        store.put_message(Message(topic, bytes(number % 400), queue_id=number % queues, tags="T"))


def units_of(path):
    """(offset, topic, queue) of every unit, as the engine reads them."""
    with open_store(path) as store:
        return [(unit.offset, unit.topic, unit.queue_id) for unit in store.units() if isinstance(unit, Unit)]


class Query:
    """What Spark does with a source: asks for the end, plans and reads up to it, and keeps it in its checkpoint."""

    def __init__(self, path, **options):
        asked = LogOptions({"path": str(path), "columns": "type,store,physicalOffset,topic,queueId,size", **options})
        self.source = CommitLogStream(asked, list(asked.columns))
        self.at = self.source.initialOffset()

    def read(self, start, end):
        parts = self.source.partitions(start, end)
        return [row for part in parts for batch in self.source.read(part) for row in batch.to_pylist()]

    def trigger(self):
        """Rows of the next batch, which is committed."""
        start, self.at = self.at, self.source.latestOffset(self.at)
        return self.read(start, self.at)


def places(rows):
    assert {row["type"] for row in rows} <= {"unit"}
    return [(row["physicalOffset"], row["topic"], row["queueId"]) for row in rows]


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


def test_files_that_were_deleted_before_they_were_read_are_damage(tmp_path):
    with new_store(tmp_path / "s") as store:
        put(store, 10)
        query = Query(tmp_path / "s")
        first = query.trigger()
        put(store, 900)
    for name in (0, FILE):
        (tmp_path / "s" / "commitlog" / f"{name:020d}").unlink()
    gone, *rest = query.trigger()
    end = first[-1]["physicalOffset"] + first[-1]["size"]
    assert (gone["type"], gone["physicalOffset"], gone["size"]) == ("damage", end, 2 * FILE - end)
    assert places(rest) == units_of(tmp_path / "s")


def test_a_log_that_was_cut_back_is_waited_for(tmp_path):
    with new_store(tmp_path / "s") as store:
        put(store, 50)
    shutil.copytree(tmp_path / "s", tmp_path / "before")
    with new_store(tmp_path / "s") as store:
        put(store, 50)
    query = Query(tmp_path / "s")
    assert len(query.trigger()) == 100
    end = dict(query.at)
    shutil.rmtree(tmp_path / "s")
    shutil.copytree(tmp_path / "before", tmp_path / "s")
    assert query.trigger() == []
    assert query.at == end
    with new_store(tmp_path / "s") as store:
        put(store, 60)
        put(store, 7, "Later")
    assert [row["topic"] for row in query.trigger()][-7:] == ["Later"] * 7


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
