"""Verdicts of ``where`` held against what real clients and brokers said of the same messages."""

from __future__ import annotations

import itertools
import random
import shutil
import struct
from collections import Counter, defaultdict

import agree
import made_stores
import pytest

from engine.codec.message import PREPARED, Unit, parse_offset_message_id
from engine.codec.unit_scan import Damage
from engine.inspection import open_store
from engine.inspection.where import where

pytestmark = pytest.mark.golden

HERE = {"found", "consumed", "notConsumed"}
TRANSACTIONS = ("broker-transactions", "broker-transactions-4.9.7")
RETRIES = ("broker-retries", "broker-retries-4.9.7")
CLEAN = ("clean-5.3.3", "clean-4.9.8", "propcrc-5.3.3", "sync-5.3.3", "ipv6-and-unicode-5.3.3")
CUT_OFF = [
    (name, archive)
    for name in ("crash-flip-5.3.3", "crash-power-5.3.3", "crash-4.9.8", "crash-transient-5.3.3")
    for archive in ("store", "recovered")
]


@pytest.fixture(scope="module")
def opened(golden):
    """``opened(name, archive)``: the store, opened once, its end where a recovery would end it."""
    stores = {}

    def opened(name, archive="store"):
        if (name, archive) not in stores:
            store = stores[name, archive] = open_store(golden(name, archive))
            store.settle_log_end()
        return stores[name, archive]

    yield opened
    for store in stores.values():
        store.close()


@pytest.fixture
def spoiled(golden, tmp_path):
    """``spoiled(name)``: a copy of a golden store to spoil, and a function that opens it."""

    def spoiled(name):
        return shutil.copytree(golden(name), tmp_path / "store")

    return spoiled


def verdict(store, text, **how):
    """The one verdict on what ``text`` names."""
    (result,) = where(store, text, **how)
    return result.verdict


def reopened(path):
    store = open_store(path)
    store.settle_log_end()
    return store


def told(account, name, *kinds):
    return [line for line in account(name, "truth.jsonl.xz") if line["kind"] in kinds]


def acknowledged(account, name):
    """Puts of single messages that the store acknowledged."""
    lines = account(name, "puts.jsonl.xz")
    return [line for line in lines if line["t"] == "put" and "msgId" in line and line["kind"] != "batch"]


def some(items, count, seed=7):
    return random.Random(seed).sample(items, min(count, len(items)))


# -- transactions


PLANS = {
    "commit": "found",
    "rollback": "rolledBack",
    "check-commit": "found",
    "check-rollback": "rolledBack",
    "second-check": "found",
    "never": "half",
}


@pytest.mark.parametrize("name", TRANSACTIONS)
@pytest.mark.parametrize("plan", PLANS)
def test_a_transaction_ends_as_its_producer_said(opened, golden_account, name, plan):
    halves = [line["msgId"] for line in told(golden_account, name, "half") if line["plan"] == plan]
    seen = Counter(verdict(opened(name), key) for key in [halves[0], *some(halves, 12)])
    assert set(seen) == {PLANS[plan]}


@pytest.mark.parametrize("name", TRANSACTIONS)
def test_a_half_that_was_given_up_stays_half_and_says_so(opened, golden_account, name):
    never = [line["msgId"] for line in told(golden_account, name, "half") if line["plan"] == "never"]
    results = [next(where(opened(name), key)) for key in never]
    given_up = [result for result in results if result.topic == "TRANS_CHECK_MAX_TIME_TOPIC"]
    assert given_up
    assert all("given up" in result.next_step for result in given_up)
    assert all("given up" not in result.next_step for result in results if result not in given_up)


def test_a_committed_message_stays_committed_though_it_was_checked_again_and_given_up(opened, golden_account):
    """The op messages of 5.x are written some seconds late: the check runs before, and the half is appended again."""
    first = told(golden_account, "broker-transactions", "half")[0]["msgId"]
    (result,) = where(opened("broker-transactions"), first)
    assert result.verdict == "found"
    assert result.topic == "TRANS_CHECK_MAX_TIME_TOPIC"  # the place is the newest unit's
    assert any("PaymentEvents/0/0: committed" in one.holds for one in result.evidence)


