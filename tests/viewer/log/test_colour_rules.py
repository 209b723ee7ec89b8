"""Colouring rules: the first match wins, invalid rules are left out, and saved rules are restored."""

from __future__ import annotations

from typing import Any, cast

from engine.codec.message import Unit
from viewer.log.colour_rules import PLAIN, TINTS, RowStyle, Rule, kept, read, row_style_function


def style_for(rules: list[Rule], **record: Any) -> RowStyle:
    style_of = row_style_function(rules)
    assert style_of is not None
    return style_of(cast("Unit", record))


def test_the_first_rule_that_matches_wins():
    rules = [Rule("third queue", "queueId = 3", "red"), Rule("orders", 'topic = "Orders"', "green")]
    assert style_for(rules, topic="Orders", queueId=3) == RowStyle("third queue", "red")
    assert style_for(rules, topic="Orders", queueId=4) == RowStyle("orders", "green")
    assert style_for(rules, topic="Paid", queueId=4) == PLAIN


def test_rules_that_are_off_or_cannot_be_read_colour_nothing():
    assert (
        row_style_function([Rule("off", "queueId = 3", on=False), Rule("broken", "queueId ="), Rule("empty", " ")])
        is None
    )
    assert Rule("broken", "queueId =").fault
    assert Rule("empty", " ").fault
    assert not Rule("good", "queueId = 3").fault


def test_valid_rules_are_restored_from_the_settings():
    rules = [Rule("a", "queueId = 3", tint, number % 2 == 0) for number, tint in enumerate(TINTS)]
    assert read(kept(rules)) == rules
    assert read([{"name": "a", "text": 4, "tint": "red"}, {"name": "a", "text": "b", "tint": "mauve"}, {}]) == []
