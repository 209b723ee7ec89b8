"""A condition that is pushed down gives exactly the rows that it would choose from all rows.

    STORESCOPE_CONDITIONS=3000 python -m pytest tests/pipeline/test_conditions.py

is the long run: that many random stores, each with a dozen conditions, and a tenth of them through Spark itself.
"""

import os
import random
import shutil
import struct

import pytest
from planted_faults import patch
from pyspark.sql.datasource import (
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
)
from random_stores import RandomStore
from raw_units import raw_unit

from engine.errors import UsageError
from engine.pipeline import commitlog_source, part_source, pruning, register, schema, splits
from engine.pipeline.commitlog_source import CommitLogReader
from engine.pipeline.index_source import IndexReader
from engine.pipeline.options import LogOptions, Options
from engine.pipeline.queue_source import QueueReader

pytestmark = pytest.mark.spark
STORES = int(os.environ.get("STORESCOPE_CONDITIONS", "24"))
EACH = 8
"""Conditions that a format of each store is asked."""
MEETS = {
    "EqualTo": lambda value, expected: value == expected,
    "In": lambda value, expected: value in expected,
    "GreaterThan": lambda value, expected: value > expected,
    "GreaterThanOrEqual": lambda value, expected: value >= expected,
    "LessThan": lambda value, expected: value < expected,
    "LessThanOrEqual": lambda value, expected: value <= expected,
    "IsNotNull": lambda *_: True,
}
WORDS = {"EqualTo": "=", "GreaterThan": ">", "GreaterThanOrEqual": ">=", "LessThan": "<", "LessThanOrEqual": "<="}
LOG = [
    *["topic"] * 6,
    *["physicalOffset"] * 3,
    *["storeTimestamp"] * 2,
    "queueId",
    "queueOffset",
    "queueOffset",
    "size",
    "type",
    "crc",
    "file",
    "store",
    "broker",
    "reason",
    "sysFlag",
    "tags",
    "physicalOffsetField",
    "bodyCRC",
]
CQ = [
    "topic",
    "topic",
    "queueId",
    "queueOffset",
    "queueOffset",
    "physicalOffset",
    "state",
    "type",
    "file",
    "broker",
    "storeTimestamp",
    "size",
]


def meets(row, filters):
    """Return True if Spark would keep the row: null meets nothing but IS NULL."""
    for condition_ in filters:
        value, kind = row[condition_.attribute[0]], type(condition_).__name__
        if kind == "IsNull":
            if value is not None:
                return False
        elif value is None or not MEETS[kind](value, getattr(condition_, "value", None)):
            return False
    return True


@pytest.fixture
def _small_grains(monkeypatch):
    """Use stores of a few KiB: skipped parts of real ones have megabytes."""
    monkeypatch.setattr(pruning, "MIN_STRETCH_BYTES", 300)
    monkeypatch.setattr(pruning, "LARGE_UNIT_BYTES", 1)
    monkeypatch.setattr(splits, "NEAR_BYTES", 700)
    for module in (commitlog_source, part_source):
        monkeypatch.setattr(module, "report_skipped", lambda *_: None)


def rows_of(source, path, filters=(), **options):
    arguments = {"path": str(path), **options}
    log_options = LogOptions(arguments) if source is CommitLogReader else Options(arguments, source.COLUMNS)
    reader = source(log_options, list(log_options.columns))
    list(reader.pushFilters(list(filters)))
    rows = [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]
    return sorted(rows, key=lambda row: [str(value) for value in row.values()])


def conditions(rng, rows, columns):
    """Return one to three conditions, on existing values and near them."""
    return [condition(rng, rows, rng.choice(columns)) for _ in range(rng.choice((1, 1, 2, 3)))]


