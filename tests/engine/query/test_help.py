"""The help of the filter language."""

from __future__ import annotations

from engine.query import FIELDS, GRAMMAR, parse


def test_the_help_names_every_field_and_its_examples_can_be_read():
    assert all(f"  {name} " in GRAMMAR for name in FIELDS)
    examples = GRAMMAR.split("\n\n")[1].splitlines()
    assert len(examples) >= 5
    for line in examples:
        parse(line)
