"""Every route to a message has its own verdict: its offset in the log, its queue, each of its keys, each group."""

from __future__ import annotations

import shutil
import struct

import agree
import pytest
from where_cases import acknowledged, reopened, sample, truth_lines

from engine.config import from_mapping
from engine.inspection import open_store
from engine.inspection.key_trace import indexed_keys
from engine.inspection.where.evidence import where
from engine.inspection.where.lost import NAMED_KEYS

pytestmark = pytest.mark.golden


def routes(result):
    return {(route.by, route.value): route for route in result.routes}


def only_result(path, text, **how):
    with reopened(path) as store:
        (result,) = where(store, text, **how)
    return result


def unit_with_two_keys(store):
    """Return a unit with a unique key and one other key that no other unit has."""
    return next(
        unit
        for unit in store.log.items_before(store.log.max_offset, 200)
        if len(set(indexed_keys(unit))) == 2
        and sum(1 for _ in where(store, unit.keys[0])) == 1
        and index_entry_of(store, unit, unit.keys[0])[2] != index_entry_of(store, unit, unit.unique_key)[2]
    )


def index_entry_of(store, unit, key):
    """Return (path, geometry, entry) of the index entry for a key of a unit."""
    from engine.codec.java import index_key_hash

    expected = index_key_hash(unit.topic, key)
    for reader in store.index_files():
        for number, entry in reader.entries():
            if entry.key_hash == expected and entry.phy_offset == unit.offset:
                return reader.path, reader.geometry, number
    raise LookupError(key)


def patch(path, position, data):
    with open(path, "r+b") as file:
        file.seek(position)
        file.write(data)


# -- keys


def test_every_key_of_a_valid_unit_leads_to_it(opened):
    store = opened("broker-orders")
    unit = unit_with_two_keys(store)
    (result,) = where(store, unit.keys[0])
    actual_routes = routes(result)
    assert (
        actual_routes[("uniqueKey", unit.unique_key)].verdict == actual_routes[("key", unit.keys[0])].verdict == "found"
    )
    assert actual_routes[("offset", f"{unit.offset:,}")].verdict == "found"
    assert actual_routes[("queue", f"{unit.topic}/{unit.queue_id}/{unit.queue_offset}")].verdict == "found"


@pytest.mark.parametrize("damage", ["self", "past"])
def test_a_key_whose_own_chain_is_broken_does_not_lead_to_its_message(spoiled, damage):
    """For K540 the view reported "It is there, index ✓": it had followed the chain of the unique key, although a
    broker's query by K540 found nothing. An operator would have looked for the fault elsewhere.
    """
    path = spoiled("broker-orders")
    with reopened(path) as store:
        unit = unit_with_two_keys(store)
        key = unit.keys[0]
        file, geometry, number = index_entry_of(store, unit, key)
        from engine.codec.java import index_key_hash

        slot = index_key_hash(unit.topic, key) % geometry.slots
        reader = next(index_file for index_file in store.index_files() if index_file.path == file)
        head = reader.slot(slot)
        foreign_entry = next(n for n, _ in reader.entries() if n not in {head, number})
    # The slot now begins with an entry of another hash, which links to itself or out of the file.
    patch(file, geometry.slot_position(slot), struct.pack(">i", foreign_entry))
    patch(
        file,
        geometry.entry_position(foreign_entry) + 16,
        struct.pack(">i", foreign_entry if damage == "self" else 1 << 20),
    )
    result = only_result(path, key)
    assert result.verdict == "notInIndex"
    broken = routes(result)[("key", key)]
    assert broken.verdict == "notInIndex"
    assert "its chain " + ("has a loop at" if damage == "self" else "leaves the file") in broken.why
    by_unique_key = only_result(path, unit.unique_key)
    assert by_unique_key.verdict == "found"
    assert routes(by_unique_key)[("key", key)].verdict == "notInIndex"
    assert only_result(path, unit.offset_msg_id).verdict == "notInIndex"
    code, out, _ = agree.command("where", path, key)
    assert code == 0
    assert f"by key {key}: in the log, not reachable by this key" in out


def test_without_any_index_no_key_leads_anywhere_unless_the_broker_builds_none(spoiled, golden_account):
    """The index folder was lost and queries by key found nothing, but the verdict was "found"."""
    path = spoiled("clean-5.3.3")
    put = next(put for put in acknowledged(golden_account, "clean-5.3.3") if put["kind"] == "normal")
    shutil.rmtree(path / "index")
    assert only_result(path, put["msgId"]).verdict == "notInIndex"
    config, _ = from_mapping({"messageIndexEnable": "false"})
    with open_store(path, config) as store:
        store.commit_log.settle_end()
        (result,) = where(store, put["msgId"])
    assert result.verdict == "found"
    assert {route.verdict for route in result.routes if route.by in {"key", "uniqueKey"}} <= {"unknown"}


# -- queue


