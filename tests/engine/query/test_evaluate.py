from __future__ import annotations

import base64
import zlib
from datetime import UTC, timedelta, timezone
from typing import Any

import pytest

from engine.codec.message import Unit
from engine.codec.properties import encode
from engine.query import FIELDS, parse

STORED = 1_795_167_667_250  # 2026-11-20T09:41:07.250Z
CHINA = timezone(timedelta(hours=8))


def unit(body: bytes = b'{"order":"O-1042","note":"refunded \xe9\x87\x91"}', **changes: Any) -> Unit:
    properties = changes.pop(
        "properties", {"KEYS": "O-1042 AaAa", "TAGS": "Paid", "UNIQ_KEY": "7F0001", "region": "eu", "amount": "120"}
    )
    values: dict[str, Any] = {
        "offset": 4096, "size": 310, "version": 1, "body_crc": 77, "queue_id": 3, "flag": 0, "queue_offset": 12,
        "physical_offset": 4096, "sys_flag": 0, "born_timestamp": STORED - 3000,
        "born_host_raw": bytes([127, 0, 0, 1, 0, 0, 0, 80]),
        "store_timestamp": STORED, "store_host_raw": bytes([127, 0, 0, 1, 0, 0, 42, 159]), "reconsume_times": 0,
        "prepared_transaction_offset": 0, "topic": "OrderPaid", "crc": "ok",
    }  # fmt: skip
    return Unit(**values | {"body": body, "properties": properties, "properties_raw": encode(properties)} | changes)


def record(item: Unit) -> dict[str, Any]:
    """As JSON's ``unit`` has it, with the body."""
    return {
        "type": "unit", "physicalOffset": item.offset, "size": item.size, "version": item.version, "file": None,
        "topic": item.topic, "queueId": item.queue_id, "queueOffset": item.queue_offset, "flag": item.flag,
        "sysFlag": item.sys_flag, "bornTimestamp": item.born_timestamp, "bornHost": item.born_host,
        "storeTimestamp": item.store_timestamp, "storeHost": item.store_host, "reconsumeTimes": item.reconsume_times,
        "preparedTransactionOffset": item.prepared_transaction_offset, "bodyCRC": item.body_crc, "crc": item.crc,
        "bodyLength": len(item.body), "properties": item.properties, "tags": item.tags, "keys": item.keys,
        "uniqueKey": item.unique_key, "tagsCode": item.tags_code, "offsetMsgId": item.offset_msg_id,
        "body": base64.b64encode(item.body).decode(),
    }  # fmt: skip


PAID = unit()
BARE = unit(b"", properties={}, sys_flag=0)

