"""Verdicts of ``where`` on incomplete messages: expired, cut off, without queue or index, damaged."""

from __future__ import annotations

import shutil
import struct
from collections import Counter

import handmade_stores
import pytest
from handmade_stores import healthy
from where_cases import acknowledged, reopened, sample, truth_lines, verdict

from engine.bench.data import sparse_store
from engine.codec.message import PREPARED, Unit, parse_offset_message_id
from engine.codec.unit_scan import Damage
from engine.inspection import open_store
from engine.inspection.where.evidence import where
from engine.inspection.where.lost import Unreadable, UnreadableSpans, unreadable_spans

pytestmark = pytest.mark.golden

CUT_OFF = [
    (name, archive)
    for name in ("crash-flip-5.3.3", "crash-power-5.3.3", "crash-4.9.8", "crash-transient-5.3.3")
    for archive in ("store", "recovered")
]


# -- expired


def test_expired_messages_by_every_kind_of_id(opened, golden_account):
    name = "first-files-deleted-5.3.3"
    store = opened(name)
    least = store.log.min_offset
    puts = acknowledged(golden_account, name)
    removed_puts = [put for put in puts if put["phy"] < least]
    for put in sample(removed_puts, 20):
        assert verdict(store, put["msgId"]) == "expired"
        if put["kind"] in {"normal", "compressed"}:
            assert verdict(store, f"{put['topic']}/{put['queue']}/{put['queueOffset']}") == "expired"
    present_puts = [put for put in puts if put["phy"] >= least and put["kind"] in {"normal", "compressed"}]
    assert present_puts[0]["phy"] < least + 1000
    for put in [present_puts[0], *sample(present_puts, 20)]:
        assert verdict(store, put["msgId"]) == "found"
        assert verdict(store, f"{put['topic']}/{put['queue']}/{put['queueOffset']}") == "found"


def test_expired_unique_keys(opened):
    store = opened("first-files-deleted-5.3.3")
    first_unit = next(unit for unit in store.log.walk() if isinstance(unit, Unit) and unit.unique_key)
    number = int(first_unit.unique_key[-4:], 16)
    for older in range(number - 1, 0, -500):
        assert verdict(store, f"{first_unit.unique_key[:-4]}{older:04X}") == "expired"
    by_index = next(where(store, f"{first_unit.unique_key[:-4]}{number - 1:04X}"))
    assert any(evidence.what == "index" and evidence.offset < store.log.min_offset for evidence in by_index.evidence)


# -- cut off by recovery


@pytest.mark.full_form(keep=4)
@pytest.mark.parametrize(("name", "archive"), CUT_OFF)
def test_acknowledged_messages_after_the_end_were_cut_off(opened, golden_account, name, archive):
    store = opened(name, archive)
    puts = acknowledged(golden_account, name)
    cut_off = [put for put in puts if put["phy"] >= store.log.max_offset]
    # In crash-flip the first of them still has its bytes, but they are wrong.
    assert cut_off
    for put in sample(cut_off, 20):
        expected = {"truncated", "damaged"} if put is cut_off[0] else {"truncated"}
        assert verdict(store, put["msgId"]) in expected
        if put["kind"] in {"normal", "compressed", "delay", "commit"}:
            assert verdict(store, f"{put['topic']}/{put['queue']}/{put['queueOffset']}") in expected
    for put in sample([put for put in puts if put["phy"] < store.log.max_offset], 20):
        assert verdict(store, put["msgId"]) not in {"truncated", "damaged", "expired", "neverSeen", "unknown"}


def test_a_flipped_body_is_damaged_and_following_units_are_cut_off(opened):
    store = opened("crash-flip-5.3.3")
    flipped = next(unit for unit in store.log.walk() if isinstance(unit, Unit) and unit.crc == "bad")
    place = f"{flipped.topic}/{flipped.queue_id}/{flipped.queue_offset}"
    for text in (flipped.offset_msg_id, flipped.unique_key, place):
        (result,) = where(store, text)
        assert result.verdict == "damaged"
        assert any(evidence.what == "body CRC" for evidence in result.evidence)
    following = next(unit for unit in store.log.walk(flipped.end) if isinstance(unit, Unit) and unit.unique_key)
    assert verdict(store, following.unique_key) == "truncated"


