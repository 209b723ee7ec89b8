"""The services of a store: their names, and the effects of stepping, pausing and stopping them."""

from __future__ import annotations

import pytest

from engine.errors import UsageError
from engine.message_store import Message, MessageStore


@pytest.fixture
def store(tmp_path):
    with MessageStore(tmp_path / "store", services=False) as opened:
        yield opened


def test_a_store_has_a_service_for_each_work(store):
    assert {"allocate", "reput", "flush", "queues", "index", "clean", "persist"} <= set(store.services.names)


def test_an_unknown_service_is_refused_with_the_names_of_all(store):
    with pytest.raises(UsageError, match="expected a service of allocate, reput, flush"):
        store.services.step("nothing")


def test_without_threads_a_step_dispatches_messages(store):
    store.put_message(Message("Orders", b"tea"))
    assert store.max_offset_in_queue("Orders", 0) == 0
    store.services.step("reput")
    assert store.max_offset_in_queue("Orders", 0) == 1


def test_a_paused_service_starts_no_round(tmp_path):
    with MessageStore(tmp_path / "store") as store:
        store.services.pause("reput")
        store.put_message(Message("Orders", b"tea"))
        assert store.max_offset_in_queue("Orders", 0) == 0
        store.services.resume("reput")
        assert store.wait_dispatched()
        assert store.max_offset_in_queue("Orders", 0) == 1
