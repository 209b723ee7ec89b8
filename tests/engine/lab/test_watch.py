"""Looks at a running store: each watch has its own look before, and what moved since."""

from __future__ import annotations

import pytest

from engine.config import from_mapping
from engine.lab.watch import Watch
from engine.message_store import Message, MessageStore


@pytest.fixture
def store(tmp_path):
    config, _ = from_mapping({"mappedFileSizeCommitLog": 65536, "maxHashSlotNum": 5, "maxIndexNum": 30})
    with MessageStore(tmp_path / "s", config, services=False) as message_store:
        yield message_store


def test_rates_and_flushes_are_those_since_the_look_before(store):
    counts = {"PUT_OK": 0}
    watch = Watch(store, lambda: counts)
    first = watch.look()
    assert (first.rates.messages, first.positions.wrote) == (0.0, 0)
    for _ in range(5):
        store.put_message(Message("T", b"body"))
    counts["PUT_OK"] = 5
    store.flush()
    second = watch.look()
    assert second.rates.messages > 0
    assert second.rates.wrote > 0
    assert [mark.bytes for mark in second.flushes] == [store.positions().wrote]
    third = watch.look()
    assert (third.rates.messages, third.flushes) == (0.0, ())
    assert Watch(store, lambda: counts).look().rates.messages == 0.0  # another reader has not looked before


def test_what_waits_is_told_in_its_own_unit(store):
    watch = Watch(store, dict)
    store.put_message(Message("T", b"body"))
    states = watch.look().services
    assert states["flush"].unit == "bytes"
    assert states["flush"].waiting_bytes == store.positions().wrote
    assert states["reput"].waiting_bytes > 0
