"""Bins: wider ones are sums of narrow ones, in whatever order units come; small topics are put together."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from engine.inspection.histogram.time_bins import (
    MAX_FOLDINGS,
    MAX_TOPICS,
    OTHERS,
    WIDTHS_MS,
    TimeBins,
    Units,
    width_for,
)


def units_of(stored: list[int], columns: list[int], offset: int = 0) -> Units:
    count = len(stored)
    times = np.array(stored, np.int64)
    return Units(
        np.arange(count, dtype=np.int64) * 100 + offset,
        np.full(count, 100, np.int32),
        times,
        np.array(columns, np.intp),
        None,
        np.arange(count, dtype=np.int64) % 7,
        bool((times[1:] >= times[:-1]).all()),
    )


def filled(bins: TimeBins, stored: list[int]) -> TimeBins:
    column = bins.column_of("Orders")
    for start in range(0, len(stored), 50):
        part = stored[start : start + 50]
        bins.add(units_of(part, [column] * len(part), start * 100))
    return bins


def test_each_width_divides_the_next_one() -> None:
    assert all(wide % narrow == 0 for narrow, wide in pairwise(WIDTHS_MS))
    assert width_for(0, 1000, 100) == 10
    assert width_for(0, 1001, 100) == 50
    assert width_for(5, 1000, 100) == 10
    assert width_for(5, 1005, 100) == 50, "101 bins of 10 ms"
    assert width_for(0, 1 << 62, 1) == WIDTHS_MS[-1]


@pytest.mark.parametrize("seed", range(8))
def test_wider_bins_are_sums_of_narrow_ones(seed: int) -> None:
    """Ordered times, a clock that goes back, times before 1970 and ones that damage has changed."""
    random = np.random.default_rng(seed)
    stored = np.cumsum(random.integers(0, 40, 400)) - 3000
    if seed % 2:
        stored[200:] -= 2500
    if seed % 3 == 0:
        stored[[5, 77]] = [-(1 << 60), 1 << 61]
    narrow, wide = TimeBins(100_000), TimeBins(64)
    filled(narrow, stored.tolist())
    filled(wide, stored.tolist())
    assert len(wide) <= 64
    assert wide.width > narrow.width == 1
    narrow.coarsen(wide.width)
    assert narrow.table() == wide.table()
    assert sum(map(sum, wide.table().messages)) == 400


def test_parts_that_are_merged_are_the_whole() -> None:
    stored = np.cumsum(np.random.default_rng(3).integers(0, 30, 300)).tolist()
    whole = filled(TimeBins(40), stored)
    first, second = filled(TimeBins(40), stored[:150]), TimeBins(40)
    column = second.column_of("Orders")
    for start in range(150, 300, 50):
        second.add(units_of(stored[start : start + 50], [column] * 50, start * 100))
    first.merge(second)
    width = max(first.width, whole.width)
    first.coarsen(width)
    whole.coarsen(width)
    assert first.table() == whole.table()


def test_saved_bins_come_back() -> None:
    bins = filled(TimeBins(40), np.cumsum(np.random.default_rng(4).integers(0, 30, 300)).tolist())
    again = TimeBins.from_arrays(bins.width, bins.topics, bins.arrays(), 40)
    assert again.table() == bins.table()
    assert again.span == bins.span
    assert again.offsets == (0, 30_000)
    with pytest.raises(ValueError, match="expected"):
        TimeBins.from_arrays(7, bins.topics, bins.arrays())


def test_a_part_in_time_has_the_bins_that_reach_into_it() -> None:
    bins = filled(TimeBins(10), list(range(0, 2000, 10)))
    part = bins.within(500, 501)
    assert (len(part), part.width) == (1, bins.width)
    assert part.span[0] <= 500 < part.span[1]
    assert len(bins.within(5000, 6000)) == 0
    assert bins.within(5000, 6000).offsets == (0, 0)


def test_the_main_part_leaves_out_a_few_absurd_times() -> None:
    bins = filled(TimeBins(), [*range(1_700_000_000_000, 1_700_000_000_100), 0, -(1 << 62), (1 << 62) + 5])
    assert bins.main_span(86_400_000) == (1_700_000_000_000, 1_700_000_000_100)
    assert TimeBins().main_span(1) == (0, 0)


def test_small_topics_are_put_together_and_nothing_is_lost() -> None:
    bins = TimeBins()
    for number in range(3 * MAX_TOPICS):
        column = bins.column_of(f"T{number}")
        count = 50 if number < 5 else 1
        bins.add(units_of([number] * count, [column] * count))
    table = bins.table(8)
    assert table.topics[:5] == [f"T{number}" for number in range(5)]
    assert table.topics[-1] == OTHERS
    assert sum(map(sum, table.messages)) == 5 * 50 + 3 * MAX_TOPICS - 5
    assert bins.foldings <= MAX_FOLDINGS
    for number in range(100 * MAX_TOPICS):
        bins.column_of(f"later {number}")
    assert bins.foldings == MAX_FOLDINGS
