"""Messages are found by index rows in a RocksDB if the broker writes no index files."""

from __future__ import annotations

import shutil

import agree
import made_rocksdb
import pytest

from engine.codec import rocksdb_index_rows as rows
from engine.codec.index_keys import index_keys
from engine.codec.message import Unit
from engine.inspection import open_store
from engine.inspection.key_trace import Match, TraceEnd, trace

pytestmark = pytest.mark.golden
NAME = "rocksdb-timer-index-5.5.1"


@pytest.fixture
def without_files(golden, tmp_path):
    """The store as a broker with ``indexFileWriteEnable=false`` leaves it."""
    made_rocksdb.binding()
    root = shutil.copytree(golden(NAME), tmp_path / "store")
    shutil.rmtree(root / "index")
    return root


def test_rows_lead_to_the_units_of_the_index_files(golden, without_files):
    """This broker wrote both. The test queries each key of every fifth unit."""
    with open_store(golden(NAME)) as files, open_store(without_files) as store:
        units = [item for item in files.units() if isinstance(item, Unit)][::5]
        keys = {(unit.topic, key.text) for unit in units for key in index_keys(unit.properties)}
        assert len(keys) > 200
        for topic, text in keys:
            by_files, by_rows = (
                {item.unit.offset for item in trace(place, topic, text, max_count=10_000) if isinstance(item, Match)}
                for place in (files, store)
            )
            assert by_rows == by_files, (topic, text)


def test_answers_match_those_of_a_real_broker(golden_account, without_files):
    comparison = agree.truth(without_files, golden_account(NAME, "truth.jsonl.xz"))
    assert comparison.compared > 20
    assert not comparison.differences, str(comparison)


def traced(root, *words):
    status, out, _ = agree.command("trace", root, *words)
    return status, out.splitlines()[-1]


def test_trace_by_type_time_and_number(without_files):
    assert traced(without_files, "CartUpdates", "K351") == (0, "-- 1 match in 1 step")
    assert traced(without_files, "CartUpdates", "K351", "-p", "U")[0] == 1
    assert traced(without_files, "CartUpdates", "BB", "--tag", "--max", "2")[1].endswith("(cut off: there may be more)")
    assert traced(without_files, "CartUpdates", "K351", "--end", "1795834646396")[0] == 1
    assert traced(without_files, "CartUpdates", "K351", "--begin", "1795834646397")[0] == 0
    assert traced(without_files, "Nobody", "K351") == (1, "-- 0 matches in 0 steps")


def test_rows_that_are_not_in_the_files_yet_leave_the_trace_open(without_files):
    """A running broker has its newest rows only in memory, so a key without a row may still have new messages."""
    rocks = made_rocksdb.binding()
    families = {name: rocks.Options(raw_mode=True) for name in ("default", "timer", "trans")}
    database = rocks.Rdict(str(without_files / "rocksdbstore"), rocks.Options(raw_mode=True), families)
    with open_store(without_files) as store:
        units = [item for item in store.units() if isinstance(item, Unit) and item.unique_key]
    database[rows.LAST_OFFSET_KEY] = units[-9].offset.to_bytes(8, "big")
    database.close()
    with open_store(without_files) as store:
        *_, end = trace(store, "CartUpdates", "no such key")
        assert end == TraceEnd(0, 0, complete=False)
