"""Comparing two stores by their paths, as the worker does: the result can be sent, a stop ends it."""

from __future__ import annotations

import pickle

import pytest
from controls import FakeControl, StoppedByTest

from viewer.compare.pair_work import compare_paths

pytestmark = pytest.mark.golden


def test_the_result_of_a_copy_with_other_offsets_can_be_sent(golden) -> None:
    store, other_store = golden("broker-orders-5.5.1"), golden("broker-tags-5.5.1")
    compared = pickle.loads(pickle.dumps(compare_paths(FakeControl(0, StoppedByTest), store, None, other_store)))
    assert compared.tail is not None
    assert {span.sign for span in compared.spans.spans} <= {"own", "other", "unrelated", "differs"}
    assert compared.spans.step(1, None) == 0


def test_a_stop_ends_it(golden) -> None:
    store = golden("broker-orders-5.5.1")
    with pytest.raises(StoppedByTest):
        compare_paths(FakeControl(1, StoppedByTest), store, None, store)
