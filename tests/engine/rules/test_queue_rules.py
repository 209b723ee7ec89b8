"""Reasons why an entry does not match its unit."""

from __future__ import annotations

import numpy as np
import pytest

from engine.rules import queue_rules
from engine.rules.queue_rules import ComparedEntry, Entries

UNIT = ComparedEntry(1000, 200, 7)
PRECEDING = ComparedEntry(800, 200, 7)
VERDICTS = [
    pytest.param(ComparedEntry(-1, 0, 0), "missing", "CQ03", id="no file holds it"),
    pytest.param(ComparedEntry(0, 0, 0), "empty", "CQ03", id="zero bytes"),
    pytest.param(ComparedEntry(0, 0x7FFFFFFF, 0), "prefilled", "CQ03", id="pre-filled"),
    pytest.param(ComparedEntry(1000, 199, 7), "size", "CQ04", id="size"),
    pytest.param(ComparedEntry(1000, 200, 8), "tag", "CQ09", id="tag"),
    pytest.param(ComparedEntry(800, 200, 7), "duplicate", "CQ05", id="the one before"),
    pytest.param(ComparedEntry(600, 100, 7), "backward", "CQ12", id="an older one"),
    pytest.param(ComparedEntry(1200, 200, 7), "offset", "CQ04", id="a later one"),
]


@pytest.mark.parametrize(("entry", "verdict", "rule"), VERDICTS)
def test_verdicts(entry, verdict, rule):
    assert queue_rules.verdict(entry, UNIT, PRECEDING) == verdict
    assert queue_rules.RULE_OF[verdict] == rule
    assert len(queue_rules.words(verdict, entry, UNIT)) > 10


def test_an_entry_that_4_9_wrote_while_it_recovered_says_what_follows():
    """The entry has the code of the tags where a delayed message has its time of delivery."""
    required = ComparedEntry(1000, 200, 1_700_000_010_000)
    text = queue_rules.words("tag", ComparedEntry(1000, 200, 0), required, is_delayed=True)
    assert text.endswith("a broker delivers the message at once")
    assert "tag code" in queue_rules.words("tag", ComparedEntry(1000, 200, 1 << 40), required, is_delayed=True)


def test_entries_are_compared_in_bulk():
    column = np.array([1, 2, 3, 4], np.int64)
    entries = Entries(column, column * 10, column * 100)
    units = (np.array([1, 2, 9, 4], np.int64), np.array([10, 99, 30, 40], np.int64), np.array([100, 200, 300, 1]))
    assert queue_rules.differing(entries, *units).tolist() == [False, True, True, True]
    assert queue_rules.differing(entries, *units, tags_known=False).tolist() == [False, True, True, False]


DELAYS = [(5000, True), (5001, False), (0, False), (-1000, False), (1 << 62, False)]


@pytest.mark.parametrize(("delay", "plausible"), DELAYS)
def test_delivery_times_under_unknown_levels(delay, plausible):
    assert queue_rules.plausible_delay(1_700_000_000_000 + delay, 1_700_000_000_000) is plausible
