"""Verdicts of a queue's entries counted in the worker: in pieces, continued, and stopped where somebody wants that."""

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
    made = HandmadeStore()
    for _ in range(40):
        made.put("Orders")
    root = made.write(tmp_path / "s")
    patch(root / "consumequeue" / "Orders" / "0" / f"{0:020d}", 20 * 7, struct.pack(">q", 1))
    return root


def test_pieces_add_up_to_the_whole(root):
    with open_store(root) as store:
        queue = store.queue("Orders", 0)
        whole = count_verdicts(FakeControl(), store.log, queue, Verdicts(), 1000)
        found = Verdicts()
        while not found.complete or not found.total:
            found = count_verdicts(FakeControl(), store.log, queue, found, 9)
    assert found == whole
    assert (whole.counts["ok"], whole.counts.total(), whole.reached, whole.total) == (39, 40, 40, 40)
    assert [number for number, _ in whole.problems] == [7]


def test_several_queues_share_what_may_be_looked_at(root):
    control = FakeControl()
    count(control, root, None, [(("Orders", 0), Verdicts()), (("Gone", 0), Verdicts())], 15)
    ((key, found),) = control.items
    assert (key, found.reached, found.complete) == (("Orders", 0), 15, False)
