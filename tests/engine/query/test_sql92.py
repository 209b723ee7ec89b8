"""SQL92 conditions on a message's properties, evaluated like a broker: values that cannot be compared do not match."""

from __future__ import annotations

import pytest

from engine.errors import BadFilter
from engine.query.sql92 import compile_sql

PROPERTIES = {"region": "eu", "amount": "120", "tags": "Paid", "flag": "true"}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("region = 'eu'", True),
        ("region <> 'eu'", False),
        ("amount > 100", True),
        ("amount BETWEEN 100 AND 120", True),
        ("amount NOT BETWEEN 100 AND 120", False),
        ("region IN ('us', 'eu')", True),
        ("region NOT IN ('us')", True),
        ("nothing IS NULL", True),
        ("region IS NOT NULL AND amount < 5", False),
        ("nothing = 'x' OR region = 'eu'", True),
        ("nothing = 'x'", False),
        ("nothing > 5", False),
        ("region > 5", False),
        ("NOT (region = 'us')", True),
    ],
)
def test_conditions(text, matches):
    assert compile_sql(text)(PROPERTIES) is matches


@pytest.mark.parametrize("text", ["", "region =", "region = 'eu' AND", "= 5", "(region = 'eu'", "region ! 5"])
def test_invalid_expressions_are_refused_with_a_position(text):
    with pytest.raises(BadFilter) as wrong:
        compile_sql(text)
    assert 0 <= wrong.value.at <= len(text)
