"""``conversation``: the steps as records and as a table."""

from __future__ import annotations

import json

import contract_records
import pytest

from engine.cli.main import main


@pytest.mark.golden
def test_steps_come_in_the_order_of_the_log_and_a_summary_last(golden, capsys) -> None:
    store = str(golden("broker-transactions-5.4.0"))
    assert main(["conversation", store, "K5", "--json"]) == 0
    *steps, summary = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line for record in (*steps, summary) for line in contract_records.complaints(record)] == []
    offsets = [step["physicalOffset"] for step in steps]
    assert offsets == sorted(offsets)
    assert [step["step"] for step in steps][:2] == ["half", "committed"]
    assert steps[1]["afterMs"] == steps[1]["time"] - steps[0]["time"]
    assert {step["unit"]["physicalOffset"] for step in steps} == set(offsets)
    assert (summary["units"], summary["complete"], len(summary["messages"])) == (len(steps), True, 1)


@pytest.mark.golden
def test_the_table_says_what_changed_from_unit_to_unit(golden, capsys) -> None:
    assert main(["conversation", str(golden("broker-transactions-5.4.0")), "K5"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "1 message, 7 units in 15.9 s" in text
    assert "committed message of a transaction (REAL_QID removed; REAL_TOPIC removed)" in text
    assert "+12 ms" in text


@pytest.mark.golden
def test_an_unknown_name_ends_with_1_and_says_why(golden, capsys) -> None:
    assert main(["conversation", str(golden("broker-transactions-5.4.0")), "nobody"]) == 1
    assert "neverSeen" in capsys.readouterr().out
