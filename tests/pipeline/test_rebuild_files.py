"""Queue files and index files of a rebuild."""

from __future__ import annotations

import pytest

from engine.codec.index import Geometry
from engine.pipeline import rebuild as module
from engine.pipeline.rebuild import ranges
from engine.pipeline.rebuild_files import plan_index
from engine.pipeline.rebuild_parts import Part


def test_ranges_of_queues_hold_about_the_same(monkeypatch):
    weights = {("T", number): 10 for number in range(6)}
    assert ranges(weights, 2) == [(("T", 0), ("T", 3), 30), (("T", 3), None, 30)]
    monkeypatch.setattr(module, "RANGE_BYTES", 20)
    assert len(ranges(weights, 2)) == 3
    assert ranges({}, 2) == []


@pytest.mark.parametrize(
    ("parts", "spans"),
    [
        pytest.param([Part()], [], id="no unit, no file"),
        pytest.param([Part(units=3)], [(0, 0)], id="units without keys make one file"),
        pytest.param([Part(units=3, keys=4)], [(0, 4)], id="a full file has no follower yet"),
        pytest.param([Part(units=3, keys=4, later_units=True)], [(0, 4), (4, 4)], id="a unit behind a full file"),
        pytest.param([Part(units=3, keys=4), Part(units=1)], [(0, 4), (4, 4)], id="or one of the next part"),
        pytest.param([Part(units=3, keys=4), Part(units=2, keys=1)], [(0, 4), (4, 5)], id="the next key goes on"),
    ],
)
def test_index_files_are_made_when_the_last_one_is_full(parts, spans):
    plans = plan_index(parts, Geometry(10, 5), 1_700_000_000_000)
    assert [(plan.first, plan.stop) for plan in plans] == spans
    assert len({plan.name for plan in plans}) == len(plans)
