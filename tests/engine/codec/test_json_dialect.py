"""RocketMQ's JSON: texts of brokers, broken texts, and hostile texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.codec import json_dialect
from engine.codec.json_dialect import MAX_DEPTH, ObjectKey, RowTexts, parse, render, render_line

CASES = [
    pytest.param('{"a":1}', {"a": 1}, id="standard"),
    pytest.param('{"o":{0:12,-1:7,"2":3}}', {"o": {0: 12, -1: 7, "2": 3}}, id="bare integer keys"),
    pytest.param('{\n\t"o":{1:63,2:24\n\t}\n}', {"o": {1: 63, 2: 24}}, id="as a broker indents"),
    pytest.param('{"x":"a,5:b {7:1}",1:2}', {"x": "a,5:b {7:1}", 1: 2}, id="keys inside a string are text"),
    pytest.param('{"x":"say \\"{1:2}\\" ,3:4"}', {"x": 'say "{1:2}" ,3:4'}, id="behind an escaped quote"),
    pytest.param("{'a':1,b:2,,}", {"a": 1, "b": 2}, id="quotes, words and commas that fastjson allows"),
    pytest.param("[1,,2,]", [1, 2], id="commas in a list"),
    pytest.param('{"a":"\\ud83d\\ude00","b":"\\ud800"}', {"a": "😀", "b": "\ufffd"}, id="surrogates"),
    pytest.param('{"a":"tab\there","b":"\\t\\/\\u4e2d\\x41\\\'"}', {"a": "tab\there", "b": "\t/中A'"}, id="escapes"),
    pytest.param('{"a":-1.5e3,"b":true,"c":null,"d":[]}', {"a": -1500.0, "b": True, "c": None, "d": []}, id="values"),
    pytest.param('\ufeff{"a":1}', {"a": 1}, id="byte order mark"),
    pytest.param('\0{"a"\0:1}', {"a": 1}, id="control characters between tokens"),
    pytest.param("{}", {}, id="empty object"),
    pytest.param("null", None, id="null"),
]


@pytest.mark.parametrize(("text", "value"), CASES)
def test_reads(text, value):
    results = parse(text)
    assert results.value == value
    assert results.accepted
    assert results.complaint is None
    assert parse(text.encode()) == results


@pytest.mark.parametrize(("text", "value"), CASES)
def test_the_careful_reader_gives_the_same(text, value):
    assert json_dialect._parse_fully(text).value == value


def test_objects_as_keys_of_a_clients_offsets():
    text = '{"offsetTable":{{"brokerName":"broker-a","queueId":1,"topic":"ShipmentEvents"}:55}}'
    ((key, offset),) = parse(text).value["offsetTable"].items()
    assert isinstance(key, ObjectKey)
    assert key.value == {"brokerName": "broker-a", "queueId": 1, "topic": "ShipmentEvents"}
    assert offset == 55
    assert json.loads(key) == key.value


FAULTS = [
    ("", 0, 1, 1, "expected a value, found the end of the text"),
    ("\n\n  ", 4, 3, 3, "expected a value, found the end of the text"),
    ('{"a":1', 6, 1, 7, "expected ',' or '}' after a value, found the end of the text"),
    ('{"a" 1}', 5, 1, 6, "expected ':' after the key 'a', found '1'"),
    ('{"a":1 "b":2}', 7, 1, 8, "expected ',' or '}' after a value, found '\"'"),
    ('{\n\t"é":[1 2]}', 11, 2, 9, "expected ',' or ']' after a value, found '2'"),
    ('{"a":"b}', 5, 1, 6, "a string is not closed"),
    ('{"a":NaN}', 5, 1, 6, "expected a value, found 'N'"),
    ('{"a":"\\q"}', 6, 1, 7, "unknown escape '\\\\q' in a string"),
    ('{"a":1e999}', 5, 1, 6, "a number is too large"),
    ('{"a":' + "9" * 5000 + "}", 5, 1, 6, "a number has too many digits"),
    ("{*:1}", 1, 1, 2, "expected a key, found '*'"),
    ("\0\0\0\0", 0, 1, 1, "4 zero bytes and nothing else"),
]


@pytest.mark.parametrize(("text", "offset", "line", "column", "problem"), FAULTS)
def test_a_fault_names_its_position(text, offset, line, column, problem):
    parsed = parse(text.encode())
    assert parsed.fault is not None
    assert (parsed.fault.problem, parsed.fault.place.offset) == (problem, offset)
    assert (parsed.fault.place.line, parsed.fault.place.column) == (line, column)
    assert not parsed.accepted
    assert parsed.complaint == f"line {line} column {column} (offset {offset}): {problem}"


def test_a_leftover_tail_is_reported_with_its_position():
    """A shorter text was written over a longer one without truncating the file. The broker refuses it and reads the
    backup.
    """
    old = '{"offsetTable":{"T@g":{0:12345}}}'
    new = '{\n"offsetTable":{"Té@g":{0:1}}}'
    results = parse((new + old[len(new) - 4 :]).encode())
    assert results.value == {"offsetTable": {"Té@g": {0: 1}}}
    assert results.tail.text == old[len(new) - 4 :]
    assert (results.tail.place.line, results.tail.place.offset) == (2, len(new.encode()))
    assert not results.accepted
    assert "characters after the end" in results.complaint


def test_blanks_after_the_end_are_no_tail_and_zeros_are_a_harmless_one():
    assert parse('{"a":1} \r\n\t').tail is None
    zeros = parse('{"a":1}\n' + "\0" * 500)
    assert (zeros.tail.length, zeros.tail.is_harmless, zeros.tail.place.offset) == (500, True, 8)
    assert zeros.accepted


def test_repeated_keys_are_reported_and_the_last_one_counts():
    results = parse('{"t":{0:1,\n0:2}}')
    assert results.value == {"t": {0: 2}}
    assert [(item.key, item.place.line) for item in results.duplicates] == [("0", 2)]
    assert results.accepted


def test_malformed_utf_8_becomes_replacement_characters():
    results = parse(b'{"a\xff\xfe":"\xc3"} x')
    assert results.value == {"a\ufffd\ufffd": "\ufffd"}
    assert results.tail.place.offset == 12


@pytest.mark.parametrize(
    "bomb",
    ["[" * 3_000_000, '{"a":' * 500_000, "{" * 1_000_000, '{"a":' * (MAX_DEPTH + 2) + "1" + "}" * (MAX_DEPTH + 2)],
    ids=["lists", "objects", "object keys", "just too deep"],
)
def test_deep_bombs_are_refused(bomb):
    assert parse(bomb).fault.problem == f"nested deeper than {MAX_DEPTH}"


def test_the_permitted_depth_is_the_same_both_ways():
    text = "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1)
    assert parse(text).fault is None
    assert json_dialect._parse_fully(text).fault is None
    assert parse(f"[{text}]").fault is not None


def test_wide_bombs_are_refused(monkeypatch):
    monkeypatch.setattr(json_dialect, "MAX_VALUES", 1000)
    assert parse("[" + "0," * 2000 + "]").fault.problem == "more than 1,000 values"
    monkeypatch.setattr(json_dialect, "MAX_TEXT_BYTES", 100)
    assert "longer than the 100 bytes" in parse("[" + " " * 200).fault.problem


_KEYS = st.text(max_size=8) | st.integers(-(10**18), 10**18)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 63) - 1) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=20,
)


def _write(value):
    if isinstance(value, dict):
        return "{" + ",\n\t".join(f"{_write_key(key)}:{_write(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_write, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _write_key(key):
    return str(key) if isinstance(key, int) else json.dumps(key, ensure_ascii=False)


@given(_VALUES)
def test_written_values_round_trip(value):
    text = _write(value)
    results = parse(text)
    assert results.accepted
    assert results.value == value
    assert _write(results.value) == text, "the order of keys is kept"
    assert json_dialect._parse_fully(text).value == value


@given(st.binary(max_size=300))
def test_any_bytes_give_a_value(raw):
    results = parse(raw)
    assert results.accepted is (results.complaint is None)
    json.dumps(results.value).encode()


@settings(max_examples=300)
@given(st.text(alphabet="{}[]\":,0123-ae\\\n u'", max_size=40))
def test_any_text_of_signs_gives_the_same_both_ways(text):
    results, careful = parse(text), json_dialect._parse_fully(text)
    assert (results.value, results.tail, results.fault) == (careful.value, careful.tail, careful.fault)


@given(_VALUES, st.integers(0, 400), st.text(max_size=3))
def test_torn_and_patched_texts_give_a_value(value, position, patch):
    text = _write(value)
    for broken in (text[:position], text[:position] + patch + text[position:], text + text[position:]):
        parsed, careful = parse(broken), json_dialect._parse_fully(broken)
        assert (parsed.value, parsed.tail) == (careful.value, careful.tail)


TABLES = ("topics.json", "subscriptionGroup.json", "consumerOffset.json", "delayOffset.json", "consumerFilter.json")


@pytest.mark.golden
@pytest.mark.parametrize("name", ["broker-orders", "broker-orders-4.9.7", "broker-lmq", "broker-transactions"])
def test_texts_of_real_brokers_round_trip_byte_for_byte(golden: Any, name: str) -> None:
    folder = Path(golden(name)) / "config"
    observed = [folder / table for table in (*TABLES, "lmqConsumerOffset.json") if (folder / table).is_file()]
    assert len(observed) >= 4
    for path in observed:
        text = path.read_text("utf-8")
        assert render(parse(text).value) == text, path.name


@pytest.mark.golden
def test_metrics_are_one_line(golden: Any) -> None:
    text = (Path(golden("broker-orders")) / "config" / "timermetrics").read_text("utf-8")
    assert render_line(parse(text).value) == text


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


LOOSE = [
    ("{a:1}", "the name 'a' without quotes", 1),
    ('{"a":1,,"b":2}', "a comma without a value", 7),
    ('{,"a":1}', "a comma without a value", 1),
    ('{"a":[1,,2]}', "a comma without a value", 8),
    ('{"a":1 /* one */}', "a comment", 7),
]


@pytest.mark.parametrize(("text", "problem", "offset"), LOOSE)
def test_text_that_fastjson_2_refuses_is_reported_with_its_position(text, problem, offset):
    """A table with this text was reported as valid, but RocketMQ 5.5 failed at its start."""
    parsed = parse(text)
    assert parsed.complaint_of("fastjson 1.2.83") is None
    expected_text = (
        f"column {offset + 1} (offset {offset}): {problem}, which RocketMQ 5.4 and later do not read everywhere"
    )
    assert expected_text in (parsed.complaint_of("fastjson 2") or "")


@pytest.mark.parametrize("text", ['{"o":{0:5,,1:7}}', '{"o":{,0:5}}', '{"o":{0:5,,}}'])
def test_commas_between_numbered_members_are_refused_by_every_release(text):
    assert "a comma without a value between numbers" in (parse(text).complaint_of("fastjson 1.2.83") or "")


@pytest.mark.parametrize(
    "text", ['// a\n{"a":1}', '/* a */{"a":1}', '{"a":1}// end', '{"a":1}\n/* end */\n', '{"a":1}/* open', '{"a":1,}']
)
def test_comments_around_the_table_and_a_trailing_comma_are_read_by_every_release(text):
    """A table with a comment in its first line was reported as unreadable, although brokers load it."""
    parsed = parse(text)
    assert parsed.value == {"a": 1}
    assert [parsed.complaint_of(parser) for parser in ("fastjson 1.2.83", "fastjson 2")] == [None, None]


def test_a_file_of_zero_bytes_is_reported_as_such():
    """A power cut leaves such a file. The report was "expected a value, found the end of the text", at its end."""
    assert parse(bytes(599)).complaint == "line 1 column 1 (offset 0): 599 zero bytes and nothing else"


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


def test_only_json_types_are_accepted() -> None:
    with pytest.raises(TypeError, match="found object"):
        render(object())


@given(st.dictionaries(TEXT, st.integers(), max_size=3))
def test_without_integer_keys_it_is_plain_json(value: dict[str, int]) -> None:
    assert json.loads(render(value)) == value


def test_unchanged_rows_are_rendered_as_before():
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
    for other_value in ({}, {"table": {}}, {"table": None}, {"table": {1: {"a": 1}, "b": 2}}):
        assert texts.render(other_value, "table") == render(other_value)