# -- delayed, retried, dead


def outcome(line, answers, recalled):
    """What the truth lets expect of a sent message."""
    if line["msgId"] in recalled:
        return "rolledBack"
    if any(name.startswith(("DELAY", "TIMER_")) for name in line["properties"]):
        return "found" if answers else "delayed"
    if "RECONSUME_LATER" not in answers:
        return "found"
    return "retried" if "CONSUME_SUCCESS" in answers else "deadLetter"


@pytest.mark.parametrize("name", RETRIES)
def test_delays_recalls_retries_and_dead_letters(opened, golden_account, name):
    answers = defaultdict(list)
    for line in told(golden_account, name, "received"):
        answers[line["msgId"]].append(line["answer"])
    recalled = {line["msgId"] for line in told(golden_account, name, "recall")}
    by_outcome = defaultdict(list)
    for line in told(golden_account, name, "send"):
        if line["topic"] == "OrderEvents":  # the other topic's group has a name too long for dead letters
            by_outcome[outcome(line, answers[line["msgId"]], recalled)].append(line["msgId"])
    assert {"found", "delayed", "retried", "deadLetter"} <= set(by_outcome)
    assert ("rolledBack" in by_outcome) == (name == "broker-retries")
    for expected, keys in by_outcome.items():
        assert {verdict(opened(name), key) for key in some(keys, 15)} == {expected}


def test_a_message_whose_group_cannot_have_dead_letters_is_retried_without_end(opened, golden_account):
    name = "broker-retries"
    later = [line for line in told(golden_account, name, "received") if line["answer"] == "RECONSUME_LATER"]
    refused = {line["msgId"] for line in later if line["topic"] == "PaymentEvents"}
    assert refused
    assert {verdict(opened(name), key) for key in refused} == {"retried"}


@pytest.mark.parametrize("name", RETRIES)
def test_a_group_hears_of_its_own_retries_only(opened, golden_account, name):
    answers = defaultdict(list)
    for line in told(golden_account, name, "received"):
        if line["topic"] == "OrderEvents":
            answers[line["msgId"]].append(line["answer"])
    retried = [key for key, seen in answers.items() if set(seen) == {"RECONSUME_LATER", "CONSUME_SUCCESS"}]
    dead = [key for key, seen in answers.items() if set(seen) == {"RECONSUME_LATER"}]
    for key in some(retried, 6):
        assert verdict(opened(name), key, group="billing") == "consumed"
        assert verdict(opened(name), key, group="somebody") == "notConsumed"
    for key in some(dead, 6):
        assert verdict(opened(name), key, group="billing") == "deadLetter"
        assert verdict(opened(name), key, group="somebody") == "notConsumed"


def test_the_evidence_names_every_unit_of_a_message_and_when_it_is_due(opened, golden_account):
    sends = told(golden_account, "broker-retries", "send")
    waiting = [line["msgId"] for line in sends if line["properties"].get("DELAY") == "18"]
    assert waiting
    (result,) = where(opened("broker-retries"), waiting[0])
    assert result.verdict == "delayed"
    assert (result.topic, result.queue_id) == ("SCHEDULE_TOPIC_XXXX", 17)
    assert any("waits in the delay topic, due 20" in one.holds for one in result.evidence)


def test_pop_retries_belong_to_their_group(opened, golden_account):
    """Pop names the retry topic after group and topic: %RETRY%billing_OrderEvents."""
    received = Counter(line["msgId"] for line in told(golden_account, "broker-pop", "received"))
    store = opened("broker-pop")
    again = [key for key, count in received.items() if count > 1]
    once = [key for key, count in received.items() if count == 1]
    assert {verdict(store, key) for key in again} == {"retried"}
    assert {verdict(store, key) for key in some(once, 10)} == {"found"}
    assert {verdict(store, key, group="billing") for key in again} <= {"retried", "consumed"}
    assert {verdict(store, key, group="other") for key in again} == {"notConsumed"}


