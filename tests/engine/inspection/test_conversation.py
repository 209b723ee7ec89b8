"""A conversation has every unit of its messages in the order of the log, what changed, and what happened between."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
from traced_stores import ID, write_traced_store

from engine.codec.message import INNER_BATCH, Unit
from engine.inspection.conversation import Conversation, read_conversation
from engine.inspection.snapshot import open_store
from engine.inspection.timeline.events import TimelineEvent
from engine.message_store import Message, MessageStore
from engine.rules.where import own_key
from engine.system_names import DLQ_PREFIX, RETRY_PREFIX, TRACE_TOPIC

STORES = (
    "broker-orders-4.9.7",
    "broker-retries-4.9.7",
    "broker-retries-5.5.1",
    "broker-transactions-5.4.0",
    "broker-pop-5.5.1",
    "rocksdb-orders-5.5.1",
)


def kinds(conversation: Conversation) -> list[str]:
    return [step.kind for step in conversation.steps]


@pytest.mark.golden
@pytest.mark.parametrize("name", STORES)
def test_a_unique_key_has_the_units_that_a_plain_count_has(golden, name: str) -> None:
    """Every unit of the log is sorted by its unique key in plain Python; forty keys are compared."""
    units_of_key: defaultdict[str, list[int]] = defaultdict(list)
    is_shared: set[str] = set()
    with open_store(golden(name)) as store:
        store.commit_log.settle_end()
        for unit in store.units(crc=False):
            if not isinstance(unit, Unit) or unit.unique_key is None or unit.topic == TRACE_TOPIC:
                continue
            units_of_key[unit.unique_key].append(unit.offset)
            if own_key(unit) != unit.unique_key or unit.sys_flag & INNER_BATCH:
                is_shared.add(unit.unique_key)  # messages of one batch: each has a conversation of its own
        keys = sorted(units_of_key.keys() - is_shared, key=lambda key: -len(units_of_key[key]))
        assert len(keys) > 40
        for key in keys[:20] + keys[-20:]:
            conversation = read_conversation(store, key)
            offsets = [step.offset for step in conversation.steps if step.unit is not None and step.kind != "op"]
            assert offsets == units_of_key[key], key
            assert not conversation.is_truncated


@pytest.mark.golden
def test_a_transaction_is_followed_from_its_half_message_to_the_op_message(golden) -> None:
    with open_store(golden("broker-transactions-5.4.0")) as store:
        store.commit_log.settle_end()
        conversation = read_conversation(store, "K5")
    assert kinds(conversation) == ["half", "committed", "half", "op", "half", "half", "givenUp"]
    checks = [
        change.after
        for step in conversation.steps
        for change in step.changes
        if change.name == "TRANSACTION_CHECK_TIMES" and change.after is not None
    ]
    assert checks == ["1", "2", "3"]
    assert conversation.steps[0].gap_ms is None
    assert conversation.steps[1].gap_ms == 12
    assert conversation.duration_ms == sum(step.gap_ms or 0 for step in conversation.steps) == 15_930


@pytest.mark.golden
@pytest.mark.parametrize("name", ["broker-retries-4.9.7", "broker-retries-5.5.1"])
def test_a_message_that_failed_is_followed_to_its_dead_letter(golden, name: str) -> None:
    with open_store(golden(name)) as store:
        store.commit_log.settle_end()
        dead = next(u for u in store.units(crc=False) if isinstance(u, Unit) and u.topic.startswith(DLQ_PREFIX))
        conversation = read_conversation(store, str(dead.unique_key))
    steps = kinds(conversation)
    assert steps[0] == "plain"
    assert "dead" in steps
    retries = [step.unit for step in conversation.steps if step.kind == "retry" and step.unit is not None]
    assert all(unit.topic.startswith(RETRY_PREFIX) for unit in retries)
    tries = [unit.reconsume_times for unit in retries]
    assert tries == sorted(tries)


def test_what_happened_to_the_store_stands_between_the_messages_of_a_key(tmp_path: Path) -> None:
    times = iter(range(1000, 1_000_000, 1000))
    now = next(times)
    with MessageStore(tmp_path, clock=lambda: now) as store:
        for number in range(2):
            store.put_message(Message("Orders", b"{}", properties={"KEYS": "K", "UNIQ_KEY": f"U{number}"}))
            now = next(times)
    kinds_and_times = {"stall": 999, "crash": 1200, "start": 1500, "topicAppears": 1600, "outage": 2001}
    events = [
        TimelineEvent(kind, time, time, None, kind, "certain", "")  # type: ignore[arg-type]
        for kind, time in kinds_and_times.items()
    ]
    with open_store(tmp_path) as store:
        conversation = read_conversation(store, "K", events=events)
    assert [step.event.kind if step.event else step.time for step in conversation.steps] == [
        1000,
        "crash",
        "start",
        2000,
    ]
    assert [step.message for step in conversation.steps] == [1, 0, 0, 2]
    assert [step.gap_ms for step in conversation.steps] == [None, 200, 300, 500]


def test_what_clients_traced_stands_among_the_units(tmp_path: Path) -> None:
    write_traced_store(tmp_path)
    with open_store(tmp_path) as store:
        conversation = read_conversation(store, ID[0])
    traced = [step.event.kind for step in conversation.steps if step.kind == "trace" and step.event is not None]
    assert traced == ["messageSent", "messageConsumed", "messageConsumed"]
    assert kinds(conversation).count("plain") == 1


def test_a_name_that_nobody_has_is_an_empty_conversation_with_a_reason(tmp_path: Path) -> None:
    write_traced_store(tmp_path)
    with open_store(tmp_path) as store:
        conversation = read_conversation(store, "nobody")
    assert conversation.steps == ()
    assert [result.verdict for result in conversation.messages] == ["neverSeen"]
