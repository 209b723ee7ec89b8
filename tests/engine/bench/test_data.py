"""Stores that are made to be measured."""

from __future__ import annotations

import numpy as np
import pytest

from engine.bench import data as bench_data
from engine.codec.message import Unit
from engine.codec.unit_scan import Blank, Stop
from engine.inspection.chain_query import find_matches, hashes_of
from engine.inspection.snapshot import open_store

SIZE = 2 << 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("bench")


def test_a_log_is_whole_units_and_a_blank(folder):
    with open_store(bench_data.log_store(folder, "1k", SIZE)) as store:
        items = list(store.log.walk())
    assert all(isinstance(item, Unit) and item.crc == "ok" and not item.stale for item in items[:-2])
    assert isinstance(items[-2], Blank)
    assert isinstance(items[-1], Stop)
    assert 1150 < np.mean([unit.size for unit in items[:-2]]) < 1250


def test_queues_and_index_belong_to_the_log(folder):
    root = bench_data.whole_store(folder, SIZE, slots=5_000, entries=20_000)
    with open_store(root) as store:
        units = [item for item in store.log.walk() if isinstance(item, Unit)]
        index = store.index_files()[0]
        assert (index.slots, index.last_entry) == (5_000, 19_999)
        for number, unit in enumerate(units):
            queue = store.queue(unit.topic, unit.queue_id)
            assert queue is not None
            entry = queue.entry(unit.queue_offset)
            assert entry is not None
            assert (entry.physical_offset, entry.size, entry.tags_code) == (unit.offset, unit.size, unit.tags_code)
            assert (unit.unique_key, unit.keys) == (bench_data.unique_key(number), [bench_data.order_key(number)])
        for unit in units[::100]:
            assert unit.offset in find_matches(index, hashes_of(unit.topic, unit.keys)).offset


def test_the_sparse_store_has_heads_and_tails(folder):
    root = bench_data.sparse_store(folder, files=3, file_size=1 << 20)
    with open_store(root) as store:
        assert (store.log.min_offset, store.log.end_offset) == (0, 3 << 20)
        assert store.log.max_offset == (2 << 20) + (1 << 19)
        assert len(store.topics()) == bench_data.TOPICS
        stop = list(store.log.walk())[-1]
    assert (stop.kind, stop.offset) == ("zero", (2 << 20) + (1 << 19))


@pytest.fixture(scope="module")
def folder_of_yardstick(tmp_path_factory):
    return tmp_path_factory.mktemp("bench")