YES_AND_NO = [
    ("", True),
    ("true", True),
    ("false", False),
    ('topic = "OrderPaid"', True),
    ("topic == 'OrderPaid'", True),
    ('topic <> "OrderPaid"', False),
    ('topic != "Other"', True),
    ('topic < "P"', True),
    ('topic in ("A", "OrderPaid")', True),
    ('topic not in ("A", "OrderPaid")', False),
    ('topic contains "der"', True),
    ('topic startswith "Order" and topic endswith "Paid"', True),
    ('topic not startswith "Order"', False),
    ('topic like "Order%"', True),
    ('topic like "order%"', False),
    (r'topic like "Order\\_aid"', False),
    ('topic like "Order_aid"', True),
    ("topic matches /^order/", False),
    ("topic matches /^order/i", True),
    ('topic matches "Pa.d$"', True),
    ("topic not matches /x/", True),
    ("size > 300 and size < 0x200", True),
    ("size >= 4KiB", False),
    ("size >= 4 KiB", False),
    ("size < 4 KiB and size > 1 B", True),
    ("storeTimestamp - bornTimestamp = 3 s", True),
    ("queue = queueId and (tag = tags or tag is null)", True),
    ("size between 310 and 310", True),
    ("size not between 1 and 300", True),
    ("size in (310, 1_000)", True),
    ("310 = size", True),
    ("size > -1", True),
    ("size - bodyLength < 1KiB", True),
    ("sysFlag & 8 = 0", True),
    ("storeTimestamp - bornTimestamp = 3s", True),
    ("storeTimestamp - bornTimestamp > 3000ms", False),
    ("storeTimestamp - bornTimestamp > 2999", True),
    ('storeTimestamp = "2026-11-20 09:41:07.250"', True),
    ('storeTimestamp = "2026-11-20T17:41:07.250+08:00"', True),
    ('storeTimestamp >= "2026-11-20"', True),
    ('storeTimestamp >= "2026-11-21"', False),
    ('storeTimestamp between "2026-11-20 09:41" and "2026-11-20 09:42"', True),
    (f"storeTimestamp = {STORED}", True),
    ("storeTimestamp > now - 5m", True),
    ("storeTimestamp + 1m < now", True),
    ('keys = "AaAa"', True),
    ('keys = "aaaa"', False),
    ('keys != "AaAa"', False),
    ('keys != "BBBB"', True),
    ('keys in ("x", "O-1042")', True),
    ('keys not in ("x", "O-1042")', False),
    ('keys startswith "O-"', True),
    ("keys matches /^Aa/", True),
    ("keys contains uniqueKey", False),
    ('tags = "Paid" and tags is not null', True),
    ('uniqueKey = "7F0001"', True),
    ('bornHost startswith "127.0.0.1:"', True),
    ('storeHost = "127.0.0.1:10911"', True),
    ('offsetMsgId endswith "1000"', True),
    ("tagsCode = 2479852", True),
    ('crc = "ok"', True),
    ('not crc = "bad"', True),
    ('body contains "refunded 金"', True),
    ("body matches /REFUND(ed)?/i", True),
    ('properties.region = "eu"', True),
    ('properties["region"] in ("us", "eu")', True),
    ("properties.amount > 99", True),
    ('properties.amount > "99"', False),
    ("properties.amount in (1, 120)", True),
    ("properties.amount between 100 and 120", True),
    ("properties.region > 5", False),
    ("properties.none = 'x' or properties.none != 'x'", False),
    ("properties.none is null", True),
    ("properties.KEYS contains tags", False),
    ("compressed or batch or delayed or retry or deadLetter", False),
    ("compressed = false", True),
    ("not compressed", True),
    ("!compressed && !batch || false", True),
    ("NOT Compressed = TRUE".replace("Compressed", "compressed"), True),
    ("transaction is null", True),
    ("not (size > 300 and size > 400)", True),
    ("size > 400 or size > 300 and queueId = 3", True),
    ("(size > 400 or size > 300) and queueId = 4", False),
    ("physicalOffset = physicalOffsetField", True),
    ("file is null", True),
]


@pytest.mark.parametrize(("text", "answer"), YES_AND_NO)
def test_a_unit_and_its_record_get_the_same_answer(text, answer):
    wanted = parse(text, now_ms=STORED + 120_000, zone=UTC)
    assert wanted.matches(PAID) is answer
    assert wanted.matches(record(PAID)) is answer


@pytest.mark.parametrize(
    "text",
    [
        'tags = "x"', 'tags != "x"', 'tags in ("x")', 'tags not in ("x")', 'tags contains ""', 'tags not contains "x"',
        "tags matches /x?/", "tags not matches /x/", 'tags between "" and "z"', 'tags not between "a" and "z"',
        'keys = "x"', 'keys != "x"', 'keys not in ("x")', "properties.a < 5", "properties.a != properties.b",
    ],
)  # fmt: skip
def test_a_comparison_with_an_absent_value_is_false_and_not_around_it_true(text):
    for item in (BARE, record(BARE)):
        assert parse(text).matches(item) is False
        assert parse(f"not ({text})").matches(item) is True


