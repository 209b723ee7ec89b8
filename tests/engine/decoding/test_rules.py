"""Rules that choose a decoder, and their files."""

from __future__ import annotations

import json

import pytest

from engine.decoding.rules import (
    DecodingRule,
    file_of,
    read_rules,
    rule_of,
    rule_record,
    rules_text,
    save_rules,
    saved_rules,
    topic_pattern,
    with_rule,
    without_topic,
)
from engine.errors import CannotRead, UsageError

_RECORDS = [
    {"topic": "Orders*", "decoder": "json", "encoding": "gb18030", "unpack": "gzip", "skip": 5},
    {"topic": "Paid", "tag": "A*", "properties": {"region": "eu-*"}, "decoder": "avro", "schema": "/x/paid.avsc"},
    {"topic": "*", "decoder": "own", "name": "mine"},
]


@pytest.mark.parametrize("record", _RECORDS)
def test_a_rule_is_the_same_after_it_was_written_and_read(record):
    assert rule_record(rule_of(record)) == record


def test_files_of_a_rule_are_relative_to_the_file_of_rules(tmp_path):
    file = tmp_path / "rules.json"
    file.write_text(json.dumps({"rules": [{"topic": "A", "decoder": "avro", "schema": "a.avsc"}]}))
    (rule,) = read_rules(file)
    assert rule.option("schema") == str(tmp_path / "a.avsc")


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ("json", "expected a rule such as"),
        ({"topic": "A"}, "a rule needs a decoder"),
        ({"decoder": "json", "topics": "A"}, "a rule has no 'topics'"),
        ({"decoder": "json", "topic": 5}, "topic of a rule: expected a text, found 5"),
        ({"decoder": "json", "unpack": "rar"}, "expected gzip, zlib, deflate, lz4, zstd, found 'rar'"),
        ({"decoder": "json", "skip": -1}, "expected a number of bytes, found -1"),
        ({"decoder": "json", "properties": ["a"]}, "expected names with patterns"),
        ({"decoder": "text", "encoding": "latin9000"}, "there is no text encoding 'latin9000'"),
        ({"decoder": "text", "encoding": "rot13"}, "there is no text encoding 'rot13'"),
    ],
)
def test_a_mistake_in_a_rule_names_what_was_expected(record, problem, tmp_path):
    file = tmp_path / "rules.json"
    file.write_text(json.dumps([record]))
    with pytest.raises(UsageError) as caught:
        read_rules(file)
    assert problem in str(caught.value)
    assert str(caught.value).startswith(str(file))


def test_a_file_that_holds_no_rules_is_named(tmp_path):
    file = tmp_path / "rules.json"
    with pytest.raises(CannotRead, match="No such file"):
        read_rules(file)
    for content in ("{", '{"rules": 5}', "[" * 100_000):
        file.write_text(content)
        with pytest.raises(UsageError):
            read_rules(file)


def test_topic_tag_and_properties_all_have_to_match():
    rule = rule_of(_RECORDS[1])
    assert rule.matches("Paid", "A1", {"region": "eu-1"})
    assert not rule.matches("Paid", "B", {"region": "eu-1"})
    assert not rule.matches("Paid", None, {"region": "eu-1"})
    assert not rule.matches("Paid", "A1", {})
    assert not rule.matches("paid", "A1", {"region": "eu-1"})


def test_the_pattern_of_a_topic_matches_only_that_topic():
    rule = DecodingRule(topic_pattern("a[1]*"), "json")
    assert rule.matches("a[1]*", None, {})
    assert not rule.matches("a1x", None, {})


def test_rules_are_kept_outside_of_the_store_under_its_path(tmp_path):
    settings, store = tmp_path / "settings", tmp_path / "store"
    store.mkdir()
    link = tmp_path / "link"
    link.symlink_to(store)
    assert saved_rules(settings, store) == ()
    save_rules(settings, store, ())
    assert not file_of(settings, store).exists()
    rules = tuple(map(rule_of, _RECORDS))
    save_rules(settings, store, rules)
    assert saved_rules(settings, link) == rules
    assert list(store.iterdir()) == []
    save_rules(settings, store, ())
    assert saved_rules(settings, store) == ()
    assert json.loads(rules_text(rules, store))["store"] == str(store)


def test_a_rule_replaces_that_for_the_same_messages_and_else_comes_first():
    first, second = DecodingRule("A", "json"), DecodingRule("*", "text")
    assert with_rule((first, second), DecodingRule("A", "cbor")) == (DecodingRule("A", "cbor"), second)
    assert with_rule((second,), first) == (first, second)
    assert without_topic((first, second), "A") == (second,)
