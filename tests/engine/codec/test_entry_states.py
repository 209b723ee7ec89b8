"""States of many entries are those of each one."""

from __future__ import annotations

import numpy as np

from engine.codec import consume_queue as cq
from engine.codec.dtypes import CQ_UNIT
from engine.codec.entry_states import runs_of_states

UNITS = [
    cq.CqUnit(0, cq.PREFILLED_SIZE, 0),
    cq.CqUnit(0, cq.PREFILLED_SIZE, 5),
    cq.CqUnit(0, 0, 0),
    cq.CqUnit(0, 100, 7),
    cq.CqUnit(100, cq.PREFILLED_SIZE, 7),
    cq.CqUnit(-1, cq.PREFILLED_SIZE, 7),
    cq.CqUnit(-1, 100, 7),
    cq.CqUnit(300, -100, 7),
    cq.CqUnit(300, 100, -7),
]


def test_runs_have_the_state_of_each_of_their_entries():
    rows = np.frombuffer(b"".join(map(cq.encode, UNITS)), CQ_UNIT)
    runs = list(runs_of_states(rows))
    assert [state for first, end, state in runs for _ in range(first, end)] == [unit.state for unit in UNITS]
    assert [first for first, _, _ in runs] == [0, 2, 3, 5, 8]


def test_no_entries_have_no_runs():
    assert list(runs_of_states(np.zeros(0, CQ_UNIT))) == []
