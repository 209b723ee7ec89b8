"""Statistics: the sums of every golden store are those of the engine's own account, to the byte, for any splits."""

import os
import random

import numpy as np
import pytest
from golden_stores import third_of_names
from hypothesis import given
from hypothesis import strategies as st
from raw_units import raw_unit

from engine.codec.tally import REGISTERS
from engine.files.layout import StorePaths
from engine.inspection.log_reader import LogReader
from engine.inspection.space.log import LogSpace, walk_space
from engine.mapped.read_only import DescriptorCache, FileSequence
from engine.pipeline.files import find_stores
from engine.pipeline.splits import plan
from engine.pipeline.stats import GROUPS, HOUR_MS, Sum, Sums, from_batches, merge, sum_splits, to_batches
from engine.pipeline.stats_report import files_of, report

pytest.importorskip("pyarrow")


def stats_report(folder, split_bytes, groups=None, by_store=False):
    places = find_stores([str(folder)])
    splits = plan(places, split_bytes).splits
    requested_groups = GROUPS if groups is None else groups
    sums = Sums()
    for split in splits:
        sums.take(sum_splits([split], requested_groups))
    return report(from_batches(to_batches(sums)), files_of(places), by_store)


def accounted(folder) -> LogSpace:
    return walk_space(LogReader(FileSequence([StorePaths(folder).commitlog], DescriptorCache())))


def stores_of(folder):
    return [path.parent for path in sorted(folder.rglob("commitlog"))]


@pytest.mark.golden
@pytest.mark.parametrize("name", ["crash-flip-5.3.3", "first-files-deleted-5.3.3", "batchcq-5.3.3"])
def test_a_task_adds_its_splits_up_as_one_by_one(golden, name):
    for folder in stores_of(golden(name)):
        splits = plan(find_stores([str(folder)]), 50_021).splits
        together, sums = sum_splits(splits), Sums()
        for split in splits:
            sums.take(sum_splits([split]))
        assert together.groups == sums.groups
        assert together.sketches.keys() == sums.sketches.keys()
        for key, registers in sums.sketches.items():
            assert (together.sketches[key] == registers).all()


@pytest.mark.golden
@pytest.mark.parametrize("name", third_of_names(0))
def test_the_sums_of_a_golden_store_are_the_engines_own(golden, name):
    for folder in stores_of(golden(name)):
        results, known_accounted = (
            stats_report(folder, random.Random(name).choice([30_011, 400_009, 1 << 26])),
            accounted(folder),
        )
        files = [
            (r["path"], r["units"], r["stale"], r["blank"], r["damage"], r["zeros"]) for r in results.rows["statsFile"]
        ]
        assert files == [
            (f.path, f.units + f.beyond, f.stale, f.blank, f.unreadable, f.zero) for f in known_accounted.files
        ]
        queues = {}
        for (topic, queue, _, part), count in known_accounted.cells.items():
            if part != "stale":
                ours = queues.setdefault((topic, queue), [0, 0])
                ours[0] += count.messages
                ours[1] += count.bytes
        assert {(r["topic"], r["queueId"]): [r["messages"], r["bytes"]] for r in results.rows["statsQueue"]} == queues
        for rows, field, theirs in (
            ("statsTag", "tag", known_accounted.tags),
            ("statsProducer", "host", known_accounted.producers),
        ):
            keyed = {(key[::-1] if field == "host" else key): (c.messages, c.bytes) for key, c in theirs.items()}
            assert {(r["topic"], r[field]): (r["messages"], r["bytes"]) for r in results.rows[rows]} == keyed
        assert results.total["messages"] == sum(r["messages"] for r in results.rows["statsTopic"])
        assert sum(r["bytes"] for r in results.rows["statsHour"]) == results.total["unitBytes"]


