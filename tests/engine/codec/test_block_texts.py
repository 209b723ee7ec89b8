"""Text conditions evaluated in the bytes of a block: both twins agree with each other and with the decoded text."""

from __future__ import annotations

import numpy as np
import pytest
from raw_units import raw_log

from engine.codec import block_texts, columns
from engine.codec.block_texts import FALSE, NULL, TRUE, bodies, judge_pairs, property_values, rarest_first, searchable
from engine.codec.columns import UnitColumns, scan_block
from engine.codec.topic_table import TopicTable

PROPERTIES = (b"TAGS\x01A\x02K\x01one two\x02", b"K\x01first\x02K\x01last\x02", b"", b"KK\x01no\x02", b"K\x01\x02")


@pytest.fixture
def block():
    return block_of(*({"body": b"body %d" % n, "properties": text} for n, text in enumerate(PROPERTIES)))


def block_of(*units: dict[str, object]) -> UnitColumns:
    data = np.frombuffer(raw_log(*units), np.uint8)
    out = UnitColumns(16)
    scan_block(data, len(data), 0, 0, out, TopicTable(), False, False)
    return out


ROWS = np.arange(len(PROPERTIES))


@pytest.mark.parametrize("compiled", [True, False])
def test_a_property_s_last_value_is_found_as_decoding_finds_it(block, monkeypatch, compiled):
    if not compiled:
        monkeypatch.setattr(columns, "twin", lambda: None)
    assert property_values(block, ROWS, b"K").to_list() == [b"one two", b"last", None, None, None]
    assert property_values(block, ROWS, b"K\x01").to_list() == [None] * 5
    assert bodies(block, ROWS).to_list() == [b"body %d" % n for n in range(5)]


@pytest.mark.parametrize(
    ("how", "sought", "answers"),
    [
        ("equal", b"last", [FALSE, TRUE, NULL, NULL, NULL]),
        ("contains", b"e t", [TRUE, FALSE, NULL, NULL, NULL]),
        ("startswith", b"one", [TRUE, FALSE, NULL, NULL, NULL]),
        ("endswith", b"st", [FALSE, TRUE, NULL, NULL, NULL]),
    ],
)
def test_conditions_are_evaluated_in_the_bytes(block, how, sought, answers):
    assert property_values(block, ROWS, b"K").match(how, sought).tolist() == answers


def test_one_of_several_keys_and_numbers(block):
    actual_property_values = property_values(block, ROWS, b"K")
    assert actual_property_values.match("equal", b"two", keys=True).tolist()[:2] == [TRUE, FALSE]
    values, states = bodies(block, ROWS).parse_numbers()
    assert (len(values), set(states.tolist())) == (5, {block_texts.NO_NUMBER})


def test_without_machine_code_the_caller_decodes(block, monkeypatch):
    monkeypatch.setattr(columns, "twin", lambda: None)
    actual_bodies = bodies(block, ROWS)
    assert (actual_bodies.match("equal", b"x"), actual_bodies.parse_numbers(), actual_bodies.compare(b"x")) == (
        None,
        None,
        None,
    )
    assert judge_pairs(block, ROWS) is None


def test_texts_are_ordered_only_where_byte_order_is_javas():
    """Java orders UTF-16 units. Beyond ASCII this differs from the order of the bytes, so the caller decodes."""
    signs, certain = bodies(block_of(*({"body": body} for body in (b"a", b"b", b"bb", b"\xc3\xa9"))), ROWS[:4]).compare(
        b"b"
    )
    assert signs[:3].tolist() == [-1, 0, 1]
    assert certain.tolist() == [True, True, True, False]


def test_property_texts_that_need_no_json_escaping_are_recognized():
    texts = (
        b"TAGS\x01A\x02K\x01one\x02",
        b"K\x01\xc3\xa9\x02",
        b"K\x01a\x02K\x01b\x02",
        b"K\x01\x02",
        b'K\x01"\x02',
        b"K\x01\n\x02",
    )
    judged = judge_pairs(block_of(*({"properties": text} for text in texts)), np.arange(len(texts)))
    assert judged.tolist() == [block_texts.PLAIN, block_texts.PLAIN_WIDE, *[block_texts.ODD] * 4]


def test_conditions_that_need_decoding_are_left_to_the_caller():
    assert [searchable(text) for text in ("a€", "\ufffd", "\ud800")] == ["a€".encode(), None, None]
    assert rarest_first(b"e q")[0] == 2


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("shift", range(9))
def test_a_run_of_zeros_is_seen_wherever_it_begins(monkeypatch, compiled, shift):
    monkeypatch.setattr(block_texts, "MAX_PLAIN_ROWS", 0 if compiled else 1000)
    texts = [
        b"K\x01" + b"x" * shift + bytes(count) + b"y" * tail + b"\x02"
        for count in (0, 1, 15, 16, 17, 40)
        for tail in (0, 3)
    ]
    texts.append(b"K\x01" + b"".join(bytes(15) + b"z" for _ in range(4)) + bytes(shift))
    out = UnitColumns(len(texts))
    data = np.frombuffer(raw_log(*({"body": b"b" * n, "properties": text} for n, text in enumerate(texts))), np.uint8)
    scan_block(data, len(data), 0, 0, out, TopicTable(), False, False)
    rows = block_texts.rows_with_zero_run(out, len(texts))
    assert rows.tolist() == [n for n, text in enumerate(texts) if bytes(16) in text]