def condition(rng, rows, name):
    text = (schema.UNIT | schema.CQ | schema.INDEX)[name].startswith("string")
    values = sorted({row[name] for row in rows if row[name] is not None}) or ["none" if text else 0]

    def value():
        results = rng.choice(values)
        return results if text else results + rng.choice((0, 0, 0, -1, 1, 700))

    kinds = [EqualTo, EqualTo, In, IsNotNull, IsNull]
    kind = rng.choice(kinds if text else [*kinds, *[GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual] * 2])
    if kind in (IsNotNull, IsNull):
        return kind((name,))
    return kind((name,), tuple(value() for _ in range(rng.randrange(1, 4))) if kind is In else value())


@pytest.mark.full_form(keep=1)
@pytest.mark.usefixtures("_small_grains")
@pytest.mark.parametrize("share", range(4))
def test_pushed_down_conditions_choose_the_same_rows(share, tmp_path):
    """Queues that were lost, zeroed, or lacked a unit once hid it from every query that named its topic."""
    left_out = {CommitLogReader: 0, QueueReader: 0}
    for number in range(share, STORES, 4):
        rng = random.Random(f"conditions {number}")
        store = RandomStore(rng, tmp_path / "fleet" / "one" / "store")
        path = f"{tmp_path}/fleet/*/store"
        for source, columns in ((CommitLogReader, LOG), (QueueReader, CQ)):
            extra = {}
            if source is CommitLogReader:
                extra = {
                    "splitBytes": rng.choice(("1000", "3000", "67108864")),
                    "blanks": rng.choice(("true", "false")),
                }
            rows = rows_of(source, path, **extra)
            for _ in range(EACH):
                requested_conditions = conditions(rng, rows, columns)
                actual_rows = rows_of(source, path, requested_conditions, **extra)
                story = number, store.done, requested_conditions, extra
                assert [row for row in actual_rows if meets(row, requested_conditions)] == [
                    row for row in rows if meets(row, requested_conditions)
                ], story
                left_out[source] += len(rows) - len(actual_rows)
        shutil.rmtree(tmp_path / "fleet")
    assert all(left_out.values())


