"""Rules in force, and what they give for a message."""

from __future__ import annotations

import gzip
import json
import zlib
from dataclasses import replace

import handmade_stores
import pytest

from engine.codec.batch import encode
from engine.codec.message import INNER_BATCH, decode
from engine.decoding.bodies import (
    UNDECODED,
    BodyDecoders,
    decode_unit,
    decoders_in_force,
    decoding_by,
    field_of,
    field_of_body,
)
from engine.decoding.rules import DecodingRule, rule_of
from engine.system_names import TRACE_TOPIC


@pytest.fixture
def unit():
    unit = decode(handmade_stores.unit_bytes("Orders", 0, 0, 0, 1))
    return replace(unit, body=b'{"customer": {"id": 7, "name": null}}')


def _decode(body: bytes, sys_flag: int = 0, **rule: object):
    return BodyDecoders(()).decode(rule_of({"decoder": "json"} | rule), body, sys_flag)


def test_the_first_rule_that_matches_decides(unit):
    rules = [DecodingRule("Ord*", "json", tag="none"), DecodingRule("Orders", "json"), DecodingRule("*", "text")]
    decoders = BodyDecoders(rules)
    assert decoders.decode_unit(unit).value == {"customer": {"id": 7, "name": None}}
    assert decoders.decode_unit(replace(unit, topic="Paid")).decoder == "text"
    assert BodyDecoders(rules[:1]).decode_unit(unit).decoder == ""


def test_a_body_without_a_rule_is_neither_present_nor_absent(unit):
    assert decoders_in_force() is None
    assert field_of(unit, ("customer",)) is UNDECODED
    with decoding_by([DecodingRule("Orders", "json")]) as decoders:
        assert decoders_in_force() is decoders
        assert field_of(unit, ("customer", "id")) == 7
        assert field_of(unit, ("customer", "name")) is None
        assert field_of(unit, ("nothing",)) is None
        assert field_of(replace(unit, topic="Paid"), ("customer",)) is UNDECODED
        assert field_of(replace(unit, body=b"{"), ("customer",)) is UNDECODED
        assert field_of_body("Orders", None, {}, unit.body, 0, ("customer", "id")) == 7
        assert decoders.failed_count == 1
        assert list(decoders.topics_without_rule) == ["Paid"]
        assert decode_unit(unit).is_decoded
    assert decoders_in_force() is None


def test_errors_say_where_and_why():
    assert _decode(b'{"a":').error == "not valid JSON: Expecting value at byte 5"
    assert _decode(b"{}", decoder="avro", schema="/none/x.avsc").error == "/none/x.avsc: No such file or directory"
    assert _decode(b"{}", decoder="nothing").error.startswith("there is no decoder 'nothing'")
    assert _decode(b"{}", skip=5).error == "expected 5 bytes in front, found 2"


def test_bodies_are_unpacked_twice_where_rocketmq_and_the_application_both_packed_them():
    body = b'{"a": 1}'
    deflated = zlib.compressobj(wbits=-15)
    packed = deflated.compress(body) + deflated.flush()
    assert _decode(zlib.compress(gzip.compress(body)), 1, unpack="gzip").value == {"a": 1}
    assert _decode(packed, unpack="deflate").value == {"a": 1}
    assert _decode(zlib.compress(body), unpack="zlib").value == {"a": 1}
    assert _decode(b"12345" + body, skip=5).value == {"a": 1}


def test_other_packings_are_those_of_rocketmq():
    lz4 = pytest.importorskip("lz4.frame")
    zstandard = pytest.importorskip("zstandard")
    assert _decode(lz4.compress(b"[1]"), unpack="lz4").value == [1]
    assert _decode(zstandard.compress(b"[1]"), unpack="zstd").value == [1]


def test_a_few_bytes_that_unpack_to_gigabytes_are_refused():
    bomb = gzip.compress(bytes(64 << 20))
    assert "more than 4,194,304 bytes" in _decode(bomb, unpack="gzip").error
    assert "cut after" in BodyDecoders(()).decode(DecodingRule("*", "json"), zlib.compress(bytes(64 << 20)), 1).error
    assert "ends too early" in _decode(gzip.compress(b"[1]")[:-9], unpack="gzip").error
    assert "not valid gzip" in _decode(b"plain", unpack="gzip").error
    assert "up to 4,194,304 bytes" in _decode(b" " * (5 << 20) + b"1").error


def test_a_batch_is_the_list_of_its_messages(unit):
    def member(body: bytes) -> bytes:
        return encode(0, body, {})

    bodies = [json.dumps({"n": n}).encode() for n in range(3)]
    batch = replace(unit, body=b"".join(map(member, bodies)), sys_flag=INNER_BATCH)
    decoders = BodyDecoders([DecodingRule("*", "json")])
    assert decoders.decode_unit(batch).value == [{"n": 0}, {"n": 1}, {"n": 2}]
    broken = replace(batch, body=member(b"{}") + member(b"{"))
    assert decoders.decode_unit(broken).error.startswith("message 2 of the batch: not valid JSON")


def test_message_traces_need_no_rule(unit):
    trace = replace(unit, topic=TRACE_TOPIC, body=b"")
    assert BodyDecoders(()).decode_unit(trace).value == []
