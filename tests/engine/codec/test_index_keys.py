"""Index keys of a unit, compared with what RocketMQ wrote."""

from __future__ import annotations

import numpy as np
import pytest

from engine.codec.dtypes import INDEX_ENTRY
from engine.codec.index_keys import IndexKey, find_key_of_hash, has_key, index_keys, key_text
from engine.codec.java import index_key_hash
from engine.codec.message import ROLLBACK, Unit
from engine.inspection import open_store

CASES = [
    ({}, []),
    ({"UNIQ_KEY": "u"}, [("U", "u")]),
    ({"KEYS": "a  b", "TAGS": "x"}, [("K", "a"), ("K", "b"), ("T", "T#x")]),
    ({"TAGS": "x || y", "UNIQ_KEY": "u", "KEYS": "k"}, [("U", "u"), ("K", "k"), ("T", "T#x || y")]),
]


@pytest.mark.parametrize(("properties", "keys"), CASES)
def test_keys_are_in_the_order_of_their_index_entries(properties, keys):
    assert index_keys(properties) == [IndexKey(*key) for key in keys]
    assert index_keys(properties, tags=False) == [IndexKey(*key) for key in keys if key[0] != "T"]


def test_a_unit_can_be_queried_by_type_or_by_the_hashed_text():
    properties = {"TAGS": "paid", "UNIQ_KEY": "u", "KEYS": "paid"}
    assert has_key(properties, key_text("paid", "T"), "T")
    assert has_key(properties, "T#paid")
    assert has_key(properties, "paid", "K")
    assert has_key(properties, "u", "U")
    assert not has_key(properties, "u", "K")
    assert not has_key(properties, "paid", "U")
    assert not has_key({"KEYS": "T#paid"}, key_text("paid", "T"), "T")


def test_a_hash_leads_back_to_its_key():
    properties = {"TAGS": "paid", "UNIQ_KEY": "u"}
    assert find_key_of_hash("Orders", properties, index_key_hash("Orders", "T#paid")) == IndexKey("T", "T#paid")
    assert find_key_of_hash("Orders", properties, 1) is None


@pytest.mark.parametrize("name", ["clean-5.3.3", "clean-4.9.8", "clean-5.5.1", "broker-tags-5.5.1", "broker-pop-5.5.1"])
def test_a_real_brokers_index_has_exactly_the_keys_of_its_units(golden, name):
    with open_store(golden(name)) as store:
        written: list[tuple[int, int]] = []
        for reader in store.index_files():
            count = reader.header.entries
            data = reader.file.read(reader.geometry.entry_position(1), count * INDEX_ENTRY.itemsize)
            entries = np.frombuffer(data, INDEX_ENTRY)
            written += zip(entries["phy_offset"].tolist(), entries["key_hash"].tolist(), strict=True)
        tags = "5.5.1" in name
        expected = [
            (unit.offset, index_key_hash(unit.topic, key.text))
            for unit in store.units(crc=False)
            if isinstance(unit, Unit) and unit.transaction_type != ROLLBACK
            for key in index_keys(unit.properties, tags=tags)
        ]
    assert written == expected
