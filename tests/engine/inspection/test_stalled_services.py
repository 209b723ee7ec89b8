"""Stalled services, compared with the newest message of the store and never with the current time."""

from __future__ import annotations

import json
from pathlib import Path

import made_rocksdb
import pytest
import report_states
from broken_stores import level_stands_still, table
from handmade_stores import START, HandmadeStore, healthy

from engine.codec import pop, timer
from engine.config import MessageStoreConfig
from engine.inspection import open_store
from engine.inspection.findings import check
from engine.inspection.stalled_services import StalledService, stalled_level, stalled_services
from engine.inspection.where.evidence import where
from engine.rules.findings import Finding

MINUTE = 60_000


def services(root: Path) -> list[StalledService]:
    with open_store(root) as store:
        newest = max(unit.store_timestamp for unit in store.units() if hasattr(unit, "store_timestamp"))
        return list(stalled_services(store, newest))


def delayed_store(
    *arguments: HandmadeStore, delivered: bool = False, steps: int = 6, step: int = 30_000
) -> HandmadeStore:
    store = HandmadeStore()
    unit = store.put("SCHEDULE_TOPIC_XXXX", 2, more={"REAL_TOPIC": "Orders", "REAL_QID": "0", "DELAY": "3"})
    unit.tags_code = unit.store_timestamp + 10_000
    for number in range(steps):
        store.put(step=step)
        if delivered and number == 0:
            store.log = store.log.replace(b"UNIQ_KEY\x01U00001", b"UNIQ_KEY\x01U00000")
    return store


def test_a_stalled_level_is_reported_with_its_waiting_messages(tmp_path):
    """Ten hours of delayed messages were overdue, and check and where did not report them."""
    store = healthy()
    root = store.write(tmp_path / "store")
    level_stands_still(root, store)
    (service,) = services(root)
    assert (service.kind, service.queue_id, service.next_offset, service.overdue) == ("level", 2, 0, 1)
    assert service.words.startswith("Delay level 3 has been at 0 since ")


@pytest.mark.parametrize(
    "store",
    [
        pytest.param(delayed_store(delivered=True), id="the table is older than the log"),
        pytest.param(delayed_store(steps=1, step=600 * MINUTE), id="no broker ran while it waited"),
        pytest.param(delayed_store(steps=1, step=9_000), id="closed before it was due"),
        pytest.param(delayed_store(steps=0), id="nothing came afterwards"),
    ],
)
def test_a_level_that_only_waits_is_not_stalled(store, tmp_path):
    root = store.write(tmp_path / "store")
    table(root, "delayOffset.json", '{"offsetTable":{3:0}}')
    assert services(root) == []


def test_a_level_without_an_offset_or_beyond_its_queue_is_not_reported(tmp_path):
    root = delayed_store().write(tmp_path / "store")
    for text in ('{"offsetTable":{}}', '{"offsetTable":{3:1}}', '{"offsetTable":{3:9}}'):
        table(root, "delayOffset.json", text)
        with open_store(root) as store:
            assert stalled_level(store, 3, START + 100 * MINUTE) is None


def test_the_timer_and_the_check_of_transactions(tmp_path):
    for name, make in (("timer", report_states.timer_stands), ("transactions", report_states.transactions_stand)):
        (tmp_path / name).mkdir()
        make(tmp_path / name)
        (service,) = services(tmp_path / name / "store")
        assert service.kind == name
        assert service.overdue_ms > 20 * MINUTE


def test_the_revive_of_pops(tmp_path):
    """A checkpoint of a pop waits for half an hour while other messages arrive."""
    report_states.revive_stands(tmp_path)
    (service,) = services(tmp_path / "store")
    assert (service.kind, service.next_offset, service.overdue, service.why) == ("revive", 0, 1, "")


@pytest.mark.parametrize("make", [report_states.popped_messages_are_handled, report_states.transactions_are_decided])
def test_a_service_without_remaining_work_is_not_stalled(make, tmp_path):
    """The offset of the revive is that of the last checkpoint that it handled. Each broker that had popped messages and
    ran on for ten minutes got this warning. A decided transaction waits for nothing.
    """
    make(tmp_path)
    assert services(tmp_path / "store") == []


def test_a_checkpoint_whose_messages_were_redelivered_is_not_overdue(tmp_path):
    """Only the table of offsets is older than the log."""
    store = HandmadeStore()
    popped = store.put(unique="POPPED")
    store.put(report_states.REVIVE, 0, body=report_states.check_point(store.time), tags="ck")
    store.put("%RETRY%popping_Orders", 0, unique="POPPED")
    for _ in range(30):
        store.put(step=MINUTE)
    root = store.write(tmp_path / "store")
    table(root, "consumerOffset.json", '{"offsetTable":{}}')
    assert popped.queue_offset == 0
    assert services(root) == []


def test_a_stalled_service_is_a_warning_with_its_step(tmp_path):
    new_store = healthy()
    root = new_store.write(tmp_path / "store")
    level_stands_still(root, new_store)
    with open_store(root) as store:
        (finding,) = [item for item in check(store) if isinstance(item, Finding) and item.id == "CF13"]
    assert finding.severity == "warn"
    assert finding.evidence["queue"] == "SCHEDULE_TOPIC_XXXX/2"
    assert finding.evidence["messages"] == 1
    assert "maxMessageSize" in finding.next_step


