"""``units``: rows of the log, masked on request."""

from __future__ import annotations

import agree
import handmade_stores
import pytest


@pytest.fixture
def store(tmp_path):
    """Write a small healthy store."""
    return handmade_stores.healthy().write(tmp_path / "store")


@pytest.mark.parametrize("command", [["units", "STORE", "--body"], ["get", "STORE", "Orders", "0", "0"]])
def test_a_mask_hides_only_the_named_fields(store, command):
    """Bodies, keys and hosts are masked in each record and in the table. Offsets and topics stay."""
    command = [str(store) if word == "STORE" else word for word in command]
    plain, masked = agree.records_of(*command), agree.records_of(*command, "--mask", "bodies,keys,hosts")
    assert [list(plain_row) for plain_row in plain] == [list(masked_row) for masked_row in masked]
    units = [
        (plain_record, masked_record)
        for plain_record, masked_record in zip(plain, masked, strict=True)
        if plain_record["type"] == "unit"
    ]
    assert units
    for record, masked_record in units:
        for name in ("physicalOffset", "topic", "queueOffset", "storeTimestamp", "tags"):
            assert record[name] == masked_record[name]
        for name in ("bornHost", "storeHost", "offsetMsgId", "bodySha256"):
            assert record[name] != masked_record[name]
        assert not set(record["keys"]) & set(masked_record["keys"])
    _, shown, _ = agree.command(*command, "--markdown")
    _, hidden, _ = agree.command(*command, "--markdown", "--mask", "keys")
    key = units[0][0]["keys"][0]
    assert key in shown
    assert key not in hidden


def test_every_unit_of_the_log_is_a_record_in_order(storescope):
    records = [record for record in storescope("units") if record["type"] == "unit"]
    assert [(row["physicalOffset"], row["size"], row["topic"]) for row in records] == [
        (unit.offset, unit.size, unit.topic) for unit in storescope.store.units
    ]


def test_filter_topic_and_limit_select_rows(storescope):
    records = storescope("units", "--topic", "Paid", "--where", 'tags = "T0"', "--limit", 1)
    assert [(record["topic"], record["tags"]) for record in records if record["type"] == "unit"] == [("Paid", "T0")]
