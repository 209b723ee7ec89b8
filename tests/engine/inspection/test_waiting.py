"""Waiting messages, compared with what real brokers told their clients, and on small stores made here."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest
from broken_stores import level_stands_still, table
from handmade_stores import HandmadeStore, healthy
from planted_faults import patch

from engine.codec.message import Unit
from engine.inspection import open_store
from engine.inspection.waiting import WaitingMessage, WaitingMessages, find_waiting

DELAYS_S = {4: 30, 9: 300, 18: 7200}
"""Delay level → seconds, of the levels whose messages wait in the golden stores."""


def waiting_in(root, **options) -> WaitingMessages:
    with open_store(root) as store:
        return find_waiting(store, **options)


def due_range(properties: dict[str, str], sent: int, acknowledged: int) -> tuple[int, int]:
    """The earliest and the latest due time (ms) of a message that its client sent at that time."""
    if "DELAY" in properties:
        delay_ms = DELAYS_S[min(int(properties["DELAY"]), 18)] * 1000
        return sent + delay_ms, acknowledged + delay_ms
    if "TIMER_DELIVER_MS" in properties:
        due = int(properties["TIMER_DELIVER_MS"]) // 1000 * 1000
        return due, due
    seconds = int(properties.get("TIMER_DELAY_SEC", "0")) + int(properties.get("TIMER_DELAY_MS", "0")) // 1000
    return sent // 1000 * 1000 + seconds * 1000, acknowledged + seconds * 1000


@pytest.mark.golden
@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("broker-retries", 16),
        ("broker-retries-4.9.7", 12),
        ("broker-retries-5.5.1", 16),
        ("rocksdb-timer-index-5.5.1", 16),
    ],
)
def test_delayed_and_timed_messages_that_no_client_received_wait_until_their_time(golden, golden_account, name, count):
    account = list(golden_account(name, "truth.jsonl.xz"))
    gone = {line["msgId"] for line in account if line["kind"] in {"received", "recall"}}
    expected = {
        line["msgId"]: due_range(line["properties"], line["before"], line["after"])
        for line in account
        if line["kind"] == "send"
        and line["msgId"] not in gone
        and any(key.startswith(("DELAY", "TIMER_DEL")) for key in line["properties"])
    }
    waiting = waiting_in(golden(name))
    rows = {row.unique_key: row for row in waiting.rows if row.kind in {"delay", "timer"}}
    assert len(rows) == count
    assert rows.keys() == expected.keys()
    assert {row.state for row in rows.values()} == {"waiting"}
    for key, (earliest, latest) in expected.items():
        assert earliest <= (rows[key].due or 0) <= latest, key


@pytest.mark.golden
@pytest.mark.parametrize("name", ["broker-retries", "broker-retries-5.5.1", "rocksdb-timer-index-5.5.1"])
def test_a_failed_message_waits_in_its_retry_topic_or_is_a_dead_letter(golden, golden_account, name):
    last = {
        (line["group"], line["msgId"]): line["answer"]
        for line in golden_account(name, "truth.jsonl.xz")
        if line["kind"] == "received"
    }
    failed = {key for key, answer in last.items() if answer == "RECONSUME_LATER"}
    with open_store(golden(name)) as store:
        rows = {(row.group, row.unique_key) for row in find_waiting(store, kinds=("retry",)).rows}
        dead = {
            (unit.topic.removeprefix("%DLQ%"), unit.unique_key)
            for unit in store.units(crc=False)
            if isinstance(unit, Unit) and unit.topic.startswith("%DLQ%")
        }
    assert rows
    assert failed <= rows | dead


@pytest.mark.golden
@pytest.mark.parametrize(
    ("name", "count"), [("broker-transactions", 6), ("broker-transactions-4.9.7", 6), ("broker-transactions-5.4.0", 0)]
)
def test_half_messages_whose_producer_never_answered_wait_until_they_are_given_up(golden, golden_account, name, count):
    account = golden_account(name, "truth.jsonl.xz")
    never = {line["msgId"] for line in account if line["kind"] == "half" and line["plan"] == "never"}
    with open_store(golden(name)) as store:
        waiting = find_waiting(store)
        units = (unit for unit in store.units(crc=False) if isinstance(unit, Unit))
        given_up = {unit.unique_key for unit in units if unit.topic == "TRANS_CHECK_MAX_TIME_TOPIC"}
    assert {row.unique_key for row in waiting.rows} == never - given_up
    assert (waiting.kinds["half"], waiting.total) == (count, count)


@pytest.mark.golden
@pytest.mark.parametrize("name", ["broker-pop", "broker-pop-5.5.1"])
def test_popped_messages_without_success_come_again(golden, golden_account, name):
    last = {
        line["msgId"]: line["answer"] for line in golden_account(name, "truth.jsonl.xz") if line["kind"] == "received"
    }
    waiting = waiting_in(golden(name))
    assert {row.unique_key for row in waiting.rows} == {
        key for key, answer in last.items() if answer != "CONSUME_SUCCESS"
    }
    assert waiting.topics == {"OrderEvents": 5}
    assert waiting.groups == {"billing": 5}
    for row in waiting.rows:
        assert (row.kind, row.tries) in {("pop", 2), ("retry", 2)}
        if row.kind == "pop":
            assert (row.due or 0) - (row.since or 0) == 30_000


@pytest.mark.golden
def test_rows_in_a_rocksdb_wait_too(golden):
    waiting = waiting_in(golden("rocksdb-rows-5.5.1"))
    assert waiting.kinds == {"pop": 6, "timer": 3, "half": 3, "retry": 1}
    assert [row.tries for row in waiting.rows if row.kind == "half"] == [7, 7, 0]
    assert all((row.due or 0) - (row.since or 0) in {3_600_000, 7_200_000} for row in waiting.rows if row.kind == "pop")


@pytest.mark.golden
def test_limit_topic_group_and_kind_choose_rows_and_totals(golden):
    root = golden("rocksdb-rows-5.5.1")
    every = waiting_in(root)
    first = waiting_in(root, limit=4)
    assert (first.rows, first.total) == (every.rows[:4], 13)
    dues = [row.due for row in every.rows if row.due is not None]
    assert dues == sorted(dues)
    assert [row.due for row in every.rows[len(dues) :]] == [None] * (13 - len(dues))
    assert waiting_in(root, topic="OrderEvents").kinds == {"pop": 6, "retry": 1}
    assert waiting_in(root, group="shop").kinds == {"half": 3}
    assert waiting_in(root, kinds=("timer",)).kinds == {"timer": 3}


@pytest.fixture
def timers(golden, tmp_path) -> tuple[Path, Unit, Path, int]:
    """A copy of a broker's store, the first timer message where it was delivered, its file and its position there."""
    root = tmp_path / "store"
    shutil.copytree(golden("broker-retries"), root, ignore=shutil.ignore_patterns("timerwheel"))
    with open_store(root) as store:
        for item in store.units():
            if isinstance(item, Unit) and item.topic == "OrderEvents" and "TIMER_OUT_MS" in item.properties:
                file = store.log.sequence.find(item.offset)
                assert file is not None
                return root, item, Path(file.path), item.offset - file.start_offset
    raise AssertionError