@pytest.mark.parametrize("real_topic", ["Orders", "%RETRY%billing"])
@pytest.mark.parametrize(("offset", "is_beyond"), [(9, True), (0, False)])
def test_a_message_of_a_level_beyond_its_queue_does_not_just_wait(tmp_path, real_topic, offset, is_beyond):
    """CF09 was an error, but where advised to wait until the message is due."""
    handmade = HandmadeStore()
    properties = {"REAL_TOPIC": real_topic, "REAL_QID": "0", "DELAY": "3"}
    waiting = handmade.put("SCHEDULE_TOPIC_XXXX", 2, more=properties)
    waiting.tags_code = waiting.store_timestamp + 10_000
    root = handmade.write(tmp_path / "store")
    table(root, "delayOffset.json", f'{{"offsetTable":{{3:{offset}}}}}')
    with open_store(root) as store:
        (result,) = where(store, str(waiting.offset))
        rules = [evidence.id for evidence in check(store) if isinstance(evidence, Finding)]
    assert result.verdict == ("delayed" if real_topic == "Orders" else "retried")
    assert ("CF09" in rules) == is_beyond
    assert ("makes no progress" in result.next_step and "CF09" in result.next_step) == is_beyond
    levels = [evidence.holds for evidence in result.evidence if evidence.what == "service"]
    assert levels == (["Delay level 3 is delivered from 9 on, its queue ends at 1"] if is_beyond else [])


def test_the_stalled_revive_of_a_store_with_queues_in_a_rocksdb(tmp_path):
    """Such stores were passed over."""
    handmade = HandmadeStore()
    popped = handmade.put()
    handmade.put(report_states.REVIVE, 0, body=report_states.check_point(handmade.time), tags="ck")
    for _ in range(30):
        handmade.put(step=MINUTE)
    root = handmade.write(tmp_path / "store")
    made_rocksdb.make_database(root / "consumequeue", made_rocksdb.rows_of_store(handmade))
    table(root, "consumerOffset.json", '{"offsetTable":{}}')
    (service,) = services(root)
    assert (service.kind, service.next_offset, service.overdue) == ("revive", 0, 1)
    with open_store(root) as store:
        (result,) = where(store, str(popped.offset))
    assert "CF13" in result.next_step


@pytest.mark.parametrize(
    ("group", "acknowledged", "moved_to", "waits"),
    [
        (None, (), None, True),
        ("popping", (), None, True),
        ("popping", (1,), None, True),
        ("popping", (0,), None, False),
        ("other", (), None, False),
        ("popping", (), 0, False),
    ],
)
def test_where_names_the_stalled_revive_that_holds_a_popped_message(tmp_path, group, acknowledged, moved_to, waits):
    """The message of a pop was "found", with the advice to look at the subscription."""
    handmade = HandmadeStore()
    popped = handmade.put()
    due = handmade.time
    handmade.put(report_states.REVIVE, 0, body=report_states.check_point(due), tags="ck")
    for offset in acknowledged:
        ack = pop.Ack("Orders", "popping", 0, 0, due - 10_000, "broker-a", offset)
        handmade.put(report_states.REVIVE, 0, body=ack.body(), tags="ack")
    for _ in range(30):
        handmade.put(step=MINUTE)
    root = handmade.write(tmp_path / "store")
    offsets = {} if moved_to is None else {f"{report_states.REVIVE}@CID_RMQ_SYS_REVIVE_GROUP": {"0": moved_to}}
    table(root, "consumerOffset.json", json.dumps({"offsetTable": offsets}))
    with open_store(root) as store:
        (result,) = where(store, str(popped.offset), group=group)
    statements = [item.holds for item in result.evidence if item.what == "service"]
    assert ("CF13" in result.next_step) == waits
    assert bool(statements) == waits
    if waits:
        assert statements[0].startswith("group popping popped it at ")
        assert "The revive of pops" in statements[0]


def test_a_healthy_store_has_no_findings(tmp_path):
    root = healthy().write(tmp_path / "store")
    with open_store(root) as store:
        assert "CF13" not in [finding.id for finding in check(store) if isinstance(finding, Finding)]


@pytest.mark.parametrize(
    ("max_message_size", "why"),
    [
        (1 << 20, ""),
        (160, "; the first is 168 bytes long, and maxMessageSize is 160: releases before 4.9.4 refuse to deliver it"),
        (3, "; the body of the first has 5 bytes, and maxMessageSize is 3"),
    ],
)
def test_a_level_reports_why_its_first_message_is_refused(max_message_size, why, tmp_path):
    """The whole message was compared with maxMessageSize. A real broker since 4.9.4 compares its body, and delivered a
    message that this check reported as refused.
    """
    root = delayed_store().write(tmp_path / "store")
    table(root, "delayOffset.json", '{"offsetTable":{3:0}}')
    with open_store(root, MessageStoreConfig(max_message_size=max_message_size)) as store:
        service = stalled_level(store, 3, START + 3 * MINUTE)
    assert service is not None
    assert service.words.partition(" is overdue by up to 2.8 min")[2] == why


@pytest.mark.parametrize(("queue_offset", "kinds"), [(0, ["timer"]), (1, [])])
def test_a_timer_message_that_was_not_put_into_the_wheel(queue_offset, kinds, tmp_path):
    """With timerStopEnqueue a broker still advances its wheel but adds no message to it. The check reported nothing."""
    report_states.timer_stands(tmp_path)
    root = tmp_path / "store"
    read_time = START + 30 * MINUTE
    (root / "config" / "timercheck").write_bytes(timer.TimerCheck(read_time, 0, queue_offset, 0, 0, 0, 0).encoded())
    assert [service.kind for service in services(root)] == kinds
