"""Timer messages: enqueued, delivered on time, across restarts and kills, and continued from a real broker's store."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from engine.codec import properties
from engine.codec.dtypes import TIMER_SLOT
from engine.codec.encode import Message
from engine.codec.message import Unit
from engine.config import MessageStoreConfig
from engine.message_store import MessageStore
from engine.store.put_message import PutMessageResult, PutMessageStatus
from engine.store.timers.messages import DUE_ON_ARRIVAL, TimerMessages

BEGAN = 1_795_300_000_000
CONFIG = MessageStoreConfig(
    mapped_file_size_commit_log=1 << 20, mapped_file_size_timer_log=5200, timer_roll_window_slot=8
)


class TimerStore:
    """A store with timers, and a clock that the test moves."""

    def __init__(self, path: Path, now_ms: int = BEGAN) -> None:
        self.now_ms = now_ms
        self.store = MessageStore(path, CONFIG, clock=lambda: self.now_ms)
        self.is_refusing, self.put_count = False, 0
        self.timers = TimerMessages(self.store.parts, self.put, lambda: self.now_ms)

    def put(self, message: Message) -> PutMessageResult:
        """Put into the store, or fail like a full disk."""
        self.put_count += 1
        return (
            PutMessageResult(PutMessageStatus.SERVICE_NOT_AVAILABLE)
            if self.is_refusing
            else self.store.put_message(message)
        )

    def send(self, body: bytes, **options: object) -> None:
        rules = {name: str(value) for name, value in options.items()}
        assert self.store.put_message(Message("Orders", body, 1, rules)).ok

    def go(self, to: int) -> None:
        """Step like a broker up to ``to`` ms after the beginning."""
        while True:
            self.store.wait_dispatched()
            self.timers.step()
            if self.now_ms >= BEGAN + to:
                break
            self.now_ms += 500

    def delivered(self) -> list[Unit]:
        self.store.wait_dispatched()
        message = self.store.get_message("g", "Orders", 1, 0)
        assert message is not None
        with message:
            return list(message.units())

    def bodies(self) -> list[bytes]:
        return [unit.body for unit in self.delivered()]


@contextmanager
def timed(path: Path, now_ms: int = BEGAN) -> Iterator[TimerStore]:
    store = TimerStore(path, now_ms)
    try:
        yield store
        store.timers.flush()
    finally:
        store.store.close()


def test_a_message_is_delivered_in_the_second_after_its_time_with_its_times(tmp_path: Path) -> None:
    with timed(tmp_path) as timer_store:
        timer_store.send(b"later", TIMER_DELIVER_MS=BEGAN + 5_500)
        timer_store.send(b"sooner", TIMER_DELAY_SEC=2, UNIQ_KEY="K")
        timer_store.go(1_500)
        assert timer_store.bodies() == []
        timer_store.go(2_500)
        assert timer_store.bodies() == [b"sooner"]
        timer_store.go(8_000)
        assert timer_store.bodies() == [b"sooner", b"later"]
        delivered_properties = timer_store.delivered()[0].properties
        assert delivered_properties[properties.TIMER_OUT_MS] == str(BEGAN + 1_000)
        assert delivered_properties[properties.TIMER_ENQUEUE_MS] == str(BEGAN)
        assert int(delivered_properties[properties.TIMER_DEQUEUE_MS]) >= BEGAN + 2_000
        assert (delivered_properties[properties.REAL_TOPIC], delivered_properties[properties.UNIQUE_KEY]) == (
            "Orders",
            "K",
        )


def test_a_message_due_before_it_reaches_the_wheel_is_put_at_once(tmp_path: Path) -> None:
    with timed(tmp_path) as timer_store:
        timer_store.send(b"late", TIMER_DELAY_SEC=2)
        timer_store.now_ms += 60_000
        timer_store.go(0)
        assert timer_store.delivered()[0].properties[properties.TIMER_ENQUEUE_MS] == str(DUE_ON_ARRIVAL)
        assert timer_store.timers.log.files.last is None


def test_a_far_message_rolls_until_its_time(tmp_path: Path) -> None:
    with timed(tmp_path) as timer_store:
        timer_store.send(b"far", TIMER_DELAY_SEC=30)
        timer_store.go(29_000)
        assert timer_store.bodies() == []
        timer_store.go(31_500)
        assert timer_store.bodies() == [b"far"]
        assert int(timer_store.delivered()[0].properties[properties.TIMER_ROLL_TIMES]) >= 3


def test_a_recalled_message_is_not_delivered(tmp_path: Path) -> None:
    with timed(tmp_path) as timer_store:
        for key in "AB":
            timer_store.send(key.encode(), TIMER_DELIVER_MS=BEGAN + 4_000, UNIQ_KEY=key)
        timer_store.send(b"0", TIMER_DELIVER_MS=BEGAN + 4_000, UNIQ_KEY="A", TIMER_DEL_UNIQKEY="Orders+A")
        timer_store.go(7_000)
        assert timer_store.bodies() == [b"B"]


@pytest.mark.parametrize("killed", [False, True])
def test_waiting_messages_survive_a_restart(tmp_path: Path, killed: bool) -> None:
    store = TimerStore(tmp_path)
    for number in range(300):
        store.send(b"%d" % number, TIMER_DELAY_SEC=5)
    store.go(1_000)
    if killed:
        store.store.flush()
        store.store.abandon()
    else:
        store.timers.flush()
        store.store.close()
    with timed(tmp_path, store.now_ms) as second:
        assert second.timers.queue_offset == 300
        second.go(8_000)
        assert len(second.timers.log.files.files) >= 3
    with timed(tmp_path, second.now_ms) as third:
        third.go(12_000)
        assert third.store.max_offset_in_queue("Orders", 1) == 300


def test_a_failed_put_is_retried(tmp_path: Path) -> None:
    with timed(tmp_path) as timer_store:
        timer_store.is_refusing = True
        timer_store.send(b"one", TIMER_DELAY_SEC=3)
        timer_store.go(4_500)
        assert (timer_store.bodies(), timer_store.put_count > 1) == ([], True)
        timer_store.is_refusing = False
        timer_store.go(6_000)
        assert timer_store.bodies() == [b"one"]


def test_no_file_of_timers_appears_where_no_timer_message_ever_was(tmp_path: Path) -> None:
    with timed(tmp_path) as timer_store:
        timer_store.send(b"plain")
        timer_store.go(2_000)
        timer_store.timers.flush()
    assert not list(tmp_path.rglob("timer*"))


@pytest.mark.golden
def test_a_real_brokers_timers_continue(golden, tmp_path: Path) -> None:
    store = shutil.copytree(golden("broker-retries"), tmp_path / "store")
    real = (store / "timerwheel").read_bytes()
    config = MessageStoreConfig(
        mapped_file_size_commit_log=1 << 20,
        mapped_file_size_consume_queue=6000,
        mapped_file_size_timer_log=102_400,
        max_hash_slot_num=100,
        max_index_num=400,
        timer_roll_window_slot=8,
    )
    now = 1_795_248_804_500
    with MessageStore(store, config, clock=lambda: now) as opened:
        timers = TimerMessages(opened.parts, opened.put_message, lambda: now)
        assert (timers.queue_offset, timers.read_time) == (88, 1_795_248_804_000)
        timers.flush()
        ours = (store / "timerwheel").read_bytes()
        assert len(ours) == len(real)
        _same_chains(ours, real)
        assert timers.step() == 0
        now += 60_000
        timers.step()
        assert opened.max_offset_in_queue("rmq_sys_wheel_timer", 0) >= 88
        assert timers.behind()[0] == 0


def _same_chains(ours: bytes, real: bytes) -> None:
    a, b = np.frombuffer(ours, TIMER_SLOT), np.frombuffer(real, TIMER_SLOT)
    for name in ("time", "first", "last"):
        assert np.array_equal(a[name], b[name])


def test_timers_in_and_out_are_reported_and_waiting_ones_counted(tmp_path: Path) -> None:
    timed = TimerStore(tmp_path)
    with timed.store:
        reports: list[object] = []
        timed.timers.on_enqueued = lambda topic, seconds: reports.append((topic, seconds))
        timed.timers.on_dequeued = reports.append
        puts: list[str] = []
        timed.timers.on_put = lambda topic, _size: puts.append(topic)
        timed.store.tables.create_topic("Orders", 2)
        timed.send(b"late", TIMER_DELIVER_MS=BEGAN + 3_000)
        timed.store.wait_dispatched()
        assert timed.timers.oldest_waiting() == BEGAN
        timed.timers.step()
        assert timed.timers.oldest_waiting() == 0
        assert (timed.timers.left_to_put(), timed.timers.count(0, 5_000), timed.timers.count(5_000, 60_000)) == (
            1,
            1,
            0,
        )
        assert timed.timers.counts() == {"Orders": 1}
        timed.go(6_000)
        assert [item for item in reports if isinstance(item, str)] == ["Orders"]
        assert len(reports) == 2
        assert puts == ["Orders"]
        assert timed.timers.left_to_put() == 0
        assert timed.timers.counts() == {"Orders": 0}