@pytest.mark.parametrize("archive", ["store", "store-recovered"])
def test_three_of_four_unanswered_sends_exist(opened, golden_account, archive):
    """The broker was killed between storing and answering. The recorded truth says how many sends it stored."""
    name = "broker-crash"
    answered = {line.get("keys") for line in truth_lines(golden_account, name, "send")}
    tried = [
        line["keys"].split()[0]
        for line in truth_lines(golden_account, name, "trying")
        if line.get("keys") not in answered
    ]
    keys = [key for key in tried if key.startswith("K")]
    counts = Counter(verdict(opened(name, archive), key) for key in keys)
    assert counts == {"found": 3, "neverSeen": 1}
    for line in truth_lines(golden_account, name, "send")[-15:]:
        assert verdict(opened(name, archive), line["offsetMsgId"]) == "found"
        assert verdict(opened(name, archive), line["msgId"]) == "found"


@pytest.mark.parametrize("live", ["live-1", "live-3"])
def test_messages_only_in_the_transient_pool_are_cut_off(golden, golden_account, live):
    with reopened(golden("broker-transient").parent / live) as store:
        sends = truth_lines(golden_account, "broker-transient", "send")
        end = store.log.max_offset
        unflushed_ids = [
            s["offsetMsgId"] for s in sends if end <= parse_offset_message_id(s["offsetMsgId"])[1] < end + 30_000
        ]
        assert unflushed_ids
        assert {verdict(store, text) for text in sample(unflushed_ids, 10)} == {"truncated"}


# -- queues and index that do not know of it


@pytest.mark.parametrize("name", ["queues-gone-5.3.3", "queues-gone-4.9.8"])
def test_without_queues_no_message_is_in_its_queue(opened, golden_account, name):
    puts = [put for put in acknowledged(golden_account, name) if put["kind"] in {"normal", "compressed", "delay"}]
    for put in [*sample(puts, 10), puts[-1]]:
        assert verdict(opened(name), put["msgId"]) == "notInQueue"
        assert verdict(opened(name), f"{put['topic']}/{put['queue']}/{put['queueOffset']}") == "notInQueue"
        assert verdict(opened(name, "recovered"), put["msgId"]) in {"found", "delayed"}


def test_a_torn_queue_misses_messages_of_the_log(opened, golden_account):
    store = opened("crash-power-5.3.3")
    puts = [put for put in acknowledged(golden_account, "crash-power-5.3.3") if put["kind"] == "normal"]
    orders = [put for put in puts if put["topic"] == "orders" and put["phy"] < store.log.max_offset]
    for put in sample(orders, 10):
        assert verdict(store, f"orders/0/{put['queueOffset']}") == "notInQueue"
        assert verdict(opened("crash-power-5.3.3", "recovered"), put["msgId"]) == "found"


def test_a_removed_queue_folder(spoiled, golden_account):
    path = spoiled("clean-5.3.3")
    shutil.rmtree(path / "consumequeue" / "TopicA" / "2")
    puts = [put for put in acknowledged(golden_account, "clean-5.3.3") if put["kind"] == "normal"]
    with reopened(path) as store:
        for put in sample([put for put in puts if (put["topic"], put["queue"]) == ("TopicA", 2)], 8):
            assert verdict(store, put["msgId"]) == "notInQueue"
            assert verdict(store, f"TopicA/2/{put['queueOffset']}") == "notInQueue"
        for put in sample([put for put in puts if put["queue"] == 1], 8):
            assert verdict(store, put["msgId"]) == "found"


