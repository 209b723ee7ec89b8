"""Every way to a message has its own verdict: its place in the log, its queue, each of its keys, each group."""

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


def of_two_keys(store):
    """A unit with a unique key and one more that no other unit has."""
    return next(
        unit
        for unit in store.log.items_before(store.log.max_offset, 200)
        if len(set(indexed_keys(unit))) == 2
        and sum(1 for _ in where(store, unit.keys[0])) == 1
        and where_of(store, unit, unit.keys[0])[2] != where_of(store, unit, unit.unique_key)[2]
    )


def where_of(store, unit, key):
    """(path, geometry, entry) of the index entry that stands for a key of a unit."""
    from engine.codec.java import index_key_hash

    expected = index_key_hash(unit.topic, key)
    for reader in store.index_files():
        for number, entry in reader.entries():
            if entry.key_hash == expected and entry.phy_offset == unit.offset:
                return reader.path, reader.geometry, number
    raise LookupError(key)


def patch(path, at, data):
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(data)


# -- keys


def test_every_key_of_a_sound_unit_is_a_way_to_it(opened):
    store = opened("broker-orders")
    unit = of_two_keys(store)
    (result,) = where(store, unit.keys[0])
    actual_routes = routes(result)
    assert (
        actual_routes[("uniqueKey", unit.unique_key)].verdict == actual_routes[("key", unit.keys[0])].verdict == "found"
    )
    assert actual_routes[("offset", f"{unit.offset:,}")].verdict == "found"
    assert actual_routes[("queue", f"{unit.topic}/{unit.queue_id}/{unit.queue_offset}")].verdict == "found"


@pytest.mark.parametrize("harm", ["self", "past"])
def test_a_key_whose_own_chain_is_broken_does_not_lead_to_its_message(spoiled, harm):
    """Asked for K540 the view said "It is there, index ✓": the chain of its unique key had been looked at, and a
    broker's query by K540 found nothing. An operator would have looked for the fault everywhere else.
    """
    path = spoiled("broker-orders")
    with reopened(path) as store:
        unit = of_two_keys(store)
        key = unit.keys[0]
        file, geometry, number = where_of(store, unit, key)
        from engine.codec.java import index_key_hash

        slot = index_key_hash(unit.topic, key) % geometry.slots
        reader = next(index_file for index_file in store.index_files() if index_file.path == file)
        head = reader.slot(slot)
        other = next(n for n, _ in reader.entries() if n not in {head, number})
    # The slot now begins with an entry of another hash, and that one links to itself or out of the file.
    patch(file, geometry.slot_position(slot), struct.pack(">i", other))
    patch(file, geometry.entry_position(other) + 16, struct.pack(">i", other if harm == "self" else 1 << 20))
    result = only_result(path, key)
    assert result.verdict == "notInIndex"
    broken = routes(result)[("key", key)]
    assert broken.verdict == "notInIndex"
    assert "its chain " + ("has a loop at" if harm == "self" else "leaves the file") in broken.why
    by_unique_key = only_result(path, unit.unique_key)
    assert by_unique_key.verdict == "found"
    assert routes(by_unique_key)[("key", key)].verdict == "notInIndex"
    assert only_result(path, unit.offset_msg_id).verdict == "notInIndex"
    code, out, _ = agree.command("where", path, key)
    assert code == 0
    assert f"by key {key}: in the log, not reachable by this key" in out


def test_without_any_index_no_key_leads_anywhere_unless_the_broker_builds_none(spoiled, golden_account):
    """The index folder was lost, queries by key found nothing, and the answer was "found"."""
    path = spoiled("clean-5.3.3")
    put = next(put for put in acknowledged(golden_account, "clean-5.3.3") if put["kind"] == "normal")
    shutil.rmtree(path / "index")
    assert only_result(path, put["msgId"]).verdict == "notInIndex"
    config, _ = from_mapping({"messageIndexEnable": "false"})
    with open_store(path, config) as store:
        store.settle_log_end()
        (result,) = where(store, put["msgId"])
    assert result.verdict == "found"
    assert {route.verdict for route in result.routes if route.by in {"key", "uniqueKey"}} <= {"unknown"}