# -- groups and filters


def test_sql_filters_hide_what_their_groups_were_not_given(opened, golden_account):
    name = "broker-sqlfilter"
    groups = {line["group"] for line in told(golden_account, name, "subscription")}
    got = defaultdict(set)
    for line in told(golden_account, name, "received"):
        got[line["group"]].add(line["msgId"])
    sends = [line["msgId"] for line in told(golden_account, name, "send") if line["topic"] == "OrderEvents"]
    for group in groups:
        for key in some(sends[:-60], 40):  # the last were sent when the groups had left
            assert verdict(opened(name), key, group=group) == ("consumed" if key in got[group] else "hiddenByTag")


@pytest.mark.parametrize("name", ["broker-orders", "broker-orders-4.9.7"])
@pytest.mark.parametrize("group", ["billing", "ledger"])
def test_a_group_has_consumed_what_it_received(opened, golden_account, name, group):
    received = [line for line in told(golden_account, name, "received") if line["group"] == group]
    got, topics = {line["msgId"] for line in received}, {line["topic"] for line in received}
    sends = [line["msgId"] for line in told(golden_account, name, "send") if line["topic"] in topics]
    for key in [*some(sends, 25), *sends[-8:]]:
        assert verdict(opened(name), key, group=group) == ("consumed" if key in got else "notConsumed")


def test_a_tag_code_that_is_not_the_units_hides_it(spoiled, opened, golden_account):
    line = told(golden_account, "broker-orders", "send")[3]
    path = spoiled("broker-orders")
    topic, queue_id, offset = line["topic"], line["queueId"], line["queueOffset"]
    file = path / "consumequeue" / topic / str(queue_id) / f"{0:020d}"
    data = bytearray(file.read_bytes())
    struct.pack_into(">q", data, offset * 20 + 12, 4711)
    file.write_bytes(data)
    with reopened(path) as store:
        assert verdict(store, line["msgId"]) == "hiddenByTag"
        assert verdict(store, f"{topic}/{queue_id}/{offset}") == "hiddenByTag"
        assert verdict(store, line["offsetMsgId"], group="billing") == "hiddenByTag"


# -- batches, light queues, names


def test_each_element_of_a_batch_answers_to_the_id_that_its_sender_was_told(opened, golden_account):
    """A 5.x broker puts the batch's key behind each element's own: readers and the index know only that one.

    The producer's log has the elements' own ids. Asked for them, nothing was found, though all of them are there.
    """
    for name in ("broker-orders", "broker-orders-4.9.7"):
        for line in told(golden_account, name, "batch")[:3]:
            own, ids = line["msgId"].split(","), line["offsetMsgId"].split(",")
            for key, offset_id in zip(own, ids, strict=True):
                (by_key,), (by_id,) = where(opened(name), key), where(opened(name), offset_id)
                assert by_key.verdict == by_id.verdict == "found"
                assert by_key.physical_offset == by_id.physical_offset == parse_offset_message_id(offset_id)[1]
                assert sum(one.what == "unit" for one in by_key.evidence) == 1


def test_a_batchs_shared_key_names_all_of_its_messages(opened, golden_account):
    line = told(golden_account, "broker-orders", "batch")[0]
    unit = opened("broker-orders").log.unit_at(parse_offset_message_id(line["offsetMsgId"].split(",")[0])[1])
    results = list(where(opened("broker-orders"), unit.unique_key))
    assert len(results) == len(line["elements"])
    assert {result.verdict for result in results} == {"found"}


def test_one_result_for_each_message_of_a_key(opened, golden_account):
    asked = {}
    for line in told(golden_account, "broker-orders", "query"):
        if line.get("results"):
            asked.setdefault(line["key"], set()).update(int(one.rpartition("#")[2]) for one in line["results"])
    key = max(asked, key=lambda one: len(asked[one]))
    results = list(where(opened("broker-orders"), key))
    offsets = [result.physical_offset for result in results]
    assert len(set(offsets)) == len(offsets)
    assert asked[key] <= set(offsets)
    assert offsets == sorted(offsets, reverse=True)


