"""Series stay small and keep their peaks."""

from __future__ import annotations

import numpy as np

from viewer.runtime.peak_series import PeakSeries, RowRing


def test_memory_is_bounded_and_peaks_stay() -> None:
    series = PeakSeries(1000)
    for number in range(50_000):
        series.append(number / 10, 1e6 if number == 4321 else -5.0 if number == 8888 else number % 7)
    assert len(series) <= 1000
    assert series.values.max() == 1e6
    assert series.values.min() == -5.0
    assert (np.diff(series.times) >= 0).all()
    assert series.times[-1] == 4999.9
    young = series.times[series.times > 4999 - 30]
    assert np.allclose(np.diff(young), 0.1)


def test_unknown_values_are_not_invented() -> None:
    series = PeakSeries(16)
    for number in range(100):
        series.append(number, None if number % 2 else number)
    assert series.at(-1) is None
    assert series.at(99) is None
    assert series.at(98.5) == 98.0
    assert np.isnan(series.values).sum() < len(series)


def filled(times, values, capacity: int = 36_000) -> PeakSeries:
    series = PeakSeries(capacity)
    for time, value in zip(times, values, strict=True):
        series.append(float(time), float(value))
    return series


def test_columns_of_a_plot_keep_every_peak_and_are_no_more_than_it_is_wide() -> None:
    times = np.arange(36_000) / 10
    values = np.sin(times)
    values[17_000] = 50.0
    values[30_001] = -50.0
    series = filled(times, values)
    xs, ys = series.columns(3600.0, 3600.0, 500)
    assert len(xs) <= 1002
    assert ys.max() == 50.0
    assert ys.min() == -50.0
    assert (np.diff(xs) >= 0).all()
    few, same = series.columns(110.0, 10.0, 500)
    assert len(few) == len(same) <= 104
    assert len(PeakSeries(10).columns(1.0, 1.0, 10)[0]) == 0


def test_cached_columns_equal_fresh_ones() -> None:
    """This is checked while the series grows, and after its older half became coarser."""
    rng = np.random.default_rng(4)
    series, times, values = PeakSeries(900), [], []
    for number in range(3000):
        times.append(number / 10)
        values.append(float(rng.random()))
        series.append(times[-1], values[-1])
        if number > 300 and number % 7 == 0:
            end = times[-1]
            columns = series.columns(end, 60.0, 40)
            fresh_series = PeakSeries(900)
            for time, value in zip(series.times, series.values, strict=True):
                fresh_series.append(float(time), float(value))
            for column, fresh_column in zip(columns, fresh_series.columns(end, 60.0, 40), strict=True):
                assert np.array_equal(column, fresh_column), number
    assert columns[0][2] % 1.5 == 0, "columns begin at whole multiples of their length"


def test_the_median_of_many_values_follows_them_closely() -> None:
    series = filled(np.arange(20_000) / 10, np.arange(20_000))
    assert series.median_and_max(0.0, 100.0) == (499.5, 999.0)
    assert series.median_and_max(50.0, 50.0) == (0.0, 0.0)
    assert series.median_and_max(0.0, 1000.0) == (4999.5, 9999.0)
    assert series.median_and_max(0.0, 1005.0) == (4999.5, 10_049.0), "few are new: the median stands"
    assert series.median_and_max(0.0, 1011.0) == (5054.5, 10_109.0)


def test_old_rows_are_fewer_but_in_order() -> None:
    ring = RowRing(2, 100)
    for number in range(1000):
        ring.append([number, 1 << 60 | number])
    assert len(ring) <= 100
    assert (np.diff(ring.rows[:, 0]) > 0).all()
    assert ring.rows[-1].tolist() == [999, 1 << 60 | 999]
    assert ring.at(5000)[0] == 999
    assert ring.at(-1)[0] == ring.rows[0, 0]
    assert RowRing(2).at(0) is None
