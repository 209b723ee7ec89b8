"""Ranges of the log that hold whole units."""

from __future__ import annotations

import numpy as np

from engine.inspection.salvage.store_units import StoreUnits


def test_many_ranges_are_asked_at_once() -> None:
    units = StoreUnits()
    for start, stop in ((100, 200), (300, 400), (450, 500)):
        units.add(np.array([start]), stop)
    bounds = [(start, start + size) for start in range(80, 520, 7) for size in (1, 30, 120)]
    starts, stops = (np.array(column) for column in zip(*bounds, strict=True))
    assert units.overlap(starts, stops).tolist() == [units.overlaps(start, stop) for start, stop in bounds]
    live = [(100, 200), (300, 400), (450, 500)]
    expected = [any(low <= start and stop <= high for low, high in live) for start, stop in bounds]
    assert units.covers(starts, stops).tolist() == expected
    assert not StoreUnits().overlap(starts, stops).any()