def test_a_topic_narrows_a_key(opened):
    store = opened("broker-orders")
    everywhere = list(where(store, "AaAa"))
    there = list(where(store, "AaAa", topic="OrderEvents"))
    assert 0 < len(there) < len(everywhere)
    assert {result.topic for result in there} == {"OrderEvents"}


def test_messages_of_light_and_batch_queues_are_found(opened, golden_account):
    store = opened("broker-lmq")
    for line in some(told(golden_account, "broker-lmq", "batch"), 5):
        assert verdict(store, line["offsetMsgId"]) == "found"
        assert verdict(store, line["msgId"]) == "found"
        middle = line["queueOffset"] + len(line["elements"]) - 1
        assert verdict(store, f"{line['topic']}/{line['queueId']}/{middle}") == "found"
    assert verdict(store, "%LMQ%room-0/0/4") in HERE


def test_ids_with_sixteen_byte_hosts_in_either_case(opened, golden_account):
    puts = acknowledged(golden_account, "ipv6-and-unicode-5.3.3")
    plain = [put for put in puts if put["kind"] == "normal" and not put["topic"].startswith("%RETRY%")]
    long = [put["msgId"] for put in plain if len(put["msgId"]) == 56]
    assert long
    for text in some(long, 5):
        assert verdict(opened("ipv6-and-unicode-5.3.3"), text) == "found"
        assert verdict(opened("ipv6-and-unicode-5.3.3"), text.lower()) == "found"


# -- expired


def test_expired_messages_by_every_kind_of_id(opened, golden_account):
    name = "first-files-deleted-5.3.3"
    store = opened(name)
    least = store.log.min_offset
    puts = acknowledged(golden_account, name)
    gone = [put for put in puts if put["phy"] < least]
    for put in some(gone, 20):
        assert verdict(store, put["msgId"]) == "expired"
        if put["kind"] in {"normal", "compressed"}:
            assert verdict(store, f"{put['topic']}/{put['queue']}/{put['queueOffset']}") == "expired"
    there = [put for put in puts if put["phy"] >= least and put["kind"] in {"normal", "compressed"}]
    assert there[0]["phy"] < least + 1000
    for put in [there[0], *some(there, 20)]:
        assert verdict(store, put["msgId"]) == "found"
        assert verdict(store, f"{put['topic']}/{put['queue']}/{put['queueOffset']}") == "found"


def test_expired_unique_keys(opened):
    store = opened("first-files-deleted-5.3.3")
    first = next(item for item in store.log.walk() if isinstance(item, Unit) and item.unique_key)
    number = int(first.unique_key[-4:], 16)
    for older in range(number - 1, 0, -500):
        assert verdict(store, f"{first.unique_key[:-4]}{older:04X}") == "expired"
    by_index = next(where(store, f"{first.unique_key[:-4]}{number - 1:04X}"))
    assert any(one.what == "index" and one.offset < store.log.min_offset for one in by_index.evidence)


# -- cut off by recovery


@pytest.mark.parametrize(("name", "archive"), CUT_OFF)
def test_what_was_acknowledged_and_is_behind_the_end_was_cut_off(opened, golden_account, name, archive):
    store = opened(name, archive)
    puts = acknowledged(golden_account, name)
    behind = [put for put in puts if put["phy"] >= store.log.max_offset]
    # In crash-flip the first of them still has its bytes, and they are wrong.
    assert behind
    for put in some(behind, 20):
        expected = {"truncated", "damaged"} if put is behind[0] else {"truncated"}
        assert verdict(store, put["msgId"]) in expected
        if put["kind"] in {"normal", "compressed", "delay", "commit"}:
            assert verdict(store, f"{put['topic']}/{put['queue']}/{put['queueOffset']}") in expected
    for put in some([put for put in puts if put["phy"] < store.log.max_offset], 20):
        assert verdict(store, put["msgId"]) not in {"truncated", "damaged", "expired", "neverSeen", "unknown"}


