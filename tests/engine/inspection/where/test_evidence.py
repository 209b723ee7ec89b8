"""Verdicts of ``where`` compared with the reports of real clients and brokers about the same messages."""

from __future__ import annotations

import itertools
import random
import shlex
import struct
from collections import Counter, defaultdict

import agree
import pytest
from where_cases import CLEAN, acknowledged, reopened, sample, truth_lines, verdict

from engine.codec.message import Unit, parse_offset_message_id
from engine.inspection import open_store
from engine.inspection.where.evidence import where
from engine.rules.where import role
from engine.system_names import OP_TOPIC

pytestmark = pytest.mark.golden

PRESENT = {"found", "consumed", "notConsumed"}
TRANSACTIONS = ("broker-transactions", "broker-transactions-4.9.7")
RETRIES = ("broker-retries", "broker-retries-4.9.7")


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
def test_a_transaction_ends_as_its_producer_decided(opened, golden_account, name, plan):
    halves = [line["msgId"] for line in truth_lines(golden_account, name, "half") if line["plan"] == plan]
    counts = Counter(verdict(opened(name), key) for key in [halves[0], *sample(halves, 12)])
    assert set(counts) == {PLANS[plan]}


@pytest.mark.parametrize("name", TRANSACTIONS)
def test_a_discarded_half_stays_half_and_is_reported(opened, golden_account, name):
    never = [line["msgId"] for line in truth_lines(golden_account, name, "half") if line["plan"] == "never"]
    results = [next(where(opened(name), key)) for key in never]
    given_up = [result for result in results if result.topic == "TRANS_CHECK_MAX_TIME_TOPIC"]
    assert given_up
    assert all("given up" in result.next_step for result in given_up)
    assert all("given up" not in result.next_step for result in results if result not in given_up)


def test_the_op_message_that_decided_a_half_has_an_offset(opened, golden_account):
    store = opened("broker-transactions")
    ended = [
        line["msgId"] for line in truth_lines(golden_account, "broker-transactions", "half") if line["plan"] != "never"
    ]
    op_messages = [
        evidence for key in ended[:5] for evidence in next(where(store, key)).evidence if evidence.what == "op message"
    ]
    assert op_messages
    for op_message in op_messages:
        unit = store.log.unit_at(op_message.offset)
        assert unit.topic == OP_TOPIC
        assert op_message.holds.split()[3] in unit.body.decode().split(",")
        assert op_message.file == store.log.file_name(op_message.offset)


def test_a_committed_message_stays_committed_after_a_later_check(opened, golden_account):
    """The op messages of 5.x are written some seconds late: the check runs first, and the half message is appended
    again.
    """
    message_id = truth_lines(golden_account, "broker-transactions", "half")[0]["msgId"]
    (result,) = where(opened("broker-transactions"), message_id)
    assert result.verdict == "found"
    assert result.topic == "PaymentEvents"  # the offset is that of the copy that consumers read
    assert any("TRANS_CHECK_MAX_TIME_TOPIC/0/0: half" in evidence.holds for evidence in result.evidence)


# -- delayed, retried, dead


def outcome(line, answers, recalled):
    """Return the verdict that the client's reports imply for a sent message."""
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
    for line in truth_lines(golden_account, name, "received"):
        answers[line["msgId"]].append(line["answer"])
    recalled = {line["msgId"] for line in truth_lines(golden_account, name, "recall")}
    by_outcome = defaultdict(list)
    for line in truth_lines(golden_account, name, "send"):
        if line["topic"] == "OrderEvents":  # the other topic's group has a name too long for dead letters
            by_outcome[outcome(line, answers[line["msgId"]], recalled)].append(line["msgId"])
    assert {"found", "delayed", "retried", "deadLetter"} <= set(by_outcome)
    assert ("rolledBack" in by_outcome) == (name == "broker-retries")
    for expected, keys in by_outcome.items():
        assert {verdict(opened(name), key) for key in sample(keys, 15)} == {expected}


def test_a_message_whose_group_cannot_have_dead_letters_is_retried_without_end(opened, golden_account):
    name = "broker-retries"
    later = [line for line in truth_lines(golden_account, name, "received") if line["answer"] == "RECONSUME_LATER"]
    refused = {line["msgId"] for line in later if line["topic"] == "PaymentEvents"}
    assert refused
    assert {verdict(opened(name), key) for key in refused} == {"retried"}


@pytest.mark.parametrize("name", RETRIES)
def test_a_group_has_only_its_own_retries(opened, golden_account, name):
    answers = defaultdict(list)
    for line in truth_lines(golden_account, name, "received"):
        if line["topic"] == "OrderEvents":
            answers[line["msgId"]].append(line["answer"])
    retried = [key for key, answer in answers.items() if set(answer) == {"RECONSUME_LATER", "CONSUME_SUCCESS"}]
    dead = [key for key, actual_answer in answers.items() if set(actual_answer) == {"RECONSUME_LATER"}]
    for key in sample(retried, 6):
        assert verdict(opened(name), key, group="billing") == "consumed"
        assert verdict(opened(name), key, group="somebody") == "notConsumed"
    for key in sample(dead, 6):
        assert verdict(opened(name), key, group="billing") == "deadLetter"
        assert verdict(opened(name), key, group="somebody") == "notConsumed"


