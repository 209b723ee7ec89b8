"""``mqadmin``: RocketMQ's own commands, with the same spelling and output."""

from __future__ import annotations

import json

import agree
import handmade_stores
import pytest

from engine.cli.commands.mqadmin import moment


@pytest.fixture
def store(tmp_path):
    """Write a small healthy store."""
    return handmade_stores.healthy().write(tmp_path / "store")


def test_mqadmin_options_are_spelt_as_mqadmin_spells_them(store):
    unit = agree.records_of("units", store, "--topic", "Orders", "--limit", 1)[0]
    place = ["-t", "Orders"]
    for arguments in (
        ["queryMsgByKey", *place, "-k", unit["keys"][0]],
        ["queryMsgByKey", "--topic", "Orders", "--msgKey", unit["keys"][0]],
        ["queryMsgById", "-i", unit["offsetMsgId"]],
        ["queryMsgById", "--msgId", unit["offsetMsgId"]],
        ["queryMsgByUniqueKey", *place, "-i", unit["uniqueKey"]],
        ["queryMsgByOffset", *place, "-i", unit["queueId"], "-o", unit["queueOffset"]],
        ["queryMsgByOffset", *place, "--queueId", unit["queueId"], "--offset", unit["queueOffset"]],
        ["queryCq", *place, "-q", unit["queueId"], "-i", 0, "-c", 3],
        ["queryCq", *place, "--queue", unit["queueId"], "--index", 0, "--count", 3],
        ["printMsg", *place],
        ["printMsgByQueue", *place, "-i", unit["queueId"]],
        ["topicStatus", *place],
    ):
        status, out, err = agree.command(*arguments, "-s", store, "--json")
        assert (status, err) == (0, ""), arguments
        records = [json.loads(line) for line in out.splitlines()]
        assert records
        if arguments[0] != "topicStatus":
            assert any(unit["physicalOffset"] == record["physicalOffset"] for record in records)


def test_mqadmin_takes_several_ids(store):
    ids = [unit["offsetMsgId"] for unit in agree.records_of("units", store, "--limit", 2)[:2]]
    status, out, _ = agree.command("queryMsgById", "-s", store, "-i", ",".join(ids), "--json")
    assert status == 0
    assert [json.loads(line)["offsetMsgId"] for line in out.splitlines()] == ids
    assert agree.command("queryMsgById", "-s", store, "-i", f"{ids[0]},{'0' * 32}")[0] == 1


def test_a_time_as_mqadmin_writes_it():
    assert moment("2023-11-14#22:13:20:123") % 1000 == 123
    assert moment("1700000000000") == 1_700_000_000_000


def test_messages_are_queried_by_tag_as_in_mqadmin_of_5_4(golden):
    store = golden("broker-tags-5.5.1")
    place = ["queryMsgByKey", "-s", store, "-t", "TagTopic"]
    response = agree.records_of(*place, "-k", "paid", "-p", "T", "-m", "1000")
    assert [unit["tags"] for unit in response] == ["paid"] * 350
    unique = response[0]["uniqueKey"]
    assert [unit["physicalOffset"] for unit in agree.records_of(*place, "-k", unique, "--keyType", "U")] == [
        response[0]["physicalOffset"]
    ]
    assert agree.records_of(*place, "-k", unique, "-p", "K") == []
    assert agree.records_of(*place, "-k", "paid") == []
