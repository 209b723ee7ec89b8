"""Bodies in RocketMQ's dialect: bare integer keys, objects as keys, and a sentence for what is no object."""

from __future__ import annotations

import pytest

from engine.broker.json_bodies import read_object, write, write_table
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
def test_what_is_no_object_is_refused(body):
    with pytest.raises(WrongRequest, match="the body is no object"):
        read_object(body)
