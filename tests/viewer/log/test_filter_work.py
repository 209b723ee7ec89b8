"""A filter's scan: every matching unit, in order, up to its limit."""

from __future__ import annotations

import pytest
from handmade_stores import HandmadeStore

from engine.inspection import open_store
from viewer.log.filter_work import Hits, first_look, scan


class FakeControl:
    """Records the results of a scan."""

    cancelled = False

    def __init__(self) -> None:
        self.found: list[int] = []
        self.looked = 0

    def check(self) -> None:
        """Do not raise."""

    def report(self, *_progress: object) -> None:
        """Ignore the progress."""

    def emit(self, hits: Hits) -> None:
        self.found.extend(hits.offsets)
        self.looked = hits.looked


@pytest.fixture
def small_store() -> HandmadeStore:
    store = HandmadeStore()
    for number in range(90):
        store.put(topic=("Orders", "Paid", "Sent")[number % 3], keys=f"K{number}")
    return store


def test_all_that_matches_comes_in_order(small_store, tmp_path):
    sent = FakeControl()
    ended = scan(sent, small_store.write(tmp_path / "store"), None, 'topic = "Paid"', 0, 0, small_store.end, 1000)
    assert sent.found == [unit.offset for unit in small_store.units if unit.topic == "Paid"]
    assert ended.complete


def test_a_stopped_scan_continues_where_it_stopped(small_store, tmp_path):
    store, sent, start, rounds = small_store.write(tmp_path / "store"), FakeControl(), 0, 0
    while True:
        ended = scan(sent, store, None, 'topic = "Paid"', 0, start, small_store.end, 5)
        start, rounds = ended.looked, rounds + 1
        if ended.complete:
            break
    assert sent.found == [unit.offset for unit in small_store.units if unit.topic == "Paid"]
    assert rounds > 1


def test_the_first_scan_ends_at_its_share_of_the_log(small_store, tmp_path):
    expected = [unit.offset for unit in small_store.units if unit.topic == "Sent"]
    with open_store(small_store.write(tmp_path / "store")) as store:
        hits, complete = first_look(store.log, 'topic = "Sent"', 0, 0, small_store.end // 2)
        assert (list(hits.offsets), complete) == (expected[: len(hits.offsets)], False)
        assert 0 < len(hits.offsets) < len(expected)
        hits, complete = first_look(store.log, 'topic = "Sent"', 0, 0, 1 << 40)
        assert (list(hits.offsets), complete) == (expected, True)