def test_the_evidence_names_every_unit_of_a_message_and_when_it_is_due(opened, golden_account):
    sends = truth_lines(golden_account, "broker-retries", "send")
    waiting = [line["msgId"] for line in sends if line["properties"].get("DELAY") == "18"]
    assert waiting
    (result,) = where(opened("broker-retries"), waiting[0])
    assert result.verdict == "delayed"
    assert (result.topic, result.queue_id) == ("SCHEDULE_TOPIC_XXXX", 17)
    assert any("waits in the delay topic, due 20" in item.holds for item in result.evidence)


def test_pop_retries_belong_to_their_group(opened, golden_account):
    """Pop names the retry topic after group and topic: %RETRY%billing_OrderEvents."""
    received = Counter(line["msgId"] for line in truth_lines(golden_account, "broker-pop", "received"))
    store = opened("broker-pop")
    second_keys = sample([key for key, count in received.items() if count > 1], 12)
    once = [key for key, count in received.items() if count == 1]
    assert {verdict(store, key) for key in second_keys} == {"retried"}
    assert {verdict(store, key) for key in sample(once, 10)} == {"found"}
    assert {verdict(store, key, group="billing") for key in second_keys} <= {"retried", "consumed"}
    assert {verdict(store, key, group="other") for key in second_keys} == {"notConsumed"}


# -- groups and filters


def test_sql_filters_hide_messages_that_their_groups_did_not_get(opened, golden_account):
    name = "broker-sqlfilter"
    groups = {line["group"] for line in truth_lines(golden_account, name, "subscription")}
    got = defaultdict(set)
    for line in truth_lines(golden_account, name, "received"):
        got[line["group"]].add(line["msgId"])
    sends = [line["msgId"] for line in truth_lines(golden_account, name, "send") if line["topic"] == "OrderEvents"]
    for group in groups:
        for key in sample(sends[:-60], 16):  # the last messages were sent after the groups had left
            assert verdict(opened(name), key, group=group) == ("consumed" if key in got[group] else "hiddenByTag")


@pytest.mark.parametrize("name", ["broker-orders", "broker-orders-4.9.7"])
@pytest.mark.parametrize("group", ["billing", "ledger"])
def test_a_group_has_consumed_what_it_received(opened, golden_account, name, group):
    received = [line for line in truth_lines(golden_account, name, "received") if line["group"] == group]
    got, topics = {line["msgId"] for line in received}, {line["topic"] for line in received}
    sends = [line["msgId"] for line in truth_lines(golden_account, name, "send") if line["topic"] in topics]
    for key in [*sample(sends, 10), *sends[-5:]]:
        assert verdict(opened(name), key, group=group) == ("consumed" if key in got else "notConsumed")


def test_a_tag_code_that_is_not_the_units_hides_it(spoiled, opened, golden_account):
    line = truth_lines(golden_account, "broker-orders", "send")[3]
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


def test_each_element_of_a_batch_is_found_by_its_producers_id(opened, golden_account):
    """A 5.x broker appends the batch's key after each element's own key. Readers and the index use only the batch's
    key.

    The producer's log has the elements' own ids. A query by such an id found nothing, although all messages exist.
    """
    for name in ("broker-orders", "broker-orders-4.9.7"):
        for line in truth_lines(golden_account, name, "batch")[:1]:
            element_ids, offset_ids = line["msgId"].split(","), line["offsetMsgId"].split(",")
            for key, offset_id in zip(element_ids, offset_ids, strict=True):
                (by_key,), (by_id,) = where(opened(name), key), where(opened(name), offset_id)
                assert by_key.verdict == by_id.verdict == "found"
                assert by_key.physical_offset == by_id.physical_offset == parse_offset_message_id(offset_id)[1]
                assert sum(item.what == "unit" for item in by_key.evidence) == 1


def test_a_batchs_shared_key_names_all_of_its_messages(opened, golden_account):
    line = truth_lines(golden_account, "broker-orders", "batch")[0]
    unit = opened("broker-orders").log.unit_at(parse_offset_message_id(line["offsetMsgId"].split(",")[0])[1])
    results = list(where(opened("broker-orders"), unit.unique_key))
    assert len(results) == len(line["elements"])
    assert {result.verdict for result in results} == {"found"}


