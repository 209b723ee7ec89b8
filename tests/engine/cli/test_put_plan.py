"""Plans of ``put``: files that list the messages."""

from __future__ import annotations

import re

import pytest
from explicit_plans import write_plan

from engine.cli.put_plan import read_plan
from engine.config import from_mapping
from engine.errors import UsageError


def test_the_configuration_file_comes_before_the_plans(tmp_path):
    plan = {"config": {"mappedFileSizeCommitLog": 8192, "mappedFileSizeConsumeQueue": 400}, "messages": []}
    read = read_plan(str(write_plan(tmp_path / "p", plan)))
    config = read.with_settings(from_mapping({"mappedFileSizeCommitLog": 65_536})[0])
    assert (config.mapped_file_size_commit_log, config.mapped_file_size_consume_queue) == (65_536, 400)


@pytest.mark.parametrize(
    ("plan", "wrong"),
    [
        ([], "a JSON object"),
        ({"messages": {}}, "messages: expected a list"),
        ({"messages": [{"body": "x"}]}, "messages[0]: topic"),
        ({"messages": [{"topic": "T", "queue": "x"}]}, "messages[0]: queue: expected a whole number"),
        ({"messages": [{"topic": "T", "bodyHex": "0"}]}, "bodyHex"),
        ({"messages": [{"topic": "T", "bornHost": "here"}]}, "bornHost: expected ip:port"),
        ({"messages": [{"topic": "T", "properties": {"a": {}}}]}, "properties: a"),
        ({"messages": [{"topic": "T", "properties": {"a": "\x02"}}]}, "0x02"),
        ({"count": 3}, "random messages are not supported"),
        ({"topics": [{"name": "T", "type": "Odd"}]}, "SimpleCQ or BatchCQ"),
        ({"config": {"mappedFileSizeCommitLog": "big"}}, "mappedFileSizeCommitLog"),
    ],
)
def test_an_invalid_plan_is_refused_with_the_field_name(tmp_path, plan, wrong):
    with pytest.raises(UsageError, match=re.escape(wrong)):
        read_plan(str(write_plan(tmp_path / "p", plan))).with_settings(None)


def test_a_plan_with_missing_fields_is_refused(tmp_path):
    plan = {"messages": [], "crashAfter": 3, "colour": 1, "seed": 4, "config": {"noSuchKey": 1}}
    remarks = " ".join(read_plan(str(write_plan(tmp_path / "p", plan))).remarks)
    assert "noSuchKey" in remarks
    assert "ignored in the plan: crashAfter" in remarks
    assert "unknown in a plan: colour" in remarks
