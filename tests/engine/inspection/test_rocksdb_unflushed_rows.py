"""Rows that only a running broker's memory has: made from the log they are those that it leaves when it stops.

``live`` of the golden stores is a copy that was taken beside the running broker, 15 seconds after the last message.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from golden_stores import GoldenStores
from made_rocksdb import binding

from engine.inspection.findings import check
from engine.inspection.rocksdb_rows import MessageRow
from engine.inspection.rocksdb_unflushed_rows import are_timers_in_memory, find_halves, find_timers
from engine.inspection.snapshot import open_store

pytestmark = pytest.mark.usefixtures("needs_binding")
NAMES = ["rocksdb-rows-5.4.0", "rocksdb-rows-5.5.1"]


@pytest.fixture
def needs_binding():
    binding()


def rows_of(path: Path) -> list[MessageRow]:
    with open_store(path) as store:
        return [row for subject in ("timer", "transactions", "pop") for row in store.rocksdb_rows.rows(subject)]


def identity(row: MessageRow) -> tuple[object, ...]:
    return row.subject, row.state, row.verdict, row.time, row.unique_key, row.physical_offset, row.topic, row.queue_id


@pytest.mark.parametrize("name", NAMES)
def test_rows_made_from_the_log_are_those_that_the_broker_leaves(golden: GoldenStores, name):
    """The files of the RocksDB had no row at all: 5.4 and 5.5 write them every five minutes."""
    made, left = rows_of(golden(name, "live")), rows_of(golden(name))
    left = [row for row in left if row.state != "delivered"]
    assert [identity(row) for row in made] == [identity(row) for row in left]
    assert {row.subject: row.is_in_files for row in made} == {"timer": False, "transactions": False, "pop": True}
    assert {row.count for row in made if row.subject == "transactions"} == {None}


@pytest.mark.parametrize("name", NAMES)
def test_a_crash_with_rows_in_memory_is_no_finding(golden: GoldenStores, name):
    with open_store(golden(name, "live")) as store:
        *findings, summary = check(store)
    assert not {"TM06", "CF13", "CF17", "CF18", "DK02"} & {finding.id for finding in findings}
    assert summary.complete


def test_a_recall_and_an_op_message_take_rows_away(golden: GoldenStores):
    with open_store(golden("rocksdb-rows-5.5.1", "live")) as store:
        timers = find_timers(store, 0, 0)
        assert len(timers.units) == 6
        assert len(timers.recalled) == 1
        assert not timers.recalled & timers.units.keys()
        assert len(find_timers(store, 5, 0).units) == 1, "from an offset of the timer queue on"
        halves = find_halves(store, None)
        assert len(halves.units) == 3
        assert len(halves.settled) == 2
        last = max(halves.units)
        assert not find_halves(store, last).units


def test_timers_of_the_wheel_are_not_in_memory(golden: GoldenStores):
    for name in ("broker-retries-5.5.1", "clean-5.5.1"):
        with open_store(golden(name)) as store:
            assert not are_timers_in_memory(store, 1 << 42)