def test_a_flipped_body_is_damaged_and_what_follows_it_is_cut_off(opened):
    store = opened("crash-flip-5.3.3")
    flipped = next(item for item in store.log.walk() if isinstance(item, Unit) and item.crc == "bad")
    place = f"{flipped.topic}/{flipped.queue_id}/{flipped.queue_offset}"
    for text in (flipped.offset_msg_id, flipped.unique_key, place):
        (result,) = where(store, text)
        assert result.verdict == "damaged"
        assert any(one.what == "body CRC" for one in result.evidence)
    following = next(item for item in store.log.walk(flipped.end) if isinstance(item, Unit) and item.unique_key)
    assert verdict(store, following.unique_key) == "truncated"


@pytest.mark.parametrize("archive", ["store", "store-recovered"])
def test_of_four_sends_without_an_answer_three_are_there(opened, golden_account, archive):
    """The broker died between storing and answering: the truth page says how many."""
    name = "broker-crash"
    answered = {line.get("keys") for line in told(golden_account, name, "send")}
    tried = [
        line["keys"].split()[0] for line in told(golden_account, name, "trying") if line.get("keys") not in answered
    ]
    keys = [key for key in tried if key.startswith("K")]
    seen = Counter(verdict(opened(name, archive), key) for key in keys)
    assert seen == {"found": 3, "neverSeen": 1}
    for line in told(golden_account, name, "send")[-15:]:
        assert verdict(opened(name, archive), line["offsetMsgId"]) == "found"
        assert verdict(opened(name, archive), line["msgId"]) == "found"


@pytest.mark.parametrize("live", ["live-1", "live-3"])
def test_what_was_still_in_the_transient_pool_is_not_here(golden, golden_account, live):
    with reopened(golden("broker-transient").parent / live) as store:
        sends = told(golden_account, "broker-transient", "send")
        end = store.log.max_offset
        behind = [s["offsetMsgId"] for s in sends if end <= parse_offset_message_id(s["offsetMsgId"])[1] < end + 30_000]
        assert behind
        assert {verdict(store, text) for text in some(behind, 10)} == {"truncated"}


# -- queues and index that do not know of it


@pytest.mark.parametrize("name", ["queues-gone-5.3.3", "queues-gone-4.9.8"])
def test_without_queues_no_message_is_in_its_queue(opened, golden_account, name):
    puts = [put for put in acknowledged(golden_account, name) if put["kind"] in {"normal", "compressed", "delay"}]
    for put in [*some(puts, 10), puts[-1]]:
        assert verdict(opened(name), put["msgId"]) == "notInQueue"
        assert verdict(opened(name), f"{put['topic']}/{put['queue']}/{put['queueOffset']}") == "notInQueue"
        assert verdict(opened(name, "recovered"), put["msgId"]) in {"found", "delayed"}


def test_a_torn_queue_misses_what_the_log_still_has(opened, golden_account):
    store = opened("crash-power-5.3.3")
    puts = [put for put in acknowledged(golden_account, "crash-power-5.3.3") if put["kind"] == "normal"]
    orders = [put for put in puts if put["topic"] == "orders" and put["phy"] < store.log.max_offset]
    for put in some(orders, 10):
        assert verdict(store, f"orders/0/{put['queueOffset']}") == "notInQueue"
        assert verdict(opened("crash-power-5.3.3", "recovered"), put["msgId"]) == "found"


def test_a_removed_queue_folder(spoiled, golden_account):
    path = spoiled("clean-5.3.3")
    shutil.rmtree(path / "consumequeue" / "TopicA" / "2")
    puts = [put for put in acknowledged(golden_account, "clean-5.3.3") if put["kind"] == "normal"]
    with reopened(path) as store:
        for put in some([put for put in puts if (put["topic"], put["queue"]) == ("TopicA", 2)], 8):
            assert verdict(store, put["msgId"]) == "notInQueue"
            assert verdict(store, f"TopicA/2/{put['queueOffset']}") == "notInQueue"
        for put in some([put for put in puts if put["queue"] == 1], 8):
            assert verdict(store, put["msgId"]) == "found"


