"""The writer of RocketMQ's JSON: real brokers' files come out byte for byte, and everything reads back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec.json_dialect import parse
from engine.codec.json_writer import render, render_line

TABLES = ("topics.json", "subscriptionGroup.json", "consumerOffset.json", "delayOffset.json", "consumerFilter.json")


@pytest.mark.golden
@pytest.mark.parametrize("name", ["broker-orders", "broker-orders-4.9.7", "broker-lmq", "broker-transactions"])
def test_what_real_brokers_wrote_comes_out_byte_for_byte(golden: Any, name: str) -> None:
    folder = Path(golden(name)) / "config"
    seen = [folder / table for table in (*TABLES, "lmqConsumerOffset.json") if (folder / table).is_file()]
    assert len(seen) >= 4
    for path in seen:
        text = path.read_text("utf-8")
        assert render(parse(text).value) == text, path.name


@pytest.mark.golden
def test_metrics_are_one_line(golden: Any) -> None:
    text = (Path(golden("broker-orders")) / "config" / "timermetrics").read_text("utf-8")
    assert render_line(parse(text).value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({}, "{}"),
        ({"a": {}}, '{\n\t"a":{}\n}'),
        ({0: 12, 1: 7}, "{0:12,1:7\n}"),
        ({"a@b": {0: 1}, "c": [1, "x", None, True]}, '{\n\t"a@b":{0:1\n\t},\n\t"c":[1,"x",null,true]\n}'),
        ({"中": 'q"\\\n\u0001'}, '{\n\t"中":"q\\"\\\\\\n\\u0001"\n}'),
    ],
)
def test_form(value: Any, text: str) -> None:
    assert render(value) == text


def test_other_letters_are_escaped_on_one_line() -> None:
    assert render_line({"中": "😀"}) == '{"\\u4E2D":"\\uD83D\\uDE00"}'


def test_only_what_json_knows() -> None:
    with pytest.raises(TypeError, match="found object"):
        render(object())


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 63) - 1) | TEXT,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(TEXT, inner, max_size=3)
        | st.dictionaries(st.integers(-(10**6), 10**6), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(TEXT, VALUES, max_size=4))
def test_everything_reads_back(value: dict[str, Any]) -> None:
    for text in (render(value), render_line(value)):
        assert parse(text).value == value


@given(st.dictionaries(TEXT, st.integers(), max_size=3))
def test_without_integer_keys_it_is_plain_json(value: dict[str, int]) -> None:
    assert json.loads(render(value)) == value
