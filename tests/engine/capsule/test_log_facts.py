"""Facts about the units of a log are the same however it is cut into blocks."""

from __future__ import annotations

import numpy as np
import pytest
from handmade_facts import log_facts as facts_in_blocks
from handmade_stores import healthy, jhash

from engine.capsule import log_facts
from engine.capsule.log_facts import IndexStream, LogBlock, LogFacts, QueueStream, log_offset
from engine.capsule.numbers import BadColumns

ALL_UNITS, ALL_KEYS = QueueStream(None), IndexStream(with_tags=True)


@pytest.fixture
def handmade():
    return healthy()


def test_rows_do_not_depend_on_the_blocks(handmade):
    units = handmade.units
    streams = [ALL_UNITS, ALL_KEYS, QueueStream((units[0].topic.encode(), units[0].queue_id))]
    for stream in streams:
        expected, starts = facts_in_blocks(handmade, 100).rows(stream, 0, 3), [units[0].offset, units[2].offset]
        for unit_count in (1, 3, 7):
            assert [column.tolist() for column in facts_in_blocks(handmade, unit_count).rows(stream, 0, 3)] == [
                column.tolist() for column in expected
            ]
        rows = [[c.tolist() for c in facts_in_blocks(handmade, n).rows(stream, starts[1], 2)] for n in (2, 5)]
        assert rows[0] == rows[1]


def test_units_are_those_of_the_log(handmade):
    units = handmade.units
    places, sizes, tags_codes = facts_in_blocks(handmade, 4).rows(ALL_UNITS, 0, len(units))
    assert places.tolist() == [unit.offset for unit in units]
    assert sizes.tolist() == [unit.size for unit in units]
    assert tags_codes.tolist() == [unit.tags_code for unit in units]
    keyed = next(unit for unit in units if unit.keys)
    hashes = facts_in_blocks(handmade, 4).rows(ALL_KEYS, keyed.offset, 1)[1]
    assert hashes[0] == abs(jhash(f"{keyed.topic}#{keyed.keys[0]}"))


def test_rows_behind_the_log_are_refused(handmade):
    with pytest.raises(BadColumns):
        facts_in_blocks(handmade, 4).rows(ALL_UNITS, 0, 10_000)
    with pytest.raises(BadColumns):
        LogFacts([], lambda _block: pytest.fail("there is none")).rows(ALL_UNITS, 0, 1)


def test_a_block_that_overlaps_is_left_out():
    blocks = [LogBlock(0, 100, 0, 0), LogBlock(50, 100, 1, 0), LogBlock(100, 10, 2, 0)]
    assert [block.file for block in LogFacts(blocks, lambda _block: pytest.fail("not loaded")).blocks] == [0, 2]


def test_facts_of_few_units_stay_in_memory(handmade, monkeypatch):
    monkeypatch.setattr(log_facts, "MAX_UNITS", 3)
    facts = facts_in_blocks(handmade, 2)
    expected = facts_in_blocks(handmade, 100).rows(ALL_UNITS, 0, 9)
    assert np.array_equal(facts.rows(ALL_UNITS, 0, 9)[0], expected[0])
    assert sum(len(item.place) for item in facts._facts.values()) <= 3


def test_only_files_of_the_log_have_facts():
    assert log_offset(f"commitlog/{1024:020d}") == 1024
    assert log_offset(f"dledger-n0/data/{0:020d}") == 0
    for path in (f"dledger-n0/index/{0:020d}", "commitlog/x", f"old/commitlog/{0:020d}", f"consumequeue/T/0/{0:020d}"):
        assert log_offset(path) is None
