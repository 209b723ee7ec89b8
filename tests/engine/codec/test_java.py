"""Java's strings and numbers: the values of the format notes, and the output of a JVM for the others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec.java import divide, hash_map_order, i32, i64, index_key_hash, jhash, split, utf8

HASHES = [
    pytest.param("", 0, id="empty"),
    pytest.param("TagA", 2598919, id="TagA"),
    pytest.param("中文", 646394, id="characters of two bytes in UTF-16"),
    pytest.param("😀", 1772899, id="a pair of surrogates counts twice"),
    pytest.param("polygenelubricants", -(1 << 31), id="the smallest"),
    pytest.param("Aa", 2112, id="Aa"),
    pytest.param("BB", 2112, id="collides with Aa"),
    pytest.param("\ud83d", 0xD83D, id="half a pair"),
    pytest.param("\x00", 0, id="a zero"),
]


@pytest.mark.parametrize(("text", "value"), HASHES)
def test_hash_code(text, value):
    assert jhash(text) == value


@given(st.text())
def test_hash_code_is_the_sum_of_its_definition(text):
    raw = text.encode("utf-16-be", "surrogatepass")
    units = [int.from_bytes(raw[position : position + 2], "big") for position in range(0, len(raw), 2)]
    total = sum(unit * 31 ** (len(units) - 1 - index) for index, unit in enumerate(units))
    assert jhash(text) == (total + (1 << 31)) % (1 << 32) - (1 << 31)


KEY_HASHES = [
    pytest.param("TopicTest", "k1", 2746024, id="of the format notes"),
    pytest.param("t", "", jhash("t#"), id="an empty key"),
]


@pytest.mark.parametrize(("topic", "key", "value"), KEY_HASHES)
def test_key_hash(topic, key, value):
    assert index_key_hash(topic, key) == value


def test_a_key_whose_hash_has_no_positive_counterpart_gets_0():
    """The absolute value of −2³¹ is negative in Java. The golden store broker-orders contains such a key."""
    assert jhash("t#achssxlk") == -(1 << 31)
    assert index_key_hash("t", "achssxlk") == 0


WRAPPED = [
    pytest.param(i32, 1 << 31, -(1 << 31), id="i32 over the top"),
    pytest.param(i32, -(1 << 31) - 1, (1 << 31) - 1, id="i32 under the bottom"),
    pytest.param(i32, -1, -1, id="i32 of -1"),
    pytest.param(i64, 1 << 63, -(1 << 63), id="i64 over the top"),
    pytest.param(i64, (1 << 63) - 1, (1 << 63) - 1, id="the largest i64"),
]


@pytest.mark.parametrize(("wrap", "value", "wrapped"), WRAPPED)
def test_numbers_wrap(wrap, value, wrapped):
    assert wrap(value) == wrapped


SPLITS = [
    pytest.param("", [""], id="an empty text has one piece"),
    pytest.param(",", [], id="nothing but a separator"),
    pytest.param("a,,", ["a"], id="trailing empty pieces go"),
    pytest.param(",a", ["", "a"], id="a leading one stays"),
    pytest.param("a,,b", ["a", "", "b"], id="an inner one stays"),
    pytest.param("a", ["a"], id="no separator"),
]


@pytest.mark.parametrize(("text", "pieces"), SPLITS)
def test_split(text, pieces):
    assert split(text, ",") == pieces


DIVISIONS = [(7, 2, 3), (-7, 2, -3), (7, -2, -3), (-7, -2, 3), (0, 5, 0), (-1, 1000, 0)]


@pytest.mark.parametrize(("dividend", "divisor", "quotient"), DIVISIONS)
def test_division_truncates(dividend, divisor, quotient):
    assert divide(dividend, divisor) == quotient


@given(st.binary())
def test_any_bytes_are_a_text(raw):
    assert isinstance(utf8(raw), str)


def test_malformed_bytes_become_replacement_characters():
    assert utf8(b"a\xffb") == "a�b"


def test_keys_of_a_hash_map_are_ordered_by_bucket():
    """The order is that of ``java.util.HashMap``: sixteen buckets, and thirty-two from thirteen keys on."""
    assert hash_map_order(["UNIQ_KEY", "INNER_NUM", "INNER_BASE"]) == ["INNER_BASE", "UNIQ_KEY", "INNER_NUM"]
    assert hash_map_order([chr(97 + n) for n in range(13)]) == [chr(97 + n) for n in range(13)]
    assert hash_map_order([]) == []