@pytest.mark.golden
def test_a_message_that_the_timer_skipped_does_not_come(timers):
    root, unit, path, position = timers
    key = (unit.unique_key or "").encode()
    patch(path, path.read_bytes().index(key, position), bytes(reversed(key)))
    waiting = waiting_in(root, kinds=("timer",))
    (row,) = (row for row in waiting.rows if row.state == "passedOver")
    assert row.unique_key == unit.unique_key
    assert "the log does not have the message again" in row.why
    assert waiting.states == {"waiting": 7, "passedOver": 1}


@pytest.mark.golden
def test_a_message_may_have_been_delivered_where_the_log_is_damaged(timers):
    root, unit, path, position = timers
    patch(path, position, bytes(unit.size))
    waiting = waiting_in(root, kinds=("timer",))
    assert waiting.states == {"waiting": 7}
    assert "the log is damaged" in waiting.unknown["timer"]


def delayed(steps: int, step: int = 30_000, *, key: str = "") -> HandmadeStore:
    """A message of delay level 3 (10 s), and ``steps`` messages behind it; the first has the unique key ``key``."""
    store = HandmadeStore()
    unit = store.put("SCHEDULE_TOPIC_XXXX", 2, more={"REAL_TOPIC": "Orders", "REAL_QID": "0", "DELAY": "3"})
    unit.tags_code = unit.store_timestamp + 10_000
    for _ in range(steps):
        store.put(step=step)
    if key:
        store.log = store.log.replace(b"UNIQ_KEY\x01U00001", f"UNIQ_KEY\x01{key}".encode())
    return store


def level_row(store: HandmadeStore, root, offsets: str = "{3:0}") -> WaitingMessage | None:
    store.write(root)
    table(root, "delayOffset.json", f'{{"offsetTable":{offsets}}}')
    return next(iter(waiting_in(root, kinds=("delay",)).rows), None)


def test_time_is_that_of_the_newest_message_and_not_of_the_clock(tmp_path):
    row = level_row(delayed(1, 9_000), tmp_path / "store")
    assert row is not None
    assert (row.state, row.overdue_ms, row.why) == ("waiting", None, "")
    assert row.due == (row.since or 0) + 10_000


def test_an_overdue_message_names_the_stalled_service(tmp_path):
    store = healthy()
    root = store.write(tmp_path / "store")
    level_stands_still(root, store)
    waiting = waiting_in(root, kinds=("delay",))
    (row,) = waiting.rows
    assert (row.state, row.topic, row.queue_id, row.queue_offset) == ("overdue", "SCHEDULE_TOPIC_XXXX", 2, 0)
    assert row.why.startswith("Delay level 3 has been at 0 since ")
    (level,) = (service for service in waiting.services if service.service == "level")
    assert (level.next_offset, level.end_offset, level.stalled) == (0, 1, row.why)


def test_a_message_that_was_delivered_before_the_offset_was_saved_comes_again(tmp_path):
    row = level_row(delayed(2, key="U00000"), tmp_path / "store")
    assert row is not None
    assert row.state == "again"
    delivered = level_row(delayed(2, key="U00000"), tmp_path / "other", "{3:1}")
    assert delivered is None


def test_a_table_that_no_broker_can_load_leaves_its_kinds_unknown(tmp_path):
    root = delayed(2).write(tmp_path / "store")
    table(root, "delayOffset.json", "{")
    waiting = waiting_in(root)
    assert waiting.total == 0
    assert waiting.unknown.keys() >= {"delay"}


def test_an_entry_without_a_legible_message_leaves_its_kind_incomplete(tmp_path):
    store = delayed(2)
    offset = store.units[0].offset
    store.log = bytearray(store.log)
    store.log[offset : offset + store.units[0].size] = b"\xee" * store.units[0].size
    root = store.write(tmp_path / "store")
    waiting = waiting_in(root, kinds=("delay",))
    assert waiting.total == 0
    assert waiting.unknown["delay"].startswith("1 entry leads to no message: at 0 of the log")


def test_states_are_counted(tmp_path):
    root = delayed(2).write(tmp_path / "store")
    assert waiting_in(root).states == Counter({"overdue": 1})
