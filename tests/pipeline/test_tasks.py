"""Splits are distributed to tasks in order, evenly, and never to more tasks than splits.

Tasks in this process offer what a job needs of a session, and stop between two tasks.
"""

from __future__ import annotations

import gc
import itertools
import os
import random
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pytest
from pyspark import TaskContext

from engine.pipeline.progress import Cancelled
from engine.pipeline.splits import Split
from engine.pipeline.tasks import (
    MAX_TASKS,
    TASK_BYTES,
    TASKS_PER_CORE,
    LocalRunner,
    join_splits,
    run_tasks,
    share_out,
    size_of,
)


@dataclass(frozen=True)
class FakeSplit:
    start: int
    stop: int


@pytest.mark.parametrize("seed", range(20))
def test_every_split_is_in_one_task_and_in_order(seed):
    rng = random.Random(seed)
    splits = [FakeSplit(n << 30, (n << 30) + rng.choice([0, 1, 1 << 20, 1 << 26])) for n in range(rng.randrange(1, 60))]
    cores = rng.randrange(1, 9)
    shares = share_out(splits, cores)
    assert [split for share in shares for split in share] == splits
    assert all(shares)
    assert len(shares) <= max(cores * TASKS_PER_CORE, 1)


def test_equal_splits_make_equal_tasks():
    splits = [FakeSplit(n << 26, (n + 1) << 26) for n in range(16)]
    assert [len(share) for share in share_out(splits, 2)] == [4, 4, 4, 4]


def test_a_large_fleet_makes_tasks_of_a_bounded_size():
    splits = [FakeSplit(n << 26, (n + 1) << 26) for n in range(1000)]
    shares = share_out(splits, 2)
    assert max(sum(map(size_of, share)) for share in shares) <= TASK_BYTES + (1 << 26)


def test_a_fleet_makes_no_more_tasks_than_a_driver_can_account_for():
    splits = [FakeSplit(n << 30, (n + 1) << 30) for n in range(3 * MAX_TASKS)]
    assert {len(share) for share in share_out(splits, 2)} == {3}
    assert len(share_out(splits, MAX_TASKS)) == 2 * MAX_TASKS


def test_nothing_makes_no_tasks():
    assert share_out([], 4) == []


def process_and_garbage(shares: Sequence[int]) -> Iterator[pa.RecordBatch]:
    numbers = [*shares, os.getpid(), TaskContext.get().partitionId(), gc.get_freeze_count(), len(gc.get_objects())]
    yield pa.RecordBatch.from_arrays([pa.array([numbers])], ["numbers"])


@pytest.mark.spark
def test_each_share_is_a_task_and_garbage_of_what_is_loaded_is_looked_for_once(spark):
    for _ in range(2):
        actual_rows = (
            run_tasks(spark, [[n] for n in range(8)], process_and_garbage, "numbers array<long>").toArrow().to_pylist()
        )
    rows = sorted(row["numbers"] for row in actual_rows)
    assert [row[0] for row in rows] == list(range(8))
    assert [row[2] for row in rows] == list(range(8)), "a share is not a task of its own"
    assert len({row[1] for row in rows}) <= 2, "processes are not used again"
    assert all(frozen > 10 * looked_at for *_, frozen, looked_at in rows)


def _killed_at_the_first_attempt(share):
    context = TaskContext.get()
    if context.attemptNumber() == 0 and context.partitionId() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    yield pa.RecordBatch.from_pydict({"n": list(share)})


@pytest.mark.spark
def test_a_killed_worker_does_not_end_the_job(spark):
    """A killed Python worker ended the job on this machine: Spark does not retry tasks of local[N]."""
    rows = run_tasks(spark, [[1, 2], [3], [4]], _killed_at_the_first_attempt, "n bigint").toArrow().to_pylist()
    assert sorted(row["n"] for row in rows) == [1, 2, 3, 4]


@pytest.mark.spark
def test_no_shares_are_no_rows(spark):
    assert run_tasks(spark, [], process_and_garbage, "numbers array<long>").count() == 0


@pytest.mark.parametrize("seed", range(20))
def test_neighbours_in_a_file_are_read_as_one(seed):
    rng = random.Random(seed)
    cuts = {path: sorted(rng.sample(range(1000), rng.randrange(2, 9))) for path in ("a", "b", "c")}
    splits = [
        Split("store", None, path, 0, start, stop, 1000, gap_to=stop if stop == points[-1] else 0, exact=start == 0)
        for path, points in cuts.items()
        for start, stop in itertools.pairwise(points)
    ]
    assert [(split_.path, split_.start, split_.stop, split_.gap_to) for split_ in join_splits(splits)] == [
        (path, points[0], points[-1], points[-1]) for path, points in cuts.items()
    ]
    remaining_splits = [split for split in splits if rng.random() < 0.6]
    assert list(join_splits(splits[::2])) == splits[::2]
    assert sum(split_.stop - split_.start for split_ in join_splits(remaining_splits)) == sum(
        split_.stop - split_.start for split_ in remaining_splits
    )
    assert all(a.path != b.path or a.stop < b.start for a, b in itertools.pairwise(join_splits(remaining_splits)))


pa_of_here = pytest.importorskip("pyarrow")


def batch(*numbers):
    return pa_of_here.record_batch({"n": list(numbers)})


def test_every_share_is_worked_on_and_counted():
    runner = LocalRunner()
    rows = runner.over([[1, 2], [3]], lambda share: [batch(*share)])
    assert rows.toArrow().to_pylist() == [{"n": 1}, {"n": 2}, {"n": 3}]
    (job,) = runner.statusTracker().getJobIdsForGroup(None)
    stage = runner.getStageInfo(runner.getJobInfo(job).stageIds[0])
    assert (stage.numTasks, stage.numCompletedTasks, stage.numActiveTasks) == (2, 2, 0)


def test_it_stops_before_the_next_task():
    runner = LocalRunner()

    def work(share):
        runner.sparkContext.cancelAllJobs()
        return [batch(*share)]

    with pytest.raises(Cancelled):
        runner.over([[1], [2]], work)
    assert runner.getStageInfo(0).numCompletedTasks == 1


def test_sums_and_values_for_all_tasks():
    runner = LocalRunner()
    total = runner.accumulator(5)
    total.add(3)
    assert total.value == 8
    assert runner.broadcast("x").value == "x"
