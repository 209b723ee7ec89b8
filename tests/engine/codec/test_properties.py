"""Property text in both directions, as MessageDecoder reads it, and its CRC."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from raw_units import raw_unit, with_property_crc

from engine.codec.properties import crc_digits, decode, encode, pair_spans, split_keys, verify_crc

BOTH_WAYS = [
    pytest.param({}, b"", id="none"),
    pytest.param({"TAGS": "TagA", "KEYS": "k1"}, b"TAGS\x01TagA\x02KEYS\x01k1\x02", id="of the check vector"),
    pytest.param({"a": "b\x01c"}, b"a\x01b\x01c\x02", id="a value with a separator of names"),
    pytest.param({"名": "値😀"}, "名\x01値😀\x02".encode(), id="outside ASCII"),
    pytest.param({"KEYS": "  two  spaces "}, b"KEYS\x01  two  spaces \x02", id="white space stays"),
]


@pytest.mark.parametrize(("properties", "raw"), BOTH_WAYS)
def test_writes(properties, raw):
    assert encode(properties) == raw


@pytest.mark.parametrize(("properties", "raw"), BOTH_WAYS)
def test_reads(properties, raw):
    assert decode(raw) == properties


ONLY_READ = [
    pytest.param(b"TAGS\x01TagA\x02KEYS\x01k1", {"TAGS": "TagA", "KEYS": "k1"}, id="4.9 leaves the last separator out"),
    pytest.param(b"a\x01\x02b\x01c\x02", {"b": "c"}, id="an empty value vanishes"),
    pytest.param(b"\x01a\x02b\x01c\x02", {"b": "c"}, id="an empty name vanishes"),
    pytest.param(b"\x02\x02a\x01b\x02", {"a": "b"}, id="empty pieces"),
    pytest.param(b"a\x01b\x02a\x01c\x02", {"a": "c"}, id="the later one wins"),
    pytest.param(b"a\x01b\x02a\x01\x02", {"a": "b"}, id="an empty later one does not"),
    pytest.param(b"no separators at all", {}, id="no separators"),
    pytest.param(b"ab\x02", {}, id="no value"),
    pytest.param(b"a\xff\x01b\x02", {"a�": "b"}, id="malformed UTF-8"),
    pytest.param(b"\x00" * 10, {}, id="zeros"),
]


@pytest.mark.parametrize(("raw", "properties"), ONLY_READ)
def test_reads_forms_that_are_no_longer_written(raw, properties):
    assert decode(raw) == properties


TEXTS = st.text(st.characters(exclude_characters="\x01\x02", exclude_categories=["Cs"]), min_size=1, max_size=20)


@given(st.dictionaries(TEXTS, TEXTS, max_size=8))
def test_property_text_round_trips(properties):
    assert decode(encode(properties)) == properties


@given(st.binary(max_size=200))
def test_any_bytes_are_read_and_their_spans_cover_them(raw):
    decode(raw)
    pieces = [raw[position : position + length] for position, length in pair_spans(raw)]
    assert b"".join(pieces) == raw


KEYS = [
    pytest.param(None, [], id="no KEYS"),
    pytest.param("", [], id="empty"),
    pytest.param("k1", ["k1"], id="one"),
    pytest.param("  two  spaces ", ["two", "spaces"], id="only what is between spaces"),
    pytest.param("a\tb", ["a\tb"], id="a tab is no space"),
]


@pytest.mark.parametrize(("text", "keys"), KEYS)
def test_keys(text, keys):
    assert split_keys(text) == keys


DIGITS = [(1652956916, b"6196592561"), (0, b"0000000000"), (10, b"0100000000"), (0x7FFFFFFF, b"7463847412")]


@pytest.mark.parametrize(("crc", "digits"), DIGITS)
def test_crc_digits_stand_from_the_least_significant_on(crc, digits):
    assert crc_digits(crc) == digits


def test_the_property_crc_of_the_check_vector():
    unit = with_property_crc(raw_unit(1234))
    assert len(unit) == 143
    assert unit.endswith(b"__CRC32#\x016196592561\x02")
    assert verify_crc(unit) is True


@pytest.mark.parametrize("position", [0, 8, 40, 88, 100, 120, 135, 141])
def test_a_changed_byte_makes_the_property_crc_wrong(position):
    unit = bytearray(with_property_crc(raw_unit(1234)))
    unit[position] ^= 1
    assert verify_crc(bytes(unit)) is False


@given(st.binary(max_size=60))
def test_bytes_without_a_property_crc_have_none(raw):
    assert verify_crc(raw) is None


def test_a_unit_without_a_property_crc_has_none():
    assert verify_crc(raw_unit()) is None
