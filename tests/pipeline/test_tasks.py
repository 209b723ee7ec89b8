"""How splits are shared out to tasks: in order, evenly, never more tasks than splits."""

import itertools
import random
from dataclasses import dataclass

import pytest

from engine.pipeline.splits import Split
from engine.pipeline.tasks import MOST_TASKS, PER_CORE, TASK_BYTES, joined, share_out, size_of


@dataclass(frozen=True)
class Piece:
    start: int
    stop: int


@pytest.mark.parametrize("seed", range(20))
def test_every_split_is_in_one_task_and_in_order(seed):
    rng = random.Random(seed)
    splits = [Piece(n << 30, (n << 30) + rng.choice([0, 1, 1 << 20, 1 << 26])) for n in range(rng.randrange(1, 60))]
    cores = rng.randrange(1, 9)
    shares = share_out(splits, cores)
    assert [split for share in shares for split in share] == splits
    assert all(shares)
    assert len(shares) <= max(cores * PER_CORE, 1)


def test_equal_splits_make_equal_tasks():
    splits = [Piece(n << 26, (n + 1) << 26) for n in range(16)]
    assert [len(share) for share in share_out(splits, 2)] == [4, 4, 4, 4]


def test_a_large_fleet_makes_tasks_of_a_bounded_size():
    splits = [Piece(n << 26, (n + 1) << 26) for n in range(1000)]
    shares = share_out(splits, 2)
    assert max(sum(map(size_of, share)) for share in shares) <= TASK_BYTES + (1 << 26)


def test_a_fleet_makes_no_more_tasks_than_a_driver_can_account_for():
    splits = [Piece(n << 30, (n + 1) << 30) for n in range(3 * MOST_TASKS)]
    assert {len(share) for share in share_out(splits, 2)} == {3}
    assert len(share_out(splits, MOST_TASKS)) == 2 * MOST_TASKS


def test_nothing_makes_no_tasks():
    assert share_out([], 4) == []


@pytest.mark.parametrize("seed", range(20))
def test_neighbours_in_a_file_are_read_as_one(seed):
    rng = random.Random(seed)
    cuts = {path: sorted(rng.sample(range(1000), rng.randrange(2, 9))) for path in ("a", "b", "c")}
    splits = [
        Split("store", None, path, 0, start, stop, 1000, gap_to=stop if stop == points[-1] else 0, exact=start == 0)
        for path, points in cuts.items()
        for start, stop in itertools.pairwise(points)
    ]
    assert [(one.path, one.start, one.stop, one.gap_to) for one in joined(splits)] == [
        (path, points[0], points[-1], points[-1]) for path, points in cuts.items()
    ]
    left = [split for split in splits if rng.random() < 0.6]
    assert list(joined(splits[::2])) == splits[::2]
    assert sum(one.stop - one.start for one in joined(left)) == sum(one.stop - one.start for one in left)
    assert all(a.path != b.path or a.stop < b.start for a, b in itertools.pairwise(joined(left)))