# -- queue


def test_a_wrong_entry_is_told_as_one(spoiled, golden_account):
    """The answer was "holds no entry for offset 5; it goes from 0 to 382": it held one, of another queue."""
    path = spoiled("clean-5.3.3")
    puts = [p for p in acknowledged(golden_account, "clean-5.3.3") if p["kind"] == "normal" and p["topic"] == "TopicA"]
    our_put = next(put for put in puts if put["queue"] == 2 and put["queueOffset"] == 5)
    other = next(put for put in puts if put["queue"] == 0)
    file = path / "consumequeue" / "TopicA" / "2" / f"{0:020d}"
    patch(file, 5 * 20, struct.pack(">q", other["phy"]))
    result = only_result(path, "TopicA/2/5")
    assert (result.verdict, result.physical_offset) == ("notInQueue", our_put["phy"])
    why = routes(result)[("queue", "TopicA/2/5")].why
    assert why == (f"entry 5 is wrong: it points at {other['phy']:,}, the unit of TopicA/0/{other['queueOffset']}")
    patch(file, 5 * 20, bytes(20))
    assert routes(only_result(path, "TopicA/2/5"))[("queue", "TopicA/2/5")].why == "entry 5 is empty: zero bytes"


def test_a_deleted_topic_is_not_built_again(opened, golden_account):
    """The step was "build the queues again from the log": dispatch gives a deleted topic no queue."""
    (deleted,) = truth_lines(golden_account, "broker-orders", "topicDeleted")
    line = next(
        record for record in truth_lines(golden_account, "broker-orders", "send") if record["topic"] == deleted["topic"]
    )
    (result,) = where(opened("broker-orders"), line["offsetMsgId"])
    assert result.verdict == "notInQueue"
    assert "no dispatch gives it a queue again" in result.next_step


def test_a_group_tells_what_it_has_read_past(opened, golden_account):
    line = next(
        record for record in truth_lines(golden_account, "broker-orders", "received") if record["group"] == "billing"
    )
    (result,) = where(opened("broker-orders"), line["msgId"])
    unit_number = result.queue_offset
    billing = routes(result)[("group", "billing")]
    assert billing.verdict == "consumed"
    assert billing.why.endswith(f"next: it has read past {unit_number:,}")


# -- which copy


def test_the_headline_of_a_committed_transaction_is_what_consumers_read(opened, golden_account):
    """It was the half message's last copy, which the broker had put aside after it was committed."""
    first = truth_lines(golden_account, "broker-transactions", "half")[0]["msgId"]
    (result,) = where(opened("broker-transactions"), first)
    assert result.verdict == "found"
    assert (result.topic, result.queue_id, result.queue_offset) == ("PaymentEvents", 0, 0)
    units = [item for item in result.evidence if item.what == "unit"]
    assert units[0].offset == result.physical_offset
    assert [unit.offset for unit in units[1:]] == sorted(one.offset for one in units[1:])
    assert all(one.timestamp for one in units)
    assert {route.value for route in result.routes if route.by == "queue"} == {"PaymentEvents/0/0"}


# -- what cannot be ruled out


def test_bytes_that_cannot_be_read_may_hold_what_is_asked_for(spoiled):
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


def test_half_an_id_says_how_many_begin_so(opened):
    """ "No byte of this store speaks of it" was the answer to 7F00, with which every id begins."""
    store = opened("broker-transactions")
    (result,) = where(store, "7F00")
    assert result.verdict == "unknown"
    output = [item.holds for item in result.evidence if item.what == "beginning"]
    assert output[0].endswith(" keys begin with it")
    names = [one.removesuffix(" begins with it") for one in output[1:] if one.endswith(" begins with it")]
    assert len(names) == NAMED_KEYS
    assert all(name.startswith("7F00") for name in names)
    (named,) = where(store, names[0])
    assert named.verdict != "unknown", "each of them can be asked for"
    assert "every offset id of this broker begins with 7F00" in " ".join(output)
    assert "complete id" in result.next_step
    (other,) = where(store, "8F00")
    assert other.verdict == "neverSeen"
