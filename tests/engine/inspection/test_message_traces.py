"""From a message to what clients traced about it, and from a trace to its message, by the index alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from traced_stores import GONE, ID, write_traced_store

from engine.codec.message import Unit
from engine.inspection.message_traces import has_traces, messages_of_trace, traces_of_message
from engine.inspection.snapshot import StoreSnapshot, open_store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StoreSnapshot]:
    write_traced_store(tmp_path)
    with open_store(tmp_path) as snapshot:
        yield snapshot


def units(store: StoreSnapshot) -> list[Unit]:
    return [item for item in store.units(crc=False) if isinstance(item, Unit)]


def test_a_message_leads_to_who_sent_and_received_it(store: StoreSnapshot) -> None:
    steps = traces_of_message(store, units(store)[0])
    assert [step.event.kind for step in steps] == ["messageSent", "messageConsumed", "messageConsumed"]
    assert [step.event.evidence["group"] for step in steps] == ["shop", "billing", "billing"]
    assert [step.event.evidence["success"] for step in steps] == [True, False, True]
    assert steps[1].event.evidence["result"] == "exception"
    traces = [unit for unit in units(store) if unit.topic.startswith("RMQ_SYS")]
    assert [step.offset for step in steps] == [traces[0].offset, traces[2].offset, traces[4].offset]


def test_a_listener_without_an_end_is_no_success(store: StoreSnapshot) -> None:
    steps = traces_of_message(store, units(store)[1])
    assert [step.event.kind for step in steps] == ["messageConsumed"]
    assert steps[0].event.end is None
    assert steps[0].event.evidence["success"] is None


def test_a_trace_leads_to_its_message_and_says_where_there_is_none(store: StoreSnapshot) -> None:
    all_units = units(store)
    by_id = {unit.unique_key: unit.offset for unit in all_units if unit.topic == "Orders"}
    traces = [unit for unit in all_units if unit.topic.startswith("RMQ_SYS")]
    targets = {
        str(step.event.evidence["uniqueKey"]): step.offset for unit in traces for step in messages_of_trace(store, unit)
    }
    assert targets == {ID[0]: by_id[ID[0]], ID[1]: by_id[ID[1]], GONE: None}


def test_a_store_without_the_topic_has_none(tmp_path: Path) -> None:
    write_traced_store(tmp_path, with_traces=False)
    with open_store(tmp_path) as store:
        assert not has_traces(store)
        assert traces_of_message(store, units(store)[0]) == []


def test_without_an_index_nothing_is_concluded(tmp_path: Path) -> None:
    write_traced_store(tmp_path)
    for file in (tmp_path / "index").iterdir():
        file.unlink()
    with open_store(tmp_path) as store:
        assert not has_traces(store)