def test_a_deleted_topics_messages_stay_in_the_log(opened, golden_account):
    for name in ("broker-orders", "broker-orders-4.9.7"):
        (deleted,) = truth_lines(golden_account, name, "topicDeleted")
        lines = [line for line in truth_lines(golden_account, name, "send") if line["topic"] == deleted["topic"]]
        assert lines
        for line in lines:
            place = f"{line['topic']}/{line['queueId']}/{line['queueOffset']}"
            for text in (line["msgId"], line["offsetMsgId"], place):
                (result,) = where(opened(name), text)
                assert result.verdict == "notInQueue"
                assert any("it was deleted" in item.holds for item in result.evidence)


def test_a_missing_index_file_hides_a_message_from_queries_only(spoiled, golden_account):
    path = spoiled("broker-orders")
    with open_store(path) as store:
        header = store.index_files()[2].header
    sorted((path / "index").iterdir())[2].unlink()
    lines = truth_lines(golden_account, "broker-orders", "send")
    inside = range(header.begin_phy_offset + 2000, header.end_phy_offset - 2000)
    covered = [line for line in lines if parse_offset_message_id(line["offsetMsgId"])[1] in inside]
    with reopened(path) as store:
        for line in sample([line for line in covered if line["topic"] == "OrderEvents"], 8):
            assert verdict(store, line["msgId"]) == "notInIndex"
            assert verdict(store, line["offsetMsgId"], group="billing") == "consumed"


def test_units_after_every_queue_are_not_yet_dispatched(spoiled, golden_account):
    name, since = "crash-5.3.3", 1_690_000
    path = spoiled(name)
    for file in (file for file in (path / "consumequeue").rglob("0*") if file.is_file()):
        data = bytearray(file.read_bytes())
        for position in range(0, len(data), 20):
            if struct.unpack_from(">q", data, position)[0] >= since:
                data[position : position + 20] = bytes(20)
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
    new_store = handmade_stores.healthy(20)
    new_store.units[-1].dispatched = new_store.units[-2].dispatched = False
    new_store.write(tmp_path / "store", checkpoint=False, abort=True)
    with reopened(tmp_path / "store") as store:
        newest, older = new_store.units[-1], new_store.units[5]
        assert verdict(store, newest.keys[0]) == "notYetDispatched"
        assert verdict(store, f"{newest.topic}/{newest.queue_id}/{newest.queue_offset}") == "notYetDispatched"
        assert verdict(store, older.keys[0]) == "found"


def test_a_part_of_a_store_does_not_miss_the_queues(golden, golden_account):
    puts = [put for put in acknowledged(golden_account, "clean-5.3.3") if put["kind"] == "normal"]
    with open_store(golden("clean-5.3.3") / "commitlog") as store:
        for put in sample(puts, 5):
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
    put = sample([put for put in acknowledged(golden_account, "clean-5.3.3") if put["kind"] == "normal"], 40)[0]
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


def test_unreadable_bytes_are_searched_in_a_log_of_more_than_4_gib(tmp_path):
    """The message was reported as never existing, although gibibytes of the log are unreadable."""
    done = []
    with open_store(sparse_store(tmp_path, files=5)) as store:
        assert store.log.sequence.total_size > 4 << 30
        (finding,) = where(store, "TopicBench0/77/5", progress=done.append)
        spans = [item for item in finding.evidence if item.what == "not ruled out"]
        assert finding.verdict == "unknown"
        assert len(spans) == 5
        assert max(done) > 4 << 30


