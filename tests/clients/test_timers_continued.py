"""RocketMQ's own broker continues the timers of a store that ours has left."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import real_cluster

from engine.codec.encode import Message
from engine.config import MessageStoreConfig
from engine.message_store import MessageStore, system_clock
from engine.store.timers.messages import TimerMessages

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]
SMALL = {"mappedFileSizeTimerLog": 102_400, "timerRollWindowSlot": 8}
COUNT = 40


def entries(store: Path) -> int:
    """Return the number of entries in the queue of the topic."""
    files = sorted((store / "consumequeue" / "Orders" / "0").glob("*"))
    data = files[0].read_bytes()[: 20 * COUNT * 2] if files else b""
    return sum(any(data[position : position + 20]) for position in range(0, len(data), 20))


@pytest.mark.clients_full
def test_a_real_broker_delivers_what_waits_in_our_wheel(tmp_path: Path) -> None:
    """Far timers that roll, near ones that do not, and no recalled one."""
    config = MessageStoreConfig(mapped_file_size_timer_log=102_400, timer_roll_window_slot=8)
    due = system_clock() + 40_000  # later than the broker has started, on a busy machine too
    with MessageStore(tmp_path / "store", config, release="5.3") as store:
        store.tables.create_topic("Orders", 1)
        timers = TimerMessages(store.parts, store.put_message, system_clock)
        for number in range(COUNT):
            results = {"TIMER_DELIVER_MS": str(due + number % 5 * 1000), "UNIQ_KEY": f"K{number}"}
            assert store.put_message(Message("Orders", b"%d" % number, 0, results)).ok
        results = {"TIMER_DELIVER_MS": str(due), "UNIQ_KEY": "K0", "TIMER_DEL_UNIQKEY": "Orders+K0"}
        assert store.put_message(Message("Orders", b"0", 0, results)).ok
        assert store.wait_dispatched()
        assert timers.step() == COUNT + 1
        timers.flush()
    options = ("--namesrv-port", real_cluster.free_port(), "--port", real_cluster.free_port())
    settings = (word for key, value in SMALL.items() for word in ("--set", f"{key}={value}"))
    with real_cluster.real(tmp_path, *options, *settings, clean_end=True):
        while entries(tmp_path / "store") < COUNT - 1 and system_clock() < due + 120_000:
            time.sleep(0.5)
        time.sleep(2)  # for one too many
    with MessageStore(tmp_path / "store", config, release="5.3") as store:
        units = []
        while (got := store.get_message("g", "Orders", 0, len(units))) is not None and got.units():
            units += got.units()
            got.release()
        assert sorted(int(unit.body) for unit in units) == list(range(1, COUNT))
        assert all(int(unit.properties["TIMER_ROLL_TIMES"]) >= 1 for unit in units)
