"""Rows of messages in a RocksDB against the log: what no start delivers, checks or gives back.

What a start does with each was seen with a broker of 5.5.1: it passed over a row without its message and a message
without a row, asked no producer about a half message without a row, revived nothing behind a row without JSON, and did
not deliver what was due before the first delivery and before its start.
"""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest
from made_rocksdb import binding, make_database

from engine.codec import rocksdb_pop_rows as pops
from engine.codec import rocksdb_timer_rows as timers
from engine.codec import rocksdb_transaction_rows as transactions
from engine.codec.rocksdb_pop_rows import PopRow
from engine.inspection.findings import check
from engine.inspection.snapshot import open_store
from engine.rocksdb.database import open_rocksdb
from engine.rules.findings import Finding


@pytest.fixture
def store_of_rows(golden, tmp_path):
    """A copy of the store of 5.5.1 whose rows a test changes."""
    binding()
    return Rows(shutil.copytree(golden("rocksdb-rows-5.5.1"), tmp_path / "store"))


class Rows:
    """A store's rows by family, which are written again before it is checked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.families: dict[str, dict[bytes, bytes]] = {}
        with open_store(path) as store:
            for folder in ("rocksdbstore", "kvStore"):
                with open_rocksdb(path / folder, store.reading) as database:
                    self.families |= {name: dict(database.rows(name)) for name in database.families}

    def findings(self) -> list[Finding]:
        rocks = {name: self.families[name] for name in (timers.FAMILY, transactions.FAMILY)}
        make_database(self.path / "rocksdbstore", rocks)
        make_database(self.path / "kvStore", {pops.FAMILY: self.families[pops.FAMILY]})
        with open_store(self.path) as store:
            *findings, summary = check(store)
        assert summary.complete
        return [item for item in findings if isinstance(item, Finding)]

    def finding(self) -> Finding:
        (finding,) = self.findings()
        return finding

    def waiting(self) -> list[bytes]:
        timeline = self.families[timers.FAMILY][timers.TIMELINE_KEY]
        return [key for key in self.families[timers.FAMILY] if timeline <= key < timers.SCAN_KEY]


def test_rows_as_the_broker_left_them_are_no_finding(store_of_rows):
    assert store_of_rows.findings() == []


def test_a_timer_row_that_leads_to_another_message_is_an_error(store_of_rows):
    key = store_of_rows.waiting()[0]
    store_of_rows.families[timers.FAMILY][key] = struct.pack(">iq", 346, 1_384)
    finding = store_of_rows.finding()
    assert (finding.id, finding.severity, finding.evidence["messages"]) == ("TM06", "error", 1)
    assert "leads to 1,384, where a unit of rmq_sys_wheel_timer is" in finding.message
    assert finding.file == str(store_of_rows.path / "rocksdbstore")


def test_a_waiting_timer_message_without_a_row_is_an_error(store_of_rows):
    for key in store_of_rows.waiting()[:2]:
        del store_of_rows.families[timers.FAMILY][key]
    finding = store_of_rows.finding()
    assert (finding.id, finding.severity, finding.evidence["queueOffsets"]) == ("TM06", "error", [3, 4])


def test_before_the_first_delivery_a_late_start_is_warned_of(store_of_rows):
    """5.5.1 was stopped before its first delivery and started 20 seconds after a message was due: it never came."""
    waiting, rows = store_of_rows.waiting(), store_of_rows.families[timers.FAMILY]
    kept = {timers.SCAN_KEY, *waiting}
    store_of_rows.families[timers.FAMILY] = {key: value for key, value in rows.items() if key in kept}
    finding = store_of_rows.finding()
    assert (finding.id, finding.severity, finding.evidence["messages"]) == ("TM06", "note", 3)
    assert "a start later than 10 seconds after" in finding.message


def test_a_row_of_a_transaction_that_leads_nowhere_is_a_warning(store_of_rows):
    rows = store_of_rows.families[transactions.FAMILY]
    key = min(key for key in rows if key != transactions.LAST_OFFSET_KEY)
    rows[struct.pack(">q", 6_166) + key[8:]] = rows.pop(key)
    finding = store_of_rows.finding()
    assert (finding.id, finding.severity) == ("CF17", "warn")
    assert "leads to 6166, where a unit of OrderEvents is" in finding.message


def test_a_half_message_that_was_never_checked_and_has_no_row_is_a_warning(store_of_rows):
    rows = store_of_rows.families[transactions.FAMILY]
    del rows[max(key for key in rows if key != transactions.LAST_OFFSET_KEY)]
    finding = store_of_rows.finding()
    assert (finding.id, finding.severity, finding.evidence["offsets"]) == ("CF17", "warn", [5_519])


def test_a_half_message_that_may_have_been_checked_too_often_is_none(store_of_rows):
    rows = store_of_rows.families[transactions.FAMILY]
    del rows[min(key for key in rows if key != transactions.LAST_OFFSET_KEY)]
    assert store_of_rows.findings() == []


def test_a_pop_row_without_json_is_an_error(store_of_rows):
    """With such a row 5.5.1 revived nothing: it tried again twice a second, and a due message behind it never came."""
    store_of_rows.families[pops.FAMILY][struct.pack(">q", 1_795_952_500_000) + b"x"] = b"{no json"
    finding = store_of_rows.finding()
    assert (finding.id, finding.severity, finding.evidence["rows"]) == ("CF18", "error", 1)


def test_a_pop_row_whose_message_is_gone_is_a_warning(store_of_rows):
    key, value = pops.encode(PopRow("billing", "OrderEvents", 0, 4, 1_795_952_059_130, 3_600_000))
    store_of_rows.families[pops.FAMILY][key] = value
    finding = store_of_rows.finding()
    assert (finding.id, finding.severity, finding.evidence["queueOffset"]) == ("CF18", "warn", 4)
