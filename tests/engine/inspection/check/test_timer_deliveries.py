"""Timer messages that were skipped, derived from the log."""

from __future__ import annotations

from pathlib import Path

import pytest
from handmade_stores import START, HandmadeStore

from engine.codec import timer
from engine.codec.columns import UnitColumns
from engine.codec.topic_table import TopicTable
from engine.inspection.block_scan import scan_log
from engine.inspection.check import timer_deliveries
from engine.inspection.check.timer_deliveries import TimerDeliveries
from engine.inspection.snapshot import open_store

TIMER = "rmq_sys_wheel_timer"
MINUTE = 60_000
DUE = START + MINUTE


def put_waiting(store: HandmadeStore, key: str, due: int = DUE, **properties: str) -> None:
    """Put a waiting message into the timer topic."""
    store.put(TIMER, 0, unique=key, more={"REAL_TOPIC": "Orders", "TIMER_OUT_MS": str(due), **properties})


def put_delivered(store: HandmadeStore, key: str) -> None:
    store.put(unique=key, more={"TIMER_OUT_MS": str(DUE)})


def numbers_of_skipped(
    folder: Path, handmade: HandmadeStore, read_time: int = DUE + MINUTE, queue_offset: int = 99
) -> list[int]:
    """Return the numbers of the units that were due a minute before ``read_time`` and were not delivered."""
    root = handmade.write(folder / "store")
    (root / "config").mkdir()
    check = timer.TimerCheck(read_time, 0, queue_offset, queue_offset, 0, 0, 0)
    (root / "config" / "timercheck").write_bytes(check.encoded())
    topics = TopicTable()
    with open_store(root) as store:
        deliveries = TimerDeliveries(store, topics)
        for block in scan_log(store.log, topics=topics, rows=4):
            if isinstance(block, UnitColumns):
                deliveries.block(block, block["kind"] == 0)
    offsets = [unit.offset for unit in handmade.units]
    return [offsets.index(offset) for offset in deliveries.passed_over(DUE + MINUTE)["offset"]]


@pytest.mark.parametrize("most_rows", [1 << 20, 1])
def test_delivered_recalled_and_future_messages_were_not_skipped(most_rows, tmp_path, monkeypatch):
    monkeypatch.setattr(timer_deliveries, "_MAX_ROWS", most_rows)
    store = HandmadeStore()
    put_waiting(store, "LOST")
    put_waiting(store, "DELIVERED")
    put_waiting(store, "ROLLED")
    put_waiting(store, "FAR", due=DUE + 5 * MINUTE)
    put_waiting(store, "RECALLED")
    put_waiting(store, "RECALLED IN 5.0")
    put_waiting(store, "R1", TIMER_DEL_UNIQKEY="Orders+RECALLED")
    put_waiting(store, "R2", TIMER_DEL_UNIQKEY="RECALLED IN 5.0")
    put_waiting(store, "ROLLED", TIMER_ROLL_TIMES="1")
    put_delivered(store, "DELIVERED")
    store.put(unique="LOST")  # another message with this key, not from the timer
    put_delivered(store, "ROLLED")
    assert numbers_of_skipped(tmp_path, store) == [0]


def test_a_rolled_message_counts_once_at_its_last_position(tmp_path):
    store = HandmadeStore()
    put_waiting(store, "LATER", due=DUE + 1000)
    put_waiting(store, "ROLLED")
    store.put()
    put_waiting(store, "ROLLED", TIMER_ROLL_TIMES="1")
    assert numbers_of_skipped(tmp_path, store) == [3, 0]


@pytest.mark.parametrize(("read_time", "queue_offset"), [(DUE, 99), (DUE + MINUTE, 0)])
def test_messages_that_the_timer_has_not_read_were_not_skipped(read_time, queue_offset, tmp_path):
    store = HandmadeStore()
    put_waiting(store, "K")
    assert numbers_of_skipped(tmp_path, store, read_time, queue_offset) == []
