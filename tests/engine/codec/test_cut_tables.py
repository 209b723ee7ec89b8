"""The rows in front of damage in a table are kept."""

from __future__ import annotations

from engine.codec.cut_tables import whole_rows
from engine.codec.json_dialect import parse

TEXT = b"""{
	"dataVersion":{"counter":6,"timestamp":1},
	"offsetTable":{
		"a@g":{0:5,1:7
		},
		"b, {@g":{0:123
		}
	}
}"""


def test_only_whole_rows_are_kept():
    for length in range(len(TEXT)):
        rows = whole_rows(TEXT[:length], length)
        is_whole = length > TEXT.index(b',\n\t\t"b,')
        kept = None if rows is None else parse(rows).value["offsetTable"]
        assert kept == ({"a@g": {0: 5, 1: 7}} if is_whole else None), length


def test_damage_in_front_of_the_rows_leaves_none():
    assert whole_rows(TEXT, 20) is None
    assert whole_rows(b"]}" + TEXT, 100) is None
