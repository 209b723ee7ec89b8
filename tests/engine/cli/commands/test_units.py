"""``units``: rows of the log, masked where that is asked for."""

from __future__ import annotations

import agree
import handmade_stores
import pytest


@pytest.fixture
def store(tmp_path):
    """A small healthy store."""
    return handmade_stores.healthy().write(tmp_path / "store")


@pytest.mark.parametrize("command", [["units", "STORE", "--body"], ["get", "STORE", "Orders", "0", "0"]])
def test_a_mask_hides_what_it_names_and_no_more(store, command):
    """Bodies, keys and hosts are gone from each record and from the table, places and topics are there."""
    command = [str(store) if word == "STORE" else word for word in command]
    plain, masked = agree.records_of(*command), agree.records_of(*command, "--mask", "bodies,keys,hosts")
    assert [list(item) for item in plain] == [list(one) for one in masked]
    units = [(row, other) for row, other in zip(plain, masked, strict=True) if row["type"] == "unit"]
    assert units
    for record, other in units:
        for name in ("physicalOffset", "topic", "queueOffset", "storeTimestamp", "tags"):
            assert record[name] == other[name]
        for name in ("bornHost", "storeHost", "offsetMsgId", "bodySha256"):
            assert record[name] != other[name]
        assert not set(record["keys"]) & set(other["keys"])
    _, shown, _ = agree.command(*command, "--markdown")
    _, hidden, _ = agree.command(*command, "--markdown", "--mask", "keys")
    key = units[0][0]["keys"][0]
    assert key in shown
    assert key not in hidden


def test_every_unit_of_the_log_is_a_record_in_order(asked):
    results = [record for record in asked("units") if record["type"] == "unit"]
    assert [(row["physicalOffset"], row["size"], row["topic"]) for row in results] == [
        (unit.offset, unit.size, unit.topic) for unit in asked.made.units
    ]


def test_a_filter_a_queue_and_a_limit_leave_rows_out(asked):
    results = asked("units", "--topic", "Paid", "--where", 'tags = "T0"', "--limit", 1)
    assert [(record["topic"], record["tags"]) for record in results if record["type"] == "unit"] == [("Paid", "T0")]
