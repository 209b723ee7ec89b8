"""One row of a table changes; the rest stays."""

from __future__ import annotations

import json

import pytest

from engine.codec.config_tables import load_table
from engine.codec.json_dialect import parse
from engine.patching.table_edits import set_number

NOW = 1_790_000_000_000
OFFSETS = b"""{
	"dataVersion":{"counter":6,"stateVersion":0,"timestamp":1},
	"groupTopicMap":{"g":["T"],"other":["T"]},
	"offsetTable":{"T@g":{0:5,"1":7},"T@other":{0:9}},
	"unknown":[1,2]
}"""


def edited(raw: bytes | None, row: tuple[str, ...], key: int | None, number: int) -> dict:
    table = load_table("consumerOffset.json", lambda name: raw if name == "consumerOffset.json" else None)
    patch = set_number(table, raw, row, key, number, NOW, "because")
    assert (patch.file, patch.old, patch.why) == ("config/consumerOffset.json", raw, "because")
    value = parse(patch.new).value
    assert isinstance(value, dict)
    return value


@pytest.mark.parametrize("queue", [0, 1, 2])
def test_one_offset_changes_and_the_version_is_counted_up(queue):
    before, after = parse(OFFSETS).value, edited(OFFSETS, ("offsetTable", "T@g"), queue, 1)
    assert after["dataVersion"] == {"counter": 7, "stateVersion": 0, "timestamp": NOW}
    offsets = {int(key): value for key, value in after["offsetTable"]["T@g"].items()}
    assert offsets == {0: 5, 1: 7} | {queue: 1}
    for name in ("groupTopicMap", "unknown"):
        assert after[name] == before[name]
    assert after["offsetTable"]["T@other"] == {0: 9}


def test_a_new_group_is_in_the_map_of_groups_too():
    after = edited(OFFSETS, ("offsetTable", "T@new"), 3, 1)
    assert after["offsetTable"]["T@new"] == {3: 1}
    assert after["groupTopicMap"] == {"g": ["T"], "other": ["T"], "new": ["T"]}


def test_a_missing_table_is_created_without_a_version():
    assert edited(None, ("offsetTable",), 3, 12) == {"offsetTable": {3: 12}}


def test_a_number_may_be_the_last_name():
    after = edited(b'{"lmqOffsetTable":{"a@b":1}}', ("lmqOffsetTable", "a@b"), None, 2)
    assert json.loads(json.dumps(after)) == {"lmqOffsetTable": {"a@b": 2}}
