"""``where``: one verdict for a message, and one for each way to it."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from engine.cli.commands.where import _VERDICT_WORDS
from engine.cli.main import main
from engine.rules.where import Verdict


def test_every_verdict_is_explained_in_a_sentence():
    """The first line for people was only the verdict's name, such as notInQueue."""
    assert set(_VERDICT_WORDS) == set(get_args(Verdict))


def test_each_way_to_a_message_that_is_there_finds_it(asked):
    record = asked("where", "K2")[0]
    assert (record["verdict"], record["physicalOffset"]) == ("found", asked.made.units[2].offset)
    assert {(row["by"], row["verdict"]) for row in record["routes"]} >= {
        ("offset", "found"),
        ("queue", "found"),
        ("uniqueKey", "found"),
        ("key", "found"),
    }
    assert all(route["why"] for route in record["routes"])


def test_what_was_never_put_is_not_found(asked):
    assert [record["verdict"] for record in asked("where", "nobody", status=1) if record["type"] == "whereResult"] != [
        "found"
    ]


@pytest.mark.golden
def test_tags_find_each_message_that_has_an_entry_of_them(golden, capsys):
    """Tags were looked for as a key, and nothing had it; a message without an entry may be in the log all the same."""
    store = str(golden("broker-tags-5.5.1"))
    assert main(["units", store, "--where", "tags == 'open'", "--json"]) == 0
    units = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert main(["where", store, "open", "--tag", "--json", "--quiet"]) == 0
    results = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    places = {record["physicalOffset"] for record in units if record["type"] == "unit"}
    assert {row["physicalOffset"] for row in results} == places
    assert {result["verdict"] for result in results} == {"found"}
    assert main(["where", str(golden("broker-orders")), "paid", "--tag"]) == 1
    output = capsys.readouterr()
    assert "no entry for these tags" in output.err
    assert "RocketMQ before 5.4 indexes no tags" in output.err
