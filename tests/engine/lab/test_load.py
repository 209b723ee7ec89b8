"""Messages of a load are made quickly from tables of topics, sizes and text positions."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from engine.lab import load as load_module
from engine.lab.load import Load, MessageMaker
from engine.lab.load_settings import LoadSettings
from engine.lab.presets import PRESETS
from engine.message_store import MessageStore

# Messages of a load.


def test_messages_follow_the_settings() -> None:
    settings = LoadSettings(body_size=100, body_spread=50, topics=3, zipf=True, keys=7, seed=4)
    sample = MessageMaker(settings, 0).many(4000)
    sizes = [len(message.body) for message in sample]
    assert (min(sizes) >= 50, max(sizes) <= 150, 95 < sum(sizes) / 4000 < 105) == (True, True, True)
    topics = Counter(message.topic for message in sample)
    assert topics["Lab-1"] > topics["Lab-2"] > topics["Lab-3"] > 0
    texts = [message.properties_raw or b"" for message in sample]
    assert len({text.split(b"KEYS\x01")[1].split(b"\x02")[0] for text in texts}) == 7
    assert len({text.split(b"\x02")[0] for text in texts}) == 4000
    for body in (
        message.body
        for size in (0, 1, 7, 60, 61, 200, 5000)
        for message in MessageMaker(LoadSettings(body_size=size), 0).many(50)
    ):
        assert not body or json.loads(body), "bodies are whole"
    repeated = MessageMaker(settings, 0).many(4000)
    assert [message.body for message in repeated] == [message.body for message in sample]
    assert [message.body for message in MessageMaker(settings, 1).many(50)] != [message.body for message in sample[:50]]
    assert all(b"KEYS" not in (message.properties_raw or b"") for message in MessageMaker(LoadSettings(), 0).many(9))


TINY = replace(PRESETS[3].config, mapped_file_size_commit_log=1 << 24)
_never = threading.Event()


def until(done: object, seconds: float = 60.0) -> None:
    """Wait until ``done()`` is true."""
    for _ in range(int(seconds * 100)):
        if done():  # type: ignore[operator]
            return
        _never.wait(0.01)
    raise AssertionError("it did not come to that")


@pytest.mark.parametrize("batch", [1, 16])
def test_the_counts_equal_the_stored_messages(tmp_path: Path, batch: int) -> None:
    with MessageStore(tmp_path, TINY) as store:
        load = Load(store, LoadSettings(producers=3, batch=batch, topics=2, queues=3, keys=10))
        load.start()
        until(lambda: load.counts().messages > 500)
        assert load.running
        assert load.stop()
        counts = load.counts()
        store.wait_dispatched()
        ends = {(queue.topic, queue.queue_id): queue.max_offset for queue in store.parts.queues}
        assert sum(ends.values()) == counts.statuses["PUT_OK"] == counts.messages
        assert {topic for topic, _ in ends} == {"Lab-1", "Lab-2"}
        assert {queue for _, queue in ends} == {0, 1, 2}
        assert counts.latency.count * batch == counts.messages
        assert not counts.running
        assert not counts.stopped


def test_the_rate_is_kept_and_changed_while_it_runs(tmp_path: Path) -> None:
    with MessageStore(tmp_path, TINY) as store:
        load = Load(store, LoadSettings(producers=2, rate=200, body_size=10))
        began = time.perf_counter()
        load.start()
        until(lambda: load.counts().messages >= 50)
        slow = load.counts().messages
        assert slow <= 200 * (time.perf_counter() - began) + 2
        load.change(replace(load.settings, rate=0, producers=1))
        until(lambda: load.counts().messages > slow + 3000)
        load.change(replace(load.settings, producers=4))
        until(lambda: len({*load.acknowledged}) == 4)
        assert load.stop()
        messages = load.counts().messages
        _never.wait(0.05)
        assert load.counts().messages == messages


def test_refused_puts_are_counted_and_followed_by_a_pause(tmp_path: Path) -> None:
    with MessageStore(tmp_path, TINY) as store:
        store.flags.raise_flag(1 << 4, "the disk is full")
        load = Load(store, LoadSettings())
        load.start()
        until(lambda: load.counts().statuses.get("SERVICE_NOT_AVAILABLE", 0) > 10)
        load.stop()
        assert set(load.counts().statuses) == {"SERVICE_NOT_AVAILABLE"}
        assert load.counts().messages < 2000


def test_a_lock_that_is_held_too_long_is_counted_as_a_busy_page_cache(tmp_path: Path) -> None:
    with MessageStore(tmp_path, TINY) as store:
        store.parts.commit_log.locked_since = store.parts.commit_log.clock() - 5000
        load = Load(store, LoadSettings(batch=1))
        load.start()
        until(lambda: load.counts().statuses.get("OS_PAGE_CACHE_BUSY", 0) > 5)
        assert load.stop()
        store.parts.commit_log.locked_since = 0
        counts = load.counts()
        assert (set(counts.statuses), counts.bytes) == ({"OS_PAGE_CACHE_BUSY"}, 0)


def test_a_load_stops_before_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_module, "MIN_FREE_BYTES", 1 << 62)
    with MessageStore(tmp_path, TINY) as store:
        load = Load(store, LoadSettings())
        load.start()
        until(lambda: not load.running)
        assert "MiB left" in load.counts().stopped
        assert load.stop()
