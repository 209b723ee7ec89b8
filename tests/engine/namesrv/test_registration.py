"""The body of a registration, plain and packed, and the sentence for one that is neither."""

from __future__ import annotations

import json
import struct
import zlib

import pytest

from engine.namesrv import registration
from engine.namesrv.registration import check_crc, read_body
from engine.namesrv.routes import DataVersion, Queues

VERSION = {"stateVersion": 0, "timestamp": 1_700_000_000_000, "counter": 3}


def text(value):
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return struct.pack(">i", len(raw)) + raw


def packed(*topics, servers=()):
    data = text(VERSION) + struct.pack(">i", len(topics)) + b"".join(map(text, topics)) + text(list(servers))
    return zlib.compress(data)


def test_a_plain_body_and_the_same_packed_say_the_same():
    table = {"T": {"topicName": "T", "readQueueNums": 4, "writeQueueNums": 8, "perm": 6}}
    plain = {
        "topicConfigSerializeWrapper": {"topicConfigTable": table, "dataVersion": VERSION},
        "filterServerList": ["f:1"],
    }
    wanted = (DataVersion(0, VERSION["timestamp"], 3), {"T": Queues(4, 8, 6)}, ("f:1",))
    assert read_body(json.dumps(plain).encode(), compressed=False) == wanted
    assert read_body(packed(b"T 4 8 6 SINGLE_TAG", servers=["f:1"]), compressed=True) == wanted
    assert read_body(b"", compressed=True) == (DataVersion(), {}, ())


def test_what_a_topic_leaves_out_is_as_in_java():
    body = {"topicConfigTable": {"T": {}}}  # as brokers of before 3.0.11 send it
    assert read_body(json.dumps(body).encode(), compressed=False)[1] == {"T": Queues(16, 16, 6)}


@pytest.mark.parametrize(
    ("body", "compressed", "said"),
    [
        (b"[]", False, "the body is no object"),
        (b"{", False, "the body is no JSON"),
        (b"no zlib", True, "cannot be unpacked"),
        (zlib.compress(b"\0\0"), True, "the body ends at 2, within a number"),
        (zlib.compress(struct.pack(">i", 99) + b"{}"), True, "a text of the body has 99 bytes, and 2 are there"),
        (packed(b"T four 8 6"), True, "a topic of the body cannot be read: 'T four 8 6'"),
    ],
)
def test_what_is_no_body_is_refused_in_a_sentence(body, compressed, said):
    with pytest.raises(registration.WrongRequest, match=said):
        read_body(body, compressed=compressed)


def test_a_body_that_unpacks_beyond_all_bounds_is_refused(monkeypatch):
    monkeypatch.setattr(registration, "LARGEST", 1000)
    with pytest.raises(registration.WrongRequest, match="unpacks to more than 1,000 bytes"):
        read_body(zlib.compress(bytes(5000)), compressed=True)


def test_the_crc_of_the_body_where_one_is_told():
    check_crc(b"body", 0)
    check_crc(b"body", zlib.crc32(b"body") & 0x7FFFFFFF)
    with pytest.raises(registration.WrongRequest, match="crc32 not match"):
        check_crc(b"body", 5)
