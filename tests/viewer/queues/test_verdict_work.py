"""Verdicts of a queue's entries counted in the worker: in pieces, continued, and stopped on request."""

from __future__ import annotations

import struct

import pytest
from controls import FakeControl
from handmade_stores import HandmadeStore
from planted_faults import patch

from engine.inspection import open_store
from viewer.queues.verdict_work import Verdicts, count, count_verdicts


@pytest.fixture
def root(tmp_path):
    store = HandmadeStore()
    for _ in range(40):
        store.put("Orders")
    root = store.write(tmp_path / "s")
    patch(root / "consumequeue" / "Orders" / "0" / f"{0:020d}", 20 * 7, struct.pack(">q", 1))
    return root


def test_pieces_add_up_to_the_whole(root):
    with open_store(root) as store:
        queue = store.queue("Orders", 0)
        complete = count_verdicts(FakeControl(), store.log, queue, Verdicts(), 1000)
        verdicts = Verdicts()
        while not verdicts.complete or not verdicts.total:
            verdicts = count_verdicts(FakeControl(), store.log, queue, verdicts, 9)
    assert verdicts == complete
    assert (complete.counts["ok"], complete.counts.total(), complete.reached, complete.total) == (39, 40, 40, 40)
    assert [number for number, _ in complete.problems] == [7]


def test_several_queues_share_the_limit(root):
    control = FakeControl()
    count(control, root, None, [(("Orders", 0), Verdicts()), (("Gone", 0), Verdicts())], 15)
    ((key, results),) = control.items
    assert (key, results.reached, results.complete) == (("Orders", 0), 15, False)