def test_a_deleted_topics_messages_stay_in_the_log(opened, golden_account):
    for name in ("broker-orders", "broker-orders-4.9.7"):
        (deleted,) = told(golden_account, name, "topicDeleted")
        lines = [line for line in told(golden_account, name, "send") if line["topic"] == deleted["topic"]]
        assert lines
        for line in lines:
            place = f"{line['topic']}/{line['queueId']}/{line['queueOffset']}"
            for text in (line["msgId"], line["offsetMsgId"], place):
                (result,) = where(opened(name), text)
                assert result.verdict == "notInQueue"
                assert any("it was deleted" in one.holds for one in result.evidence)


def test_a_missing_index_file_hides_a_message_from_queries_only(spoiled, golden_account):
    path = spoiled("broker-orders")
    with open_store(path) as store:
        header = store.index_files()[2].header
    sorted((path / "index").iterdir())[2].unlink()
    lines = told(golden_account, "broker-orders", "send")
    inside = range(header.begin_phy_offset + 2000, header.end_phy_offset - 2000)
    covered = [line for line in lines if parse_offset_message_id(line["offsetMsgId"])[1] in inside]
    with reopened(path) as store:
        for line in some([line for line in covered if line["topic"] == "OrderEvents"], 8):
            assert verdict(store, line["msgId"]) == "notInIndex"
            assert verdict(store, line["offsetMsgId"], group="billing") == "consumed"


def test_what_no_queue_has_come_to_is_not_yet_dispatched(spoiled, golden_account):
    name, since = "crash-5.3.3", 1_690_000
    path = spoiled(name)
    for file in (file for file in (path / "consumequeue").rglob("0*") if file.is_file()):
        data = bytearray(file.read_bytes())
        for at in range(0, len(data), 20):
            if struct.unpack_from(">q", data, at)[0] >= since:
                data[at : at + 20] = bytes(20)
        file.write_bytes(data)
    checkpoint = bytearray((path / "checkpoint").read_bytes())
    checkpoint[8:16] = checkpoint[0:8]  # the queues were flushed no later than the log
    (path / "checkpoint").write_bytes(checkpoint)
    late = [put for put in acknowledged(golden_account, name) if put["phy"] >= since and put["kind"] != "prepared"]
    with reopened(path) as store:
        for put in late:
            assert verdict(store, put["msgId"]) in {"notYetDispatched", "rolledBack"}
            if put["kind"] == "normal":
                assert verdict(store, f"{put['topic']}/{put['queue']}/{put['queueOffset']}") == "notYetDispatched"
    assert any(put["kind"] == "normal" for put in late)


def test_dispatch_that_never_ran_for_the_newest_units(tmp_path):
    made = made_stores.healthy(20)
    made.units[-1].dispatched = made.units[-2].dispatched = False
    made.write(tmp_path / "store", checkpoint=False, abort=True)
    with reopened(tmp_path / "store") as store:
        newest, older = made.units[-1], made.units[5]
        assert verdict(store, newest.keys[0]) == "notYetDispatched"
        assert verdict(store, f"{newest.topic}/{newest.queue_id}/{newest.queue_offset}") == "notYetDispatched"
        assert verdict(store, older.keys[0]) == "found"


def test_a_part_of_a_store_is_not_blamed_for_the_queues_it_has_not(golden, golden_account):
    puts = [put for put in acknowledged(golden_account, "clean-5.3.3") if put["kind"] == "normal"]
    with open_store(golden("clean-5.3.3") / "commitlog") as store:
        for put in some(puts, 5):
            assert verdict(store, put["msgId"]) == "found"
            assert verdict(store, f"{put['topic']}/{put['queue']}/{put['queueOffset']}") == "found"


def test_half_messages_that_a_plan_put_are_half(opened, golden_account):
    store = opened("clean-5.3.3")
    halves = [put for put in acknowledged(golden_account, "clean-5.3.3") if put["kind"] == "prepared"]
    assert halves
    for put in halves:
        assert store.log.unit_at(put["phy"]).transaction_type == PREPARED
        assert verdict(store, put["msgId"]) == "half"


