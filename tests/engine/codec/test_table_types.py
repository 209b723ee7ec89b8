"""Tables that a broker loads, compared with the real brokers of 4.9.7, 5.3.3 and 5.5.1.

``table_loads.json`` has 78 positions in the tables and 74 values (or 32 keys) that were put there. Each release has a
row of ``+`` (its class loaded the table) and ``-`` (it threw an exception).
"""

import json
from pathlib import Path

import pytest

from engine.codec.config_tables import load_table
from engine.codec.json_dialect import parse
from engine.codec.table_types import find_misfit, to_number
from engine.releases import rules_of

LOADS = json.loads(Path(__file__).with_name("table_loads.json").read_text())
STRANGE = {
    "[1]",
    "1.5",
    "372.0",
    "1e3",
    "1,5",
    "{}",
    '{"a":1}',
    "true",
    '"1.5"',
    '"2020-01-01"',
    "//c\n5",
    "/*c*/5",
    "NaN",
    "undefined",
    '"null"',
    '""',
    "[]",
    '"a":1}',
    '[{"topic":"T"}]',
    '[{"topic":1}]',
    "{true:5}",
    "{null:5}",
    "99999999999999999999",
    '"99999999999999999999"',
    '"2147483648"',
    '"x"',
    "'x'",
    '"0"',
    '"-5"',
    "{0:5}",
    "{5:null}",
    "+5",
    "{5:1.5}",
    "{5:{}}",
    "{5:[]}",
    '{"timestamp":"x"}',
    "1F",
}
"""Values that no program writes, of which one of the parsers takes some at a few places."""


def _ours(table: str, text: str, release: str) -> bool:
    parsed = parse(text)
    return (
        parsed.complaint_of(rules_of(release).json_parser) is None and find_misfit(table, parsed.value, release) is None
    )


@pytest.mark.parametrize("release", ["4.9", "5.3", "5.5"])
def test_a_table_loads_where_the_real_broker_loads_it(release):
    """An offset of 99999999999999999999 was reported as valid, but the real broker failed at its start.

    Every value is judged as the brokers of each release judge it.
    """
    compared, wrong, strange = 0, [], 0
    for name, place in LOADS["places"].items():
        values = LOADS["keys" if place.get("keys") else "values"]
        for value, outcome in zip(values, place.get(release, " " * len(values)), strict=True):
            if outcome == " ":
                continue
            compared += 1
            if _ours(place["table"], place["text"].replace("@HERE@", value), release) == (outcome == "+"):
                continue
            strange += value in STRANGE
            if value not in STRANGE:
                wrong.append(f"{name}: {value} {outcome}")
    assert compared > 2000
    assert wrong == []
    assert strange < 0.05 * compared


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ("consumerOffset.json", '{"offsetTable":{"T@G":{0:99999999999999999999}}}'),
        ("consumerOffset.json", '{"offsetTable":{"T@G":{0:null}}}'),
        ("consumerOffset.json", '{"offsetTable":{"T@G":{"x":5}}}'),
        ("consumerOffset.json", '{"offsetTable":{"T@G":[5]}}'),
        ("subscriptionGroup.json", '{"subscriptionGroupTable":{"G":{"retryMaxTimes":"sixteen"}}}'),
        ("delayOffset.json", '{"offsetTable":{1:null}}'),
        ("delayOffset.json", '{"offsetTable":{"a":5}}'),
        ("topics.json", '{"topicConfigTable":{"T":null}}'),
        ("topics.json", '{"topicConfigTable":{"T":{"perm":"rw"}}}'),
        ("topicQueueMapping.json", "{}"),
        ("consumerOrderInfo.json", '{"table":{"T@G":{"x":{}}}}'),
        ("consumerFilter.json", '{"filterDataByTopic":{"T":{"groupFilterData":{"G":{"bornTime":"today"}}}}}'),
        ("timermetrics", '{"timingCount":{"T":{"count":"many"}}}'),
    ],
)
def test_a_value_that_does_not_fit_ends_the_load_and_is_named(table, text):
    loaded = load_table(table, lambda name: text.encode())
    assert (loaded.used, loaded.will_load) == ("nothing", False)
    assert "expected" in loaded.main.complaint or "it has no" in loaded.main.complaint
    healthy_backup = load_table(
        table, lambda name: b'{"topicQueueMappingInfoMap":{}}' if ".bak" in name else text.encode()
    )
    assert healthy_backup.used == "bak"


def test_numbers_that_a_broker_converts_are_read_as_it_reads_them():
    text = '{"offsetTable":{"T@G":{0:"372",1:372.0,"2":372.9,3:"1,000"}}}'
    assert load_table("consumerOffset.json", lambda name: text.encode()).used == "main"
    assert [to_number(value) for value in ("372", 372.0, 372.9, "1,000", "x", None, True, 1 << 63)] == [
        372,
        372,
        372,
        1000,
        None,
        None,
        None,
        None,
    ]
