"""Which timer messages were passed over, by what the log has of them."""

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


def waits(made: HandmadeStore, key: str, due: int = DUE, **more: str) -> None:
    """A message that waits in the timer topic."""
    made.put(TIMER, 0, unique=key, more={"REAL_TOPIC": "Orders", "TIMER_OUT_MS": str(due), **more})


def delivered(made: HandmadeStore, key: str) -> None:
    made.put(unique=key, more={"TIMER_OUT_MS": str(DUE)})


def passed_over(folder: Path, made: HandmadeStore, read_time: int = DUE + MINUTE, queue_offset: int = 99) -> list[int]:
    """Numbers of the units that were due a minute before ``read_time`` and were not delivered."""
    root = made.write(folder / "store")
    (root / "config").mkdir()
    check = timer.TimerCheck(read_time, 0, queue_offset, queue_offset, 0, 0, 0)
    (root / "config" / "timercheck").write_bytes(check.encoded())
    topics = TopicTable()
    with open_store(root) as store:
        deliveries = TimerDeliveries(store, topics)
        for block in scan_log(store.log, topics=topics, rows=4):
            if isinstance(block, UnitColumns):
                deliveries.block(block, block["kind"] == 0)
    offsets = [unit.offset for unit in made.units]
    return [offsets.index(offset) for offset in deliveries.passed_over(DUE + MINUTE)["offset"]]


@pytest.mark.parametrize("most_rows", [1 << 20, 1])
def test_what_was_delivered_recalled_or_is_not_due_was_not_passed_over(most_rows, tmp_path, monkeypatch):
    monkeypatch.setattr(timer_deliveries, "_MOST_ROWS", most_rows)
    made = HandmadeStore()
    waits(made, "LOST")
    waits(made, "DELIVERED")
    waits(made, "ROLLED")
    waits(made, "FAR", due=DUE + 5 * MINUTE)
    waits(made, "RECALLED")
    waits(made, "RECALLED IN 5.0")
    waits(made, "R1", TIMER_DEL_UNIQKEY="Orders+RECALLED")
    waits(made, "R2", TIMER_DEL_UNIQKEY="RECALLED IN 5.0")
    waits(made, "ROLLED", TIMER_ROLL_TIMES="1")
    delivered(made, "DELIVERED")
    made.put(unique="LOST")  # another message with this key, not from the timer
    delivered(made, "ROLLED")
    assert passed_over(tmp_path, made) == [0]


def test_a_rolled_message_counts_once_where_it_is_last(tmp_path):
    made = HandmadeStore()
    waits(made, "LATER", due=DUE + 1000)
    waits(made, "ROLLED")
    made.put()
    waits(made, "ROLLED", TIMER_ROLL_TIMES="1")
    assert passed_over(tmp_path, made) == [3, 0]


@pytest.mark.parametrize(("read_time", "queue_offset"), [(DUE, 99), (DUE + MINUTE, 0)])
def test_what_the_timer_has_not_read_was_not_passed_over(read_time, queue_offset, tmp_path):
    made = HandmadeStore()
    waits(made, "K")
    assert passed_over(tmp_path, made, read_time, queue_offset) == []
