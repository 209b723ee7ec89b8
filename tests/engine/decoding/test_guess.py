"""Guesses what the bodies of a topic are."""

from __future__ import annotations

import gzip
import json

import cbor2
import msgpack
import pytest

from engine.decoding.guess import guess
from engine.system_names import TRACE_TOPIC


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        (b' {"a": 1}', {"topic": "T", "decoder": "json"}),
        (gzip.compress(b"[1]", mtime=0), {"topic": "T", "decoder": "json", "unpack": "gzip"}),
        (msgpack.packb({"order": 1, "b": [2]}), {"topic": "T", "decoder": "msgpack"}),
        (cbor2.dumps({"order": 1, "b": [2]}), {"topic": "T", "decoder": "cbor"}),
        (b"\xd9\xd9\xf7\x01", {"topic": "T", "decoder": "cbor"}),
        ("Grüße\n".encode(), {"topic": "T", "decoder": "text"}),
    ],
)
def test_a_likely_rule_is_offered_with_its_reason(body, rule):
    guessed = guess("T", body, 0)
    assert guessed is not None
    assert json.loads(guessed.text) == rule
    assert guessed.why


@pytest.mark.parametrize("body", [b"", b"\x00\x01\x02", b"\xff\xfe\xfd", b"\x08\x96\x01"])
def test_nothing_is_offered_for_bytes_that_could_be_anything(body):
    assert guess("T", body, 0) is None


def test_the_topic_of_traces_is_known_by_its_name():
    guessed = guess(TRACE_TOPIC, b"Pub", 0)
    assert guessed is not None
    assert guessed.rule.decoder == "trace"
