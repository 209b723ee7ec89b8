"""Plans of ``put``: files that say what is to be put."""

from __future__ import annotations

import re

import pytest
from explicit_plans import write_conf, write_plan

from engine.cli.main import main
from engine.cli.put_plan import read_plan
from engine.config import from_mapping
from engine.errors import UsageError
from engine.message_store import MessageStore

SIZES = {
    "mappedFileSizeCommitLog": 65_536,
    "mappedFileSizeConsumeQueue": 2000,
    "maxHashSlotNum": 50,
    "maxIndexNum": 200,
}


def put_one(store, *options):
    return main(["put", str(store), "--topic", "T", "--body", "tea", "--json", *options])


@pytest.fixture
def made(tmp_path, capsys):
    """A small store with one message, whose index file holds no key yet: its slots cannot be told from it."""
    assert put_one(tmp_path / "store", "--config", str(write_conf(tmp_path / "broker.conf", SIZES))) == 0
    capsys.readouterr()
    return tmp_path / "store"


def test_the_configuration_file_comes_before_the_plans(tmp_path):
    plan = {"config": {"mappedFileSizeCommitLog": 8192, "mappedFileSizeConsumeQueue": 400}, "messages": []}
    read = read_plan(str(write_plan(tmp_path / "p", plan)))
    config = read.over(from_mapping({"mappedFileSizeCommitLog": 65_536})[0])
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
        ({"count": 3}, "random messages are not made here"),
        ({"topics": [{"name": "T", "type": "Odd"}]}, "SimpleCQ or BatchCQ"),
        ({"config": {"mappedFileSizeCommitLog": "big"}}, "mappedFileSizeCommitLog"),
    ],
)
def test_a_wrong_plan_is_refused_by_name(tmp_path, plan, wrong):
    with pytest.raises(UsageError, match=re.escape(wrong)):
        read_plan(str(write_plan(tmp_path / "p", plan))).over(None)


def test_a_plan_with_what_is_left_out_says_so(tmp_path):
    plan = {"messages": [], "crashAfter": 3, "colour": 1, "seed": 4, "config": {"noSuchKey": 1}}
    remarks = " ".join(read_plan(str(write_plan(tmp_path / "p", plan))).remarks)
    assert "noSuchKey" in remarks
    assert "left out of the plan: crashAfter" in remarks
    assert "not known in a plan: colour" in remarks


def test_a_batch_topic_of_a_plan_is_declared(tmp_path, capsys):
    plan = {"config": SIZES, "topics": [{"name": "B", "queues": 2, "type": "BatchCQ"}], "messages": []}
    assert main(["put", str(tmp_path / "store"), "--plan", str(write_plan(tmp_path / "p", plan))]) == 0
    assert capsys.readouterr().err == ""
    with MessageStore(tmp_path / "store", read_plan(str(tmp_path / "p")).over(None)) as store:
        assert store.tables.is_batch_topic("B")
