"""Rows, choices and words of the view Waiting."""

from __future__ import annotations

import json

import agree
import golden_stores
import pytest

from engine.inspection import open_store
from engine.inspection.waiting import ServiceProgress, WaitingMessage, WaitingMessages
from viewer.runtime import places
from viewer.waiting.waiting_model import (
    KIND_CHOICES,
    KIND_WORDS,
    SERVICE,
    STATES,
    TOTAL,
    WAITING,
    WaitingChoice,
    WaitingModel,
    read_waiting,
)


def message(**fields: object) -> WaitingMessage:
    values: dict[str, object] = {
        "kind": "delay",
        "state": "overdue",
        "topic": "SCHEDULE_TOPIC_XXXX",
        "queue_id": 2,
        "queue_offset": 7,
        "physical_offset": 640,
        "unique_key": "KEY",
        "keys": ("a", "b"),
        "for_topic": "Orders",
        "group": None,
        "since": 1_000,
        "due": 31_000,
        "overdue_ms": 65_000,
        "tries": None,
    }
    return WaitingMessage(**(values | fields))  # type: ignore[arg-type]


def waiting(*rows: WaitingMessage, **fields: object) -> WaitingMessages:
    result = WaitingMessages(96_000, list(rows), len(rows), **fields)  # type: ignore[arg-type]
    for row in rows:
        result.kinds[row.kind] += 1
        result.states[row.state] += 1
        result.topics[row.for_topic or ""] += 1
        if row.group:
            result.groups[row.group] += 1
    return result


@pytest.mark.golden
@pytest.mark.parametrize("name", ["broker-retries-5.5.1", "broker-pop"])
def test_rows_are_those_of_the_command(golden: golden_stores.GoldenStores, name: str) -> None:
    root = golden(name)
    _, printed, _ = agree.command("waiting", str(root), "--json")
    *expected, summary = [json.loads(line) for line in printed.splitlines()]
    with open_store(root) as store:
        model = WaitingModel()
        model.take(read_waiting(store, WaitingChoice(), lambda: None))
    assert [WAITING.as_record(row) for row in model.rows] == expected
    assert {(total.of, total.name): total.count for total in model.totals} == {
        **{("topic", topic): count for topic, count in summary["topics"].items()},
        **{("group", group): count for group, count in summary["groups"].items()},
    }
    assert len(model.services) == len(summary["services"])
    assert {row.state for row in model.rows} <= STATES.keys()
    assert {row.kind for row in model.rows} <= KIND_WORDS.keys() == KIND_CHOICES.keys()


def test_a_row_leads_to_its_unit_and_to_its_entry() -> None:
    jumps = {column.key: column.jump(message()) for column in WAITING.columns if column.jump is not None}
    assert jumps == {
        "physicalOffset": places.log(640),
        "queueOffset": places.queue("SCHEDULE_TOPIC_XXXX", 2, 7),
    }
    unknown = message(physical_offset=None, queue_id=None)
    assert all(column.jump(unknown) is None for column in WAITING.columns if column.jump is not None)
    assert "1:05" in WAITING.as_text(message()) or "1 min" in WAITING.as_text(message())
    retry = message(kind="retry", group="billing")
    assert WAITING.command is not None
    assert WAITING.command(retry) == ["storescope", "waiting", "STORE", "--kind", "retry", "--group", "billing"]


def test_choices_keep_the_counts_of_everything() -> None:
    model = WaitingModel()
    assert model.kind_choices()[0] == ("", "All that wait")
    rows = [message(), message(kind="retry", group="billing"), message(kind="retry", group="audit")]
    model.take(waiting(*rows))
    assert model.kind_choices()[:2] == [("", "All that wait (3)"), ("delay", "Delay levels (1)")]
    assert [key for key, _ in model.group_choices()] == ["", "audit", "billing"]
    model.choice = WaitingChoice("retry", "billing")
    model.take(waiting(rows[1]))
    assert model.kind_choices()[0] == ("", "All that wait (3)")
    assert dict(model.group_choices())["audit"] == "audit (1)"
    assert model.row_like(rows[1]) == 0


def test_stalled_services_come_first_and_lead_to_their_next_entry() -> None:
    running = ServiceProgress("timer", "rmq_sys_wheel_timer", 0, 5, 5, 96_000)
    stalled = ServiceProgress("level", "SCHEDULE_TOPIC_XXXX", 3, 10, 40, stalled="the level stands still")
    model = WaitingModel()
    model.take(waiting(message(), services=[running, stalled]))
    assert model.services == [stalled, running]
    jump = next(column.jump for column in SERVICE.columns if column.jump is not None)
    assert (jump(stalled), jump(running)) == (places.queue("SCHEDULE_TOPIC_XXXX", 3, 10), None)
    text = SERVICE.as_text(stalled)
    assert "Delay level 4" in text
    assert "30" in text.split("\t")
    assert model.summary() == "1 message waits: overdue 1, 1 service stands still"
    assert SERVICE.as_record(stalled)["standsStill"] == "the level stands still"
    assert TOTAL.as_text(model.totals[0]).split("\t") == ["topic", "Orders", "1"]


def test_an_empty_table_says_why() -> None:
    model = WaitingModel()
    assert model.table_state() is None
    model.take(waiting())
    state = model.table_state()
    assert state is not None
    assert state.text == "No message waits in this store."
    model.choice = WaitingChoice("half")
    state = model.table_state()
    assert state is not None
    assert state.text == "No message of this choice waits."
    model.take(waiting(unknown={"half": "consumerOffset.json cannot be read"}))
    state = model.table_state()
    assert state is not None
    assert (state.kind, state.text) == ("unread", "Not known: Half messages: consumerOffset.json cannot be read")
    model.fail("the disk is gone")
    state = model.table_state()
    assert state is not None
    assert (state.kind, state.text) == ("error", "the disk is gone")
    model.stop()
    state = model.table_state()
    assert state is not None
    assert state.kind == "error"
    model.forget_store()
    assert model.table_state() is None
