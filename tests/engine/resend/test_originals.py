"""The original topic of a stored message, what cannot be sent, and the properties with which the rest is sent."""

from __future__ import annotations

import pytest
from engine_units import store_of, units_of
from handmade_stores import HandmadeStore

from engine.codec.message import Unit
from engine.resend import originals
from engine.resend.originals import StoredMessage, messages_of, original_topic, properties_to_send, why_not_sent


@pytest.mark.parametrize(
    ("topic", "properties", "expected"),
    [
        ("Orders", {}, "Orders"),
        ("%DLQ%billing", {"RETRY_TOPIC": "Orders"}, "Orders"),
        ("%DLQ%billing", {"DLQ_ORIGIN_TOPIC": "Orders"}, "Orders"),
        ("%DLQ%billing", {"RETRY_TOPIC": "%RETRY%billing_Or_ders"}, "Or_ders"),
        ("%DLQ%billing", {"REAL_TOPIC": "%RETRY%billing", "RETRY_TOPIC": "Orders"}, "Orders"),
        ("%DLQ%billing", {}, None),
        ("%RETRY%billing", {"RETRY_TOPIC": "Orders"}, "Orders"),
        ("%RETRY%bil_ling_Or_ders", {"ORIGIN_GROUP": "bil_ling"}, "Or_ders"),
        ("%RETRY%billing+Orders", {}, "Orders"),
        ("%RETRY%billing_Orders", {}, None),
        ("SCHEDULE_TOPIC_XXXX", {"REAL_TOPIC": "Orders"}, "Orders"),
        ("SCHEDULE_TOPIC_XXXX", {"REAL_TOPIC": "%RETRY%billing", "RETRY_TOPIC": "Orders"}, "Orders"),
        ("rmq_sys_wheel_timer", {"REAL_TOPIC": "Orders"}, "Orders"),
        ("RMQ_SYS_TRANS_HALF_TOPIC", {"REAL_TOPIC": "Orders"}, "Orders"),
        ("TRANS_CHECK_MAX_TIME_TOPIC", {"REAL_TOPIC": "Orders"}, "Orders"),
        ("RMQ_SYS_TRANS_HALF_TOPIC", {}, None),
        ("RMQ_SYS_TRANS_OP_HALF_TOPIC", {}, None),
    ],
)
def test_the_original_topic_is_in_the_properties(topic: str, properties: dict[str, str], expected: str | None) -> None:
    assert original_topic(topic, properties) == expected


def units(tmp_path, *puts: dict) -> list[Unit]:
    store = HandmadeStore()
    for put in puts:
        store.put(**put)
    return units_of(store.write(tmp_path / "store"))


def message(unit: Unit) -> StoredMessage:
    (stored,) = messages_of(unit)
    return stored


def test_records_of_the_broker_and_deletions_of_timers_are_not_sent(tmp_path) -> None:
    refused = units(
        tmp_path,
        {"topic": "RMQ_SYS_TRANS_OP_HALF_TOPIC"},
        {"topic": "rmq_sys_REVIVE_LOG_C"},
        {"topic": "rmq_sys_wheel_timer", "more": {"REAL_TOPIC": "rmq_sys_REVIVE_LOG_C"}},
        {"topic": "rmq_sys_wheel_timer", "more": {"REAL_TOPIC": "Orders", "TIMER_DEL_UNIQKEY": "Orders_U1"}},
        {"more": {"STORESCOPE_LOST": "unit"}},
        {"body": b""},
    )
    reasons = [why_not_sent(message(unit)) or "" for unit in refused]
    words = ["own records", "own records", "own records", "deletes", "repair", "empty"]
    assert [word in reason for word, reason in zip(words, reasons, strict=True)] == [True] * 6
    (sent,) = units(tmp_path / "2", {"topic": "RMQ_SYS_TRANS_HALF_TOPIC", "more": {"REAL_TOPIC": "Orders"}})
    assert why_not_sent(message(sent)) is None


def test_a_body_that_does_not_match_its_crc_is_not_sent(tmp_path) -> None:
    store = HandmadeStore()
    unit = store.put(body=b"the body")
    position = store.log.find(b"the body")
    store.log[position] ^= 1
    (damaged,) = units_of(store_of(store.write(tmp_path / "store")))
    assert damaged.offset == unit.offset
    assert "CRC" in (why_not_sent(message(damaged)) or "")


def test_the_producers_properties_stay_and_the_brokers_go(tmp_path) -> None:
    own = {"region": "north", "__SHARDINGKEY": "o7", "_SYS_MSG_PRIORITY_": "3"}
    brokers = dict.fromkeys(originals.BROKER_PROPERTIES - {"RETRY_TOPIC"}, "1")
    (unit,) = units(
        tmp_path,
        {
            "topic": "%DLQ%billing",
            "more": {**own, **brokers, "RETRY_TOPIC": "Orders"},
            "keys": "k1 k2",
            "tags": "paid",
            "unique": "U7",
        },
    )
    sent = properties_to_send(message(unit), "Orders", "U7")
    rest = {"KEYS": "k1 k2", "TAGS": "paid", "UNIQ_KEY": "U7", "WAIT": "true", "ORIGIN_MESSAGE_ID": unit.offset_msg_id}
    assert sent == {**own, **rest}
    assert properties_to_send(message(unit), "%RETRY%billing", "U7")["RETRY_TOPIC"] == "Orders"
    (unit,) = units(tmp_path / "2", {"more": {"ORIGIN_MESSAGE_ID": "first"}})
    assert properties_to_send(message(unit), "Orders", "U7")["ORIGIN_MESSAGE_ID"] == "first"


def test_members_of_an_inner_batch_are_messages_of_their_own(tmp_path) -> None:
    from engine.codec import batch

    body = batch.encode(1, b"a", {"UNIQ_KEY": "A", "TAGS": "x"}) + batch.encode(2, b"b", {"UNIQ_KEY": "B"})
    (unit,) = units(tmp_path, {"body": body, "sys_flag": 0xC0, "more": {"INNER_NUM": "2", "INNER_BASE": "0"}})
    stored = list(messages_of(unit))
    assert [(item.member, item.body, item.unique_key, item.flag, item.sys_flag) for item in stored] == [
        (0, b"a", "A", 1, 0),
        (1, b"b", "B", 2, 0),
    ]