def write_store(folder, count=300, base=0, step_ms=60_000):
    data, rng = b"", random.Random(4)
    for number in range(count):
        data += raw_unit(
            base + len(data),
            topic=b"T%d" % (number % 3),
            queue_id=number % 2,
            body=rng.randbytes(number + 1),
            properties=b"UNIQ_KEY\x01u%d\x02KEYS\x01k%d all\x02TAGS\x01t%d\x02" % (number, number // 2, number % 5),
            stored=1_700_000_000_000 + number * step_ms,
            sys_flag=0x10 if number % 50 == 0 else 0,
            body_crc=7 if number == 11 else None,
        )
    log = folder / "commitlog"
    log.mkdir(parents=True)
    (log / f"{base:020}").write_bytes(data + bytes(1 << 16))
    return folder


def test_times_are_told_in_spans_that_fit_them(tmp_path):
    """The rates of a store of two minutes were one bar of an hour."""
    figures = stats_report(write_store(tmp_path / "s"), 1 << 12)
    rows = figures.rows["statsTime"]  # 300 minutes: too many for a bar each
    assert {row["spanMs"] for row in rows} == {600_000}
    assert sum(row["messages"] for row in rows) == 300
    assert {row["time"] % 600_000 for row in rows} == {0}
    short_figures = stats_report(write_store(tmp_path / "short", count=3), 1 << 12)
    assert [row["spanMs"] for row in short_figures.rows["statsTime"]] == [1_000] * 3
    assert [row["perSecond"] for row in short_figures.rows["statsTime"]] == [1.0] * 3


def test_times_that_lie_too_far_apart_are_told_in_hours_only(tmp_path):
    assert stats_report(write_store(tmp_path / "long", count=300, step_ms=1_800_000), 1 << 12).rows["statsTime"] == []
    assert stats_report(write_store(tmp_path / "wild", count=3, step_ms=1 << 61), 1 << 12).rows["statsTime"] == []


def test_hours_sizes_keys_and_wrong_crcs_are_told(tmp_path):
    figures = stats_report(write_store(tmp_path / "s"), 1 << 12)
    total = figures.total
    assert total["messages"] == 300
    assert total["badCrc"] == 1
    assert (total["lastHour"] - total["firstHour"]) // HOUR_MS == 5
    assert sum(row["messages"] for row in figures.rows["statsHour"]) == 300
    assert total["zeros"] == 1 << 16
    assert abs(total["uniqueKeys"] - 300) <= 15
    assert abs(total["keys"] - 151) <= 8
    largest_topic = figures.rows["statsTopic"][0]
    assert largest_topic["smallest"] <= largest_topic["p50"] <= largest_topic["p99"] <= largest_topic["largest"]
    assert largest_topic["mean"] == round(largest_topic["bytes"] / largest_topic["messages"], 1)
    assert sum(":" in row["host"] for row in figures.rows["statsProducer"]) == 3  # IPv6: one row a topic


def test_only_what_is_asked_for_is_counted(tmp_path):
    results = stats_report(write_store(tmp_path / "s"), 1 << 26, ())
    assert [row["messages"] for row in results.rows["statsTopic"]] == [100, 100, 100]
    assert not results.rows["statsQueue"]
    assert not results.rows["statsTag"]
    assert results.total["keys"] is None
    assert results.total["p50"] is None


def test_a_fleet_is_told_together_or_store_by_store(tmp_path):
    for broker in ("a", "b"):
        write_store(tmp_path / broker / "store", 50)
    together, apart = (stats_report(tmp_path / "*" / "store", 1 << 26, by_store=item) for item in (False, True))
    assert together.total["messages"] == apart.total["messages"] == 100
    assert together.total["stores"] == 2
    assert len(apart.rows["statsTopic"]) == 2 * len(together.rows["statsTopic"])
    assert {row["broker"] for row in apart.rows["statsTopic"]} == {"a", "b"}


def test_a_gap_between_files_is_missing_and_no_files_damage(tmp_path):
    folder = write_store(tmp_path / "s", 20)
    size = (folder / "commitlog" / f"{0:020}").stat().st_size
    with (folder / "commitlog" / f"{0:020}").open("r+b") as file:
        file.truncate(size - (1 << 16))
    size -= 1 << 16
    (folder / "commitlog" / f"{size + 1000:020}").write_bytes(raw_unit(size + 1000) + bytes(100))
    results = stats_report(folder, 1 << 26)
    assert results.total["missingBehind"] == 1000
    assert results.total["damage"] == 0
    assert results.total["messages"] == 21


def test_files_that_went_while_they_were_counted_are_damage_as_long_as_they_were(tmp_path):
    folder = write_store(tmp_path / "s", 40)
    path = folder / "commitlog" / f"{0:020}"
    places = find_stores([str(folder)])
    splits = plan(places, 4_000).splits
    listed, size = files_of(places, splits), path.stat().st_size
    path.rename(tmp_path / "away")
    total = report(sum_splits(splits), listed).total
    assert (total["bytes"], total["damage"], total["zeros"], total["messages"]) == (size, size, 0, 0)
    (tmp_path / "away").rename(path)
    os.truncate(path, 3_000)
    total_after_cut = report(sum_splits(splits), listed).total
    assert (
        total_after_cut["bytes"]
        == size
        == total_after_cut["unitBytes"] + total_after_cut["damage"] + total_after_cut["zeros"]
    )
    assert 0 < total_after_cut["messages"] < 40
    assert files_of(places)[0].size == 3_000


def test_a_file_of_zeros_behind_the_log_is_counted(tmp_path):
    folder = write_store(tmp_path / "s", 3)
    size = (folder / "commitlog" / f"{0:020}").stat().st_size
    (folder / "commitlog" / f"{size:020}").write_bytes(bytes(5000))
    rows = stats_report(folder, 1 << 26).rows["statsFile"]
    assert [row["zeros"] for row in rows] == [1 << 16, 5000]


KEYS = st.tuples(
    st.sampled_from("ab"),
    st.none(),
    st.sampled_from(["topic", "hour", "units"]),
    st.sampled_from([None, "T", "U"]),
    st.sampled_from([None, 0, -3]),
    st.none(),
)
ROWS = st.tuples(KEYS, st.integers(1, 1 << 24), st.integers(1, 1 << 30), st.binary(min_size=1, max_size=3))


@given(st.lists(ROWS, max_size=30), st.lists(st.integers(0, 3), min_size=30, max_size=30), st.randoms())
def test_partial_sums_give_the_same_in_any_grouping_and_order(listed, where, rng):
    sums, parts = Sums(), [Sums() for _ in range(4)]
    for (key, messages, size, ranks), number in zip(listed, where, strict=False):
        registers = np.frombuffer(ranks.ljust(REGISTERS, b"\0"), np.uint8)
        for part in (sums, parts[number]):
            part.add(key, messages, messages * size, size, size)
            part.note(key, registers)
    rng.shuffle(parts)
    inner = Sums()
    for part in parts[:2]:
        inner.take(part)
    batches = [batch for item in (inner, *parts[2:]) for batch in to_batches(item, rows=rng.randint(1, 9))]
    rng.shuffle(batches)
    cut = rng.randint(0, len(batches))
    results = from_batches([*merge(batches[:cut]), *merge(batches[cut:])])
    assert results.groups == sums.groups
    assert {key: ranks.tobytes() for key, ranks in results.sketches.items()} == {
        key: ranks.tobytes() for key, ranks in sums.sketches.items()
    }


def test_rows_of_tasks_are_merged_to_the_same_sums():
    sums, two = Sums(), Sums()
    key = ("s", None, "topic", "T", None, None)
    sums.add(key, 2, 300, 100, 200)
    two.add(key, 1, 50, 50, 50)
    two.add(("s", None, "hour", "\ud800", -3, None), 1, 50, 50, 50)
    sums.note(key, np.arange(REGISTERS, dtype=np.int64).astype(np.uint8))
    two.note(key, np.full(REGISTERS, 9, np.uint8))
    merged = from_batches(merge([*to_batches(sums), *to_batches(two, rows=1)]))
    assert merged.groups[key] == Sum(3, 350, 50, 200)
    assert merged.groups["s", None, "hour", "?", -3, None].messages == 1
    assert int(merged.sketches[key].min()) == 9
    sums.take(two)
    assert sums.groups[key] == merged.groups[key]
