"""Polls of a running store: each watch has its own previous poll, and reports changes since then."""

from __future__ import annotations

import pytest

from engine.config import from_mapping
from engine.lab.watch import StoreWatch
from engine.message_store import Message, MessageStore


@pytest.fixture
def store(tmp_path):
    config, _ = from_mapping({"mappedFileSizeCommitLog": 65536, "maxHashSlotNum": 5, "maxIndexNum": 30})
    with MessageStore(tmp_path / "s", config, services=False) as message_store:
        yield message_store


def test_rates_and_flushes_are_those_since_the_previous_poll(store):
    counts = {"PUT_OK": 0}
    watch = StoreWatch(store, lambda: counts)
    first_poll = watch.sample()
    assert (first_poll.rates.messages, first_poll.positions.wrote) == (0.0, 0)
    for _ in range(5):
        store.put_message(Message("T", b"body"))
    counts["PUT_OK"] = 5
    store.flush()
    second_poll = watch.sample()
    assert second_poll.rates.messages > 0
    assert second_poll.rates.wrote > 0
    assert [mark.bytes for mark in second_poll.flushes] == [store.positions().wrote]
    third_poll = watch.sample()
    assert (third_poll.rates.messages, third_poll.flushes) == (0.0, ())
    assert StoreWatch(store, lambda: counts).sample().rates.messages == 0.0  # another reader has no previous poll


def test_waiting_work_is_reported_in_its_own_unit(store):
    watch = StoreWatch(store, dict)
    store.put_message(Message("T", b"body"))
    states = watch.sample().services
    assert states["flush"].unit == "bytes"
    assert states["flush"].waiting_bytes == store.positions().wrote
    assert states["reput"].waiting_bytes > 0
