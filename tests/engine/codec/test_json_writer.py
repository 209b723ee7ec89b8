"""Write JSON as RocketMQ does: fastjson's pretty form, bare integer keys."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec.json_writer import RowTexts, render, render_line


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


@given(st.dictionaries(TEXT, st.integers(), max_size=3))
def test_without_integer_keys_it_is_plain_json(value: dict[str, int]) -> None:
    assert json.loads(render(value)) == value


def test_rows_that_stay_are_spelled_as_before():
    rows: dict[str | int, object] = {f"t{number}": {"n": number, "deep": {"a": [1, "x"]}} for number in range(3)}
    value = {"dataVersion": {"counter": 1, "table": {}}, "table": rows, "z": {}}
    texts = RowTexts()
    assert texts.render(value, "table") == render(value)
    rows["t1"] = {"n": 9}
    rows['new "row'] = {}
    del rows["t0"]
    value["dataVersion"] = {"counter": 2}
    for _ in range(2):
        assert texts.render(value, "table") == render(value)
    for other in ({}, {"table": {}}, {"table": None}, {"table": {1: {"a": 1}, "b": 2}}):
        assert texts.render(other, "table") == render(other)
