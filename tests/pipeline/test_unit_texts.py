"""Texts of units, decoded by columns, equal those that the codec decodes unit by unit."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from raw_units import raw_unit

from engine.codec import message, properties
from engine.codec.columns import UnitColumns, scan_block
from engine.codec.topic_table import TopicTable
from engine.codec.unit_scan import walk

pa = pytest.importorskip("pyarrow")

from engine.pipeline import unit_texts  # noqa: E402  needs Arrow

ODD = [
    "",
    "\x01",
    "\x02",
    "\x01\x02",
    "a\x01b\x02",
    "a\x01\x02",
    "\x01b\x02",
    "KEYS\x01a  b \x02",
    "KEYS\x01 \x02",
    "TAGS\x01t\x02",
    "a\x01b\x01c\x02",
    "é\x01ü\x02",
    "UNIQ_KEY\x01\U0001f600\x02",
    "nothing",
    "x\x01y",
]


def text_columns(texts):
    return [texts.properties.to_pylist(), texts.tags.to_pylist(), texts.keys.to_pylist(), texts.unique_key.to_pylist()]


def compare_texts(raw):
    texts = unit_texts.texts(pa.array(raw, pa.binary()))
    plain = unit_texts.texts_by_unit(raw)
    for field in ("properties", "tags", "keys", "unique_key"):
        assert getattr(texts, field).type == getattr(plain, field).type
        getattr(texts, field).validate(full=True)
    assert text_columns(texts) == text_columns(plain)
    return text_columns(texts)


@given(st.lists(st.lists(st.sampled_from(ODD), max_size=5).map("".join), max_size=8))
def test_odd_properties_are_read_as_the_codec_reads_them(listed):
    compare_texts([text.encode() for text in listed])


@given(st.lists(st.lists(st.sampled_from([b"\x01", b"\x02", b"a", b"\xff", b"\xed\xa0\x80"]), max_size=9), max_size=5))
def test_bytes_that_are_no_text_are_read_as_the_codec_reads_them(listed):
    compare_texts([b"".join(parts) for parts in listed])


def test_a_name_that_stands_twice_has_its_later_value():
    assert compare_texts([b"a\x01b\x02TAGS\x01x\x02", b"TAGS\x01x\x02a\x01c\x02TAGS\x01y\x02"]) == [
        [[("a", "b"), ("TAGS", "x")], [("TAGS", "y"), ("a", "c")]],
        ["x", "y"],
        [[], []],
        [None, None],
    ]


def test_no_unit_has_no_texts():
    assert compare_texts([]) == [[], [], [], []]


def columns_of(units):
    data = b"".join(units)
    out, topics = UnitColumns(len(units) + 1), TopicTable()
    scan_block(data, len(data), 7_000, 0, out, topics)
    assert out.count == len(units)
    return out, topics, list(walk(data, 7_000))


@pytest.mark.parametrize("v6", [0, message.BORN_HOST_V6, message.STORE_HOST_V6, "mixed"])
def test_hosts_ids_bodies_and_topics_are_those_of_each_unit(v6):
    rng = random.Random(3)
    kinds = [0, message.BORN_HOST_V6, message.STORE_HOST_V6, message.BORN_HOST_V6 | message.STORE_HOST_V6]
    units, position = [], 7_000
    for number in range(40):
        flags = rng.choice(kinds) if v6 == "mixed" else v6
        buffer = bytearray(
            raw_unit(position, sys_flag=flags, body=rng.randbytes(rng.randrange(50)), topic=b"T%d" % (number % 5))
        )
        buffer[48:50] = rng.randbytes(2)  # another host each
        units.append(bytes(buffer))
        position += len(buffer)
    block, topics, decoded = columns_of(units)
    names = unit_texts.TopicTexts(topics)
    for rows in (np.arange(40), np.array([3, 17, 39]), np.array([], np.intp)):
        chosen = [decoded[row] for row in rows]
        hosts = unit_texts.hosts(block, rows)
        assert hosts.born.to_pylist() == [unit_.born_host for unit_ in chosen]
        assert hosts.stored.to_pylist() == [unit_.store_host for unit_ in chosen]
        assert hosts.ids.to_pylist() == [unit_.offset_msg_id for unit_ in chosen]
        assert unit_texts.bodies(block, rows).to_pylist() == [unit_.body for unit_ in chosen]
        assert names.of(block, rows).to_pylist() == [unit_.topic for unit_ in chosen]
        raw = unit_texts.raw_properties(block, rows)
        assert raw.to_pylist() == [unit_.properties_raw for unit_ in chosen]
        assert unit_texts.texts(raw).tags.to_pylist() == [unit.properties.get(properties.TAGS) for unit in chosen]
        assert unit_texts.crc_words(block, rows).to_pylist() == [unit_.crc for unit_ in chosen]
