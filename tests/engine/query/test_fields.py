"""Fields that filters support."""

from __future__ import annotations

from filter_units import record, unit

from engine.query import FIELDS, GRAMMAR, parse

PAID = unit()


def test_the_fields_of_a_filter_are_named():
    assert parse('size > 1 and (keys = "x" or properties.a is null)').fields == {"size", "keys", "properties.a"}
    assert parse("").takes_all
    assert not parse("size > 1").takes_all


def test_every_field_exists_in_units_and_records():
    for name, spec in FIELDS.items():
        text = name if spec.kind == "condition" else f"{name} is null"
        assert parse(text).matches(PAID) is parse(text).matches(record(PAID)), name


def test_the_help_names_every_field_and_its_examples_are_valid():
    assert all(f"  {name} " in GRAMMAR for name in FIELDS)
    examples = GRAMMAR.split("\n\n")[1].splitlines()
    assert len(examples) >= 5
    for line in examples:
        parse(line)