@pytest.mark.usefixtures("_small_grains")
@pytest.mark.parametrize("name", ["clean-5.3.3", "first-files-deleted-5.3.3"])
def test_no_header_of_an_index_file_hides_an_entry(name, golden, tmp_path):
    path = shutil.copytree(golden(name), tmp_path / "store")
    rng = random.Random(f"index {name}")
    for _ in range(max(STORES // 4, 10)):
        file = rng.choice(sorted((path / "index").iterdir()))
        position = rng.choice((0, 8, 16, 24))
        header = file.read_bytes()[:40]
        patch(
            file,
            position,
            struct.pack(">q", int.from_bytes(header[position : position + 8], "big") + rng.choice((-(10**7), 10**7))),
        )
        rows = rows_of(IndexReader, path)
        requested_conditions = conditions(rng, rows, ["storeTimestamp", "phyOffset", "file", "keyHash", "slot"])
        actual_rows = rows_of(IndexReader, path, requested_conditions)
        assert [row for row in actual_rows if meets(row, requested_conditions)] == [
            row for row in rows if meets(row, requested_conditions)
        ], (requested_conditions, position)
        patch(file, 0, header)


def sql(condition_):
    name, kind = condition_.attribute[0], type(condition_).__name__
    if kind in ("IsNull", "IsNotNull"):
        return f"{name} IS {'NOT ' if kind == 'IsNotNull' else ''}NULL"
    if kind == "In":
        return f"{name} IN ({', '.join(map(word, condition_.value))})"
    return f"{name} {WORDS[kind]} {word(condition_.value)}"


def word(value):
    return f"'{value}'" if isinstance(value, str) else str(value)


def test_a_frame_and_its_cached_rows_answer_alike(spark, tmp_path):
    """Through Spark itself: its pushed-down conditions, and the rule that gives each read a plan of its own."""
    register(spark)
    for number in range(max(STORES // 10, 3)):
        rng = random.Random(f"cached {number}")
        RandomStore(rng, tmp_path / "fleet" / "one" / "store")
        frame = spark.read.format("rocketmq-commitlog").option("splitBytes", "3000").load(f"{tmp_path}/fleet/*/store")
        rows = [row.asDict() for row in frame.collect()]
        texts = [" AND ".join(map(sql, conditions(rng, rows, LOG))) for _ in range(3)]
        texts += [" OR ".join(map(sql, conditions(rng, rows, LOG))), f"NOT ({sql(condition(rng, rows, 'topic'))})"]
        pushed = [sorted(map(str, frame.where(text).collect())) for text in texts]
        cached = frame.cache()
        chosen = [sorted(map(str, cached.where(text).collect())) for text in texts]
        cached.unpersist(blocking=True)
        assert pushed == chosen, texts
        shutil.rmtree(tmp_path / "fleet")


# -- a store whose queues do not tell all

SIZE = 16 << 20


class TwoTopicLog:
    """A log file with stretches of two topics; ``places`` are those of A, ``queues`` hold the entries."""

    def __init__(self, root):
        self.root = root
        self.log = bytearray()
        self.queues = {}
        self.places = []
        for topic, queue, flag in (
            ("A", 0, 0),
            ("B", 0, 0),
            ("A", 1, 0),
            ("B", 0, 0),
            ("A", 0, 4),
            ("B", 0, 0),
            ("A", 1, 0),
        ):
            end = len(self.log) + ((1 if topic == "A" else 3) << 20)
            while len(self.log) < end:
                self.put(topic, queue, flag)
        (root / "commitlog").mkdir()
        (root / "commitlog" / f"{0:020d}").write_bytes(bytes(self.log).ljust(SIZE, b"\0"))
        for (topic, queue), entries in self.queues.items():
            folder = root / "consumequeue" / topic / str(queue)
            folder.mkdir(parents=True)
            (folder / f"{0:020d}").write_bytes(b"".join(entries).ljust(6_000_000, b"\0"))

    def put(self, topic, queue, flag):
        position, entries = len(self.log), self.queues.setdefault((topic, queue), [])
        unit = raw_unit(
            position, topic=topic.encode(), body=bytes(36_000), queue_id=queue, queue_offset=len(entries), sys_flag=flag
        )
        self.log += unit
        if not flag:
            entries.append(struct.pack(">qiq", position, len(unit), 0))
        if topic == "A":
            self.places.append(position)


@pytest.fixture
def two_topic_log(tmp_path, monkeypatch):
    monkeypatch.setattr(pruning, "MIN_STRETCH_BYTES", 2 << 20)
    monkeypatch.setattr(pruning, "LARGE_UNIT_BYTES", 32 << 10)
    return TwoTopicLog(tmp_path)


def of_a(log, **options):
    """Return the offsets of the units of A, and the number of bytes that the query leaves unread."""
    log_options = LogOptions({"path": str(log.root), "columns": "topic,physicalOffset", **options})
    reader = CommitLogReader(log_options, list(log_options.columns))
    reader.pushFilters([EqualTo(("topic",), "A")])
    rows = [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]
    places = [row["physicalOffset"] for row in rows if row["topic"] == "A"]
    return places, sum(item.bytes for item in reader.plan().skipped)


def no_change(_):
    pass


def lose_a_folder(log):
    shutil.rmtree(log.root / "consumequeue" / "A" / "1")


def zero_half(log):
    entries = log.queues["A", 1]
    patch(log.root / "consumequeue" / "A" / "1" / f"{0:020d}", len(entries) // 2 * 20, bytes(6_000))


def cut_the_first_entries(log):
    """Cut the first entries, like retention does with a queue's first files."""
    path = log.root / "consumequeue" / "A" / "1" / f"{0:020d}"
    path.rename(path.with_name(f"{200:020d}"))
    data = b"".join(log.queues["A", 1])[200:]
    path.with_name(f"{200:020d}").write_bytes(data.ljust(6_000_000, b"\0"))


@pytest.mark.parametrize("options", [{}, {"queues": "trust"}, {"queues": "off"}], ids=str)
@pytest.mark.parametrize("change", [no_change, lose_a_folder, zero_half, cut_the_first_entries])
def test_units_that_no_queue_knows_come_too(two_topic_log, change, options):
    """Queries missed units: of 756 of a topic 546, 336 or 588 came. Half messages have no entry, and queues can be
    lost.
    """
    change(two_topic_log)
    places, left_out = of_a(two_topic_log, **options)
    assert places == two_topic_log.places
    assert left_out > (8 << 20) or options == {"queues": "off"}


def test_entries_over_units_of_another_topic_hide_them_only_where_they_are_believed(two_topic_log, monkeypatch):
    """Two queues under each other's names cover the log as completely as the right ones do."""
    monkeypatch.setattr(pruning, "MIN_STRETCH_BYTES", 1 << 19)
    folders = [two_topic_log.root / "consumequeue" / topic for topic in "AB"]
    folders[0].rename(two_topic_log.root / "middle")
    folders[1].rename(folders[0])
    (two_topic_log.root / "middle").rename(folders[1])
    assert of_a(two_topic_log)[0] == two_topic_log.places
    assert of_a(two_topic_log, queues="off")[0] == two_topic_log.places
    assert of_a(two_topic_log, queues="trust")[0] != two_topic_log.places


def test_a_clock_that_was_set_back_hides_nothing_unless_times_are_trusted(tmp_path):
    (tmp_path / "commitlog").mkdir()
    hour = 3_600_000
    for number, stored in enumerate((10 * hour, 11 * hour, 2 * hour, 12 * hour)):
        units = [raw_unit(number * 4096, stored=stored), raw_unit(number * 4096 + 200, stored=stored)]
        (tmp_path / "commitlog" / f"{number * 4096:020d}").write_bytes(units[0].ljust(4096, b"\0"))
    early = [LessThanOrEqual(("storeTimestamp",), 3 * hour)]

    def times(**options):
        rows = rows_of(CommitLogReader, tmp_path, early, **options)
        return [row["storeTimestamp"] for row in rows if meets(row, early)]

    assert times() == [2 * hour]
    late = [GreaterThanOrEqual(("storeTimestamp",), 11 * hour)]
    assert len([row for row in rows_of(CommitLogReader, tmp_path, late) if meets(row, late)]) == 2
    trusting = rows_of(CommitLogReader, tmp_path, late, times="trust")
    assert len([row for row in trusting if meets(row, late)]) == 1


def test_a_gap_between_files_is_a_row_at_its_beginning(tmp_path):
    """The row of a gap between two files was lost if nothing else of the file before it was needed."""
    (tmp_path / "commitlog").mkdir()
    for position in (0, 8192):
        (tmp_path / "commitlog" / f"{position:020d}").write_bytes(raw_unit(position).ljust(4096, b"\0"))
    for greater_than_or_equal in (
        [GreaterThanOrEqual(("physicalOffset",), 4096)],
        [EqualTo(("physicalOffset",), 4096)],
    ):
        (gap, *_) = [
            row for row in rows_of(CommitLogReader, tmp_path, greater_than_or_equal) if row["type"] == "damage"
        ]
        assert (gap["physicalOffset"], gap["size"], gap["reason"]) == (4096, 4096, "no file holds these bytes")
    assert not [
        row
        for row in rows_of(CommitLogReader, tmp_path, [LessThan(("physicalOffset",), 4096)])
        if row["physicalOffset"] >= 4096
    ]


def test_a_wrong_option_is_refused_with_its_valid_values():
    with pytest.raises(UsageError, match="queues: expected prove, trust or off, found perhaps"):
        LogOptions({"path": "x", "queues": "perhaps"})
    with pytest.raises(UsageError, match="times: expected off or trust, found yes"):
        LogOptions({"path": "x", "times": "yes"})
    assert LogOptions({"path": "x", "queues": "true"}).trust.queues == "prove"
    assert LogOptions({"path": "x", "queues": "false"}).trust.queues == "off"
