"""Messages that orderly groups have popped: bits, times and counts, and the table that saves them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.broker.pop_orders import FILE, UNUSED_RECORD_AGE_MS, OrderInfo, PopOrders, read_row
from engine.codec.json_dialect import parse
from engine.mapped.disk import RealDisk
from engine.store.config_tables import ConfigTable

ROW = {
    "a": "attempt-1",
    "cm": 1,
    "i": 60000,
    "l": 1700000000500,
    "o": [10, 1],
    "oc": {10: 1},
    "ot": {11: 1700000060000},
    "popTime": 1700000000000,
}
WHERE = "Orders", "billing", 0


class Clock:
    """A time that a test sets (ms)."""

    def __init__(self) -> None:
        self.ms = 1_000

    def __call__(self) -> int:
        return self.ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def orders(tmp_path: Path, clock: Clock) -> PopOrders:
    return PopOrders(ConfigTable(tmp_path / FILE, RealDisk()), clock)


def popped(
    orders: PopOrders, *offsets: int, attempt: str | None = None, popped_at_ms: int = 1_000, invisible_ms: int = 500
) -> str:
    return orders.popped(*WHERE, offsets, attempt, popped_at_ms, invisible_ms)


def test_a_row_is_read_and_written() -> None:
    info = read_row(ROW)
    assert info is not None
    assert (info.offsets, info.following, info.free_at()) == ((10, 11), 11, 1700000060000)
    assert info.row() == ROW
    assert OrderInfo(1, 2, (5,), 3).row() == {"cm": 0, "i": 2, "l": 3, "o": [5], "popTime": 1}


@pytest.mark.parametrize("row", [None, [], {}, {"o": []}, {"o": "12"}])
def test_an_invalid_row_is_none(row: object) -> None:
    assert read_row(row) is None


def test_a_queue_is_blocked_while_a_message_is_open_and_invisible(orders: PopOrders, clock: Clock) -> None:
    assert not orders.is_blocked(*WHERE, None)
    popped(orders, 0, 1)
    assert orders.is_blocked(*WHERE, None)
    assert orders.acked(*WHERE, 0, 1_000) == 1
    orders.postponed(*WHERE, 1, 1_000, 1_200)
    clock.ms = 1_199
    assert orders.is_blocked(*WHERE, "another")
    clock.ms = 1_200
    assert not orders.is_blocked(*WHERE, None)


def test_an_attempt_does_not_block_itself(orders: PopOrders) -> None:
    popped(orders, 0, attempt="a")
    assert not orders.is_blocked(*WHERE, "a")
    assert orders.is_blocked(*WHERE, "b")
    assert orders.is_blocked(*WHERE, None)


def test_the_offset_moves_to_the_first_open_message(orders: PopOrders) -> None:
    popped(orders, 5, 7, 8)
    assert [orders.acked(*WHERE, item, 1_000) for item in (7, 5, 8)] == [5, 8, 9]
    assert orders.acked(*WHERE, 6, 1_000) == -1
    assert orders.acked(*WHERE, 7, 999) == -2
    assert orders.acked("Other", "billing", 0, 4, 1) == 5


def test_redeliveries_are_counted(orders: PopOrders) -> None:
    """Each further attempt counts once. A queue's minimum is 0 as soon as one message is new."""
    assert popped(orders, 0, 1, attempt="a") == "0 0 0"
    assert popped(orders, 0, 1, attempt="a") == "0 0 0"
    assert popped(orders, 0, 1, attempt="b") == "0 qo0%0 1;0 qo0%1 1;0 0 1"
    assert popped(orders, 1, 2, attempt="c") == "0 qo0%1 2;0 0 0"


def test_a_change_of_an_expired_pop_changes_nothing(orders: PopOrders) -> None:
    popped(orders, 0)
    orders.postponed(*WHERE, 0, 999, 5_000)
    info = orders.get(*WHERE)
    assert info is not None
    assert info.visible == {}
    orders.clear(*WHERE)
    orders.clear(*WHERE)
    assert orders.get(*WHERE) is None


def test_listeners_are_notified_when_a_queue_becomes_free(orders: PopOrders) -> None:
    reports: list[tuple[str, str, int, int]] = []
    orders.freed = lambda *event: reports.append(event)
    popped(orders, 0)
    orders.acked(*WHERE, 0, 1_000)
    orders.notify_all()
    assert reports == [(*WHERE, 1_500), (*WHERE, 1_000), (*WHERE, 1_000)]


def test_the_table_survives_a_restart(orders: PopOrders, clock: Clock, tmp_path: Path) -> None:
    popped(orders, 10, 11, attempt="attempt-1")
    popped(orders, 10, 11, attempt="attempt-2", popped_at_ms=1_100)
    orders.save(lambda _: 1, lambda _: True)
    value = parse((tmp_path / FILE).read_bytes()).value
    row = {"a": "attempt-2", "cm": 0, "i": 500, "l": 1_000, "o": [10, 1], "oc": {10: 1, 11: 1}, "popTime": 1_100}
    assert json.dumps(value, sort_keys=True) == json.dumps({"table": {"Orders@billing": {0: row}}}, sort_keys=True)
    second_orders = PopOrders(ConfigTable(tmp_path / FILE, RealDisk()), clock)
    second_orders.load()
    assert second_orders.get(*WHERE) == orders.get(*WHERE)


def test_an_unchanged_table_is_not_written(orders: PopOrders, tmp_path: Path) -> None:
    orders.save(lambda _: 1, lambda _: True)
    assert not (tmp_path / FILE).exists()
    orders.save(lambda _: 1, lambda _: True, always=True)
    assert parse((tmp_path / FILE).read_bytes()).value == {"table": {}}


def test_ended_rows_are_not_saved(orders: PopOrders, clock: Clock) -> None:
    popped(orders, 0)
    orders.popped("Gone", "billing", 0, [0], None, 1_000, 500)
    orders.popped("Orders", "nobody", 0, [0], None, 1_000, 500)
    orders.popped("Orders", "billing", 3, [0], None, 1_000, 500)
    orders.save(lambda topic: 1 if topic == "Orders" else 0, lambda group: group == "billing")
    assert orders.get(*WHERE) is not None
    removed = ("Gone", "billing", 0), ("Orders", "nobody", 0), ("Orders", "billing", 3)
    assert [orders.get(*item) for item in removed] == [None] * 3
    clock.ms += UNUSED_RECORD_AGE_MS + 1
    orders.save(lambda _: 1, lambda _: True, always=True)
    assert orders.get(*WHERE) is None
