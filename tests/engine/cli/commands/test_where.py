"""``where``: one verdict for a message, and one for each route to it."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from engine.cli.commands.where import _VERDICT_WORDS
from engine.cli.main import main
from engine.rules.where import Verdict


def test_every_verdict_is_explained_in_a_sentence():
    """The first printed line was only the verdict's name, for example notInQueue."""
    assert set(_VERDICT_WORDS) == set(get_args(Verdict))


def test_every_route_to_an_existing_message_finds_it(storescope):
    record = storescope("where", "K2")[0]
    assert (record["verdict"], record["physicalOffset"]) == ("found", storescope.store.units[2].offset)
    assert {(row["by"], row["verdict"]) for row in record["routes"]} >= {
        ("offset", "found"),
        ("queue", "found"),
        ("uniqueKey", "found"),
        ("key", "found"),
    }
    assert all(route["why"] for route in record["routes"])


def test_a_message_that_was_never_put_is_not_found(storescope):
    assert [
        record["verdict"] for record in storescope("where", "nobody", status=1) if record["type"] == "whereResult"
    ] != ["found"]


@pytest.mark.golden
def test_tags_find_every_message_with_a_tag_entry(golden, capsys):
    """Tags were searched as keys and never matched. A message without a tag entry may still be in the log."""
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
