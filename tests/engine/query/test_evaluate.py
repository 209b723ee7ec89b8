from __future__ import annotations

import zlib
from dataclasses import replace
from datetime import UTC

import pytest
from filter_units import STORED, record, unit

from engine.decoding.bodies import decoding_by
from engine.decoding.rules import DecodingRule
from engine.query import parse, text_of

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
    expected = parse(text, now_ms=STORED + 120_000, zone=UTC)
    assert expected.matches(PAID) is answer
    assert expected.matches(record(PAID)) is answer


@pytest.mark.parametrize(
    "text",
    [
        'tags = "x"',
        'tags != "x"',
        'tags in ("x")',
        'tags not in ("x")',
        'tags contains ""',
        'tags not contains "x"',
        "tags matches /x?/",
        "tags not matches /x/",
        'tags between "" and "z"',
        'tags not between "a" and "z"',
        'keys = "x"',
        'keys != "x"',
        'keys not in ("x")',
        "properties.a < 5",
        "properties.a != properties.b",
    ],
)
def test_a_comparison_with_an_absent_value_is_false_and_its_negation_true(text):
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
        ({"properties": {"_SYS_MSG_PRIORITY_": "3"}}, ["priority = 3", "priority > 2", "priority is not null"]),
        ({"properties": {"_SYS_MSG_PRIORITY_": "x"}}, ["priority is null"]),
        ({"properties": {"_SYS_MSG_PRIORITY_": "3", "DELAY": "1"}}, ["priority is null"]),
        ({"properties": {"__LITE_TOPIC": "a"}}, ['liteTopic = "a"', 'liteTopic in ("a", "b")']),
    ],
)
def test_the_kind_of_a_unit_is_a_single_word_condition(changes, texts):
    item = unit(**changes)
    known_record = record(item)
    if item.stale:
        known_record["physicalOffsetField"] = item.physical_offset
    for text in texts:
        assert parse(text).matches(item) is True
        assert parse(text).matches(known_record) is True


def test_a_compressed_body_is_searched_unpacked():
    item = unit(zlib.compress(b"refund " * 100), sys_flag=1)
    for results in (item, record(item), record(item) | {"body": item.body}):
        assert parse('body contains "refund refund"').matches(results) is True
        assert parse("compressed").matches(results) is True
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


def test_the_file_of_a_unit_is_known_if_the_caller_passes_it():
    test = parse('file = "00000000000000004096"').compile(lambda offset: f"{offset:020d}")
    assert test(PAID) is True
    assert test(record(PAID)) is False
    assert test(record(PAID) | {"file": "00000000000000004096"}) is True


@pytest.mark.parametrize(
    ("price", "condition", "matches"),
    [
        ("10.6", "body.price > 10.5", True),
        ("10.5", "body.price > 10.5", False),
        ("10.1", "body.price = 10.1", True),
        ("10.10", "body.price in (1, 10.1)", True),
        ("11", "body.price > 10.5", True),
        ("-0.25", "body.price < -0.2", True),
        ("-0.25", "-0.2 < body.price", False),
        ("0.0015", "body.price between 1.5e-3 and 1.6E-3", True),
        ("2e3", "body.price = 2e3", True),
        ("1e300", "body.price > 1e299", True),
        ("9007199254740993", "body.price = 9007199254740992", False),
        ("9007199254740993", "body.price > 9007199254740992.5", True),
        ("123456789012345678901234567890", "body.price > 1e29", True),
        ('"10.60"', "body.price > 10.5", True),
        ('"10.60"', 'body.price = "10.6"', False),
        ('"ten"', "body.price < 10.5", False),
        ("true", "body.price < 10.5", False),
        ("[10.6]", "body.price != 10.5", False),
    ],
)
def test_fields_of_bodies_are_compared_with_decimals_exactly(price, condition, matches):
    order = replace(unit(), body=f'{{"price": {price}}}'.encode(), sys_flag=0)
    with decoding_by([DecodingRule("*", "json")]):
        parsed = parse(condition)
        assert parsed.matches(order) is matches
        assert parse(text_of(parsed.tree)).tree == parsed.tree
