"""Which parts of a log can be left unread, and that nothing is left out for what cannot be proven."""

from __future__ import annotations

import pytest
from made_stores import LOG_SIZE, MadeStore

from engine.pipeline.files import find_stores
from engine.pipeline.filters import QueryLimits
from engine.pipeline.pruning import EXACT, SLACK_MS, Trust, needed_ranges


@pytest.fixture
def made():
    made = MadeStore()
    for _ in range(120):
        made.put(step=SLACK_MS)
    return made


@pytest.fixture
def places(made, tmp_path):
    return find_stores([str(made.write(tmp_path / "store"))])


def spans(places, want, trust=EXACT):
    found = needed_ranges(places, want, trust)
    return list(found[places[0].path].spans) if found else None


def test_offsets_say_it_themselves(places):
    assert spans(places, QueryLimits(physical_offsets=(100, 5_000))) == [(100, 5_001)]
    assert spans(places, QueryLimits()) is None


def test_times_spare_a_file_only_where_they_are_trusted(places, made):
    last = max(made.units, key=lambda unit: unit.offset)
    want = QueryLimits(store_timestamps=(last.store_timestamp, last.store_timestamp))
    assert spans(places, want) is None
    ((low, _),) = spans(places, want, Trust(times=True))
    assert low == last.offset // LOG_SIZE * LOG_SIZE or low == last.offset // LOG_SIZE * LOG_SIZE - LOG_SIZE


def test_a_topic_that_no_unit_has_is_read_nowhere_when_queues_are_off(places):
    assert spans(places, QueryLimits(topics=frozenset({"Nobody"})), Trust(queues="off")) is None
