"""Decoded bodies on the command line: in records, tables and filters."""

from __future__ import annotations

import json

import agree
import msgpack
import pytest
from handmade_stores import HandmadeStore

from engine.decoding.rules import DecodingRule, save_rules

COUNT = 3000
"""More than the first bytes, which are walked unit by unit: both ways of writing lines are used."""


def _order(number: int) -> dict[str, object]:
    return {
        "orderId": f"O-{number}",
        "customer": {"id": str(number % 10)},
        "lines": [{"n": number % 5}],
        "paid": number % 2 == 0,
        "note": 'quotes " and Grüße' * 20,
    }


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Write a store with bodies of several formats."""
    made = HandmadeStore(log_size=1 << 24)
    for number in range(COUNT):
        made.put("Orders", body=json.dumps(_order(number)).encode(), tags=f"T{number % 3}", keys=f"K{number}")
    made.put("Orders", body=b'{"customer": {')
    made.put("Packed", body=msgpack.packb({"a": 1}))
    made.put("Other", body=b'{"z": 5}')
    return made.write(tmp_path_factory.mktemp("decoding") / "store")


@pytest.fixture
def rules(tmp_path):
    """Write a file of rules for two topics."""
    file = tmp_path / "rules.json"
    file.write_text(
        json.dumps({"rules": [{"topic": "Orders", "decoder": "json"}, {"topic": "Packed", "decoder": "msgpack"}]})
    )
    return str(file)


def _units(*arguments: object) -> list[dict[str, object]]:
    return [record for record in agree.records_of(*map(str, arguments)) if record["type"] == "unit"]


@pytest.mark.parametrize("condition", [[], ["--where", "size > 0"]])
def test_each_record_has_the_value_of_its_body_or_the_reason_why_not(store, rules, condition):
    units = _units("units", store, "--decoded", "--decode", rules, *condition)
    decoded = [(unit["decoded"], unit["decoder"], unit["decodeError"]) for unit in units]
    assert decoded[:COUNT] == [(_order(number), "json", None) for number in range(COUNT)]
    assert decoded[COUNT:] == [
        (None, "json", "not valid JSON: Expecting property name enclosed in double quotes at byte 14"),
        ({"a": 1}, "msgpack", None),
        (None, None, None),
    ]
    plain = _units("units", store, *condition)
    names = ("decoded", "decoder", "decodeError")
    assert [{name: unit[name] for name in unit if name not in names} for unit in units] == plain


def test_rules_with_conditions_on_properties_decide_for_each_message(store, tmp_path):
    file = tmp_path / "tagged.json"
    file.write_text(json.dumps([{"topic": "Orders", "tag": "T1", "decoder": "json"}]))
    units = _units("units", store, "--decoded", "--decode", file)
    assert {unit["tags"] for unit in units if unit["decoder"] == "json"} == {"T1"}
    assert sum(unit["decoder"] == "json" for unit in units) == COUNT // 3


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ('body.customer.id == "7"', lambda order: order["customer"]["id"] == "7"),
        ("body.customer.id < 3", lambda order: int(order["customer"]["id"]) < 3),
        (
            "body.lines[0].n in (1, 2) and body.paid = true",
            lambda order: order["lines"][0]["n"] in (1, 2) and order["paid"],
        ),
        ("body.nothing is null", lambda order: True),
        ('topic = "Orders" and not body.paid = true', None),
    ],
)
def test_filters_read_fields_of_bodies(store, rules, condition, expected):
    """A message whose body is not decoded meets no condition on its fields, also not that one is absent."""
    units = _units("units", store, "--where", condition, "--decode", rules)
    found = [unit["keys"][0] for unit in units if unit["keys"]]
    if expected is None:
        assert len(found) == COUNT // 2
        assert len(units) == COUNT // 2 + 1  # `not` of what is unknown is true, as with every absent value
        return
    packed = condition == "body.nothing is null"
    assert found == [f"K{number}" for number in range(COUNT) if expected(_order(number))]
    assert len(units) == len(found) + packed


def test_rules_kept_in_the_settings_are_used(store, rules, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    condition = ("units", str(store), "--where", 'body.customer.id = "7"')
    status, _, err = agree.command(*condition)
    assert status == 2
    assert "body.customer.id: no rule says how bodies are decoded; give rules with --decode FILE" in err
    save_rules(tmp_path / "settings" / "storescope", store, [DecodingRule("Orders", "json")])
    assert len(_units(*condition)) == COUNT // 10


def test_what_remains_undecoded_is_said_with_a_guess(store, rules):
    _, out, err = agree.command("units", str(store), "--decoded", "--decode", rules)
    assert "1 body could not be decoded" in err
    assert 'no rule for the topic Other; a body is valid JSON, for which the rule would be {"topic": "Other"' in err
    assert "! not valid JSON" in out
    assert '{"a":1}' in out


def test_get_and_message_decode_too(store, rules):
    (unit,) = _units("get", store, "Packed", 0, 0, "--decoded", "--decode", rules)
    assert unit["decoded"] == {"a": 1}
    (unit,) = _units("message", store, "Packed/0/0", "--decoded", "--decode", rules)
    assert unit["decoded"] == {"a": 1}
    _, out, _ = agree.command("message", str(store), "Packed/0/0", "--decoded", "--decode", rules)
    assert 'decoded (msgpack): {"a":1}' in out


def test_masked_bodies_are_masked_decoded_too(store, rules):
    units = _units("units", store, "--decoded", "--decode", rules, "--mask", "bodies", "--limit", 3)
    assert {(unit["decoded"], unit["decoder"]) for unit in units} == {(None, "json")}


def test_copies_are_chosen_by_fields_of_bodies(store, rules, tmp_path):
    condition = ["--where", 'body.customer.id = "7"', "--decode", rules]
    status, _, err = agree.command("copy", str(store), str(tmp_path / "copy"), *condition)
    assert status == 0, err
    assert len(_units("units", tmp_path / "copy")) == COUNT // 10


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('[{"topic": "Orders", "decoder": "jason"}]', "there is no decoder 'jason'"),
        ('[{"topic": "Orders", "decoder": "avro", "schema": "none.avsc"}]', "No such file"),
        ("{", "expected decoding rules in JSON"),
    ],
)
def test_mistakes_in_rules_are_one_line_before_anything_is_listed(store, tmp_path, content, problem):
    file = tmp_path / "bad.json"
    file.write_text(content)
    status, out, err = agree.command("units", str(store), "--decoded", "--decode", str(file))
    assert status in (2, 3)
    assert problem in err
    assert len(err.splitlines()) == 1
    assert not out
