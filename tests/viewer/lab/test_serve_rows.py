"""Rows of a served store: rates between two states, clients by their groups."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from engine.lab.serving import CodeCount, LastEntry, ServedClient, ServingState
from viewer.lab.serve_rows import (
    CAPACITY,
    CODES,
    MAX_CODES,
    ROLES,
    ServeHistory,
    address_facts,
    client_rows,
    code_rows,
    rate_of,
)

EARLIER_STATE = ServingState(
    "127.0.0.1:1", "127.0.0.1:2", "broker-a", 0, 0.4, 10.0, codes=(CodeCount(10, "SEND_MESSAGE", 5),)
)
LATER_STATE = ServingState(
    "127.0.0.1:1",
    "127.0.0.1:2",
    "broker-a",
    0,
    0.4,
    12.0,
    3,
    1,
    (
        CodeCount(10, "SEND_MESSAGE", 25, 0.25, 2.0, last_entry=LastEntry("Orders", 0, 4217, 99)),
        CodeCount(11, "PULL_MESSAGE", 4, None, None, 3, 1),
    ),
    (
        ServedClient("a@1", "127.0.0.1:9", "JAVA", "5.3.3", ("payers",), ("readers", "payers"), 1),
        ServedClient("b@1", "127.0.0.1:8", "GO", "4.9.7", (), ("readers",)),
    ),
)


def test_rates_are_differences_of_two_states() -> None:
    rows = code_rows(LATER_STATE, EARLIER_STATE, {10: "posLog"})
    assert [(row.name, row.rate) for row in rows] == [("SEND_MESSAGE", 10.0), ("PULL_MESSAGE", 2.0)]
    assert rate_of(rows) == 12.0
    assert rate_of(code_rows(LATER_STATE, None)) is None
    assert CODES.as_text(rows[0], "|") == "■|SEND_MESSAGE|10|25|10|0.25|2.00|0|0|Orders/0/4,217|99"
    look = CODES.look(rows[1])
    assert look is not None
    assert look.mark == "warn"


def test_clients_are_classified_by_their_groups() -> None:
    rows = client_rows(LATER_STATE)
    assert [(row.groups, row.role, row.language, row.held) for row in rows] == [
        ("payers, readers", "producer and consumer", "JAVA 5.3.3", 1),
        ("readers", "consumer", "GO 4.9.7", 0),
    ]


def test_addresses_and_status() -> None:
    values = {fact.name: fact.value for fact in address_facts(LATER_STATE)}
    assert values["Name server"] == "127.0.0.1:2"
    assert (values["Connections"], values["Held pulls"], values["Not 0"]) == ("3", "1", "1")


def test_unavailable_ports_are_listed_among_the_addresses() -> None:
    served = replace(
        LATER_STATE,
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


def state(
    time_s: float, counts: dict[int, int], held_pulls: int = 0, not_ok: int = 0, began_s: int = 0
) -> ServingState:
    codes = tuple(CodeCount(code, f"R{code}", count, not_ok=not_ok) for code, count in counts.items())
    return ServingState("h:1", "h:2", "b", began_s, 0.1, time_s, held_pulls=held_pulls, codes=codes)


def test_rates_are_differences_of_states() -> None:
    history = ServeHistory()
    assert history.rates(300, 2) is None
    assert history.waits(300) is None
    history.take(state(1.0, {10: 5}), 100.0)
    assert history.rates(300, 2) is None, "one state tells no rate"
    history.take(state(2.0, {10: 25, 11: 4}, held_pulls=3), 101.0)
    history.take(state(2.0, {10: 99}), 101.2)
    frame = history.rates(300, 1)
    assert frame is not None
    assert [(trace.name, trace.value) for trace in frame.traces] == [("all", "24"), ("R10", "20"), ("R11", "")]
    assert float(np.nanmax(frame.traces[0].ys)) == 24.0
    assert frame.top >= 24.0
    history.take(state(3.0, {10: 25, 11: 4}, held_pulls=1, not_ok=2), 102.0)
    waits = history.waits(300)
    assert waits is not None
    assert [(trace.name, trace.value) for trace in waits.traces] == [("held pulls", "1"), ("not 0 /s", "4")]


def test_a_code_keeps_its_colour_as_long_as_it_is_drawn() -> None:
    history = ServeHistory()
    counts = dict.fromkeys(range(8), 0)
    for second in range(10):
        for code in counts:
            counts[code] += 10 - code if second < 5 else code
        history.take(state(float(second), dict(counts)), 100.0 + second)
        if second == 4:
            first_roles = dict(history.roles)
    assert list(first_roles) == [0, 1, 2, 3, 4]
    assert set(first_roles.values()) == set(ROLES)
    still_drawn = {code: role for code, role in history.roles.items() if code in first_roles}
    assert still_drawn == {code: first_roles[code] for code in still_drawn}
    assert len(set(history.roles.values())) == len(ROLES)


def test_a_time_without_states_is_a_gap() -> None:
    history = ServeHistory()
    for seconds, count in ((0.0, 0), (1.0, 10), (2.0, 20), (9.0, 90), (10.0, 100)):
        history.take(state(seconds, {10: count}), 100.0 + seconds)
    frame = history.rates(300, 1)
    assert frame is not None
    assert frame.breaks == ((-8.0, -1.0),)
    assert np.isnan(frame.traces[0].ys).any()


def test_another_serving_starts_from_zero_and_memory_is_bounded() -> None:
    history = ServeHistory()
    for second in range(3 * CAPACITY):
        history.take(state(float(second), {second % 100: second, 500: second}), 100.0 + second)
    assert len(history.codes) == MAX_CODES
    assert max(len(series) for series in (history.all_requests, history.held, *history.codes.values())) <= CAPACITY
    history.take(state(1.0, {10: 5}, began_s=7), 9_000.0)
    assert not history.codes
    assert history.rates(300, 1) is None
