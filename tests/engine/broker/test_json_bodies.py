"""Bodies in RocketMQ's JSON dialect: bare integer keys, objects as keys, and an error message for a body without an
object.
"""

from __future__ import annotations

import pytest

from engine.broker.json_bodies import as_number, as_objects, as_text, read_object, write, write_table
from engine.remoting.codes import WrongRequest


def test_keys_are_read_as_text_and_written_in_their_order():
    assert read_object(b'{"b":1,2:"x"}') == {"b": 1, "2": "x"}
    assert write({"b": [1, None], "a": {3: "\u540d", "k": True}}) == '{"a":{3:"\u540d","k":true},"b":[1,null]}'.encode()


def test_a_table_has_objects_as_keys():
    rows = [({"topic": "T", "queueId": 0}, {"offset": 5})]
    assert write_table("table", rows, {"z": 1, "a": 2}) == (
        b'{"a":2,"table":{{"queueId":0,"topic":"T"}:{"offset":5}},"z":1}'
    )
    assert write_table("table", [], {}) == b'{"table":{}}'


@pytest.mark.parametrize("body", [b"", b"[]", b"7"])
def test_a_body_without_an_object_is_refused(body):
    with pytest.raises(WrongRequest, match="the body is no object"):
        read_object(body)


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, None), ("x", "x"), ("", ""), (-1, "-1"), (True, "true"), ([], "[]"), ({}, "{}"), ([None], "[null]")],
)
def test_any_member_can_be_read_as_text(value: object, text: str | None) -> None:
    assert as_text(value, "fastjson 1.2.83") == text


def test_a_number_is_parsed_from_text_and_a_missing_one_is_the_default() -> None:
    assert [as_number(value, "n", 16, "fastjson 2") for value in (3, "4", True, 5.0, None, "", "null")] == [
        3,
        4,
        1,
        5,
        16,
        16,
        16,
    ]
    for wrong in ("x", [], {}, [1]):
        with pytest.raises(WrongRequest, match="n: expected a whole number"):
            as_number(wrong, "n", 16, "fastjson 1.2.83")


def test_fastjson_2_looks_into_a_list_of_one() -> None:
    assert [as_text(value, "fastjson 2") for value in ([None], ["x"], [], [5], ["x", "y"])] == [
        None,
        "x",
        "[]",
        "[5]",
        '["x","y"]',
    ]
    assert as_number({}, "n", 16, "fastjson 2") == 0


def test_a_single_object_is_a_list_of_one() -> None:
    assert as_objects({}, "rows") == [{}]
    assert as_objects([{"a": 1}], "rows") == [{"a": 1}]
    for wrong in (None, "", "odd", 5, [None], [5]):
        with pytest.raises(WrongRequest, match="rows is no list of objects"):
            as_objects(wrong, "rows")
