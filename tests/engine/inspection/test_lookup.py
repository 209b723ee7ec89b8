"""Message lookup by offset, offset id, unique key or key."""

from __future__ import annotations

import pytest
from handmade_stores import HandmadeStore

from engine.codec.java import index_key_hash
from engine.inspection import index_reader, open_store
from engine.inspection.lookup import chained_offsets, find_message, known_topics, parse_number
from engine.mapped.read_only import ReadOnlyFile


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("42", 42),
        ("0x2A", 42),
        ("1_000", 1000),
        ("1,000", 1000),
        (" 7 ", 7),
        ("007", 7),
        ("-1", -1),
        ("K1", None),
        ("", None),
        (str(1 << 63), None),
    ],
)
def test_offsets_in_common_notations(text, number):
    assert parse_number(text) == number


@pytest.fixture
def store(tmp_path):
    handmade_store = HandmadeStore()
    for number in range(8):
        handmade_store.put(topic=("Orders", "Paid")[number % 2], keys=f"K{number // 2}")
    with open_store(handmade_store.write(tmp_path / "store")) as opened:
        yield opened, handmade_store.units


def test_every_name_of_a_message_leads_to_it(store):
    opened, units = store
    for unit in units:
        message = find_message(opened, str(unit.offset))
        assert message is not None
        assert message.offset == unit.offset
        assert find_message(opened, message.offset_msg_id).offset == unit.offset
        assert find_message(opened, message.offset_msg_id.lower()).offset == unit.offset
        assert find_message(opened, unit.keys[0]).offset == unit.offset


def test_the_newest_message_of_a_key_is_returned_unless_a_topic_is_given(store):
    opened, units = store
    assert find_message(opened, "K2").offset == units[5].offset
    assert find_message(opened, "K2", "Orders").offset == units[4].offset
    assert find_message(opened, "K2", "Nowhere") is None


def test_a_missing_message_is_none(store):
    opened, _units = store
    assert find_message(opened, "nobody") is None
    assert find_message(opened, str(1 << 40)) is None
    assert set(known_topics(opened)) >= {"Orders", "Paid"}


def test_a_small_index_file_is_read_once_for_the_keys_of_all_topics(store, monkeypatch):
    """Each slot and each entry of a chain was a read of its own: a question for a message made thousands."""
    opened, units = store
    counts = []
    read = ReadOnlyFile.read
    monkeypatch.setattr(ReadOnlyFile, "read", lambda file, *place: counts.append(file.path) or read(file, *place))
    hashes = {index_key_hash(topic, f"K{number}"): topic for topic in ("Orders", "Paid") for number in range(4)}
    found = {limit: [] for limit in (0, index_reader.MAX_IN_MEMORY_BYTES)}
    for limit, offsets in found.items():
        monkeypatch.setattr(index_reader, "MAX_IN_MEMORY_BYTES", limit)
        for reader in opened.index_files():
            counts.clear()
            offsets.extend(chained_offsets(reader, hashes))
            assert len(counts) == 1 if limit else len(counts) > len(hashes)
    assert found[0] == found[index_reader.MAX_IN_MEMORY_BYTES]
    assert set(found[0]) == {unit.offset for unit in units}
