"""Plain and packed bodies of registrations give the same values; a wrong body is refused with its reason."""

from __future__ import annotations

import json
import struct
import zlib

import pytest

from engine.namesrv import registration_body
from engine.namesrv.registration_body import check_crc, read_body
from engine.namesrv.routes import DataVersion, Queues
from engine.remoting.codes import WrongRequest

VERSION = {"stateVersion": 0, "timestamp": 1_700_000_000_000, "counter": 3}
MAPPING = {"topic": "T", "bname": "a", "totalQueues": 1, "epoch": 1, "currIdMap": {"0": 0}}


def text(value):
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return struct.pack(">i", len(raw)) + raw


def packed(*topics, servers=(), mappings=()):
    data = text(VERSION) + struct.pack(">i", len(topics)) + b"".join(map(text, topics)) + text(list(servers))
    if mappings:
        data += struct.pack(">i", len(mappings)) + b"".join(map(text, mappings))
    return zlib.compress(data)


def test_plain_and_compressed_bodies_are_equal():
    table = {"T": {"topicName": "T", "readQueueNums": 4, "writeQueueNums": 8, "perm": 6}}
    plain = {
        "topicConfigSerializeWrapper": {
            "topicConfigTable": table,
            "dataVersion": VERSION,
            "topicQueueMappingInfoMap": {"T": MAPPING},
        },
        "filterServerList": ["f:1"],
    }
    expected = (DataVersion(0, VERSION["timestamp"], 3), {"T": Queues(4, 8, 6)}, ("f:1",), {"T": MAPPING})
    assert read_body(json.dumps(plain).encode(), compressed=False) == expected
    assert read_body(packed(b"T 4 8 6 SINGLE_TAG", servers=["f:1"], mappings=[MAPPING]), compressed=True) == expected
    before_5 = packed(b"T 4 8 6 SINGLE_TAG", servers=["f:1"])
    assert read_body(before_5, compressed=True) == (*expected[:3], {})
    assert read_body(b"", compressed=True) == (DataVersion(), {}, (), {})


def test_missing_topic_fields_have_javas_defaults():
    body = {"topicConfigTable": {"T": {}}}  # the form that brokers before 3.0.11 send
    assert read_body(json.dumps(body).encode(), compressed=False)[1] == {"T": Queues(16, 16, 6)}


@pytest.mark.parametrize(
    ("body", "compressed", "message"),
    [
        (b"[]", False, "the body is no object"),
        (b"{", False, "the body is no JSON"),
        (b"no zlib", True, "cannot be unpacked"),
        (zlib.compress(b"\0\0"), True, "the body ends at 2, within a number"),
        (zlib.compress(struct.pack(">i", 99) + b"{}"), True, "a text of the body has 99 bytes, and 2 are there"),
        (packed(b"T four 8 6"), True, "a topic of the body cannot be read: 'T four 8 6'"),
    ],
)
def test_an_invalid_body_is_refused_with_a_message(body, compressed, message):
    with pytest.raises(WrongRequest, match=message):
        read_body(body, compressed=compressed)


def test_a_body_that_unpacks_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(registration_body, "MAX_BODY_BYTES", 1000)
    with pytest.raises(WrongRequest, match="unpacks to more than 1,000 bytes"):
        read_body(zlib.compress(bytes(5000)), compressed=True)


def test_the_crc_of_the_body_is_checked_if_given():
    check_crc(b"body", 0)
    check_crc(b"body", zlib.crc32(b"body") & 0x7FFFFFFF)
    with pytest.raises(WrongRequest, match="crc32 not match"):
        check_crc(b"body", 5)