# -- damage


def test_a_unit_with_a_broken_frame_is_damaged_by_id_and_by_key(spoiled, golden_account):
    put = some([put for put in acknowledged(golden_account, "clean-5.3.3") if put["kind"] == "normal"], 40)[0]
    path = spoiled("clean-5.3.3")
    with open_store(path) as store:
        unit = store.log.unit_at(put["phy"])
        file = store.log.sequence.find(put["phy"])
    data = bytearray((path / "commitlog" / file.name).read_bytes())
    struct.pack_into(">i", data, unit.offset - file.start_offset, 77)
    (path / "commitlog" / file.name).write_bytes(data)
    with reopened(path) as store:
        assert any(isinstance(item, Damage) for item in store.log.walk())
        expected = "truncated" if put["phy"] >= store.log.max_offset else "damaged"
        for text in (put["msgId"], unit.unique_key, f"{unit.topic}/{unit.queue_id}/{unit.queue_offset}"):
            assert verdict(store, text) == expected


# -- never were


@pytest.mark.parametrize("name", [*CLEAN, "broker-orders", "multi-queue-ext-5.3.3", "batchcq-5.3.3"])
def test_what_never_was(opened, name):
    store = opened(name)
    units = [item for item in itertools.islice(store.log.walk(), 40) if isinstance(item, Unit)]
    host = units[0].store_host_raw
    pick = random.Random(name)
    topic, queues = next(iter(store.topics().items()))
    queue_id, queue = next(iter(queues.items()))
    texts = [
        pick.randbytes(16).hex().upper(),
        pick.randbytes(28).hex().upper(),
        "K99999999",
        "no such key",
        "",
        (host + (units[7].offset + 3).to_bytes(8, "big")).hex().upper(),  # inside a unit
        (host + (store.log.max_offset + 700).to_bytes(8, "big")).hex().upper(),
        (host + (1 << 50).to_bytes(8, "big")).hex().upper(),
        (bytes([10, 9, 8, 7]) + (10911).to_bytes(4, "big") + units[7].offset.to_bytes(8, "big")).hex().upper(),
        f"{topic}/{queue_id}/{queue.max_offset}",
        f"{topic}/{queue_id}/{queue.max_offset + 1_000_000}",
        f"{topic}/{queue_id}/-1",
        f"{topic}/999/0",
        "NoSuchTopic/0/0",
        str(units[7].offset + 3),
        str(1 << 50),
        "-5",
    ]
    for text in texts:
        (result,) = where(store, text)
        assert (text, result.verdict) == (text, "neverSeen")


@pytest.mark.parametrize("name", CLEAN)
def test_messages_that_are_there_by_every_kind_of_id(opened, golden_account, name):
    store = opened(name)
    puts = [put for put in acknowledged(golden_account, name) if put["kind"] in {"normal", "compressed"}]
    for put in some(puts, 8):
        unit = store.log.unit_at(put["phy"])
        expected = "retried" if put["topic"].startswith("%RETRY%") else "found"
        texts = [put["msgId"], f"{put['topic']}/{put['queue']}/{put['queueOffset']}", str(put["phy"])]
        for text in texts + ([unit.unique_key] if unit.unique_key else []):
            assert verdict(store, text) == expected


# -- the command


CODES = [
    ("7F00000100002A9F0000000000000000", 0, "found"),
    ("TopicA/0/0", 0, "found"),
    ("TopicA/0/0x0", 0, "found"),
    ("TopicA/0/1_000_000", 1, "neverSeen"),
    ("nobody", 1, "neverSeen"),
    ("7F00000100002A9F0000000000000001", 1, "neverSeen"),
]


@pytest.mark.parametrize(("text", "status", "expected"), CODES)
def test_the_exit_code_tells_whether_it_is_there(golden, text, status, expected):
    code, out, err = agree.command("where", golden("clean-5.3.3"), text, "--json")
    assert (code, err) == (status, "")
    assert f'"verdict": "{expected}"' in out or f'"verdict":"{expected}"' in out
