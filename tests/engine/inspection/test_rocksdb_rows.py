"""Timers, open transactions and popped messages in a RocksDB, compared with what a client did with brokers of 5.3.3,
5.4.0 and 5.5.1.
"""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest
from golden_stores import account
from made_rocksdb import binding, make_database

from engine.codec import rocksdb_pop_rows as pops
from engine.codec import rocksdb_timer_rows as timers
from engine.codec import rocksdb_transaction_rows as transactions
from engine.codec.rocksdb_pop_rows import PopRow
from engine.codec.rocksdb_timer_rows import TimerRow
from engine.codec.rocksdb_transaction_rows import TransactionRow
from engine.errors import CannotRead
from engine.inspection.findings import check
from engine.inspection.info import store_info
from engine.inspection.snapshot import open_store
from engine.rules.findings import Summary

pytestmark = pytest.mark.usefixtures("needs_binding")
WITH_ALL = ["rocksdb-rows-5.4.0", "rocksdb-rows-5.5.1"]
WITH_POPS = ["rocksdb-rows-5.3.3", *WITH_ALL]


@pytest.fixture
def needs_binding():
    binding()


def lines(name, kind):
    return [line for line in account(name, "truth.jsonl.xz") if line["kind"] == kind]


@pytest.mark.parametrize("name", WITH_ALL)
def test_timers_that_wait_are_those_that_were_not_due_and_not_recalled(golden, name):
    sent = {line["msgId"]: line["deliverAt"] for line in lines(name, "timer")}
    recalled = {line["msgId"] for line in lines(name, "recall")}
    with open_store(golden(name)) as store:
        rows = list(store.rocksdb_rows.rows("timer"))
        assert {row.verdict for row in rows} == {"match"}
        waiting = {row.unique_key: row.time for row in rows if row.state == "waiting"}
        due_later = {key: due // 1000 * 1000 for key, due in sent.items() if due > sent[min(sent)] + 60_000}
        assert waiting == {key: due for key, due in due_later.items() if key not in recalled}
        assert {row.unique_key for row in rows if row.state == "delivered"} <= set(sent) - set(waiting) - recalled
        assert all(row.topic == "ReminderEvents" and row.unit.unique_key == row.unique_key for row in rows)
        assert store.rocksdb_rows.timer_progress().scanned == len(sent) + len(recalled)
        assert store.rocksdb_rows.has_timers


@pytest.mark.parametrize("name", WITH_ALL)
def test_open_transactions_are_those_without_an_outcome(golden, name):
    open_ones = {line["msgId"] for line in lines(name, "half") if line["state"] == "UNKNOWN"}
    checks = Counter(line["msgId"] for line in lines(name, "checked"))
    with open_store(golden(name)) as store:
        rows = list(store.rocksdb_rows.rows("transactions"))
        assert {row.unique_key for row in rows} == open_ones
        assert all(row.verdict == "match" and row.group == "shop" and row.topic == "PaymentEvents" for row in rows)
        assert all(row.count >= checks[row.unique_key] for row in rows)
        assert {row.unique_key: row.count for row in rows if row.count == 0}.keys() == open_ones - checks.keys()
        assert store.rocksdb_rows.last_transaction_offset() == max(row.physical_offset for row in rows)


@pytest.mark.parametrize("name", WITH_POPS)
def test_popped_messages_are_those_that_were_not_acknowledged_or_came_again(golden, name):
    popped = {line["msgId"]: line for line in lines(name, "popped") if line["invisible"] > 60}
    acknowledged = {line["msgId"] for line in lines(name, "acked")}
    changed = {line["msgId"]: line["invisible"] for line in lines(name, "changed")}
    with open_store(golden(name)) as store:
        rows = {row.unique_key: row for row in store.rocksdb_rows.rows("pop")}
        assert rows.keys() == popped.keys() - acknowledged
        for key, row in rows.items():
            assert row.verdict == "match"
            assert (row.queue_id, row.queue_offset) == (popped[key]["queueId"], popped[key]["queueOffset"])
            seconds = changed.get(key, 3600)
            assert 0 <= row.time - popped[key]["atMs"] + 60 - seconds * 1000 < 1000
            assert row.group == "billing"


@pytest.mark.parametrize("name", WITH_POPS)
def test_a_healthy_store_with_rows_has_no_findings_and_its_check_is_complete(golden, name):
    """DK02 said of the rows that they are not decoded, and nothing could be concluded about timers."""
    with open_store(golden(name)) as store:
        items = list(check(store))
        assert [item for item in items if not isinstance(item, Summary)] == []
        assert items[-1].complete
        assert store_info(store).unknown == {}


def damaged_copy(golden, tmp_path: Path, folder: str, families: dict[str, dict[bytes, bytes]]) -> Path:
    """A copy of the store of 5.5.1 whose RocksDB in ``folder`` has just these rows."""
    store = tmp_path / "store"
    shutil.copytree(golden("rocksdb-rows-5.5.1"), store)
    make_database(store / folder, families)
    return store


def test_a_row_that_leads_nowhere_says_where_it_leads(golden, tmp_path):
    with open_store(golden("rocksdb-rows-5.5.1")) as store:
        waiting = next(row for row in store.rocksdb_rows.rows("timer") if row.state == "waiting")
        end = store.log.max_offset
    right = TimerRow(waiting.time, waiting.unique_key, waiting.size, waiting.physical_offset)
    wrong = {
        "match": right,
        "other": TimerRow(waiting.time, "A", waiting.size, waiting.physical_offset),
        "missing": TimerRow(waiting.time, "B", 100, end),
    }
    rows = dict(map(timers.encode, wrong.values())) | {b"\0" * 9: b"short"}
    path = damaged_copy(golden, tmp_path, "rocksdbstore", {timers.FAMILY: rows, transactions.FAMILY: {}})
    with open_store(path) as store:
        verdicts = {row.unique_key: row.verdict for row in store.rocksdb_rows.rows("timer")}
        states = Counter(row.state for row in store.rocksdb_rows.rows("timer"))
    assert verdicts == {waiting.unique_key: "match", "A": "other", "B": "missing", None: "unknown"}
    assert states == {"waiting": 3, "unreadable": 1}


def test_rows_of_transactions_and_pops_that_lead_nowhere(golden, tmp_path):
    rows = [TransactionRow(4_468, "PaymentEvents", "X", 0, 373), TransactionRow(1 << 40, "PaymentEvents", "Y", 0, 1)]
    families = {timers.FAMILY: {}, transactions.FAMILY: dict(map(transactions.encode, rows))}
    path = damaged_copy(golden, tmp_path, "rocksdbstore", families)
    popped = [PopRow("billing", topic, 0, 99, 5, 5) for topic in ("OrderEvents", "Gone")]
    make_database(path / "kvStore", {pops.FAMILY: dict(map(pops.encode, popped)) | {b"\0" * 9: b"no json"}})
    with open_store(path) as store:
        assert [row.verdict for row in store.rocksdb_rows.rows("transactions")] == ["other", "missing"]
        assert [(row.state, row.verdict) for row in store.rocksdb_rows.rows("pop")] == [
            ("unreadable", "unknown"),
            ("popped", "missing"),
            ("popped", "missing"),
        ]


@pytest.mark.parametrize(("folder", "subject"), [("rocksdbstore", "timer"), ("kvStore", "pop")])
def test_without_a_table_file_nothing_is_concluded(golden, tmp_path, folder, subject):
    store_path = tmp_path / "store"
    shutil.copytree(golden("rocksdb-rows-5.5.1"), store_path)
    table = min((store_path / folder).glob("*.sst"))
    table.unlink()
    with open_store(store_path) as store:
        assert "expected a table file" in store.why_unknown(subject)
        with pytest.raises(CannotRead, match=table.name):
            list(store.rocksdb_rows.rows(subject))
        items = list(check(store))
        assert not items[-1].complete
        assert {item.id for item in items if not isinstance(item, Summary)} <= {"DK02"}


def test_a_store_without_rows_has_none(golden):
    with open_store(golden("clean-5.5.1")) as store:
        for subject in ("timer", "transactions", "pop"):
            assert list(store.rocksdb_rows.rows(subject)) == []
            assert store.why_unknown(subject) is None
        assert not store.rocksdb_rows.has_timers