def test_few_of_many_unreadable_places_are_named_and_all_are_counted(spoiled):
    path = spoiled("clean-5.3.3")
    with open_store(path) as store:
        units = [row for row in store.log.walk(crc=False) if isinstance(row, Unit)][10:110:5]
        files = [(log_file.start_offset, log_file.end_offset, log_file.path) for log_file in store.log.files]
    for unit in units:
        start, _, name = next(evidence for evidence in files if evidence[0] <= unit.offset < evidence[1])
        with open(name, "r+b") as file:
            file.seek(unit.offset - start + 4)
            file.write(b"\xff\xff\xff\xff")
    with reopened(path) as store:
        (finding,) = where(store, "NO-SUCH-KEY")
    spans = [evidence for evidence in finding.evidence if evidence.what == "not ruled out"]
    assert finding.verdict == "unknown"
    assert [span.offset for span in spans] == [unit.offset for unit in units[:9]]
    assert spans[-1].holds == f"{sum(unit.size for unit in units[8:]):,} bytes in 12 more places are invalid"


def test_a_complete_log_has_no_unreadable_spans(tmp_path):
    with open_store(healthy(60).write(tmp_path / "store")) as store:
        assert unreadable_spans(store.log, 5) == UnreadableSpans()


def test_each_torn_unit_is_a_span(tmp_path):
    new_store = healthy(60)
    torn = [new_store.units[position] for position in (5, 20, 40)]
    for unit in torn:
        new_store.log[unit.offset : unit.offset + unit.size] = b"\xff" * unit.size
    progress_calls: list[int] = []
    with open_store(new_store.write(tmp_path / "store")) as store:
        spans = unreadable_spans(store.log, 2, progress_calls.append)
    assert [(span.offset, span.size) for span in spans.listed] == [(unit.offset, unit.size) for unit in torn[:2]]
    assert all(span.reason for span in spans.listed)
    assert (spans.further_count, spans.further_bytes, spans.further_offset) == (
        1,
        torn[2].size,
        torn[2].offset,
    )
    assert progress_calls == sorted(progress_calls)
    assert progress_calls


def test_spans_over_the_limit_are_counted_from_their_first():
    spans = UnreadableSpans()
    for offset in (10, 20, 30):
        spans.add(Unreadable(offset, 3, "torn"), 1)
    assert [span.offset for span in spans.listed] == [10]
    assert (spans.further_count, spans.further_bytes, spans.further_offset) == (2, 6, 20)


def test_a_key_in_remains_of_replaced_entries_is_named_so(opened):
    (result,) = where(opened("dledger-replaced-5.5.1"), "gone-13")
    assert result.verdict == "truncated"
    assert any("in remains of entries that a leader replaced" in item.holds for item in result.evidence)


# -- places that are no unit


def test_an_offset_inside_a_unit_names_its_beginning(opened):
    """The answer was that the store has no trace of it, and to look at other brokers."""
    store = opened("clean-5.3.3")
    unit = next(item for item in store.log.walk() if isinstance(item, Unit) and item.offset)
    (result,) = where(store, str(unit.offset + 10))
    assert (result.verdict, result.next_step) == (
        "neverSeen",
        f"A message includes this byte: ask for its offset {unit.offset}.",
    )


def test_an_offset_in_a_missing_file_is_no_damage(golden, tmp_path):
    root = shutil.copytree(golden("crash-5.3.3"), tmp_path / "store")
    sorted((root / "commitlog").iterdir())[1].unlink()
    with open_store(root) as store:
        (result,) = where(store, "1348700")
    assert result.next_step.startswith("Find the missing file of the log")
    assert any(evidence.holds == "no file of the log holds this offset" for evidence in result.evidence)


def test_without_a_log_the_next_step_is_to_mount_it(golden, tmp_path):
    """An entry of the index was called cut off by a start, and the log held "-1 to 0"."""
    root = shutil.copytree(golden("clean-5.3.3"), tmp_path / "store")
    with open_store(root) as store:
        unit = next(item for item in store.log.walk() if isinstance(item, Unit) and item.unique_key)
    shutil.rmtree(root / "commitlog")
    with open_store(root) as store:
        for question in (unit.unique_key, "1348700"):
            (result,) = where(store, question)
            assert result.verdict == "unknown"
            assert result.next_step == ("The commit log has no files: mount its disk or restore them, then ask again.")
            assert not any("names the broker" in evidence.holds for evidence in result.evidence)
