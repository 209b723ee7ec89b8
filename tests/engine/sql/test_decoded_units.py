"""Decoded bodies in SQL, read by DuckDB's functions on JSON."""

from __future__ import annotations

import json

import agree
import pytest
from handmade_stores import HandmadeStore

from engine.decoding.rules import DecodingRule
from engine.errors import UsageError
from engine.inspection import open_store
from engine.sql.store_queries import StoreQueries

COUNT = 200
_RULES = [DecodingRule("Orders", "json")]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Write orders in JSON, one broken body, and a topic without a rule."""
    made = HandmadeStore(log_size=1 << 20)
    for number in range(COUNT):
        body = {"customer": {"id": str(number % 10)}, "lines": [{"n": number % 5}], "price": number / 4}
        made.put("Orders", body=json.dumps(body).encode(), tags=f"T{number % 2}")
    made.put("Orders", body=b"{")
    made.put("Other", body=b"[1]")
    return made.write(tmp_path_factory.mktemp("decoded") / "store")


def _rows(store, question: str, rules=_RULES) -> list[tuple[object, ...]]:
    with open_store(store) as snapshot, StoreQueries(snapshot, decoding_rules=rules) as queries:
        return [tuple(row.values()) for batch in queries.ask(question) for row in batch.to_pylist()]


def test_fields_of_bodies_are_grouped_and_compared(store):
    question = "SELECT decoded->>'$.customer.id' AS id, count(*), sum((decoded->>'$.lines[0].n')::INT) FROM units"
    rows = _rows(store, f"{question} WHERE decoded IS NOT NULL GROUP BY 1 ORDER BY 1")
    expected = [
        (str(digit), COUNT // 10, sum(number % 5 for number in range(COUNT) if number % 10 == digit))
        for digit in range(10)
    ]
    assert [(row[0], row[1], int(row[2])) for row in rows] == expected


def test_what_is_not_decoded_is_null_with_its_reason(store):
    rows = _rows(store, "SELECT topic, decodeError FROM units WHERE decoded IS NULL ORDER BY topic")
    assert rows == [
        ("Orders", "not valid JSON: Expecting property name enclosed in double quotes at byte 1"),
        ("Other", None),
    ]


def test_rules_with_conditions_decide_for_each_row(store):
    rules = [DecodingRule("*", "json", tag="T1")]
    assert _rows(store, "SELECT DISTINCT tags FROM units WHERE decoded IS NOT NULL", rules) == [("T1",)]


def test_bodies_are_not_read_for_questions_about_other_columns(store, monkeypatch):
    monkeypatch.setattr("engine.sql.decoded_units._with_decoded", None)
    assert _rows(store, "SELECT count(*) FROM units WHERE topic = 'Orders'") == [(COUNT + 1,)]


def test_a_rule_that_cannot_be_used_is_reported_before_the_question(store):
    with pytest.raises(UsageError, match="there is no decoder 'jason'"):
        _rows(store, "SELECT 1", [DecodingRule("*", "jason")])


def test_the_command_decodes_when_it_is_asked_to(store, tmp_path):
    rules = tmp_path / "rules.json"
    rules.write_text('{"rules": [{"topic": "Orders", "decoder": "json"}]}')
    question = "SELECT max((decoded->>'$.price')::DOUBLE) AS price FROM units"
    status, out, err = agree.command(
        "sql", str(store), question, "--decoded", "--decode", str(rules), "--format", "csv"
    )
    assert (status, out.split()) == (0, ["price", str((COUNT - 1) / 4)]), err
    status, _, err = agree.command("sql", str(store), question)
    assert status == 2
    assert "decoded" in err