@pytest.mark.parametrize(
    ("changes", "texts"),
    [
        ({"sys_flag": 0x8}, ['transaction = "commit"']),
        ({"sys_flag": 0xC}, ['transaction = "rollback"']),
        ({"topic": "RMQ_SYS_TRANS_HALF_TOPIC"}, ['transaction = "half"', 'transaction in ("half", "op")']),
        ({"sys_flag": 0x4}, ['transaction = "half"']),
        ({"topic": "RMQ_SYS_TRANS_OP_HALF_TOPIC"}, ['transaction = "op"']),
        ({"topic": "SCHEDULE_TOPIC_XXXX"}, ["delayed", "delayed = true", "delayed and not retry"]),
        ({"topic": "rmq_sys_wheel_timer"}, ["delayed"]),
        ({"topic": "%RETRY%billing"}, ["retry", "not deadLetter"]),
        ({"topic": "%DLQ%billing"}, ["deadLetter", "not retry"]),
        ({"sys_flag": 0x80}, ["batch"]),
        ({"offset": 8192}, ["physicalOffset != physicalOffsetField", "physicalOffset = 8192"]),
        ({"crc": "bad"}, ['crc = "bad"']),
    ],
)
def test_what_a_unit_is_can_be_asked_in_a_word(changes, texts):
    item = unit(**changes)
    known = record(item)
    if item.stale:
        known["physicalOffsetField"] = item.physical_offset
    for text in texts:
        assert parse(text).matches(item) is True
        assert parse(text).matches(known) is True


def test_a_compressed_body_is_searched_unpacked():
    item = unit(zlib.compress(b"refund " * 100), sys_flag=1)
    for found in (item, record(item), record(item) | {"body": item.body}):
        assert parse('body contains "refund refund"').matches(found) is True
        assert parse("compressed").matches(found) is True
    broken = unit(b"not zlib at all", sys_flag=1)
    assert parse("body is null").matches(broken) is True
    assert parse("body is null").matches({"sysFlag": 0, "body": "not base64!"}) is True


def test_a_regular_expression_sees_the_first_64_kib():
    item = unit(b"x" * 65535 + b"yz")
    assert parse("body matches /y/").matches(item) is True
    assert parse("body matches /z/").matches(item) is False
    assert parse('body contains "z"').matches(item) is True


def test_a_foreign_record_with_values_of_another_kind_counts_as_absent():
    odd = {"size": "big", "topic": 5, "keys": "one", "properties": ["a"], "storeTimestamp": True, "sysFlag": None}
    for text in ("size > 0", 'topic != "x"', 'keys = "one"', 'properties.a = "a"', "storeTimestamp > 0", "compressed"):
        assert parse(text).matches(odd) is False
        assert parse(text).matches({}) is False


def test_the_file_of_a_unit_is_known_where_the_caller_tells_it():
    test = parse('file = "00000000000000004096"').compile(lambda offset: f"{offset:020d}")
    assert test(PAID) is True
    assert test(record(PAID)) is False
    assert test(record(PAID) | {"file": "00000000000000004096"}) is True


def test_times_without_an_offset_are_the_readers():
    assert parse('storeTimestamp = "2026-11-20 17:41:07.250"', zone=CHINA).matches(PAID) is True
    assert parse('storeTimestamp = "2026-11-20 17:41:07.250"', zone=UTC).matches(PAID) is False


def test_the_fields_asked_for_are_named():
    assert parse('size > 1 and (keys = "x" or properties.a is null)').fields == {"size", "keys", "properties.a"}
    assert parse("").takes_all
    assert not parse("size > 1").takes_all


def test_every_field_can_be_asked_of_a_unit_and_of_a_record():
    for name, spec in FIELDS.items():
        text = name if spec.kind == "condition" else f"{name} is null"
        assert parse(text).matches(PAID) is parse(text).matches(record(PAID)), name
