"""Every decoder with its real library: round trips, and bodies that are hostile or something else."""

from __future__ import annotations

import json
import resource
from decimal import Decimal

import cbor2
import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec import message_trace
from engine.decoding.decoders import DECODERS, prepare
from engine.decoding.rules import DecodingRule
from engine.decoding.values import BadBody, as_json_value
from engine.errors import UsageError

_LEAVES = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
)
_VALUES = st.recursive(
    _LEAVES | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5), inner, max_size=4)
    ),
    max_leaves=20,
)


def _decode(name: str, body: bytes, **options: str):
    return prepare(DecodingRule("*", name, options=tuple(options.items())))(body)


def _outcome(name: str, body: bytes) -> tuple[object, str]:
    """Return the value and "", or None and why there is none."""
    try:
        return _decode(name, body), ""
    except BadBody as error:
        return None, error.problem or "no reason"


@pytest.mark.parametrize(
    ("name", "write"),
    [("json", lambda value: json.dumps(value).encode()), ("msgpack", msgpack.packb), ("cbor", cbor2.dumps)],
)
@given(value=_VALUES)
def test_what_a_library_writes_is_read_again(name, write, value):
    assert _decode(name, write(value)) == value


@pytest.mark.parametrize("name", ["json", "text", "msgpack", "cbor", "trace"])
@given(body=st.binary(max_size=200))
def test_any_bytes_give_a_value_of_json_or_a_reason(name, body):
    value, problem = _outcome(name, body)
    assert value is None or not problem
    json.dumps(value, allow_nan=False).encode()


@pytest.mark.parametrize(
    ("name", "body", "problem"),
    [
        ("json", b"[" * 1_000_000, "nested deeper than 100 levels"),
        ("json", b"[" * 150 + b"]" * 150, "nested deeper than 100 levels"),
        ("json", b"1" * 5000, "4300 digits"),
        ("json", b'{"a":', "not valid JSON: Expecting value"),
        ("json", b"\xff", "not valid utf-8"),
        ("msgpack", b"\xdd\x00\x40\x00\x00" * 800_000, "not valid MessagePack: StackError"),
        ("msgpack", b"\xdd\xff\xff\xff\xff", "exceeds max_array_len"),
        ("msgpack", b"\x91" * 500 + b"\x01", "nested deeper than 100 levels"),
        ("msgpack", b"\x01\x02", "1 byte follows the value"),
        ("msgpack", b"", "the body ends too early"),
        ("cbor", b"\x81" * 100_000, "maximum container nesting depth (100) exceeded"),
        ("cbor", b"\x9b\x00\x00\x00\x00\xff\xff\xff\xff", "premature end of stream"),
        ("cbor", b"\x5b\x00\x00\x00\xff\xff\xff\xff\xff", "premature end of stream"),
        ("cbor", b"\xd8\x1c\x81\xd8\x1d\x00", "nested deeper than 100 levels"),
        ("cbor", b"\xc2\x5a\x00\x10\x00\x00" + b"\xff" * 0x100000, "a number of 8,388,608 bits"),
        ("cbor", b"\x01\x02", "1 byte follows the value"),
    ],
)
def test_hostile_bodies_end_with_a_reason(name, body, problem):
    assert problem in _outcome(name, body)[1]


def test_a_decimal_number_with_a_huge_exponent_is_not_written_out():
    assert _decode("cbor", b"\xc4\x82\x1a\x3b\x9a\xca\x00\x01") == "1 × 10^1000000000"


def test_hostile_bodies_take_little_memory():
    """Lengths in front of MessagePack's lists and of CBOR's texts promise gigabytes that do not follow."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    value: object = [1] * 10
    for _ in range(30):
        value = [value] * 10
    bodies = (
        ("msgpack", b"\xdd\x00\x40\x00\x00" * 800_000),
        ("cbor", b"\x9b\x00\x00\x00\x00\x7f\xff\xff\xff" * 90),
        ("cbor", cbor2.dumps(value, value_sharing=True)),
    )
    for name, body in bodies:
        with pytest.raises(BadBody):
            _decode(name, body)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 << 10


def test_json_that_python_reads_and_json_does_not_have_becomes_text():
    body = b'{"a": NaN, "b": -Infinity, "c": 1e999, "d": "\\ud800", "e": 12345678901234567890}'
    assert _decode("json", body) == {
        "a": "NaN",
        "b": "-Infinity",
        "c": "1e999",
        "d": "?",
        "e": 12345678901234567890,
    }


def test_json_and_text_are_read_in_any_encoding():
    text = '{"城市":"上海"}'
    assert _decode("json", text.encode("gb18030"), encoding="gb18030") == {"城市": "上海"}
    assert _decode("text", text.encode("utf-16"), encoding="utf-16") == text
    assert _decode("json", b"\xef\xbb\xbf[1]") == [1]


def test_types_beyond_json_are_texts():
    body = {"d": Decimal("1.25"), "n": 2**70, "b": b"\x00"}
    assert _decode("cbor", cbor2.dumps(body)) == {"d": "1.25", "n": str(2**70), "b": "AA=="}
    assert _decode("msgpack", msgpack.packb(msgpack.Timestamp(0, 0))) == "1970-01-01T00:00:00+00:00"
    assert _decode("msgpack", msgpack.packb({1: msgpack.ExtType(5, b"x")})) == {
        "1": as_json_value(msgpack.ExtType(5, b"x"))
    }


def test_message_traces_are_objects_with_the_fields_that_they_have():
    fields = "Pub 1700000000000 region producers Orders ID1 T1 K1 127.0.0.1:10911 120 5 0 OFF true"
    body = fields.replace(" ", "\x01").encode() + b"\x02"
    (trace,) = _decode("trace", body)
    assert trace["action"] == "send"
    assert (trace["topic"], trace["messageId"], trace["isSuccess"]) == ("Orders", "ID1", True)
    assert len(list(message_trace.decode(body))) == 1
    with pytest.raises(BadBody, match="1 part is no message trace"):
        _decode("trace", body + b"Unknown\x01x\x02")


def test_mistakes_in_the_use_of_a_decoder_are_the_callers():
    for name, options, problem in (
        ("jason", {}, "there is no decoder 'jason'"),
        ("json", {"schema": "x"}, "the decoder json has no option schema"),
        ("avro", {}, "the decoder avro needs schema"),
        ("protobuf", {"descriptorSet": "x"}, "needs messageType"),
    ):
        with pytest.raises(UsageError, match=problem):
            _decode(name, b"", **options)
    assert all(decoder.title for decoder in DECODERS.values())