def test_a_wrong_entry_is_reported_as_wrong(spoiled, golden_account):
    """The reason was "holds no entry for offset 5; it goes from 0 to 382", although it had one, of another queue."""
    path = spoiled("clean-5.3.3")
    puts = [p for p in acknowledged(golden_account, "clean-5.3.3") if p["kind"] == "normal" and p["topic"] == "TopicA"]
    own_put = next(put for put in puts if put["queue"] == 2 and put["queueOffset"] == 5)
    foreign_put = next(put for put in puts if put["queue"] == 0)
    file = path / "consumequeue" / "TopicA" / "2" / f"{0:020d}"
    patch(file, 5 * 20, struct.pack(">q", foreign_put["phy"]))
    result = only_result(path, "TopicA/2/5")
    assert (result.verdict, result.physical_offset) == ("notInQueue", own_put["phy"])
    why = routes(result)[("queue", "TopicA/2/5")].why
    assert why == (
        f"entry 5 is wrong: it points at {foreign_put['phy']:,}, the unit of TopicA/0/{foreign_put['queueOffset']}"
    )
    patch(file, 5 * 20, bytes(20))
    assert routes(only_result(path, "TopicA/2/5"))[("queue", "TopicA/2/5")].why == "entry 5 is empty: zero bytes"


def test_a_deleted_topic_is_not_built_again(opened, golden_account):
    """The step was "build the queues again from the log", but dispatch gives a deleted topic no queue."""
    (deleted,) = truth_lines(golden_account, "broker-orders", "topicDeleted")
    line = next(
        record for record in truth_lines(golden_account, "broker-orders", "send") if record["topic"] == deleted["topic"]
    )
    (result,) = where(opened("broker-orders"), line["offsetMsgId"])
    assert result.verdict == "notInQueue"
    assert "no dispatch gives it a queue again" in result.next_step


def test_a_group_reports_the_messages_it_has_consumed(opened, golden_account):
    line = next(
        record for record in truth_lines(golden_account, "broker-orders", "received") if record["group"] == "billing"
    )
    (result,) = where(opened("broker-orders"), line["msgId"])
    unit_number = result.queue_offset
    billing = routes(result)[("group", "billing")]
    assert billing.verdict == "consumed"
    assert billing.why.endswith(f"next: it has read past {unit_number:,}")


# -- which copy


def test_the_headline_of_a_committed_transaction_is_the_consumers_copy(opened, golden_account):
    """The headline was the half message's last copy, which the broker had discarded after the commit."""
    message_id = truth_lines(golden_account, "broker-transactions", "half")[0]["msgId"]
    (result,) = where(opened("broker-transactions"), message_id)
    assert result.verdict == "found"
    assert (result.topic, result.queue_id, result.queue_offset) == ("PaymentEvents", 0, 0)
    units = [evidence for evidence in result.evidence if evidence.what == "unit"]
    assert units[0].offset == result.physical_offset
    assert [unit.offset for unit in units[1:]] == sorted(unit.offset for unit in units[1:])
    assert all(unit.timestamp for unit in units)
    assert {route.value for route in result.routes if route.by == "queue"} == {"PaymentEvents/0/0"}


# -- what cannot be ruled out


def test_unreadable_bytes_may_contain_the_message(spoiled):
    path = spoiled("clean-5.3.3")
    assert only_result(path, "no-such-key").verdict == "neverSeen"
    with reopened(path) as store:
        unit = store.log.unit_at(sample(list(store.log.items(0, 50)), 1)[0].offset)
        file = store.log.sequence.find(unit.offset)
    patch(file.path, unit.offset - file.start_offset, bytes(unit.size))
    result = only_result(path, "no-such-key")
    assert result.verdict == "unknown"
    (open_one,) = [item for item in result.evidence if item.what == "not ruled out"]
    assert open_one.offset == unit.offset
    assert open_one.holds.startswith(f"{unit.size:,} bytes here are invalid: ")
    assert "may hold it" in result.next_step
    assert only_result(path, "NoSuchTopic/0/0").verdict == "unknown"


def test_the_beginning_of_an_id_lists_matching_ids(opened):
    """For 7F00, with which every id begins, the report was that no byte of this store contains it."""
    store = opened("broker-transactions")
    (result,) = where(store, "7F00")
    assert result.verdict == "unknown"
    texts = [evidence.holds for evidence in result.evidence if evidence.what == "beginning"]
    assert texts[0].endswith(" keys begin with it")
    names = [text.removesuffix(" begins with it") for text in texts[1:] if text.endswith(" begins with it")]
    assert len(names) == NAMED_KEYS
    assert all(name.startswith("7F00") for name in names)
    (named,) = where(store, names[0])
    assert named.verdict != "unknown", "each of them can be looked up"
    assert "every offset id of this broker begins with 7F00" in " ".join(texts)
    assert "complete id" in result.next_step
    (unknown_result,) = where(store, "8F00")
    assert unknown_result.verdict == "neverSeen"
