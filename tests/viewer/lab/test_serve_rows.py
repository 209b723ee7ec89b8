"""Rows of a served store: rates between two states, clients by their groups."""

from __future__ import annotations

from dataclasses import replace

from engine.lab.serving import CodeCount, LastEntry, ServedClient, ServingState
from viewer.lab.serve_rows import CODES, address_facts, client_rows, code_rows, rate_of

BEFORE = ServingState("127.0.0.1:1", "127.0.0.1:2", "broker-a", 0, 0.4, 10.0, codes=(CodeCount(10, "SEND_MESSAGE", 5),))
AFTER = ServingState(
    "127.0.0.1:1",
    "127.0.0.1:2",
    "broker-a",
    0,
    0.4,
    12.0,
    3,
    1,
    (
        CodeCount(10, "SEND_MESSAGE", 25, 0.25, 2.0, last=LastEntry("Orders", 0, 4217, 99)),
        CodeCount(11, "PULL_MESSAGE", 4, None, None, 3, 1),
    ),
    (
        ServedClient("a@1", "127.0.0.1:9", "JAVA", "5.3.3", ("payers",), ("readers", "payers"), 1),
        ServedClient("b@1", "127.0.0.1:8", "GO", "4.9.7", (), ("readers",)),
    ),
)


def test_rates_are_the_difference_of_two_looks() -> None:
    rows = code_rows(AFTER, BEFORE, {10: "posLog"})
    assert [(row.name, row.rate) for row in rows] == [("SEND_MESSAGE", 10.0), ("PULL_MESSAGE", 2.0)]
    assert rate_of(rows) == 12.0
    assert rate_of(code_rows(AFTER, None)) is None
    assert CODES.as_text(rows[0], "|") == "■|SEND_MESSAGE|10|25|10|0.25|2.00|0|0|Orders/0/4,217|99"
    look = CODES.look(rows[1])
    assert look is not None
    assert look.mark == "warn"


def test_clients_are_what_their_groups_make_them() -> None:
    rows = client_rows(AFTER)
    assert [(row.groups, row.role, row.language, row.held) for row in rows] == [
        ("payers, readers", "producer and consumer", "JAVA 5.3.3", 1),
        ("readers", "consumer", "GO 4.9.7", 0),
    ]


def test_addresses_and_how_it_stands() -> None:
    values = {fact.name: fact.value for fact in address_facts(AFTER)}
    assert values["Name server"] == "127.0.0.1:2"
    assert (values["Connections"], values["Held pulls"], values["Not 0"]) == ("3", "1", "1")


def test_what_could_not_be_met_is_told_among_the_addresses() -> None:
    served = replace(
        AFTER,
        ha="127.0.0.1:3",
        slaves=1,
        no_vip="cannot listen on 127.0.0.1:10909: Address already in use",
        config="/etc/broker.conf",
        without_effect=("flushDiskType", "brokerIP1"),
    )
    facts = {fact.name: fact for fact in address_facts(served)}
    assert (facts["HA"].value, facts["HA"].note) == ("127.0.0.1:3", "1 slave")
    assert (facts["VIP"].value, facts["VIP"].role) == ("not served", "warn")
    assert "127.0.0.1:10909" in facts["VIP"].note
    assert (facts["Config"].value, facts["Config"].note) == (
        "broker.conf",
        "no effect here: flushDiskType, brokerIP1",
    )
    assert {fact.name: fact.value for fact in address_facts(replace(served, vip="127.0.0.1:4"))}["VIP"] == "127.0.0.1:4"