def test_one_result_for_each_message_of_a_key(opened, golden_account):
    offsets_by_key = {}
    for line in truth_lines(golden_account, "broker-orders", "query"):
        if line.get("results"):
            offsets_by_key.setdefault(line["key"], set()).update(
                int(item.rpartition("#")[2]) for item in line["results"]
            )
    key = max(offsets_by_key, key=lambda query_key: len(offsets_by_key[query_key]))
    results = list(where(opened("broker-orders"), key))
    offsets = [result.physical_offset for result in results]
    assert len(set(offsets)) == len(offsets)
    assert offsets_by_key[key] <= set(offsets)
    assert offsets == sorted(offsets, reverse=True)


def test_a_topic_narrows_a_key(opened):
    store = opened("broker-orders")
    everywhere = list(where(store, "AaAa"))
    present = list(where(store, "AaAa", topic="OrderEvents"))
    assert 0 < len(present) < len(everywhere)
    assert {result.topic for result in present} == {"OrderEvents"}


def test_messages_of_light_and_batch_queues_are_found(opened, golden_account):
    store = opened("broker-lmq")
    for line in sample(truth_lines(golden_account, "broker-lmq", "batch"), 5):
        assert verdict(store, line["offsetMsgId"]) == "found"
        assert verdict(store, line["msgId"]) == "found"
        middle = line["queueOffset"] + len(line["elements"]) - 1
        assert verdict(store, f"{line['topic']}/{line['queueId']}/{middle}") == "found"
    assert verdict(store, "%LMQ%room-0/0/4") in PRESENT


def test_ids_with_sixteen_byte_hosts_in_either_case(opened, golden_account):
    puts = acknowledged(golden_account, "ipv6-and-unicode-5.3.3")
    plain = [put for put in puts if put["kind"] == "normal" and not put["topic"].startswith("%RETRY%")]
    long = [put["msgId"] for put in plain if len(put["msgId"]) == 56]
    assert long
    for text in sample(long, 5):
        assert verdict(opened("ipv6-and-unicode-5.3.3"), text) == "found"
        assert verdict(opened("ipv6-and-unicode-5.3.3"), text.lower()) == "found"


# -- never were


@pytest.mark.parametrize("name", [*CLEAN, "broker-orders", "multi-queue-ext-5.3.3", "batchcq-5.3.3"])
def test_ids_that_never_existed(opened, name):
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
    foreign_id = (bytes([10, 9, 8, 7]) + (10911).to_bytes(4, "big") + units[7].offset.to_bytes(8, "big")).hex().upper()
    (result,) = where(store, foreign_id)
    assert result.verdict == "unknown"  # the id names another broker, whose store may have the message
    assert f"{units[7].topic}/{units[7].queue_id}/{units[7].queue_offset}" in result.evidence[0].holds


@pytest.mark.parametrize("name", CLEAN)
def test_messages_that_are_there_by_every_kind_of_id(opened, golden_account, name):
    store = opened(name)
    puts = [put for put in acknowledged(golden_account, name) if put["kind"] in {"normal", "compressed"}]
    for put in sample(puts, 8):
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
def test_the_exit_code_shows_whether_the_message_exists(golden, text, status, expected):
    code, out, err = agree.command("where", golden("clean-5.3.3"), text, "--json")
    assert (code, err) == (status, "")
    assert f'"verdict": "{expected}"' in out or f'"verdict":"{expected}"' in out


def test_a_message_has_a_history_and_a_command_that_copies_it_out(golden, tmp_path):
    path = golden("broker-orders")
    with open_store(path) as store:
        unit = store.log.items(store.log.min_offset, 1)[0]
        (result,) = where(store, str(unit.offset))
    steps = [event.step for event in result.life]
    assert steps == ["born", "stored", "dispatched", "indexed", "consumed"]
    assert (result.life[0].timestamp, result.life[1].timestamp) == (unit.born_timestamp, unit.store_timestamp)
    assert result.life[1].offset == unit.offset
    assert set(result.life[-1].who) == {route.value for route in result.routes if route.verdict == "consumed"}
    code, out, _ = agree.command("where", path, str(unit.offset))
    life = next(line for line in out.splitlines() if line.startswith("  history: born "))
    assert " → stored " in life
    assert " → in its queue → in the index → read past by " in life
    command = shlex.split(next(line for line in out.splitlines() if line.startswith("  copy it out: ")))[3:]
    assert command[:2] == ["storescope", "copy"]
    code, _, error = agree.command("copy", path, str(tmp_path / "new"), *command[4:])
    assert code == 0, error
    with open_store(tmp_path / "new") as copied:
        (only,) = [copied_item for copied_item in copied.log.items(0, 5) if isinstance(copied_item, Unit)]
    assert (only.body, only.unique_key) == (unit.body, unit.unique_key)


def test_the_life_of_a_transaction_goes_through_its_half_message(golden):
    with open_store(golden("broker-transactions")) as store:
        half = next(unit for unit in store.log.walk() if isinstance(unit, Unit) and role(unit) == "half")
        (result,) = where(store, str(half.offset))
    assert [item.step for item in result.life][:3] in (["born", "half", "committed"], ["born", "half", "half"])
