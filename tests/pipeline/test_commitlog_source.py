"""The data sources give the rows that the engine's own commands tell."""

import random
import shutil
import struct

import pytest
from golden_stores import names
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from pyspark.sql.datasource import EqualTo, GreaterThan, In, LessThanOrEqual, StringStartsWith
from raw_units import raw_log
from spark_rows import assert_same

from engine.codec.message import Unit
from engine.codec.unit_scan import Blank, Stop
from engine.errors import UsageError
from engine.inspection import records
from engine.inspection.snapshot import open_store
from engine.pipeline import schema
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
    asked = LogOptions({"path": str(path), **options})
    reader = CommitLogReader(asked, list(asked.columns))
    assert list(reader.pushFilters(list(filters))) == list(filters)
    return all_rows(reader)


def told(store, bodies=False):
    """What ``storescope units --json`` tells, the end left out."""
    for item in store.units():
        file = store.log.sequence.find(item.offset)
        if isinstance(item, Unit):
            yield records.unit(item, file.name if file else None)
        elif isinstance(item, Blank):
            yield records.blank(item, file.name)
        elif not isinstance(item, Stop):
            yield records.damage(item, file.name if file else None)


@pytest.mark.parametrize("name", names())
def test_units_of_golden_stores_field_for_field(golden, name):
    path = golden(name)
    with open_store(path) as store:
        expected = list(told(store))
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
    with pytest.raises(UsageError, match="colour is no column; there are type, physicalOffset"):
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
    "EqualTo": lambda value, wanted: value == wanted, "In": lambda value, wanted: value in wanted,
    "GreaterThan": lambda value, wanted: value > wanted, "GreaterThanOrEqual": lambda value, wanted: value >= wanted,
    "LessThanOrEqual": lambda value, wanted: value <= wanted,
}  # fmt: skip


def meets(row, filters):
    """Whether Spark, which tests them all again, would keep a row."""
    return all(
        row[one.attribute[0]] is not None and MEETS[type(one).__name__](row[one.attribute[0]], one.value)
        for one in filters
    )


@pytest.mark.parametrize("pushed", PUSHED)
@pytest.mark.parametrize("name", ["first-files-deleted-5.3.3", "crash-late-5.3.3", "queues-gone-5.3.3"])
def test_filters_spare_rows_and_lose_none(golden, name, pushed):
    everything = log_rows(golden(name))
    topics = sorted({row["topic"] for row in everything if row["topic"]})
    chosen = [swapped(one, topics) for one in pushed]
    rows = log_rows(golden(name), chosen)
    assert [row for row in rows if meets(row, chosen)] == [row for row in everything if meets(row, chosen)]
    assert len(rows) < len(everything)


def swapped(one, topics):
    """The filter with real topics of the store in the places of TopicA and TopicB."""
    names_ = {"TopicA": topics[0], "TopicB": topics[-1]}
    if one.attribute != ("topic",):
        return one
    if isinstance(one, In):
        return In(one.attribute, tuple(names_[value] for value in one.value))
    return EqualTo(one.attribute, names_.get(one.value, one.value))


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
            *({"topic": topic.encode(), "body": bytes(500_000), "queue_id": 0, "queue_offset": n,
               "stored": 1_700_000_000_000 + number * 3_600_000 + n} for n in range(60)), base=base,
        )  # fmt: skip
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
        asked = LogOptions({"path": str(tmp_path), "columns": "topic,physicalOffset,storeTimestamp", **trust})
        reader = CommitLogReader(asked, list(asked.columns))
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
    both = log_rows(path)
    of_one = [row for row in both if row["broker"] == "clean-5.3.3"]
    assert 0 < len(of_one) < len(both)
    assert log_rows(path, [EqualTo(("broker",), "clean-5.3.3")]) == of_one
    assert log_rows(path, [In(("store",), (of_one[0]["store"],))]) == of_one
    assert source_rows("cq", path, [EqualTo(("broker",), "nobody")]) == []
    assert source_rows("index", path, [EqualTo(("broker",), "nobody")]) == []


@settings(max_examples=8, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(st.integers(0, 1 << 32), st.integers(30_000, 1 << 20))
@example(231, 30_000)  # a file cut short: what is missing up to the next belongs to no file
@example(956_100, 836_752)  # a store time in a year that no column of times holds
def test_whatever_is_damaged_the_rows_are_the_engines(golden, tmp_path_factory, seed, split_bytes):
    """Faults at random places of the log of a real broker, and splits of any length."""
    path = tmp_path_factory.mktemp("damaged") / "store"
    shutil.copytree(golden("ipv6-and-unicode-5.3.3"), path)
    rng = random.Random(seed)
    for file in sorted((path / "commitlog").iterdir()):
        data = bytearray(file.read_bytes())
        for _ in range(rng.randrange(4)):
            at, size = rng.randrange(len(data)), rng.choice((1, 8, 300, 5000))
            data[at : at + size] = rng.choice((b"\0" * size, rng.randbytes(size), data[at + 1 : at + 1 + size]))
        file.write_bytes(data[: len(data) if rng.random() < 0.9 else rng.randrange(len(data))])
    with open_store(path) as store:
        expected = list(told(store))
    assert_same(log_rows(path, blanks="true", splitBytes=str(split_bytes)), expected, {"store", "broker"})
