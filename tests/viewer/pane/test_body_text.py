"""A body as text: decoded in a charset, laid out as JSON, unpacked, with a note for every cut."""

from __future__ import annotations

import json
import zlib

import pytest

from engine.codec.batch import encode
from viewer.pane.body_text import MAX_TEXT_CHARACTERS, as_json, as_text, looks_like_json, open_body


def test_a_compressed_body_is_unpacked_and_its_sizes_are_shown():
    body = open_body(zlib.compress(b"x" * 5000), 1)
    assert body.data == b"x" * 5000
    assert body.summary.endswith("B, zlib → 4.88 KiB")


def test_a_body_that_unpacks_too_large_is_cut_with_a_note():
    body = open_body(zlib.compress(b"\0" * 5_000_000), 1, max_bytes=1000)
    assert len(body.data) == 1000
    assert "1,000" in body.notes[0]


def test_a_batch_lists_its_messages():
    data = encode(0, b"one", {"KEYS": "a"}) + encode(0, b"two", {})
    assert [m.body for m in open_body(data, 0x80 | 0x40).members] == [b"one", b"two"]


@pytest.mark.parametrize(("charset", "text"), [("UTF-8", "订单"), ("GB18030", "订单"), ("UTF-16-LE", "ab")])
def test_text_is_read_in_the_chosen_charset(charset, text):
    assert as_text(text.encode(charset), charset) == (text, "")


def test_bytes_that_are_no_text_are_counted():
    text, note = as_text(b"ok \xff\xfe", "UTF-8")
    assert text.startswith("ok ")
    assert note == "2 places are not valid UTF-8"


def test_long_text_is_cut_with_a_note():
    text, note = as_text(b"a" * (MAX_TEXT_CHARACTERS + 5))
    assert len(text) == MAX_TEXT_CHARACTERS
    assert "1,048,576" in note


def test_json_keeps_numbers_names_and_order_as_written():
    source = '{"z": 1.10, "a": 12345678901234567890, "list": [], "n": {"x": [true, null, "订"]}}'
    laid, note = as_json(source.encode())
    assert note == ""
    assert laid.splitlines()[1:3] == ['  "z": 1.10,', '  "a": 12345678901234567890,']
    assert json.loads(laid) == json.loads(source)


@pytest.mark.parametrize(
    ("data", "words"), [(b"{", "line 1"), (b"\xff{", "byte 0"), (b"[" * 100_000, "nested"), (b" " * 5_000_000, "up to")]
)
def test_invalid_json_is_reported(data, words):
    laid, note = as_json(data)
    assert laid == ""
    assert words in note


def test_a_json_body_is_recognised_by_its_first_letter():
    assert looks_like_json(b'  {"a": 1}')
    assert not looks_like_json(b"plain")
