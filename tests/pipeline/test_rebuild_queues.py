"""Queue files of a rebuild."""

from __future__ import annotations

from engine.pipeline import rebuild as module
from engine.pipeline.rebuild import ranges


def test_ranges_of_queues_hold_about_the_same(monkeypatch):
    weights = {("T", number): 10 for number in range(6)}
    assert ranges(weights, 2) == [(("T", 0), ("T", 3), 30), (("T", 3), None, 30)]
    monkeypatch.setattr(module, "RANGE_BYTES", 20)
    assert len(ranges(weights, 2)) == 3
    assert ranges({}, 2) == []
